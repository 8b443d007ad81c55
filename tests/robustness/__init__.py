"""Attacks on graftmt: damaged and hostile files, kills, full disks, threads. `python -m robustness` runs all, see docs/reliability.md."""
