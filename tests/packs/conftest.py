"""Packs on tiny bases with random weights, and the ways to look at what a composition of them gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from graftmt.base import Base
from graftmt.decoding import Hypothesis, SearchOptions, search_all
from graftmt.packs import Composition

LINES = {
    "en": ["bada kofe gelo", "lako", "fofe bage dalo kebo dafo"],
    "fr": ["pazi tura sipu", "vuta", "zipa ruti savu pita zuri"],
    "ru": ["бако гела", "дело", "вака лево гебо кола вода"],
    "el": ["καλο μενα ροπε", "λαπο", "νορε κεμα πολα ρανε μεκο"],
    "uk": ["банії гізу", "зажу", "нубі вага жузі баву гана"],
}


@dataclass(frozen=True)
class Outputs:
    """All that a composition says of some lines: scores of every target token, and what two searches find."""

    memory: Tensor
    scores: Tensor
    greedy: list[list[Hypothesis]]
    beam: list[list[Hypothesis]]

    def same_as(self, other: Outputs) -> bool:
        """Bit for bit."""
        tensors = torch.equal(self.memory, other.memory) and torch.equal(self.scores, other.scores)
        return tensors and (self.greedy, self.beam) == (other.greedy, other.beam)


@pytest.fixture(scope="session")
def outputs() -> Callable[..., Outputs]:
    """`outputs(composition, "el", "en")`; lines other than the usual ones may be given."""

    @torch.inference_mode()
    def look(composition: Composition, source: str, target: str, lines: Sequence[str] | None = None) -> Outputs:
        codec, model = composition.codec, composition.model
        prefix, end = codec.source_prefix(source, target), codec.end_id
        encoded = [codec.source_tokenizer(source).encode(line) for line in lines or LINES[source]]
        sources = [[*prefix, *tokens, end] for tokens in encoded]
        start = codec.decoder_prefix(target)
        targets = [[*start, *codec.target_tokenizer(target).encode(line)] for line in LINES[target]]
        memory, mask = model.encode(padded(sources))
        scores = model.projection(model.decode(padded(targets)[: len(sources)], memory, mask))

        def search(beam: int) -> list[list[Hypothesis]]:
            options = SearchOptions(beam=beam, n_best=beam, max_length=5)
            return search_all(model, sources, [start] * len(sources), options, end=end, forbidden=codec.forbidden)

        return Outputs(memory, scores, search(1), search(3))

    return look


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[1] * (longest - len(row))] for row in rows])


@pytest.fixture(scope="session")
def base(graft_base: Callable[..., Path]) -> Base:
    """Pre-norm, codes on the source side; shared: do not change it."""
    return Base.load(graft_base())


@pytest.fixture(scope="session", params=["pre-source", "post-source", "pre-decoder", "post-decoder"])
def any_base(request: pytest.FixtureRequest, graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base(*request.param.split("-")))
