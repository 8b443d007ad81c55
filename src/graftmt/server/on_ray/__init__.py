"""The server on a Ray cluster: a front that hands requests to replicas of the application. Layer 6."""

APPLICATION, REPLICAS = "graftmt", "translator"
"""What Ray calls the application, and in it the replicas that translate."""
