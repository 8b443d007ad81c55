"""Forms of text outside graftmt, one file each; `interop/export/target_registry.py` finds them. Layer 5."""
