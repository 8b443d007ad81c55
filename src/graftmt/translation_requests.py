"""Lines to translate, checked and encoded, and what comes back. Between layers 3 and 4."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graftmt.data.line_files import LONGEST_LINE
from graftmt.decoding import SearchOptions
from graftmt.engines import NativeSearcher, OnBatch, Searcher
from graftmt.errors import DataError, LanguageError
from graftmt.packs import Composition
from graftmt.text import Codec

LONGEST_SOURCE = 1024
"""Tokens. Far more than a sentence; a longer line is refused rather than translated badly."""


LONGEST_BYTES = 4 * LONGEST_LINE
"""Of a line that is held in memory, or made into tokens, which takes far more of it; no character has more than four."""


BYTES_TOO_MANY = f"more than {LONGEST_BYTES:,} bytes"


class LongLine(DataError):
    """A line that is too long to translate, number `index` (from 0) of those given; `size` says how long it is."""

    def __init__(self, index: int, size: str, where: str = "") -> None:
        super().__init__(f"{where or f'line {index + 1}'} has {size}. Split it into sentences, one a line.")
        self.index, self.size = index, size

    def at(self, where: str) -> LongLine:
        """The same, for a caller who knows a better name for the line than its number here."""
        return LongLine(self.index, self.size, where)


class Request(NamedTuple):
    """One line to translate, and from what into what."""

    line: str
    source: str
    target: str
    pivot: str | None = None
    """Through this language, in two hops."""
    source_pack: str | None = None
    target_pack: str | None = None

    def first_hop(self) -> Request:
        assert self.pivot is not None
        return Request(self.line, self.source, self.pivot, source_pack=self.source_pack)

    def last_hop(self, between: str) -> Request:
        assert self.pivot is not None
        return Request(between, self.pivot, self.target, target_pack=self.target_pack)


@dataclass(frozen=True)
class Translation:
    """One way to translate a line."""

    text: str
    score: float
    finished: bool
    """False where the maximum length cut it off."""
    tokens: int = 0
    """How many came out of the search, the end counted."""


def encoded_line(model: Composition, request: Request, index: int) -> list[int]:
    """The tokens of a request's line; none where it is empty. One that is too long is an error, with its number `index`."""
    tokens = model.codec.source_tokenizer(request.source).encode(request.line)
    # Learned positions end at some number of tokens, with a code and the end among them.
    positions = model.model.config.most_positions
    most = min(LONGEST_SOURCE, max(1, positions - 2)) if positions else LONGEST_SOURCE
    if len(tokens) > most:
        size = f"{len(request.line):,} characters ({len(tokens):,} tokens)"
        raise LongLine(index, f"{size}; at most {most:,} tokens can be translated as one")
    return tokens


def translate_encoded(
    model: Composition,
    requests: Sequence[Request],
    encoded: Sequence[Sequence[int]],
    options: SearchOptions,
    on_batch: OnBatch | None = None,
    *,
    searcher: Searcher | None = None,
) -> list[list[Translation]]:
    """The best translations of requests that share a composition, from their tokens; their directions may differ.

    Without a `searcher` the composition's model searches as it is.
    """
    searcher = searcher or NativeSearcher.of(model)
    results = [[Translation("", 0.0, True)] for _ in requests]
    codec, rows = model.codec, [row for row, tokens in enumerate(encoded) if tokens]
    found = searcher.search(
        [source_rows(codec, requests[row], encoded[row]) for row in rows],
        [codec.decoder_prefix(requests[row].target) for row in rows],
        options,
        on_batch,
    )
    for row, hypotheses in zip(rows, found, strict=True):
        decode = codec.target_tokenizer(requests[row].target).decode
        # Bytes can spell any character, also a line break: whitespace is normalised so that a line stays a line.
        results[row] = [
            Translation(" ".join(decode(h.tokens).split()), h.score, h.finished, len(h.tokens) + h.finished) for h in hypotheses
        ]
    return results


def source_rows(codec: Codec, request: Request, tokens: Sequence[int]) -> list[int]:
    """What the encoder reads of a request."""
    pair = request.source, request.target
    return [*codec.source_prefix(*pair), *tokens, *codec.source_suffix(*pair)]


def check_line(line: object, index: int) -> None:
    """Text, and not so much of it that making tokens would take all memory; an error names the line by its number."""
    if not isinstance(line, str):
        raise DataError(
            f"line {index + 1} is {shown(line)}; a str was expected. For a line without text give an empty one, ''."
        )
    # Most lines need not be encoded to know, and those far too long must not be.
    if 4 * len(line) > LONGEST_BYTES and (
        len(line) > LONGEST_BYTES or len(line.encode("utf-8", errors="surrogatepass")) > LONGEST_BYTES
    ):
        raise LongLine(index, BYTES_TOO_MANY)


def check_codes(**languages: object) -> None:
    """`check_codes(source="en")`: what names a language is a str, whichever language it is."""
    for name, language in languages.items():
        if not isinstance(language, str):
            raise LanguageError(f"{name} is {shown(language)}; a language's code was expected, a str such as 'en'.")


def shown(value: object) -> str:
    """`nan (float)`, at no great length."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"
