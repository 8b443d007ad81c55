"""A folder of exported models: each is made once, known by a key, and those unused for longest make room. Layer 5."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graftmt.documents import read_json, write_json
from graftmt.errors import ConfigError, GraftError
from graftmt.files import atomic_folder, open_regular, sweep
from graftmt.folders import claimed

logger = logging.getLogger(__name__)

CHECKSUMS = "checksums.json"
"""In each model's folder; its time is that of the model's last use."""
LIMIT = "GRAFTMT_CACHE_GB"
DEFAULT_LIMIT = 20.0
GB = 1_000_000_000


@dataclass(frozen=True)
class ModelCache:
    """Models of one kind, in `folder`, which together take at most `limit` bytes; the one in use may take more alone."""

    folder: Path
    limit: int

    @contextmanager
    def model(self, key: str, write: Callable[[Path], None]) -> Iterator[Path]:
        """The folder of a model, for as long as the block takes; `write` makes it where it is missing or damaged.

        One process at a time: a second that needs the same model finds it made, and nothing is removed that is being read.
        """
        folder = self.folder / key
        if not os.access(self.folder.parent, os.W_OK) and is_whole(folder):  # a cache that may only be read still serves
            yield folder
            return
        with claimed(self.folder.with_name(f"{self.folder.name}.lock"), wait=True):
            if not is_whole(folder):
                sweep(self.folder)
                with atomic_folder(folder) as place:
                    write(place)
                    write_json(place / CHECKSUMS, {path.name: _sha256(path) for path in sorted(place.iterdir())})
            os.utime(folder / CHECKSUMS)
            self._make_room(folder)
            yield folder

    def _make_room(self, used: Path) -> None:
        """Removes models, the one unused for longest first, until what is left is within the limit."""
        sizes = {path: size_of(path) for path in self.folder.iterdir() if (path / CHECKSUMS).is_file()}
        total = sum(sizes.values())
        for path in sorted(sizes.keys() - {used}, key=lambda path: ((path / CHECKSUMS).stat().st_mtime_ns, path.name)):
            if total <= self.limit:
                return
            (path / CHECKSUMS).unlink()  # a removal that is cut short leaves a model that is not whole
            shutil.rmtree(path, ignore_errors=True)
            total -= sizes[path]
            logger.info("removed the model %s from the cache: %.0f MB, unused for longest", path.name, sizes[path] / 1e6)


def cache_limit() -> int:
    """The limit in bytes, from `$GRAFTMT_CACHE_GB`."""
    text = os.environ.get(LIMIT)
    try:
        size = DEFAULT_LIMIT if not text else float(text)
    except ValueError:
        size = -1.0
    if not 0 <= size < 1e6:
        raise ConfigError(f"{LIMIT}={text}: a number of gigabytes was expected, such as {DEFAULT_LIMIT:g}.")
    return int(size * GB)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def is_whole(folder: Path) -> bool:
    """Whether a model is there as it was written: a cache is nobody's to look after."""
    if not (folder / CHECKSUMS).is_file():
        return False
    try:
        return all(_sha256(folder / name) == value for name, value in read_json(folder / CHECKSUMS, "a cached model").items())
    except (OSError, GraftError):
        return False


def _sha256(path: Path) -> str:
    with open_regular(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
