"""The README.md of a base or a pack as the Hugging Face Hub wants it: with a header that its search reads. Layer 5."""

from __future__ import annotations

from pathlib import Path

import yaml

from graftmt.files import LARGEST_TEXT, read_limited
from graftmt.sharing.offers import Offer


def hub_card(offer: Offer, card: Path | None) -> bytes:
    """The card, after a header with licence, languages and tags."""
    tags = ["graftmt", f"graftmt-{offer.kind}", "translation"]
    if offer.base is not None:
        tags.append(f"graftmt-base-{offer.base[:16]}")
    header = {
        "library_name": "graftmt",
        "pipeline_tag": "translation",
        **({"license": offer.licence} if offer.licence else {}),
        "language": [language.split("_")[0] for language in offer.languages],
        "tags": tags,
    }
    text = "" if card is None else read_limited(card, LARGEST_TEXT).decode(errors="replace")
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n\n{without_header(text)}".encode()


def without_header(text: str) -> str:
    """The text, without a header that it has."""
    if not text.startswith("---\n"):
        return text
    _, closing, rest = text.removeprefix("---\n").partition("\n---\n")
    return rest.lstrip("\n") if closing else text
