"""The text of models that other programs made: from the files of their tokenizers to a `BaseText`. Layer 1.

`families` has a file for each family of models; `text/kinds` the kinds of text that they are stored as.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from graftmt.errors import DataError, nearest
from graftmt.text.protocol import BaseText


def known_families() -> tuple[str, ...]:
    """The families of models whose text can be read."""
    package = import_module(f"{__name__}.families")
    return tuple(sorted(found.name for found in pkgutil.iter_modules(package.__path__)))


def foreign_text(
    family: str,
    folder: Path,
    settings: Mapping[str, Any],
    rows: tuple[int, int],
    *,
    source_languages: Sequence[str] = (),
    target_languages: Sequence[str] = (),
) -> BaseText:
    """The text of a model in `folder`, with the rows that its matrices have.

    `settings` is the model's configuration, `rows` the number of rows of its matrices (source, target). The languages are for
    models that do not name theirs. What cannot be read is a DataError.
    """
    from graftmt.text.foreign.tokenizer_folder import TextFolder
    from graftmt.text.stored import check_base_text

    known = known_families()
    if family not in known:
        raise DataError(
            f"{folder}: the text of family {family!r:.60} is unknown{nearest(family, known)}; known: {', '.join(known)}."
        )
    read = import_module(f"{__name__}.families.{family}").read_text
    found = TextFolder(folder, settings, rows, tuple(source_languages), tuple(target_languages))
    try:
        text: BaseText = read(found)
    except ValueError as error:
        raise DataError(f"{folder}: its tokenizer cannot be used: {str(error)[:1000].rstrip('.')}.") from None
    check_base_text(text, str(folder))
    return text
