"""Which base pieces translate a new language's pieces, learned from line pairs: IBM Model 1 both ways. Layer 3.

The table only gives embeddings a start, so a sample of the lines and a few rounds are enough. A link's score is
t(base | new) · t(new | base): "the" stands beside everything, but from it the way back leads nowhere in particular.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from graftmt.text import Vocabulary
from graftmt.text.segments import BOUNDARY
from graftmt.text.vocabulary import FIRST_PIECE_ID

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Pair = tuple[Integers, Integers]  # the pieces of one line: new rows, base rows

_LONGEST_LINE = 128  # in tokens; longer lines say least about each token and cost most
_MOST_CELLS = 80_000_000  # of 4 bytes
_CHUNK_CELLS = 2_000_000
_LEAST_TOGETHER = 2  # rows that meet once only say nothing about each other
_LEAST_WEIGHT = 0.05
_TINY = float(np.finfo(np.float64).tiny)


def translation_table(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    rows: int,
    base_rows: int,
    *,
    iterations: int = 5,
    top: int = 8,
    max_pairs: int = 50_000,
) -> dict[int, dict[int, float]]:
    """The best base rows of each new row that the pairs (new ids, base ids) speak of, with weights that sum to 1.

    At most `max_pairs` lines are used, drawn from all of them, always the same ones. Special symbols and case markers,
    which both vocabularies have, take no part.
    """
    sample = _sample(pairs, max_pairs)
    links = _links(sample, base_rows)
    if not len(links):
        return {}
    new_of, base_of = np.divmod(links, base_rows)
    chunks = [_Chunk.of(part, links, base_rows) for part in _parts(sample)]
    forward = backward = np.ones(len(links))  # t(base | new), t(new | base)
    for _ in range(iterations):
        forward_counts, backward_counts = np.zeros(len(links)), np.zeros(len(links))
        for chunk in chunks:
            new_token, base_token = _cells(chunk.new_lengths, chunk.base_lengths)
            forward_counts += _expected(chunk.link, base_token, forward)
            backward_counts += _expected(chunk.link, new_token, backward)
        forward = _normalised(forward_counts, new_of, rows)
        backward = _normalised(backward_counts, base_of, base_rows)
    return _best(new_of, base_of, forward * backward, top)


def translations_of(
    vocabulary: Vocabulary, base_vocabulary: Vocabulary, table: Mapping[int, Mapping[int, float]]
) -> dict[str, dict[str, float]]:
    """A translation table in symbols, as `initialise` takes it; the bare word boundary translates nothing."""
    result = {}
    for row, weights in table.items():
        named = {base_vocabulary.symbol(base_row): weight for base_row, weight in weights.items()}
        named.pop(BOUNDARY, None)
        if named:
            result[vocabulary.symbol(row)] = named
    return result


def _sample(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], most: int) -> list[Pair]:
    """A reservoir: every usable pair has the same chance, and no more than `most` are ever held."""
    draw = random.Random(0)
    held: list[Pair] = []
    seen = 0
    for new_ids, base_ids in pairs:
        new, base = _pieces(new_ids), _pieces(base_ids)
        if not 0 < len(new) <= _LONGEST_LINE or not 0 < len(base) <= _LONGEST_LINE:
            continue
        seen += 1
        if len(held) < most:
            held.append((new, base))
        elif (place := draw.randrange(seen)) < most:
            held[place] = (new, base)
    draw.shuffle(held)  # where the cells are too many, the lines that go are any lines
    cells = np.cumsum([len(new) * len(base) for new, base in held])
    return held[: int(np.searchsorted(cells, _MOST_CELLS, side="right"))]


def _pieces(ids: Sequence[int]) -> Integers:
    array = np.asarray(ids, dtype=np.int64)
    return array[array >= FIRST_PIECE_ID]


def _parts(sample: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    """The sample in stretches of some _CHUNK_CELLS cells."""
    part_of = np.cumsum([len(new) * len(base) for new, base in sample]) // _CHUNK_CELLS
    starts = np.flatnonzero(np.diff(part_of, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(sample)]):
        yield sample[start:end]


def _cells(new_lengths: Integers, base_lengths: Integers) -> tuple[Integers, Integers]:
    """Which new and which base token each cell pairs; cells go by line, base token, new token."""
    width = np.repeat(new_lengths, base_lengths)  # of each base token's row of cells
    base_token = np.repeat(np.arange(len(width)), width)
    line_start = np.repeat(np.cumsum(new_lengths) - new_lengths, base_lengths)
    row_start = np.cumsum(width) - width
    new_token = np.arange(len(base_token)) + (line_start - row_start)[base_token]
    return new_token, base_token


def _keys(part: Sequence[Pair], base_rows: int) -> tuple[Integers, Integers, Integers]:
    """Lengths of the new and the base lines, and for each cell its link as one number: new row · base_rows + base row."""
    new_lengths = np.array([len(new) for new, _ in part])
    base_lengths = np.array([len(base) for _, base in part])
    new_token, base_token = _cells(new_lengths, base_lengths)
    new_ids, base_ids = (np.concatenate(side) for side in zip(*part, strict=True))
    assert base_ids.max() < base_rows, "a base id beyond base_rows would read as another link"
    return new_lengths, base_lengths, new_ids[new_token] * base_rows + base_ids[base_token]


def _links(sample: Sequence[Pair], base_rows: int) -> Integers:
    """The links worth keeping, sorted."""
    links, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for part in _parts(sample):
        found, found_counts = np.unique(_keys(part, base_rows)[2], return_counts=True)
        links, inverse = _unique(np.concatenate([links, found]))
        counts = np.bincount(inverse, np.concatenate([counts, found_counts])).astype(np.int64)
    return links[counts >= _LEAST_TOGETHER]


def _unique(keys: Integers) -> tuple[Integers, Integers]:
    """The different keys, sorted, and which of them each one is. (torch takes a third of numpy's time.)"""
    found, inverse = torch.unique(torch.from_numpy(keys), return_inverse=True)
    return found.numpy(), inverse.numpy()


@dataclass(frozen=True)
class _Chunk:
    new_lengths: Integers
    base_lengths: Integers
    link: npt.NDArray[np.int32]  # of each cell; -1 where it was not worth keeping

    @classmethod
    def of(cls, part: Sequence[Pair], links: Integers, base_rows: int) -> _Chunk:
        new_lengths, base_lengths, keys = _keys(part, base_rows)
        found, inverse = _unique(keys)
        place = np.searchsorted(links, found)
        kept = links[np.minimum(place, len(links) - 1)] == found
        return cls(new_lengths, base_lengths, np.where(kept, place, -1).astype(np.int32)[inverse])


def _expected(link: npt.NDArray[np.int32], token: Integers, t: Floats) -> Floats:
    """One E-step: each token's single count, shared among its cells in proportion to t, summed per link."""
    shares = np.append(t, 0.0)[link]  # a link of -1 finds the 0
    totals = np.bincount(token, shares)
    shares /= np.maximum(totals, _TINY)[token]
    return np.asarray(np.bincount(link + 1, shares, len(t) + 1)[1:], dtype=np.float64)


def _normalised(counts: Floats, row_of: Integers, rows: int) -> Floats:
    """One M-step: each link's share of the counts of its row."""
    totals = np.bincount(row_of, counts, rows)
    return counts / np.maximum(totals, _TINY)[row_of]


def _best(new_of: Integers, base_of: Integers, score: Floats, top: int) -> dict[int, dict[int, float]]:
    """`new_of` is sorted. Of the `top` links of a row those that have next to none of its weight go, too."""
    order = np.lexsort((-score, new_of))
    starts = np.flatnonzero(np.diff(new_of, prepend=-1)).tolist()
    table = {}
    for start, end in pairwise([*starts, len(order)]):
        chosen = order[start:end][:top]
        chosen = chosen[score[chosen] >= max(_TINY, _LEAST_WEIGHT * score[chosen].sum())]
        if len(chosen):
            weights = score[chosen] / score[chosen].sum()
            table[int(new_of[start])] = dict(zip(base_of[chosen].tolist(), weights.tolist(), strict=True))
    return table
