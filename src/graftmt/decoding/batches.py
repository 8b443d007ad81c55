"""Many sources at once: batches of like lengths, the input's order restored. Layer 3."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import NamedTuple

import torch

from graftmt.decoding.recorded import MULTIPLE, ONE_AT_A_TIME, recorded_search
from graftmt.decoding.search import Hypothesis, SearchOptions, beam_search, greedy_search
from graftmt.decoding.weight_layout import kept_layout, packed
from graftmt.model import Transformer
from graftmt.model.known_parts import all_known

WORTH_PACKING = 4
"""Rows. For fewer, plain products with a vector are as fast."""


def search_all(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    prefixes: Sequence[Sequence[int]],
    options: SearchOptions,
    *,
    end: int,
    forbidden: Sequence[int] = (),
    on_batch: Callable[[int], None] | None = None,
    record: bool = True,
    keep: bool = False,
) -> list[list[Hypothesis]]:
    """The hypotheses of each source (ids with codes and end, as the encoder reads them).

    `prefixes[i]` is what the decoder starts from for source i; all have one length, so directions mix freely in a batch.
    `on_batch` hears how many are done. `record`: on a GPU, steps of known modules are recorded and replayed, which finds the
    same. `keep`: the model stays, so its weights' layout is kept for the next call. A batch that does not fit in the memory of
    a GPU is tried again in halves, and none that follow have more tokens than these.
    """
    on_gpu = model.device.type == "cuda"
    there = torch.cuda.device(model.device) if on_gpu else nullcontext()  # our kernels go to the current device
    record = on_gpu and record and all_known("recorded steps", model)
    if on_gpu or len(sources) * options.beam >= WORTH_PACKING:
        model = kept_layout(model) if keep else packed(model)
    search = recorded_search if record else greedy_search if options.beam == 1 else beam_search
    results: list[list[Hypothesis]] = [[] for _ in sources]
    waiting = deque(length_batches([len(source) for source in sources], options))
    most: int | None = None
    """Tokens of a batch, padding included; known after one that did not fit."""
    done = 0
    while waiting:
        rows = waiting.popleft()
        longest = padded_length(model, max(len(sources[row]) for row in rows))
        if most is not None and len(rows) > (fitting := max(1, most // longest)):
            waiting.extendleft([rows[fitting:], rows[:fitting]])
            continue
        batch = as_tensors(model, [sources[row] for row in rows], [prefixes[row] for row in rows], longest, options)
        found: list[list[Hypothesis]] | None = None
        try:
            with there:
                found = search(model, batch.source, batch.prefix, options, limits=batch.limits, end=end, forbidden=forbidden)
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                raise
        if found is None:  # here, since an error that is being handled holds on to what filled the memory
            del batch
            with ONE_AT_A_TIME:
                torch.cuda.empty_cache()
            most = -(-len(rows) // 2) * longest
            waiting.appendleft(rows)
            continue
        for row, hypotheses in zip(rows, found, strict=True):
            results[row] = hypotheses
        done += len(rows)
        if on_batch is not None:
            on_batch(done)
    return results


class Batch(NamedTuple):
    """B sources of S tokens: what a search takes."""

    source: torch.Tensor
    """B × S"""
    prefix: torch.Tensor
    """B × P"""
    limits: torch.Tensor
    """B: the longest output of each"""


def padded_length(model: Transformer, longest: int) -> int:
    """Tokens of a batch's rows. On a GPU few lengths are recorded, and the model has to have these positions."""
    if model.device.type != "cuda":
        return longest
    longest += -longest % MULTIPLE
    return min(longest, model.config.most_positions or longest)


def as_tensors(
    model: Transformer, sources: list[Sequence[int]], prefixes: list[Sequence[int]], longest: int, options: SearchOptions
) -> Batch:
    # Where positions were learned there are no others; the last token that comes out is not read again.
    most_positions = model.config.most_positions
    room = most_positions - len(prefixes[0]) + 1 if most_positions else options.max_length
    padded = [[*source, *[model.source_padding_id] * (longest - len(source))] for source in sources]
    return Batch(
        source=torch.tensor(padded, device=model.device),
        prefix=torch.tensor(list(prefixes), device=model.device),
        limits=torch.tensor([min(room, options.limit(len(source))) for source in sources], device=model.device),
    )


def length_batches(lengths: Sequence[int], options: SearchOptions) -> Iterator[list[int]]:
    """Row numbers, longest first (what does not fit in memory fails at once), in batches of at most `batch_tokens`."""
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batch: list[int] = []
    for row in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] * options.beam > options.batch_tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
