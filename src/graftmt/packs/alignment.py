"""Which base pieces translate a new language's pieces, learned from line pairs: IBM Model 1 both ways. Layer 3.

The table only gives embeddings a start, so a sample of the lines and a few rounds are enough. A link's score is
t(base | new) · t(new | base): "the" occurs with everything, but from it the way back leads nowhere in particular.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graftmt.text import Symbols
from graftmt.text.protocol import BOUNDARY

Integers = npt.NDArray[np.int64]
Pair = tuple[Integers, Integers]  # the pieces of one line: new rows, base rows

VERSION = 3
"""Of what is found: tables that were kept from an earlier one are not used."""

_LONGEST_LINE = 128  # in tokens; longer lines say least about each token and cost most
_MOST_CELLS = 80_000_000  # of 4 bytes
_CHUNK_CELLS = 2_000_000
_DIGITS = 6  # of a weight: a GPU's sums, which come in any order, differ further behind
_LEAST_TOGETHER = 2  # rows that meet once only say nothing about each other
_LEAST_WEIGHT = 0.05
_TINY = torch.finfo(torch.float64).tiny


def translation_table(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    text: Symbols,
    base_text: Symbols,
    *,
    iterations: int = 5,
    top: int = 8,
    max_pairs: int = 50_000,
    device: torch.device | None = None,
) -> dict[int, dict[int, float]]:
    """The best base rows of each new row that the pairs (new ids, base ids) speak of, with weights that sum to 1.

    `text` and `base_text` say which ids are pieces; special symbols and case markers take no part. At most `max_pairs` lines
    are used, drawn from all of them, always the same ones. `device` is where the counting is done; what is found is the same.
    """
    rows, base_rows = len(text), len(base_text)
    pieces, base_pieces = _are_pieces(text), _are_pieces(base_text)
    chosen = ((_only(new, pieces), _only(base, base_pieces)) for new, base in pairs)
    parts = [_Part.of(part, device) for part in _parts(_sample(chosen, max_pairs))]
    links = _links(parts, base_rows)
    if not len(links):
        return {}
    new_of, base_of = links // base_rows, links % base_rows
    link_of = [_places(part.keys(base_rows), links) for part in parts]
    forward = backward = torch.ones_like(links, dtype=torch.float64)  # t(base | new), t(new | base)
    for _ in range(iterations):
        forward_counts, backward_counts = torch.zeros_like(forward), torch.zeros_like(forward)
        for part, link in zip(parts, link_of, strict=True):
            new_token, base_token = part.cells()
            forward_counts += _expected(link, base_token, forward)
            backward_counts += _expected(link, new_token, backward)
        forward = _normalised(forward_counts, new_of, rows)
        backward = _normalised(backward_counts, base_of, base_rows)
    return _best(new_of.cpu(), base_of.cpu(), (forward * backward).cpu(), top)


def translations_of(text: Symbols, base_text: Symbols, table: Mapping[int, Mapping[int, float]]) -> dict[str, dict[str, float]]:
    """A translation table in symbols, as `initialise` takes it; the bare word boundary translates nothing."""
    symbols, base_symbols = text.symbols, base_text.symbols
    result = {}
    for row, weights in table.items():
        named = {base_symbols[base_row]: weight for base_row, weight in weights.items()}
        named.pop(BOUNDARY, None)
        if named:
            result[symbols[row]] = named
    return result


def _are_pieces(text: Symbols) -> npt.NDArray[np.bool_]:
    """(rows): whether each is a piece of text."""
    result = np.zeros(len(text), dtype=bool)
    result[np.asarray(text.piece_rows, dtype=np.int64)] = True
    return result


def _only(ids: Sequence[int], wanted: npt.NDArray[np.bool_]) -> Integers:
    array = np.asarray(ids, dtype=np.int64)
    return array[wanted[array]]


def _sample(pairs: Iterable[tuple[Sequence[int] | Integers, Sequence[int] | Integers]], most: int) -> list[Pair]:
    """A reservoir: every usable pair has the same chance, and no more than `most` are ever held."""
    draw = random.Random(0)
    held: list[Pair] = []
    seen = 0
    for new_ids, base_ids in pairs:
        new, base = np.asarray(new_ids, dtype=np.int64), np.asarray(base_ids, dtype=np.int64)
        if not 0 < len(new) <= _LONGEST_LINE or not 0 < len(base) <= _LONGEST_LINE:
            continue
        seen += 1
        if len(held) < most:
            held.append((new, base))
        elif (place := draw.randrange(seen)) < most:
            held[place] = (new, base)
    draw.shuffle(held)  # where the cells are too many, the lines that go are any lines
    fitting = bisect_right(list(_cell_counts(held)), _MOST_CELLS)
    return held[:fitting]


def _cell_counts(sample: Iterable[Pair]) -> Iterator[int]:
    """Up to and with each line."""
    return accumulate(len(new) * len(base) for new, base in sample)


def _parts(sample: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    """The sample in stretches of some _CHUNK_CELLS cells."""
    numbered = zip(_cell_counts(sample), sample, strict=True)
    for _, part in groupby(numbered, key=lambda one: one[0] // _CHUNK_CELLS):
        yield [pair for _, pair in part]


@dataclass(frozen=True)
class _Part:
    """Some lines, one after the other. A cell is a new token and a base token of the same line."""

    new: Tensor
    base: Tensor
    new_lengths: Tensor
    base_lengths: Tensor

    @classmethod
    def of(cls, pairs: Sequence[Pair], device: torch.device | None) -> _Part:
        sides = list(zip(*pairs, strict=True))
        arrays = [*map(np.concatenate, sides), *(np.array([len(line) for line in side]) for side in sides)]
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def cells(self) -> tuple[Tensor, Tensor]:
        """Which new and which base token each cell pairs; cells go by line, base token, new token."""
        width = self.new_lengths.repeat_interleave(self.base_lengths)  # of each base token's row of cells
        base_token = torch.arange(len(width), device=width.device).repeat_interleave(width)
        line_start = (self.new_lengths.cumsum(0) - self.new_lengths).repeat_interleave(self.base_lengths)
        row_start = width.cumsum(0) - width
        new_token = torch.arange(len(base_token), device=width.device) + (line_start - row_start).index_select(0, base_token)
        return new_token, base_token

    def keys(self, base_rows: int) -> Tensor:
        """The link of each cell as one number: new row · base_rows + base row."""
        assert int(self.base.max()) < base_rows, "a base id beyond base_rows would read as another link"
        new_token, base_token = self.cells()
        return self.new.index_select(0, new_token) * base_rows + self.base.index_select(0, base_token)


def _links(parts: Sequence[_Part], base_rows: int) -> Tensor:
    """The links worth keeping, sorted."""
    links = torch.zeros(0, dtype=torch.int64)
    counts = torch.zeros(0, dtype=torch.int64)
    waiting: list[tuple[Tensor, Tensor]] = []
    for number, part in enumerate(parts, 1):
        waiting.append(torch.unique(part.keys(base_rows), return_counts=True))
        # Merged where that at most doubles what there is: not all of it again for each part.
        if number == len(parts) or sum(len(found) for found, _ in waiting) > len(links):
            device = part.new.device
            every = torch.cat([links.to(device), *(found for found, _ in waiting)])
            times = torch.cat([counts.to(device), *(count for _, count in waiting)])
            links, inverse = torch.unique(every, return_inverse=True)
            counts = torch.zeros_like(links).index_add_(0, inverse, times)
            waiting = []
    return links[counts >= _LEAST_TOGETHER]


def _places(keys: Tensor, links: Tensor) -> Tensor:
    """Which link each cell has, as int32; -1 where it was not worth keeping."""
    found, inverse = torch.unique(keys, return_inverse=True)
    place = torch.searchsorted(links, found)
    kept = links[place.clamp(max=len(links) - 1)] == found
    return torch.where(kept, place, -1).to(torch.int32).index_select(0, inverse)


def _expected(link: Tensor, token: Tensor, t: Tensor) -> Tensor:
    """One E-step: each token's single count, shared among its cells in proportion to t, summed per link."""
    place = link.long() + 1  # a link of -1 finds the 0
    shares = torch.cat([t.new_zeros(1), t]).index_select(0, place)
    totals = torch.bincount(token, shares)
    shares /= totals.clamp(min=_TINY).index_select(0, token)
    return torch.bincount(place, shares, len(t) + 1)[1:]


