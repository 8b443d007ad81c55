"""Where graftmt may write: each kind of folder declared once, and one function that all of them are checked with. Layer 0.

A folder that is written to is new, empty, or one that graftmt made for the same purpose. Nothing is ever written into the
folder of a base or a pack, at any depth.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graftmt.documents import read_json, write_json
from graftmt.errors import DataError, GraftError, first_few
from graftmt.files import LARGEST_TEXT, LEFT, read_limited
from graftmt.folders import check_replaceable, followed


class PlaceError(DataError):
    """A folder or file that may not be written, since it is something else."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of folder that graftmt writes."""

    name: str
    """With its article."""
    is_one: Callable[[Path], bool]
    """Whether a folder that has something in it is one of these."""
    files: Callable[[Path], Collection[str]] | None = None
    """Of a folder that is replaced whole: all that may be in it. Others are written into, and may have other files too."""


def check_place(folder: Path, kind: Kind) -> None:
    """Refuses to write a folder of this kind in a base or a pack, or over anything that is not of this kind."""
    real = followed(folder)
    check_replaceable(real)
    check_outside_models(real, itself=kind is FILES)
    if not real.exists():
        check_writable(real)
        return
    if not real.is_dir():
        raise PlaceError(f"{folder} is a file, and {kind.name} is a folder; choose another name.")
    names = _names(real)
    if not names:
        return
    if not kind.is_one(real):
        what = next((one.name for one in KINDS if one.is_one(real)), "")
        found = what or f"not empty and not {kind.name} ({first_few(sorted(names))})"
        raise PlaceError(
            f"{folder} is {found}, and stays as it is. Choose a new or an empty folder for {kind.name}, such as "
            f"{folder.with_name(folder.name + '-new') if what else folder / 'new'}."
        )
    others = sorted(names - set(kind.files(real))) if kind.files else []
    if others:
        raise PlaceError(
            f"{folder} is {kind.name} with other things in it ({first_few(others)}), and stays as it is. Choose another folder "
            f"for {kind.name}, or move these away."
        )


def check_new(folder: Path) -> None:
    """Refuses a base or a pack where nothing says that it may be replaced."""
    for kind in (BASE, PACK):
        if kind.is_one(followed(folder)):
            raise PlaceError(
                f"{folder} is {kind.name}, and stays as it is. Choose a new or an empty folder, such as "
                f"{folder.with_name(folder.name + '-new')}, or delete this one first if it is no longer needed."
            )


def check_file(path: Path) -> None:
    """The same for a single file."""
    real = followed(path)
    check_replaceable(real)
    check_outside_models(real)
    if real.is_dir():
        raise PlaceError(f"{path} is a folder, and a file is to be written; choose another name.")
    check_writable(real)


def check_outside_models(path: Path, *, itself: bool = False) -> None:
    """Nothing is written into a base or a pack: it is known by what is in it, and may be in use."""
    place = Path(os.path.abspath(path)).resolve()
    for folder in (place, *place.parents) if itself else place.parents:
        for kind in (BASE, PACK):
            if kind.is_one(folder):
                raise PlaceError(f"{path} is in {folder}, which is {kind.name} and stays as it is; choose another place.")


def check_writable(path: Path) -> None:
    """The nearest folder above that exists is one, and files can be made in it."""
    existing = next((folder for folder in Path(os.path.abspath(path)).parents if folder.exists()), Path("/"))
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise PlaceError(f"{path} cannot be written: {existing} is {'not writable' if existing.is_dir() else 'no folder'}.")


def default_cache_folder() -> Path:
    """`$GRAFTMT_CACHE`, or graftmt's folder in the user's cache."""
    if configured := os.environ.get("GRAFTMT_CACHE"):
        return Path(configured)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "graftmt"
    try:
        return Path.home() / ".cache" / "graftmt"
    except RuntimeError:
        raise GraftError("there is no home folder to keep tokenised text in; name a folder in GRAFTMT_CACHE.") from None


