"""Sharing is tested against real servers on this machine: the tests' own web server, and one that speaks as the Hub does."""
