"""What a command leaves, without what depends on the clock: the same work gives the same, whatever happened on the way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLOCKS = {
    "seconds",
    "training_seconds",
    "minutes",
    "lines_per_second",
    "tokens_per_second",
    "target_tokens_per_second",
    "when",
    "host",
    "made",
    "training",
}
"""Keys of values that differ from one run to the next."""
RESULTS = {
    "train": ("run/base/model.safetensors", "run/base/subwords.model", "run/base/base.json:fingerprint,languages"),
    "retrain": ("run/base/model.safetensors", "run/base/subwords.model", "run/base/base.json:fingerprint,languages"),
    "add": (
        *("run/pack/pack.safetensors", "run/pack/subwords.model", "run/pack/pack.json:fingerprint,languages,recipe"),
        *("pack/pack.safetensors", "pack/subwords.model", "pack/pack.json:fingerprint,languages,recipe"),
    ),
    "translate": ("out.fr.txt",),
    "augment": ("augmented/*.txt", "augmented/corpus.json"),
    "evaluate": ("scores/test.*.txt", "scores/report.json:directions,averages", "scores/lines/*"),
    "experiment": ("experiments/results/*.json:fingerprint,scores",),
    "clean": ("clean/*",),
    "split": ("split/*",),
}
"""Per command: files, and of documents the keys, that are its result."""


def result_of(name: str, folder: Path) -> dict[str, Any]:
    """The result of the command `name` of the world that worked in `folder`: a value per file."""
    found: dict[str, Any] = {}
    for pattern in RESULTS[name]:
        pattern, _, keys = pattern.partition(":")
        paths = sorted(path for path in folder.glob(pattern) if not _is_stray(path.name))
        if not paths:
            found[pattern] = "missing"
        for path in paths:
            found[str(path.relative_to(folder))] = _value(path, keys.split(",") if keys else None)
    return found


def _is_stray(name: str) -> bool:
    """Whether an attack put it there: a file that is no command's own stays, wherever it is."""
    return any("\ud800" <= character <= "\udfff" for character in name)


def _value(path: Path, keys: list[str] | None) -> Any:
    if path.suffix == ".json":
        document = json.loads(path.read_bytes())
        return _timeless(document if keys is None else {key: document.get(key) for key in keys})
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in CLOCKS}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def left_behind(folder: Path) -> list[str]:
    """Temporary files and folders that nobody will look at again."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*.tmp"))


def snapshot(folder: Path, without: tuple[Path, ...] = ()) -> dict[str, tuple[int, ...]]:
    """Everything below a folder by kind, size, time and place on the disk; another program's write changes one of them."""
    return {str(path): _mark(path) for path in _walk(folder, without)}


def _walk(folder: Path, without: tuple[Path, ...]) -> Iterator[Path]:
    for path in folder.iterdir():
        if path not in without:
            yield path
            if path.is_dir() and not path.is_symlink():
                yield from _walk(path, without)


def _mark(path: Path) -> tuple[int, ...]:
    stat = path.lstat()
    if path.is_dir() and not path.is_symlink():
        return (stat.st_mode, stat.st_ino)  # its time changes with what is in it, which is listed by itself
    return (stat.st_mode, stat.st_ino, stat.st_size, stat.st_mtime_ns)
