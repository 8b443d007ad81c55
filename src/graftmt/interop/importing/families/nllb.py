"""NLLB-200, the dense models: M2M-100's layers with codes such as `eng_Latn`. Layer 5."""

from __future__ import annotations

from graftmt.interop.importing.families.m2m_100 import M2M100Layout, tokenizer_class
from graftmt.interop.importing.family import ForeignFolder
from graftmt.places import EXPORT_DOCUMENT


class NLLB(M2M100Layout):
    name = "nllb"
    title = "NLLB-200"
    text_family = "nllb"

    def recognises(self, folder: ForeignFolder) -> bool:
        if folder.model_type != "m2m_100" or "small100" in folder.name.lower().replace("-", ""):
            return False
        if (folder.path / EXPORT_DOCUMENT).exists():
            return False
        known = tokenizer_class(folder)
        return known == "NllbTokenizer" or (known != "SMALL100Tokenizer" and not (folder.path / "vocab.json").exists())
