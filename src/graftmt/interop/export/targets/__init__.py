"""The formats that models are exported to, one file each; `interop/export/target_registry.py` finds them. Layer 5."""
