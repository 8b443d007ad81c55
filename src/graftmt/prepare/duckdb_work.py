"""DuckDB in a folder of its own: connected, and its errors in our words. Layer 4."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftmt.errors import ConfigError, GraftError
from graftmt.options import option
from graftmt.prepare.sizes import parse_size

COUNTED_SHARE = 0.75
"""The part of the memory that DuckDB is told of; it does not count all that it takes."""


@dataclass(frozen=True, kw_only=True)
class AlignOptions:
    """How to align: which lines are kept, and what may be used for it."""

    pivot: str = option("--pivot", default="en", metavar="LANG")
    """Language that all corpora share"""
    min_languages: int = option("--min-languages", default=2)
    """Drop lines in fewer languages, --pivot included"""
    memory: str = option("--memory", default="1GB", metavar="SIZE")
    """Memory for sorting and joining, such as 800MB"""
    threads: int = option("--threads", default=0, least=0)
    """Threads; 0: as many as cores and memory allow"""
    temporary: Path | None = option("--temp", default=None, metavar="FOLDER")
    """Temporary files go here (default: next to the output)"""

    def __post_init__(self) -> None:
        if self.min_languages < 2:
            raise ConfigError(
                f"min_languages is {self.min_languages}; expected 2 or more: a line in one language pairs nothing."
            )
        if self.threads < 0:
            raise ConfigError(f"threads is {self.threads}; expected 1 or more, or 0 for as many as fit.")
        least = max(2, self.threads) * 100_000_000
        if self.memory_bytes < least:
            raise ConfigError(f"memory is {self.memory!r}; expected {least // 10**6}MB or more, 100MB for each thread.")

    @property
    def chosen_threads(self) -> int:
        return self.threads or max(1, min(os.cpu_count() or 1, self.memory_bytes // 250_000_000))

    @property
    def memory_bytes(self) -> int:
        size = parse_size(self.memory)
        if size is None:
            raise ConfigError(f"memory is {self.memory!r}; expected a size such as 800MB, 1GB or 1.5GB.")
        return size


@contextmanager
def understood(work: Path, options: AlignOptions) -> Iterator[None]:
    """DuckDB's errors in this project's words."""
    duckdb = _duckdb()
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        if "max_temp_directory_size" in str(error) or "No space left" in str(error):
            raise _full(work, error) from error
        raise GraftError(
            f"aligning ran out of the {options.memory} it may use ({_first_line(error)}); give more with --memory, or fewer "
            "--threads. What was read is kept for the next run."
        ) from error
    except duckdb.IOException as error:
        raise _full(work, error) from error


def _full(work: Path, error: Exception) -> GraftError:
    return GraftError(
        f"aligning stopped in {work} ({_first_line(error)}). If the disk is full, free some space or choose another "
        "folder with --temp, then run the same command again: what was read is kept, and no output was written."
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _duckdb() -> Any:
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise GraftError("aligning needs duckdb and pyarrow: pip install 'graftmt[prepare]'.") from error
    return duckdb


def connect(work: Path, options: AlignOptions) -> Any:
    """A database of its own in memory, which spills into the work folder."""
    settings = {
        "memory_limit": f"{int(options.memory_bytes * COUNTED_SHARE)}B",
        "threads": options.chosen_threads,
        "temp_directory": str(work / "spill"),
    }
    return _duckdb().connect(config=settings)


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
