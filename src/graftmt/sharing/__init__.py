"""Bases and packs from and for others: a Hugging Face Hub repository, a web folder with an index, a folder. Layer 5.

What comes from outside is checked before it is believed: sizes before memory or disk is taken, checksums before files get
a name, fingerprints before a base or a pack counts as one.
"""
