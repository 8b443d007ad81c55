"""`graftmt evaluate` and `graftmt compare`: many directions as a job that resumes, off-target rates,
reports, and whether one report is better than another. Layer 5.

Nothing is imported here: processes that score need no torch.
"""
