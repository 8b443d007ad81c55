"""Thin wiring from the command line to the package, one file per verb. The top layer."""
