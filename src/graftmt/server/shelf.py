"""The packs in service: watched folders become catalogs, one after the other; what cannot be served is reported. Layer 6."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from graftmt.base import Base
from graftmt.errors import DataError, GraftError
from graftmt.packs import Pack, is_pack, load_pack
from graftmt.packs.archive import ARCHIVE, DOCUMENT
from graftmt.packs.composition import check_fits
from graftmt.server.catalog import Catalog, ServedPack
from graftmt.translator import Translator

logger = logging.getLogger(__name__)

Signature = tuple[tuple[str, int, int, int], ...]
"""Name, size, time and number of each file of a pack: it has changed if this has."""
OnChange = Callable[[Catalog], None]
LAST_LOOK = 10.0
"""Seconds that the thread which watches the folders has to end."""


@dataclass(frozen=True)
class Loaded:
    """What was made of one path when it had this signature: a pack, or the reason why there is none."""

    signature: Signature
    pack: ServedPack | None
    problem: str = ""


class Shelf:
    """Holds the current catalog; `refresh` looks at the folders and puts a new one in its place if something changed.

    `paths` are packs, or folders of packs. A pack that is damaged while it is in service stays as it was loaded, and the damage
    is reported; one that is taken away is no longer offered, and requests that began with it end with it.
    """

    def __init__(
        self, base: Base, paths: Iterable[Path] = (), *, seconds: float = 1.0, fold: bool = True, dtype: str = "fp32"
    ) -> None:
        self.catalog = Catalog(Translator(base, fold=fold, dtype=dtype))
        self.paths, self.seconds = tuple(paths), seconds
        self._loaded: dict[Path, Loaded] = {}
        self._seen: dict[Path, Signature] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[OnChange] = []
        self._thread: threading.Thread | None = None
        for path in self.paths:
            if not path.exists():
                raise DataError(f"--packs: there is no {path}; give packs, or a folder in which packs are or will be.")
        self.refresh(settle=False)

    def listen(self, listener: OnChange) -> None:
        """Has `listener` called with each new catalog."""
        self._listeners.append(listener)

    def watch(self) -> None:
        """Looks at the folders every few moments, in a thread."""
        self._thread = threading.Thread(target=self._watch, name="graftmt-packs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LAST_LOOK)  # it may be making a model, and ends with the process

    def refresh(self, *, settle: bool = True) -> bool:
        """Looks once; whether the catalog changed. With `settle`, what has just changed is left until it is still."""
        with self._lock:
            found = {path: signature for path in self._candidates() if (signature := signature_of(path))}
            loaded: dict[Path, Loaded] = {}
            for path, signature in found.items():
                known = self._loaded.get(path)
                if known is not None and known.signature == signature:
                    loaded[path] = known
                elif settle and self._seen.get(path) != signature:
                    if known is not None:
                        loaded[path] = known
                else:
                    loaded[path] = self._load(path, signature, known)
            self._seen = found
            if loaded == self._loaded:
                return False
            self._loaded = loaded
            self.catalog = self._compile()
        for listener in self._listeners:
            listener(self.catalog)
        return True

    def _watch(self) -> None:
        while not self._stop.wait(self.seconds):
            try:
                self.refresh()
            except OSError as error:  # a folder that is gone for a moment, too many open files: look again later
                logger.warning("cannot look for packs: %s", error.strerror or error)

    def _candidates(self) -> list[Path]:
        """Paths that are packs or could be, in order; names with a dot are files in the making."""
        found: list[Path] = []
        for path in self.paths:
            if is_pack(path):
                found.append(path)
            elif path.is_dir():
                inside = sorted(child for child in path.iterdir() if not child.name.startswith("."))
                found += [child for child in inside if child.suffix == ARCHIVE or (child / DOCUMENT).is_file()]
        return list(dict.fromkeys(found))

    def _load(self, path: Path, signature: Signature, known: Loaded | None) -> Loaded:
        try:
            pack = self._check(load_pack(path))
            logger.info("pack %s: %s as %s, in service", path.name, ", ".join(pack.languages), pack.side)
            return Loaded(signature, ServedPack(name_of(path), path, pack, sum(size for _, size, _, _ in signature)))
        except (GraftError, OSError) as error:
            logger.warning("pack %s cannot be served: %s", path.name, error)
            kept = known.pack if known is not None else None
            stays = " The one loaded before stays in service." if kept is not None else ""
            return Loaded(signature, kept, f"{error}{stays}")

    def _check(self, pack: Pack) -> Pack:
        base = self.catalog.base
        weight = base.model.source_embedding.weight
        check_fits(pack, base, pack.side)
        return pack.to(weight.device, weight.dtype)

    def _compile(self) -> Catalog:
        """The catalog of what is loaded; of two packs with one name the first is served."""
        packs: dict[str, ServedPack] = {}
        problems: dict[str, str] = {}
        for path, loaded in self._loaded.items():
            if loaded.problem:
                problems[path.name] = loaded.problem
            if loaded.pack is None:
                continue
            if loaded.pack.name in packs:
                problems[path.name] = f"there is a pack {loaded.pack.name!r} already; rename this one."
                continue
            packs[loaded.pack.name] = loaded.pack
        old = self.catalog
        translator = old.translator.with_packs({name: one.pack for name, one in packs.items()})
        return Catalog(translator, packs, problems, old.version + 1, self.paths)


def name_of(path: Path) -> str:
    """How requests call a pack: its folder's name, or its file's without the ending."""
    return path.stem if path.suffix == ARCHIVE else path.name


def signature_of(path: Path) -> Signature:
    """Empty where there is nothing to be read."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        stats = [(file.name, file.stat()) for file in files if file.is_file()]
    except OSError:
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats)
