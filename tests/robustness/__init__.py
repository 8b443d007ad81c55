"""Attacks on graftmt: damaged and hostile files, kills, full disks, threads. docs/reliability.md says how to run them."""
