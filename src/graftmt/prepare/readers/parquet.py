"""Parquet, by batches: a struct column with a text per language, as on the Hugging Face hub, or flat columns. Layer 4."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from graftmt.errors import DataError, nearest
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import by_split, split_of
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import check_text
from graftmt.prepare.readers.stored_parts import DAMAGE
from graftmt.prepare.source import Line, Source

BATCH = 4096


def is_parquet(name: str) -> bool:
    return name.lower().endswith((".parquet", ".pq"))


def read_parquet(
    files: Sequence[StoredFile],
    languages: Mapping[str, str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    field: str = "translation",
) -> dict[str, Source]:
    """By split. `columns`: language → column, for flat tables; else `field` is a struct with a text per language."""
    return by_split((split_of(file), table_source(file, languages, columns, field, _opened)) for file in files)


def columns_of(file: StoredFile) -> list[str]:
    with _opened(file) as table:
        return list(table.schema_arrow.names)


def table_source(
    file: StoredFile,
    languages: Mapping[str, str] | None,
    columns: Mapping[str, str] | None,
    field: str,
    opened: Callable[[StoredFile], AbstractContextManager[Any]],
) -> Source:
    """`opened` gives what has pyarrow's `schema_arrow` and `iter_batches`."""
    where = str(file)
    with opened(file) as table:
        schema = table.schema_arrow
        names = list(schema.names)
        wanted = list(columns.values()) if columns else [field]
        for name in wanted:
            if name not in names:
                hint = "" if columns else " For flat tables write --columns en=COLUMN,fr=COLUMN."
                raise DataError(
                    f"{where} has no column {name!r}{nearest(name, names) or ';'} there: {', '.join(names[:40])}.{hint}"
                )
        if columns:
            chosen = dict(columns)
            kinds = {name: schema.field(name).type for name in wanted}
        else:
            kind = schema.field(field).type
            if not _is_struct(kind):
                raise DataError(f"{where}: the column {field!r} holds {kind}; expected a struct with a text per language.")
            kinds = {kind.field(index).name: kind.field(index).type for index in range(kind.num_fields)}
            chosen = choose_languages(kinds, languages, f"{where}, column {field!r}")
    for name in chosen.values():
        if not _is_text(kinds[name]):
            raise DataError(f"{where}: {name!r} holds {kinds[name]} where text was expected.")

    def read() -> Iterator[Line]:
        with opened(file) as table:
            number = 0
            paths = wanted if columns else [f"{field}.{code}" for code in chosen.values()]
            for batch in table.iter_batches(batch_size=BATCH, columns=paths, use_threads=False):
                if columns:
                    arrays = [batch.column(name) for name in chosen.values()]
                else:
                    # flatten, unlike field, gives null where the whole struct is
                    column = batch.column(field)
                    parts = dict(zip((part.name for part in column.type), column.flatten(), strict=True))
                    arrays = [parts[code] for code in chosen.values()]
                lists = [array.to_pylist() for array in arrays]
                for texts in zip(*lists, strict=True):
                    number += 1
                    yield tuple("" if text is None else check_text(text, where, f"record {number}") for text in texts)

    return Source(where, tuple(chosen), read)


@contextmanager
def _opened(file: StoredFile) -> Iterator[Any]:
    """pyarrow's reader; it seeks, so what is compressed or in an archive is copied to a temporary file first."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{file} is Parquet: pip install 'graftmt[prepare]' to read it.") from None
    with ExitStack() as stack:
        content = stack.enter_context(file.open())
        if file.is_plain:
            handle: Any = stack.enter_context(file.parts[0].open("rb"))
        else:
            handle = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(content, handle, 1 << 20)
            handle.seek(0)
        try:
            yield pyarrow.parquet.ParquetFile(handle, pre_buffer=False)
        except (*DAMAGE, TypeError, pyarrow.ArrowException) as error:
            reason = str(error).partition("\n")[0][:200] or type(error).__name__
            raise DataError(
                f"{file}: not readable as Parquet ({reason}); the file may be truncated: download it again."
            ) from None


def _is_struct(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_struct(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_null(kind))
