"""Many sources at once: batches of like lengths, the input's order restored. Layer 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from graftmt.decoding.options import Hypothesis, SearchOptions
from graftmt.decoding.packing import packed
from graftmt.decoding.recorded import MULTIPLE, recorded_search
from graftmt.decoding.search import beam_search, greedy_search
from graftmt.model import Transformer

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
) -> list[list[Hypothesis]]:
    """The hypotheses of each source (ids with codes and end, as the encoder reads them).

    `prefixes[i]` is what the decoder starts from for source i; all have one length, so directions mix freely in a batch.
    `on_batch` hears how many are done. `record`: on a GPU, steps are recorded and replayed, which finds the same.
    """
    if len(sources) * options.beam >= WORTH_PACKING:
        model = packed(model)
    results: list[list[Hypothesis]] = [[] for _ in sources]
    done = 0
    recorded = record and model.device.type == "cuda"
    search = recorded_search if recorded else greedy_search if options.beam == 1 else beam_search
    for rows in length_batches([len(source) for source in sources], options):
        longest = max(len(sources[row]) for row in rows)
        if recorded:
            longest += -longest % MULTIPLE
        padded = [[*sources[row], *[model.config.padding_id] * (longest - len(sources[row]))] for row in rows]
        source = torch.tensor(padded, device=model.device)
        prefix = torch.tensor([prefixes[row] for row in rows], device=model.device)
        limits = torch.tensor([options.limit(len(sources[row])) for row in rows], device=model.device)
        found = search(model, source, prefix, options, limits=limits, end=end, forbidden=forbidden)
        for row, hypotheses in zip(rows, found, strict=True):
            results[row] = hypotheses
        done += len(rows)
        if on_batch is not None:
            on_batch(done)
    return results


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