def _normalised(counts: Tensor, row_of: Tensor, rows: int) -> Tensor:
    """One M-step: each link's share of the counts of its row."""
    return counts / torch.bincount(row_of, counts, rows).clamp(min=_TINY)[row_of]


def _best(new_of: Tensor, base_of: Tensor, score: Tensor, top: int) -> dict[int, dict[int, float]]:
    """`new_of` is sorted. Of the `top` links of a row those that have next to none of its weight go, too.

    Links that are equal but for the last digits, as those of words that always stand together, go by their base row: otherwise
    the order of a GPU's sums would choose among them.
    """
    rows, lengths = new_of.unique_consecutive(return_counts=True)
    mantissa, exponent = score.frexp()
    score = torch.ldexp((mantissa * 2**24).round(), exponent - 24)
    parts = (rows.tolist(), base_of.split(lengths.tolist()), score.split(lengths.tolist()))
    table = {}
    for row, bases, scores in zip(*parts, strict=True):
        values, order = scores.sort(descending=True, stable=True)
        values, order = values[:top], order[:top]
        chosen = values >= max(_TINY, _LEAST_WEIGHT * float(values.sum()))
        if chosen.any():
            weights = values[chosen] / values[chosen].sum()
            kept = zip(bases[order[chosen]].tolist(), weights.tolist(), strict=True)
            table[row] = {base: round(weight, _DIGITS) for base, weight in kept}
    return table
