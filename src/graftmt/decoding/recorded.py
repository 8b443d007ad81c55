"""Search on a GPU: steps that use the same memory each time, recorded as a CUDA graph and replayed. Layer 3.

A step of a small decoder is some hundreds of short kernels; launching them one by one takes longer than they run. Here a step
with all of a search's bookkeeping is one launch. Finished sentences stay where they are, without effect, until the next
moment at which shapes change anyway: when the outputs need more room, or most sentences are done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from graftmt.decoding.search import NEVER, Beams, Forbidden, Hypothesis, SearchOptions
from graftmt.model import Transformer
from graftmt.model.attention import SlotCache, Slots
from graftmt.model.layers import LayerCache
from graftmt.model.transformer import DecoderState

ONE_AT_A_TIME = threading.Lock()
"""Only one thread of a process may record; all of them use one GPU, so that little is lost."""

FIRST_ROOM = 16
"""Tokens. Room grows from it by halves and thirds in turn: 16, 24, 32, 48, 64 …"""

WORTH_RECORDING = 4
"""Steps; recording one takes as long as two or three."""

STEPS_BETWEEN_LOOKS = 4
"""Looking whether sentences are done waits for the GPU."""

MANY_ROWS = 2048
"""With fewer, a step is not faster for having half of them."""

MULTIPLE = 8
"""Attention's masks are read eight at a time."""