def _names(folder: Path) -> set[str]:
    """What is in a folder, without what a killed graftmt may leave."""
    try:
        return {name for name in os.listdir(folder) if name != ".lock" and not LEFT.fullmatch(name)}
    except OSError as error:
        raise PlaceError(f"{folder} cannot be read: {error.strerror}.") from None


def _document(path: Path) -> dict[str, Any] | None:
    """A JSON object; None if there is none that can be read."""
    with suppress(GraftError):
        return read_json(path, "a document") if path.is_file() else None
    return None


# Models


def _model(document: str, tensors: str, kind: str) -> Callable[[Path], bool]:
    """By its document; if that is damaged, by the names of both files."""

    def is_one(folder: Path) -> bool:
        if not (folder / document).is_file():
            return False
        found = _document(folder / document)
        return (folder / tensors).is_file() if found is None else found.get("kind") == kind

    return is_one


BASE_FILES = ("base.json", "model.safetensors", "README.md")
PACK_FILES = ("pack.json", "pack.safetensors", "README.md")
OWN_TEXT = ("subwords.model",)
"""The files of a text of our own kind, about which a document says nothing."""


def _with_text(files: tuple[str, ...]) -> Callable[[Path], Collection[str]]:
    """All files of a model: those of its text too, as its document lists them."""

    def names(folder: Path) -> set[str]:
        text = (_document(folder / files[0]) or {}).get("text")
        listed = text.get("files") if isinstance(text, dict) else OWN_TEXT
        return {*files, *(name for name in listed or () if isinstance(name, str))}

    return names


BASE = Kind(name="a base", is_one=_model(*BASE_FILES[:2], "base"), files=_with_text(BASE_FILES))
PACK = Kind(name="a pack", is_one=_model(*PACK_FILES[:2], "pack"), files=_with_text(PACK_FILES))


# Models for other programs

EXPORT_DOCUMENT = "export.json"


def _export_files(folder: Path) -> set[str]:
    """As its document lists them, in format 1 by names alone; Python leaves a folder when its files are imported."""
    listed = (_document(folder / EXPORT_DOCUMENT) or {}).get("files")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list | dict) else []
    return {EXPORT_DOCUMENT, "__pycache__", *(name.partition("/")[0] for name in names)}


EXPORT = Kind(
    name="an exported model",
    is_one=lambda folder: (_document(folder / EXPORT_DOCUMENT) or {}).get("kind") == "export",
    files=_export_files,
)


# Text


def _corpus_files(folder: Path) -> set[str]:
    """What the commands write into a corpus folder, going by its corpus.json; `prepare clean` adds report.json."""
    document = _document(folder / "corpus.json") or {}
    languages = document.get("languages")
    if isinstance(languages, list):  # as the demo has it
        languages = dict.fromkeys(document.get("lines") or (), languages)
    splits = languages if isinstance(languages, dict) else {}
    texts = {f"{split}.{code}.txt" for split, codes in splits.items() if isinstance(codes, list) for code in codes}
    origins = {f"{split}.source.txt" for split in splits}  # `prepare join`
    return {"corpus.json", "report.json", *texts, *origins}


CORPUS = Kind(name="a corpus", is_one=lambda folder: (folder / "corpus.json").is_file(), files=_corpus_files)

CHUNK = re.compile(r"work\.json|.+-\d{6}\.json")


def _is_chunks(folder: Path) -> bool:
    return (
        all(CHUNK.fullmatch(name) for name in _names(folder))
        and {"new", "pivot"}
        <= (
            _document(folder / "work.json") or {"new": 0, "pivot": 0}  # damaged: the names alone tell
        ).keys()
    )


CHUNKS = Kind(name="the unfinished work of an augmentation", is_one=_is_chunks)


# Runs

