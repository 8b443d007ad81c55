"""Arrow files, as `datasets` stores a data set with save_to_disk: data-00000-of-00001.arrow next to state.json. Layer 4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graftmt.errors import DataError
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import by_split, split_of
from graftmt.prepare.readers.parquet import table_source
from graftmt.prepare.readers.stored_parts import DAMAGE
from graftmt.prepare.source import Source


def is_arrow(name: str) -> bool:
    return name.lower().endswith(".arrow")


def read_arrow(
    files: Sequence[StoredFile],
    languages: Mapping[str, str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    field: str = "translation",
) -> dict[str, Source]:
    """By split: `datasets` has a folder for each. `columns`: language → column, for flat tables; else `field` is a struct with
    a text per language."""
    return by_split((split_of(file), table_source(file, languages, columns, field, _opened)) for file in files)


def columns_of(file: StoredFile) -> list[str]:
    with _opened(file) as table:
        return list(table.schema_arrow.names)


@dataclass(frozen=True)
class _Stream:
    """A stream of batches with the two members of a Parquet file that are used."""

    reader: Any

    @property
    def schema_arrow(self) -> Any:
        return self.reader.schema

    def iter_batches(self, *, columns: Sequence[str], **_: Any) -> Iterator[Any]:
        names = list(dict.fromkeys(column.partition(".")[0] for column in columns))
        for batch in self.reader:
            yield batch.select(names)


@contextmanager
def _opened(file: StoredFile) -> Iterator[_Stream]:
    try:
        import pyarrow
    except ImportError:
        raise DataError(f"{file} is an Arrow file: pip install 'graftmt[prepare]' to read it.") from None
    with file.open() as content:
        try:
            yield _Stream(pyarrow.ipc.open_stream(content))
        except (*DAMAGE, TypeError, pyarrow.ArrowException) as error:
            reason = str(error).partition("\n")[0][:200] or type(error).__name__
            raise DataError(f"{file}: not readable as Arrow ({reason}); save the data set again with save_to_disk.") from None
