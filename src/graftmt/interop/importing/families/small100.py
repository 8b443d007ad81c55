"""SMaLL-100: M2M-100 with a shallow decoder and the target's code before the source text. Layer 5."""

from __future__ import annotations

from graftmt.interop.importing.families.m2m_100 import M2M100Layout, tokenizer_class
from graftmt.interop.importing.family import ForeignFolder


class SMaLL100(M2M100Layout):
    """Its configuration and files are those of M2M-100, so it is known by its tokenizer or by its name."""

    name = "small100"
    title = "SMaLL-100"
    text_family = "small100"

    def recognises(self, folder: ForeignFolder) -> bool:
        named = "small100" in folder.name.lower().replace("-", "")
        return folder.model_type == "m2m_100" and (named or tokenizer_class(folder) == "SMALL100Tokenizer")
