"""The formats that models are exported to, one file each; `interop/export/registry.py` finds them. Layer 5."""
