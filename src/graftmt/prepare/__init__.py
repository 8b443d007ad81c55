"""From the files people download to a corpus folder: read, clean, align, split, count. Layer 4."""
