"""Forms of text outside graftmt, one file each; `interop/export/registry.py` finds them. Layer 5."""
