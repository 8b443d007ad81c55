"""Sizes in bytes, as options write them: 200GB, 1.5 TB, 800m. Layer 4."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """Bytes, by powers of 1000 whatever the unit's spelling; None where it is no size.

    >>> parse_size("1.5 GB")
    1500000000
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    size = float(match[1]) * 1000 ** " kmgt".index(match[2].lower() or " ")
    return int(size) if size < float("inf") else None
