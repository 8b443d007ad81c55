"""Where the rows of a pack's embedding matrix start from: the base's rows, averages of them, or noise. Layer 3.

"overlap" and "random" are the paper's; "pieces" and "alignment" find a start for rows that the base lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Tensor

from graftmt.errors import ConfigError, nearest
from graftmt.text import Symbols, Text, code_symbol
from graftmt.text.pretokenization import TITLE_MARKER, UPPER_MARKER, lowercase
from graftmt.text.protocol import BOUNDARY, BYTES

InitialisationMethod = Literal["overlap", "random", "pieces", "alignment"]
Translations = Mapping[str, Mapping[str, float]]  # symbol → base symbol → weight
_CASELESS = {*BYTES, UPPER_MARKER, TITLE_MARKER}
"""Pieces whose letters are not text."""
OTHER_CASE = "overlap in another case"
_COPIED = ("overlap", OTHER_CASE, "base code")


@dataclass(frozen=True)
class Initialised:
    weight: Tensor  # (rows, D), float32 on the CPU
    counts: dict[str, int]  # rule → how many rows; sums to the number of rows
    rules: list[str]  # the rule of each row
    base_rows: dict[int, int]  # row → the base's row, for those that are copies of one


def initialise(
    vocabulary: Symbols,
    base: Text,
    base_weight: Tensor,
    *,
    method: InitialisationMethod,
    seed: int,
    rows: int | None = None,
    trained_codes: Collection[str] = (),
    translations: Translations | None = None,
) -> Initialised:
    """A matrix for the first `rows` symbols of a pack's vocabulary (default: all), started from the base's (V, D).

    `base` is the base's text of the same matrix. A row that it has too is copied, and a piece that it has only in another case
    (the pack's ▁berlin, the base's ▁Berlin: vocabularies of other programs are cased). Of the others, "pieces" averages what
    the base's subwords make of the symbol and "alignment" the base rows that translate it. "random" copies nothing but
    language codes, and of these not the languages in `trained_codes`: the paper decodes with the base's codes where the pack's
    matrix starts from noise.
    """
    rows = len(vocabulary) if rows is None else rows
    _check(vocabulary, base, base_weight, method, rows, translations)
    known = _BaseRows(base, base_weight.detach().to("cpu", torch.float32))
    starts_from_padding = base.layout.decoder_start == "padding"
    # All of them, also those to be overwritten or left out: noise depends on the seed and the vocabulary's size only.
    noise = torch.randn(len(vocabulary), base_weight.shape[1], generator=torch.Generator().manual_seed(seed))
    weight = noise[:rows] * base_weight.shape[1] ** -0.5
    trained = {code_symbol(language) for language in trained_codes}
    symbols, pieces = vocabulary.symbols, set(vocabulary.piece_rows)
    codes = {vocabulary.code(language) for language in vocabulary.languages}

    def starts(row: int) -> Iterator[tuple[str, Tensor | None]]:
        """What the row can start from, best first; None where a rule has nothing to offer."""
        symbol, is_piece = symbols[row], row in pieces
        if row == vocabulary.padding_id:
            # A decoder that starts from padding reads it, and must find there what it knows.
            yield "padding", known.same(symbol, False) if starts_from_padding else torch.zeros_like(weight[row])
        if method != "random":
            yield "overlap", known.same(symbol, is_piece)
            yield OTHER_CASE, known.in_another_case(symbol) if is_piece else None
        elif row in codes and symbol not in trained:
            yield "base code", known.same(symbol, is_piece)
        if is_piece:
            if method == "alignment":
                yield "alignment", known.weighted((translations or {}).get(symbol, {}))
            if method in ("alignment", "pieces"):
                yield "pieces", known.spelled(symbol)
        yield "random", weight[row]

    rules: list[str] = []
    base_rows: dict[int, int] = {}
    for row in range(rows):
        rule, start = next((rule, start) for rule, start in starts(row) if start is not None)
        weight[row] = start
        rules.append(rule)
        if rule in _COPIED:
            base_rows[row] = known.row_by_case[lowercase(symbols[row])] if rule == OTHER_CASE else known.row_of[symbols[row]]
    return Initialised(weight=weight, counts=dict(Counter(rules)), rules=rules, base_rows=base_rows)


class _BaseRows:
    """The base's matrix, (V, D), asked by symbol."""

    def __init__(self, base: Text, weight: Tensor) -> None:
        self.base = base
        self.weight = weight
        # A matrix may lack the code rows, or be padded beyond the vocabulary.
        self.row_of = {symbol: row for row, symbol in enumerate(base.symbols[: len(weight)])}
        self.pieces = set(base.piece_rows)

    def same(self, symbol: str, is_piece: bool) -> Tensor | None:
        """The row of this name, where it is the same sort of thing: a piece "<s>" is not the symbol."""
        row = self.row_of.get(symbol)
        return None if row is None or (row in self.pieces) != is_piece else self.weight[row]

    @cached_property
    def row_by_case(self) -> dict[str, int]:
        """The row of each piece by its lowercase form: of several, the one with the fewest capitals, then the first."""
        best: dict[str, tuple[int, int]] = {}
        for symbol, row in self.row_of.items():
            if row in self.pieces and symbol not in _CASELESS:
                folded = lowercase(symbol)
                found = (sum(one != other for one, other in zip(symbol, folded, strict=True)), row)
                best[folded] = min(found, best.get(folded, found))
        return {folded: row for folded, (_, row) in best.items()}

    def in_another_case(self, piece: str) -> Tensor | None:
        row = None if piece in _CASELESS else self.row_by_case.get(lowercase(piece))
        return None if row is None else self.weight[row]

    def spelled(self, piece: str) -> Tensor | None:
        """From the base's own pieces for it, where they spell at least half of it: a letter or two of a word say nothing."""
        parts = self.base.spell(piece)
        characters = sum(1 if part in BYTES else len(part.removeprefix(BOUNDARY)) for part in parts)
        return self.weighted(Counter(parts)) if 2 * characters >= len(piece.removeprefix(BOUNDARY)) else None

    def weighted(self, weights: Mapping[str, float]) -> Tensor | None:
        """The mean of these symbols' rows, as long as they are on average: a plain mean of k rows is some √k shorter."""
        usable = {self.row_of[symbol]: weight for symbol, weight in weights.items() if symbol in self.row_of and weight > 0}
        if not usable:
            return None
        chosen = self.weight[list(usable)]  # (k, D)
        if len(usable) == 1:
            return chosen[0]
        shares = torch.tensor(list(usable.values()), dtype=torch.float32)
        shares /= shares.sum()
        mean = shares @ chosen
        length = shares @ chosen.norm(dim=1)
        result: Tensor = mean * (length / mean.norm().clamp_min(1e-12))
        return result


def _check(vocabulary: Symbols, base: Text, base_weight: Tensor, method: str, rows: int, translations: object) -> None:
    if method not in get_args(InitialisationMethod):
        hint = nearest(method, get_args(InitialisationMethod))
        raise ConfigError(f"initialisation: got {method!r}, expected {', '.join(get_args(InitialisationMethod))}{hint}")
    if method == "alignment" and translations is None:
        raise ConfigError("initialisation 'alignment' needs translations, which need line pairs with a language of the base.")
    if not 0 <= rows <= len(vocabulary):
        raise ConfigError(f"initialisation: got {rows} rows, expected at most the vocabulary's {len(vocabulary)}.")
    codes = {base.code(language) for language in base.languages}
    needed = next((row + 1 for row in reversed(range(len(base))) if row not in codes), 0)
    if base_weight.dim() != 2 or len(base_weight) < needed:
        raise ConfigError(
            f"initialisation: the base's matrix is {tuple(base_weight.shape)}, expected a row for each of its vocabulary's "
            f"{needed} symbols (codes may be missing); give the matrix that belongs to this tokenizer."
        )
