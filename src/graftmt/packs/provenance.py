"""Where a pack comes from, in words: its base, its languages, its licence and author. Layer 3.

None of it is part of the fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftmt.base import Base
from graftmt.text.languages import words_for

ORIGIN = ("name", "family", "revision", "licence")
"""What is repeated of a base's origin."""


def provenance(base: Base, languages: Sequence[str]) -> dict[str, Any]:
    """What a pack's card says of its base and its languages: codes, and their names where a library knows them."""
    origin = base.card.get("origin") or {}
    found = {key: origin[key] for key in ORIGIN if isinstance(origin.get(key), str)}
    if "name" not in found and base.folder is not None:
        found["name"] = folder_name(base.folder.resolve().parts)
    return {"made_for": found, "language_names": {code: words_for(code) or code for code in languages}}


def folder_name(parts: Sequence[str]) -> str:
    """The end of a path that tells a base from others: demo/base rather than base."""
    names = [part for part in parts if part.strip("/\\")]
    return "/".join(names[-2:] if names[-1:] == ["base"] else names[-1:])


def in_words(card: Mapping[str, Any], code: str) -> str:
    """`Greek (el)`; the code alone where it has no name."""
    name = (card.get("language_names") or {}).get(code, code)
    return code if name == code else f"{name} ({code})"
