"""The kinds of components that a recipe can have, one file each; `packs/registry.py` finds them. Layer 3."""
