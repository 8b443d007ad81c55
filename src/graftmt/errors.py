"""The errors a user can meet. Layer 0: everything may import this, it imports no module of graftmt."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence


class GraftError(Exception):
    """Something a user did or met, said in one paragraph: what, got, expected, what to do next."""


class ConfigError(GraftError):
    """A configuration that cannot be meant: an unknown key, a value of the wrong kind or range."""


class DataError(GraftError):
    """A corpus, file or line that cannot be used as it is."""


class LanguageError(GraftError):
    """A language that is not known where it was asked for."""


class CheckpointError(GraftError):
    """A checkpoint or model folder that is damaged, incomplete or of another model."""


class ExportError(GraftError):
    """A model that the format of another program cannot hold."""


class TrainingError(GraftError):
    """Training that cannot continue, such as a loss that is not finite."""


# Controls but for tab and line end, what turns the direction of text, and halves of characters.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: object) -> str:
    """The text with escapes for what would command a terminal: names, paths and lines may come from anyone."""
    return UNPRINTABLE.sub(lambda found: found.group().encode("unicode_escape").decode(), str(text))


def nearest(name: str, known: Iterable[str]) -> str:
    """A ready-made hint, ``; did you mean 'x'?``, or nothing where no known name is close."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def first_few(names: Sequence[str], most: int = 3, separator: str = ", ") -> str:
    """Some of them, and how many more there are: ``a, b, c and 2 more``."""
    return separator.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
