"""What a store offers: one base or pack, with its facts and the sizes and checksums of its files. Layer 5.

An index may come from anyone. Names and paths in it are plain, relative and short, or the index is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, TypedDict

from graftmt.base import check_fingerprint
from graftmt.packs.archive import ARCHIVE
from graftmt.places import BASE_FILES, PACK_FILES
from graftmt.sharing.checksums import Checksum

MOST_FILES = 32
"""Of one base or pack."""
LONGEST_TEXT = 8_000
"""Characters of a recipe or a licence."""
_PART = re.compile(r"\w[\w.+-]{0,99}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that are no files on some systems."""
MOST_PARTS = 5

ThingKind = Literal["base", "pack"]
DOCUMENTS: dict[ThingKind, tuple[str, str, str]] = {"base": BASE_FILES, "pack": PACK_FILES}
"""The files that all of a kind have: document, tensors, card."""


class FileEntry(TypedDict):
    """A file in an index."""

    path: str
    size: int
    checksum: str


class _Required(TypedDict):
    name: str
    kind: Literal["base", "pack"]
    fingerprint: str
    languages: list[str]
    files: list[FileEntry]


class OfferEntry(_Required, total=False):
    """An offer in an index."""

    base: str
    side: Literal["source", "target"]
    recipe: str
    licence: str | None
    parameters: int
    scores: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class OfferedFile:
    """One file, below the root of its store."""

    path: str
    size: int
    checksum: Checksum

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A base or a pack that can be had."""

    name: str
    """Its path in the store, without .graftpack: el-source, team/el-source."""
    kind: ThingKind
    fingerprint: str
    languages: tuple[str, ...]
    files: tuple[OfferedFile, ...]
    base: str | None = None
    """Of a pack: the fingerprint of its base."""
    side: Literal["source", "target"] | None = None
    recipe: str | None = None
    licence: str | None = None
    parameters: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    """chrF by direction, as the card has it."""

    def __post_init__(self) -> None:
        check_path(self.name)
        check_fingerprint(self.fingerprint, "fingerprint")
        if self.kind == "pack":
            if self.base is None or self.side is None:
                raise ValueError(f"{self.name}: a pack needs a base and a side")
            check_fingerprint(self.base, "base")
        elif self.is_archive:
            raise ValueError(f"{self.name}: a base is a folder, not a {ARCHIVE} file")
        if not self.languages or not all(0 < len(one) < 100 for one in self.languages):
            raise ValueError(f"{self.name}: languages are missing, or have names that cannot be meant")
        for text in (self.recipe, self.licence):
            if text is not None and (len(text) > LONGEST_TEXT or not text.isprintable()):
                raise ValueError(f"{self.name}: recipe and licence are lines of at most {LONGEST_TEXT:,} characters")
        self._check_files()

    def _check_files(self) -> None:
        if not 1 <= len(self.files) <= MOST_FILES:
            raise ValueError(f"{self.name} has {len(self.files)} files; expected 1 to {MOST_FILES}")
        for file in self.files:
            check_path(file.path)
            if file.size < 0:
                raise ValueError(f"{file.path} has {file.size} bytes")
            if not self.is_archive and not _FILE.fullmatch(file.name):
                raise ValueError(f"{file.path!r:.200} is no name of a file of a {self.kind}")
        if self.is_archive:
            return
        names = {file.name.lower() for file in self.files}
        folders = {str(PurePosixPath(file.path).parent) for file in self.files}
        if len(names) < len(self.files) or len(folders) > 1:
            raise ValueError(f"{self.name}: its files must be in one folder, with different names")
        if missing := [name for name in DOCUMENTS[self.kind][:2] if name not in {file.name for file in self.files}]:
            raise ValueError(f"{self.name} has no {missing[0]}")

    @property
    def is_archive(self) -> bool:
        """One .graftpack file."""
        return len(self.files) == 1 and self.files[0].path.endswith(ARCHIVE)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def chrf(self) -> float | None:
        """The mean over the directions of the card."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else None

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Offer:
        """An entry whose fields have the right types; what else is wrong with it is a ValueError."""
        files = tuple(
            OfferedFile(path=file["path"], size=file["size"], checksum=Checksum.parse(file["checksum"]))
            for file in entry["files"]
        )
        facts = {key: entry[key] for key in OfferEntry.__optional_keys__ if entry.get(key) is not None}
        return cls(
            name=entry["name"],
            kind=entry["kind"],
            fingerprint=entry["fingerprint"],
            languages=tuple(entry["languages"]),
            files=files,
            **facts,
        )

    def entry(self) -> dict[str, Any]:
        """As an index has it."""
        facts = {
            "base": self.base,
            "side": self.side,
            "recipe": self.recipe,
            "licence": self.licence,
            "parameters": self.parameters or None,
            "scores": dict(self.scores) or None,
        }
        return {
            "name": self.name,
            "kind": self.kind,
            "fingerprint": self.fingerprint,
            "languages": list(self.languages),
            **{key: value for key, value in facts.items() if value is not None},
            "files": [{"path": file.path, "size": file.size, "checksum": str(file.checksum)} for file in self.files],
        }


def check_path(path: str) -> None:
    """A ValueError unless this is a plain relative path: no `..`, no drive, no character that a system gives a meaning."""
    parts = path.split("/")
    for part in parts:
        if not _PART.fullmatch(part) or _DEVICES.fullmatch(part) or part.endswith("."):
            raise ValueError(
                f"{path!r:.200} is no path that can be used: expected letters, digits and . _ + -, with / between parts "
                "that each begin with a letter or digit"
            )
    if len(parts) > MOST_PARTS:
        raise ValueError(f"{path!r:.200} has more than {MOST_PARTS} parts")


def facts_of(kind: ThingKind, document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an offer that base.json or pack.json decides."""
    card = document["card"]
    scores = card.get("scores")
    licence = card.get("licence") or (card.get("origin") or {}).get("licence")
    facts: dict[str, Any] = {
        "kind": kind,
        "fingerprint": document["fingerprint"],
        "languages": tuple(document["languages"]),
        "licence": licence if isinstance(licence, str) else None,
        "parameters": document.get("parameters", 0),
    }
    if kind == "pack":
        facts |= {"base": document["base"], "side": document["side"], "recipe": document["recipe"]}
        if isinstance(scores, dict):  # of a pack these are checked when its document is read
            facts["scores"] = {direction: round(float(entry["chrf"]), 2) for direction, entry in scores.items()}
    return facts
