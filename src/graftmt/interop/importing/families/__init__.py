"""Families of foreign models, a file each: how one is recognised, its architecture, its tensors, its text. Layer 5."""
