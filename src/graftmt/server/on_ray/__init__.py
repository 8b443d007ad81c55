"""The server on a Ray cluster: a front that hands requests to replicas of the application. Layer 5."""
