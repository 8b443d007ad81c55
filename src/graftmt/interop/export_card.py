"""export.json, the card of an exported folder: what it was made of, and every file with its size and hash. Layer 5.

Format 1 listed the names of files alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from graftmt.checked import read_checked_json, write_checked_json
from graftmt.documents import check_fields
from graftmt.errors import CheckpointError
from graftmt.files import open_regular
from graftmt.places import EXPORT_DOCUMENT

FORMAT = 2
PAGE = "README.md"
"""People edit it, for the hub where they put the folder: it may differ from what was written."""
AGAIN = "Copy the folder again, or export the model again."


class PackFacts(TypedDict):
    languages: list[str]
    side: str
    recipe: str
    fingerprint: str


class DirectionFacts(TypedDict):
    source: str
    target: str


class FileFacts(TypedDict):
    bytes: int
    sha256: str


class ExportCard(TypedDict):
    """What every card has; the rest is each format's own."""

    to: str
    quantization: str
    base: str
    packs: list[PackFacts]
    directions: list[DirectionFacts]


class _Files(TypedDict):
    files: dict[str, FileFacts]


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes export.json, with all files that are in the folder now."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / EXPORT_DOCUMENT)
    files = {
        path.relative_to(folder).as_posix(): FileFacts(bytes=path.stat().st_size, sha256=file_hash(path)) for path in paths
    }
    write_checked_json(folder / EXPORT_DOCUMENT, {"kind": "export", "format": FORMAT, **card, "files": files})


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a folder, checked; `files` is a mapping, or a list of names in format 1."""
    path = folder / EXPORT_DOCUMENT
    card = read_checked_json(path, "the export")
    if type(card.get("format")) is not int or not 1 <= card["format"] <= FORMAT:
        raise CheckpointError(
            f"{path} has format {card.get('format')!r:.40}; this version of graftmt reads up to {FORMAT}. Upgrade graftmt."
        )
    try:
        check_fields(card, ExportCard)
        if card["format"] > 1:
            check_fields(card, _Files)
            for name in card["files"]:
                if name.startswith("/") or ".." in name.split("/"):
                    raise ValueError(f"files: {name!r:.60} is not in the folder")
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}). {AGAIN}") from None
    return card


def check_files(folder: Path, files: Mapping[str, FileFacts]) -> None:
    """An error names the first of these files that is missing, or has not the content that the card states."""
    for name, stated in files.items():
        if problem := _problem(folder / name, stated):
            raise CheckpointError(f"{folder / name} {problem}. {AGAIN}")


def _problem(path: Path, stated: FileFacts) -> str:
    """What is wrong with a file; "" where nothing is."""
    try:
        size = path.stat().st_size
        if size == stated["bytes"] and file_hash(path) == stated["sha256"]:
            return ""
    except OSError as error:
        return f"is listed in {EXPORT_DOCUMENT} and cannot be read ({error.strerror})"
    if size == stated["bytes"]:
        return f"was changed or damaged: it does not have its sha256 of {EXPORT_DOCUMENT}"
    how = "truncated" if size < stated["bytes"] else "changed or damaged"
    return f"is {how}: it has {size:,} bytes, and {EXPORT_DOCUMENT} states {stated['bytes']:,}"


def is_as_written(folder: Path, name: str, stated: FileFacts) -> bool:
    return not _problem(folder / name, stated)


def file_hash(path: Path) -> str:
    with open_regular(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


# Which model it is


def identity(card: Mapping[str, Any]) -> dict[str, Any]:
    """What two exports of the same model have in common."""
    packs = sorted([pack["side"], *pack["languages"], pack["recipe"], pack["fingerprint"]] for pack in card["packs"])
    directions = sorted(f"{one['source']}-{one['target']}" for one in card["directions"])
    return {"format": card["to"], "quantization": card["quantization"], "base": card["base"], "packs": packs} | {
        "directions": directions
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """In what two cards are of different models; what has no fingerprint, since it was never stored, is no known model."""
    first, second = identity(one), identity(other)
    found = [key for key in first if first[key] != second[key]]
    unknown = not one["base"] or not all(pack["fingerprint"] for pack in one["packs"])
    return found or (["fingerprints"] if unknown else [])


def in_words(card: Mapping[str, Any]) -> str:
    """el-uk for ctranslate2 (int8), of the base 3b2bcb90880e and the packs el-source bbe841630fe7."""
    packs = " and ".join([f"{'+'.join(pack['languages'])}-{pack['side']} {pack['fingerprint'][:12]}" for pack in card["packs"]])
    directions = ", ".join(identity(card)["directions"])
    made_of = f"the base {card['base'][:12] or '(never stored)'}" + (f" with the packs {packs}" if packs else " alone")
    return f"{directions} for {card['to']} ({card['quantization']}), of {made_of}"