@torch.inference_mode()
def recorded_search(
    model: Transformer,
    source: Tensor,
    prefix: Tensor,
    options: SearchOptions,
    *,
    limits: Tensor,
    end: int,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """What `beam_search` finds (with a beam of 1, `greedy_search`), sooner on a GPU."""
    results: list[list[Hypothesis]] = [[] for _ in range(source.shape[0])]
    with ONE_AT_A_TIME:
        board = _Board(model, source, prefix, options, limits, end, forbidden)
        while True:
            board.play()
            board.beams.collect(board.done, results, options.n_best)
            kept = (~board.done).nonzero().flatten()
            if not len(kept):
                return results
            board.move(kept)


def next_room(tokens: int) -> int:
    """The first of the rooms that holds this number."""
    room = FIRST_ROOM
    while room < tokens:
        room = room * 3 // 2 if room & (room - 1) == 0 else room * 4 // 3
    return room


class _Board:
    """The sentences of a batch in the middle of their search, and the step that is next for all of them."""

    def __init__(
        self,
        model: Transformer,
        source: Tensor,
        prefix: Tensor,
        options: SearchOptions,
        limits: Tensor,
        end: int,
        forbidden: Sequence[int],
    ) -> None:
        self.model, self.beam, self.penalty = model, options.beam, options.length_penalty
        self.rule = Forbidden(forbidden, source.device)
        self.limits, self.longest = limits, int(limits.max())
        self.prefix = prefix.shape[1]
        self.fed = 0
        """Tokens of each hypothesis that went into the decoder; the device has the same number in its slots."""
        model.reserve(self.prefix + self.longest - 1)  # before anything is recorded
        self.state = _start(model, source, self.beam, self._room())
        self.beams = Beams(source.shape[0], self.beam, self._room(), end, source.device)
        self.done = torch.zeros(source.shape[0], dtype=torch.bool, device=source.device)
        tokens = prefix.repeat_interleave(self.beam, dim=0)
        for number in range(self.prefix - 1):
            self._slots.open()
            model.step(tokens[:, number : number + 1], self.state)
            self.fed += 1
        self.last = tokens[:, -1:].clone()
        self.pool = torch.cuda.graph_pool_handle() if source.is_cuda else None
        self.graph: torch.cuda.CUDAGraph | None = None
        """The step as it was last recorded. It outlives its use: the next one takes over its memory."""

    def play(self) -> None:
        """Steps until all are done, room is used up, or it pays to continue with fewer sentences."""
        steps = min(self._slots.room, self.prefix + self.longest - 1) - self.fed
        self._step()  # as it is: what runs first in a new shape may do things that cannot be recorded
        step = self._recorded() if self.pool is not None and steps > WORTH_RECORDING else self._step
        for number in range(1, steps):
            if number % STEPS_BETWEEN_LOOKS == 0:
                going = len(self.done) - int(self.done.sum())
                few = len(self.done) * self.beam > MANY_ROWS and 2 * going <= len(self.done)
                if not going or few:
                    steps = number
                    break
            step()
        self.fed += steps

    def move(self, kept: Tensor) -> None:
        """Continues with these sentences alone, and with room for more tokens where it was used up."""
        room = self._room()
        self.beams.keep(kept)
        self.beams.grow(room)
        self.state = _moved(self.state, kept, room)
        self.limits, self.done = self.limits[kept], self.done[kept]
        self.last = self.last.view(-1, self.beam)[kept].view(-1, 1)

    def _room(self) -> int:
        """For the tokens so far and the next one."""
        return next_room(self.fed + 1 if self.fed else self.prefix)

    @property
    def _slots(self) -> Slots:
        cache = self.state.layers[0].self_attention
        assert isinstance(cache, SlotCache)
        return cache.slots

    def _recorded(self) -> Callable[[], None]:
        """The step as one launch. Nothing runs while it is recorded; other threads may use the GPU."""
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(self.last.device)
        with torch.cuda.graph(graph, pool=self.pool, stream=stream, capture_error_mode="thread_local"):
            self._step()
        self.graph = graph
        return graph.replay

    def _step(self) -> None:
        """The next token of every hypothesis. Everything it changes it changes in place."""
        slots, beams = self._slots, self.beams
        slots.open()
        scores = self.model.step(self.last, self.state)
        step = slots.position - self.prefix  # of the token that comes out, from 0
        at_limit = self.limits <= step + 1
        places = {name: getattr(beams, name) for name in Beams.PARTS}
        found = self.rule.best(scores, min(2 * self.beam, scores.shape[1]))
        parents = beams.advance(*found, step, at_limit, self.penalty)
        self.done |= beams.are_finished(at_limit)
        beams.scores.masked_fill_(self.done[:, None], NEVER)  # nothing that follows can change what they found
        self.last.copy_(beams.tokens.index_select(2, step).view(-1, 1))
        slots.follow(parents)
        for name, place in places.items():
            if getattr(beams, name) is not place:
                place.copy_(getattr(beams, name))
                setattr(beams, name, place)


def _start(model: Transformer, source: Tensor, beam: int, room: int) -> DecoderState:
    memory, mask = model.encode(source)
    state = model.start(memory, mask, beam=beam, capacity=0)
    slots = Slots(source.shape[0], beam, room, source.device)
    for layer in state.layers:
        keys = layer.memory_keys
        layer.self_attention = SlotCache(slots, keys.shape[1], keys.shape[3], like=keys)
    state.position = slots.position
    return state


def _moved(state: DecoderState, kept: Tensor, room: int) -> DecoderState:
    """The same without the other sentences, and without columns of the memory that only those had."""
    assert state.memory_mask is not None
    mask = state.memory_mask.index_select(0, kept)
    longest = int(mask.sum(dim=3).max())
    columns = min(mask.shape[3], -(-longest // MULTIPLE) * MULTIPLE)
    layers: list[LayerCache] = []
    slots: Slots | None = None
    while state.layers:  # each is let go before the next one moves: there is memory for one state, not for two
        layer = state.layers.pop(0)
        cache = layer.self_attention
        assert isinstance(cache, SlotCache)
        slots = slots or cache.slots.moved(kept, max(room, cache.slots.room))
        keys, values = (part[:, :, :columns].index_select(0, kept) for part in (layer.memory_keys, layer.memory_values))
        layers.append(LayerCache(cache.moved(kept, slots), keys, values))
        del layer, cache
    assert slots is not None
    return DecoderState(layers, mask[..., :columns].contiguous(), state.beam, slots.position)
