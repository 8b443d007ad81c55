"""What a path is that was given for something else, and which command it is for. Layer 0."""

from __future__ import annotations

import shlex
import zipfile
from contextlib import suppress
from pathlib import Path

from graftmt.documents import read_json
from graftmt.errors import GraftError
from graftmt.places import BASE, CORPUS, EXPORT, EXPORT_DOCUMENT, PACK, RUNS

ARCHIVE = ".graftpack"
TABLES = {".tsv": "tsv", ".csv": "tsv", ".tab": "tsv", ".tmx": "tmx", ".jsonl": "jsonl", ".parquet": "parquet", ".po": "po"}


def instead_of_base(path: Path) -> str:
    """The end of an error where no base was found: what the path is, and the next command; empty where nobody can tell."""
    shown = shlex.quote(str(path))
    if PACK.is_one(path) or (path.is_file() and (path.suffix == ARCHIVE or _is_zip(path))):
        return f"{path} is a pack, which is used with a base: -b BASE -p {shown}"
    for inside in ("base", "../base", "../../base"):
        if path.is_dir() and BASE.is_one(path / inside):
            return f"{path} is no base, but {path / inside} is one: -b {shlex.quote(str(path / inside))}"
    if exported := _exported(path):
        return f"{exported}. Give the base that it was made of, and packs with -p"
    if path.is_dir() and (path / "config.json").is_file():
        make = f"graftmt import {shown} -o {path.name}-base"
        return f"{path} is a model of Hugging Face{_kind_of(path)}. Make a base of it first: {make}"
    for run in (path, path.parent):  # before hub ids: mine/base looks like one
        if run.is_dir() and any(RUNS[of].is_one(run) for of in ("base", "retrained base")):
            return (
                f"the training in {run} is not finished. Rerun the command that began it to resume, and it makes {run / 'base'}"
            )
    if not path.exists() and _looks_like_an_id(path):
        return f"for a model of the Hugging Face hub: graftmt import {shown} -o {path.name}, then -b {path.name}"
    if CORPUS.is_one(path):
        return f"{path} is a corpus; a base is a folder with base.json in it"
    return ""


def instead_of_pack(path: Path) -> str:
    """The same where a pack was expected."""
    if BASE.is_one(path):
        return f"{path} is a base; give it with -b {shlex.quote(str(path))}, and packs with -p PACK"
    if exported := _exported(path):
        return f"{exported}. Give the packs that it was made of"
    if path.is_dir() and ((path / "adapter_config.json").is_file() or (path / "config.json").is_file()):
        return f"{path} is a model of Hugging Face{_kind_of(path)}; packs are made by `graftmt add`"
    return ""


def instead_of_corpus(path: Path) -> str:
    """The same where a corpus folder was expected, and a file was given."""
    kind = TABLES.get(path.suffix.lower())
    if not path.is_file():
        return ""
    if kind is None:
        return f"{path} is a file; a corpus is a folder with a file a language in it, such as train.en.txt"
    return f"{path} is a file of pairs; make a corpus of it first: graftmt prepare {kind} {shlex.quote(str(path))} -o corpus"


def _is_zip(path: Path) -> bool:
    with suppress(OSError):
        return zipfile.is_zipfile(path)
    return False


def _exported(path: Path) -> str:
    """What an exported model is for, unless `graftmt import` can read it."""
    if not path.is_dir() or not EXPORT.is_one(path):
        return ""
    card = read_json(path / EXPORT_DOCUMENT, "the export")
    return "" if "text" in card else f"{path} is a model that was exported for another program ({card.get('to')!s:.40})"


def _kind_of(path: Path) -> str:
    with suppress(GraftError, OSError):
        kind = read_json(path / "config.json", "the model").get("model_type")
        return f" ({kind})" if isinstance(kind, str) else ""
    return ""


def _looks_like_an_id(path: Path) -> bool:
    return not path.is_absolute() and len(path.parts) == 2 and not path.parent.exists()
