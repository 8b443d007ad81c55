"""Bases with packs as models of other programs: CTranslate2, Hugging Face. Layer 5.

`plain_model` puts a composed model in plain terms; each file in `targets` writes these in the format of one program.
"""
