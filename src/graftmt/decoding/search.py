"""Greedy and beam search over any model with `encode`, `start` and `step`, and the options that say how. Layer 3.

Both keep only unfinished sentences in the batch: a sentence that is done leaves, and the caches shrink with it.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real

import torch
import torch.nn.functional as F
from torch import Tensor

from graftmt.decoding.search_kernels import GROUP, can_take_maxima, group_maxima
from graftmt.errors import ConfigError
from graftmt.model import DecoderState, Transformer
from graftmt.translation_options import WayOptions

WIDEST_BEAM = 1000
"""Memory grows with it; beyond some tens of hypotheses translations get worse."""
STEEPEST_PENALTY = 100


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Beam 5 and length penalty 1 are the paper's (fairseq's defaults); beam 1 is greedy search."""

    beam: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    """A finished hypothesis scores its log-probability / length^penalty, its end counted; above 1 favours longer ones."""
    max_length: int = 1024
    """At most this many tokens come out, the end counted."""
    length_ratio: float = 3.0
    """… and at most this many times the tokens that went in, plus 20: a looping model stops early on short lines."""
    batch_tokens: int = 8192
    """Source tokens × beam in one batch."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), Integral if field.type == "int" else Real
            if not isinstance(value, kind) or isinstance(value, bool):
                number = "a whole number" if kind is Integral else "a number"
                raise ConfigError(f"{field.name} is {reprlib.repr(value)} ({type(value).__name__}); expected {number}.")
        if self.beam < 1 or self.max_length < 1 or self.batch_tokens < 1 or not 0 <= self.length_ratio < math.inf:
            raise ConfigError("beam, max_length and batch_tokens must be at least 1, and length_ratio not negative.")
        if self.beam > WIDEST_BEAM:
            raise ConfigError(f"beam is {self.beam}; at most {WIDEST_BEAM} hypotheses can be kept. 5 is usual.")
        if not abs(self.length_penalty) <= STEEPEST_PENALTY:
            raise ConfigError(
                f"length_penalty is {self.length_penalty}; expected a number between -{STEEPEST_PENALTY} and "
                f"{STEEPEST_PENALTY}. 1 is usual."
            )
        if not 1 <= self.n_best <= self.beam:
            raise ConfigError(f"n_best is {self.n_best}; it must be between 1 and the beam, {self.beam}.")

    def limit(self, source_length: int) -> int:
        """The longest output for a source of this number of tokens."""
        return max(1, min(self.max_length, int(self.length_ratio * source_length) + 20))


def checked_options(options: SearchOptions | None) -> SearchOptions:
    """Those that were given, or the defaults; a dict of them is an error that says what to write."""
    if options is None:
        return SearchOptions()
    if not isinstance(options, SearchOptions):
        known = {field.name for field in fields(SearchOptions)}
        meant = options.items() if isinstance(options, Mapping) else ()
        said = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in meant if name in known) or "beam=1"
        raise ConfigError(
            f"options is {reprlib.repr(options)} ({type(options).__name__}); expected SearchOptions, such as "
            f"options=SearchOptions({said}) after `from graftmt import SearchOptions`."
        )
    return options


def search_of(options: WayOptions, n_best: int = 1) -> SearchOptions:
    """What was asked for; `options.device` is chosen already, and a batch that was not is as the device can take it."""
    return SearchOptions(
        beam=options.beam,
        n_best=n_best,
        length_penalty=options.length_penalty,
        max_length=options.max_length,
        batch_tokens=options.batch_tokens or batch_tokens_for(options.device),
    )


def batch_tokens_for(device: str) -> int:
    """Source tokens × beam in one batch: what keeps a CPU's caches or a whole GPU busy, within a part of its memory."""
    if not device.startswith("cuda"):
        return 4096
    gibibytes = torch.cuda.get_device_properties(device).total_memory >> 30
    return max(1 << 15, min(1 << 18, (gibibytes // 8) << 14))


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its tokens without prefix and end, and its score."""

    tokens: list[int]
    score: float
    finished: bool
    """False where it was cut at the maximum length."""


NEVER = -torch.inf
"""The score of what cannot be; nothing added to it or divided from it makes it possible again."""


class Forbidden:
    """Tokens that must not come out, such as padding and language codes."""

    def __init__(self, tokens: Sequence[int], device: torch.device) -> None:
        self.tokens = torch.tensor(list(tokens), dtype=torch.long, device=device)
        self.allowed: Tensor | None = None

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """(rows, V) scores → log-probabilities in fp32, whatever precision the model runs in."""
        result = torch.log_softmax(scores, dim=-1, dtype=torch.float32)
        return result.index_fill_(1, self.tokens, NEVER) if len(self.tokens) else result

    def best(self, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The `count` best log-probabilities of each row and the tokens they are of, best first: both (rows, count)."""
        if can_take_maxima(scores):
            if self.allowed is None:
                self.allowed = scores.new_ones(scores.shape[1], dtype=torch.bool).index_fill_(0, self.tokens, False)
            maxima, totals = group_maxima(scores, self.allowed)
            best, tokens = top_by_groups(scores, maxima, self.allowed, count)
            # Where fewer are allowed than asked for: a token that there is, never one of the rows that only fill up.
            return best - totals[:, None], tokens.masked_fill(best == NEVER, 0)
        best, tokens = self.log_probabilities(scores).topk(count, dim=1)
        return best, tokens


def top_by_groups(scores: Tensor, maxima: Tensor, allowed: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """What `topk` gives of those allowed, sooner on a GPU: only groups with one of the highest maxima can hold any of them."""
    groups = scores.unflatten(1, (-1, GROUP))
    chosen = maxima.topk(min(count, groups.shape[1]), dim=1).indices
    inside = groups.gather(1, chosen[:, :, None].expand(-1, -1, GROUP)).flatten(1)
    tokens = (chosen[:, :, None] * GROUP + torch.arange(GROUP, device=chosen.device)).flatten(1)
    best, places = inside.masked_fill(~allowed[tokens], NEVER).topk(count, dim=1)
    return best, tokens.gather(1, places)


@torch.inference_mode()
def greedy_search(
    model: Transformer,
    source: Tensor,
    prefix: Tensor,
    options: SearchOptions,
    *,
    limits: Tensor,
    end: int,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """The best token at each step: what beam search with a beam of 1 finds, sooner.

    source (B, S); prefix (B, P): what the decoder starts from; limits (B,): the most tokens each may give, the end counted.
    """
    device, batch = source.device, source.shape[0]
    rule = Forbidden(forbidden, device)
    state, longest = _start(model, source, prefix, limits, beam=1)
    tokens = prefix
    outputs = torch.full((batch, longest), end, device=device)
    totals = torch.zeros(batch, device=device)
    lengths = torch.zeros(batch, dtype=torch.long, device=device)
    active = torch.arange(batch, device=device)
    for step in range(longest):
        best, chosen = rule.log_probabilities(model.step(tokens, state)).max(dim=-1)
        outputs[active, step] = chosen
        totals[active] += best
        lengths[active] = step + 1
        going = (chosen != end) & (limits[active] > step + 1)
        kept = going.nonzero().flatten()
        if len(kept) < len(active):
            if not len(kept):
                break
            state.keep_sentences(kept)
            state.reorder(kept)
            active, chosen = active[kept], chosen[kept]
        tokens = chosen[:, None]
    return [
        [_hypothesis(row[:length], total / length**options.length_penalty, end)]
        for row, length, total in zip(outputs.tolist(), lengths.tolist(), totals.tolist(), strict=True)
    ]


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source: Tensor,
    prefix: Tensor,
    options: SearchOptions,
    *,
    limits: Tensor,
    end: int,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """The `n_best` best of `beam` finished hypotheses of each sentence, best first.

    At each step the 2 × beam best continuations are looked at: those among the first `beam` that end are finished, the best
    `beam` others continue. A sentence is done when it has `beam` finished ones, or at its limit, where the first `beam` count
    as finished as they are.
    """
    device, beam = source.device, options.beam
    rule = Forbidden(forbidden, device)
    state, longest = _start(model, source, prefix, limits, beam)
    search = Beams(source.shape[0], beam, longest, end, device)
    numbers = torch.arange(longest, device=device)
    results: list[list[Hypothesis]] = [[] for _ in range(source.shape[0])]
    tokens = prefix.repeat_interleave(beam, dim=0)
    for step in range(longest):
        at_limit = limits[search.sentences] <= step + 1
        scores = model.step(tokens, state)
        found = rule.best(scores, min(2 * beam, scores.shape[1]))
        parents = search.advance(*found, numbers[step : step + 1], at_limit, options.length_penalty)
        done = search.are_finished(at_limit)
        if done.any():
            search.collect(done, results, options.n_best)
            kept = (~done).nonzero().flatten()
            if not len(kept):
                break
            state.keep_sentences(kept)
            search.keep(kept)
            parents = parents[kept] + kept[:, None] * beam
        else:
            parents = parents + torch.arange(len(parents), device=device)[:, None] * beam
        state.reorder(parents.flatten())
        tokens = search.tokens[:, :, step].reshape(-1, 1)
    return results


class Beams:
    """The running and the finished hypotheses of the sentences still in the batch (B sentences, K = beam)."""

    PARTS = ("sentences", "tokens", "scores", "finished_tokens", "finished_scores", "finished_lengths")

    def __init__(self, batch: int, beam: int, longest: int, end: int, device: torch.device) -> None:
        self.beam, self.end = beam, end
        self.sentences = torch.arange(batch, device=device)
        self.tokens = torch.full((batch, beam, longest), end, device=device)
        self.scores = torch.full((batch, beam), NEVER, device=device)
        self.scores[:, 0] = 0.0  # all K start equal: only the first may speak, or each would be found K times
        self.finished_tokens = self.tokens.clone()
        self.finished_scores = torch.full_like(self.scores, NEVER)
        self.finished_lengths = torch.zeros(batch, beam, dtype=torch.long, device=device)

    def advance(self, best: Tensor, tokens: Tensor, step: Tensor, at_limit: Tensor, penalty: float) -> Tensor:
        """Step number `step` (1,) for all sentences, given the best continuations of each hypothesis (B × K, c) and their
        log-probabilities; returns which of its sentence's hypotheses each running one continues (B, K)."""
        each = best.shape[1]
        totals = (best.view(-1, self.beam, each) + self.scores[:, :, None]).flatten(1)
        totals, places = totals.topk(2 * self.beam, dim=1)
        parents, chosen = places // each, tokens.view(len(totals), -1).gather(1, places)
        candidates = self.tokens.gather(1, parents[:, :, None].expand(-1, -1, self.tokens.shape[2]))
        candidates.index_copy_(2, step, chosen[:, :, None])
        ended = chosen == self.end

        finishing = (ended | at_limit[:, None])[:, : self.beam]
        normalised = torch.where(finishing, totals[:, : self.beam] / (step + 1) ** penalty, NEVER)
        self._finish(candidates[:, : self.beam], normalised, step + 1)

        self.scores, order = totals.masked_fill(ended, NEVER).topk(self.beam, dim=1)
        self.tokens = candidates.gather(1, order[:, :, None].expand(-1, -1, candidates.shape[2]))
        return parents.gather(1, order)

    def are_finished(self, at_limit: Tensor) -> Tensor:
        """The sentences (B,) that have all they need."""
        return at_limit | (self.finished_scores > NEVER).all(dim=1)

    def _finish(self, tokens: Tensor, scores: Tensor, length: Tensor) -> None:
        """Merges new finished hypotheses into the best K so far."""
        lengths = length.expand_as(self.finished_lengths)
        self.finished_scores, order = torch.cat([self.finished_scores, scores], dim=1).topk(self.beam, dim=1)
        self.finished_lengths = torch.cat([self.finished_lengths, lengths], dim=1).gather(1, order)
        every = order[:, :, None].expand(-1, -1, tokens.shape[2])
        self.finished_tokens = torch.cat([self.finished_tokens, tokens], dim=1).gather(1, every)

    def collect(self, done: Tensor, results: list[list[Hypothesis]], n_best: int) -> None:
        """Writes the hypotheses of the sentences that are done to `results`."""
        where = done.nonzero().flatten()
        names = self.sentences[where].tolist()
        # At once for all of them: each transfer waits for the device.
        best = (part[where, :n_best].tolist() for part in (self.finished_tokens, self.finished_lengths, self.finished_scores))
        for sentence, rows, lengths, scores in zip(names, *best, strict=True):
            results[sentence] = [
                _hypothesis(row[:length], score, self.end)
                for number, (row, length, score) in enumerate(zip(rows, lengths, scores, strict=True))
                if number == 0 or score > NEVER  # one at least, also of a model that gives no numbers
            ]

    def keep(self, sentences: Tensor) -> None:
        for name in self.PARTS:
            setattr(self, name, getattr(self, name)[sentences])

    def grow(self, longest: int) -> None:
        """Room for outputs of this number of tokens."""
        for name in ("tokens", "finished_tokens"):
            old = getattr(self, name)
            setattr(self, name, F.pad(old, (0, longest - old.shape[2]), value=self.end))


def _start(model: Transformer, source: Tensor, prefix: Tensor, limits: Tensor, beam: int) -> tuple[DecoderState, int]:
    longest = int(limits.max())
    memory, mask = model.encode(source)
    return model.start(memory, mask, beam=beam, capacity=prefix.shape[1] + longest), longest


def _hypothesis(tokens: list[int], score: float, end: int) -> Hypothesis:
    finished = bool(tokens) and tokens[-1] == end
    return Hypothesis(tokens[:-1] if finished else tokens, score, finished)
