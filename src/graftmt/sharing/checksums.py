"""Checksums of shared files: sha256, or the sha1 by which git, and so the Hugging Face Hub, knows small files. Layer 5."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from graftmt.files import open_regular

BLOCK = 2**20
_DIGITS = {"sha256": 64, "git-sha1": 40}


class Checksum(NamedTuple):
    """What a file's content must hash to."""

    algorithm: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Checksum:
        """`sha256:…` or `git-sha1:…`; anything else is a ValueError."""
        algorithm, _, value = text.partition(":")
        if algorithm not in _DIGITS or not re.fullmatch(f"[0-9a-f]{{{_DIGITS[algorithm]}}}", value):
            raise ValueError(f"the checksum is {text!r:.80}; expected sha256: and 64 hexadecimal digits")
        return cls(algorithm, value)

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.value}"

    def fits(self, path: Path) -> bool:
        """Whether the file has it."""
        with open_regular(path) as handle:
            size = path.stat().st_size
            digest = hashlib.sha256() if self.algorithm == "sha256" else hashlib.sha1(b"blob %d\0" % size)
            while block := handle.read(BLOCK):
                digest.update(block)
        return digest.hexdigest() == self.value


def checksum_of(path: Path) -> Checksum:
    """The sha256 of a file."""
    with open_regular(path) as handle:
        return Checksum("sha256", hashlib.file_digest(handle, "sha256").hexdigest())