RUN_DOCUMENT = "run.json"
EARLY = {
    *("run.json", *OWN_TEXT, "subwords.json", "vocabulary.json", "rows.tsv", "before.json", "begun.json"),
    *("data", "augmented", "augmented.work", "tensorboard", "checkpoints"),
}
"""What a run of an earlier version can have, before it has a config.yaml …"""
SIGNS = {"subwords.json", "data", "begun.json", "augmented", "augmented.work", "checkpoints"}
"""… of which one at least is nothing that others have by chance."""
CONFIG_KEYS = {"run", "stages", "validation", "seed", "checkpoint_every", "keep_checkpoints"}


def begin_run(folder: Path, of: str) -> None:
    """Marks a folder that was checked as a run, before anything else is written there; `of` says what it makes."""
    if (_document(folder / RUN_DOCUMENT) or {}).get("of") != of:
        write_json(folder / RUN_DOCUMENT, {"kind": "run", "format": 1, "of": of})


def _makes(folder: Path) -> str | None:
    """What a run makes: base, pack or retrained base; empty if that cannot be told yet, None if it is no run."""
    found = _document(folder / RUN_DOCUMENT)
    if found is not None:
        return str(found.get("of", "")) if found.get("kind") == "run" else None
    if not (folder / "config.yaml").exists():
        names = _names(folder)
        return "" if names <= EARLY and (names & SIGNS or (folder / ".lock").exists()) else None
    config = _written_config(folder / "config.yaml")
    evidence = any((folder / name).exists() for name in ("checkpoints", "log.jsonl", "subwords.json"))
    if config is None or not evidence:
        return None
    return "pack" if "recipe" in config else "retrained base" if "method" in config else "base"


def _written_config(path: Path) -> dict[str, Any] | None:
    """The configuration, if graftmt wrote it: every key is there, and all is laid out as YAML is by a program."""
    try:
        text = read_limited(path, LARGEST_TEXT).decode()
        found = yaml.safe_load(text)
        written = yaml.safe_dump(found, sort_keys=False, allow_unicode=True)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return found if isinstance(found, dict) and found.keys() >= CONFIG_KEYS and written == text else None


def _run(of: str) -> Kind:
    return Kind(name=f"the run of a {of}", is_one=lambda folder: _makes(folder) in (of, ""))


RUNS = {of: _run(of) for of in ("base", "pack", "retrained base")}


# What is measured


def _is_evaluation(folder: Path) -> bool:
    found = _document(folder / "evaluation.json") or {}
    return {"format", "base", "split", "directions"} <= found.keys()


EVALUATION = Kind(name="an evaluation", is_one=_is_evaluation)

EXPERIMENT_NAMES = {
    "results",
    "translations",
    "bases",
    "text",
    "runs",
    "work",
    "text.json",
    "locks",
    "logs",
    "corpus",
    "report",
}


def _is_experiments(folder: Path) -> bool:
    """All names are ours, or there is a note of the text, or results that are ours."""
    if _names(folder) <= EXPERIMENT_NAMES or isinstance((_document(folder / "text.json") or {}).get("files"), dict):
        return True
    first = next(iter(sorted((folder / "results").glob("*.json"))), None)
    return first is not None and {"job", "kind", "profile"} <= (_document(first) or {}).keys()


EXPERIMENTS = Kind(name="a folder of experiments", is_one=_is_experiments)
REPORT = Kind(name="a report on experiments", is_one=lambda folder: (folder / "results.json").is_file())

DEMO_NAMES = {"corpus", "base", "packs", "runs", "training", "report.md", "report.json", "curves.png", "chrf.png"}


def _is_demo(folder: Path) -> bool:
    """People keep other things there, such as the scores of the README's example."""
    return (
        _names(folder) <= DEMO_NAMES
        or (folder / "base" / "base.json").is_file()
        or "base_unchanged" in (_document(folder / "report.json") or {})
    )


DEMO = Kind(name="a demo", is_one=_is_demo)

FILES = Kind(name="a folder for figures and tables", is_one=lambda folder: True)
"""Files with names of their own, which may be next to others."""

KINDS = (BASE, PACK, EXPORT, EVALUATION, *RUNS.values(), CORPUS)
"""Those that are called by their name when something else is to be written there."""
