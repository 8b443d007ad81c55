"""The look at a base in memory: any bit that changes is seen, and nothing is hashed twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt import base as bases
from graftmt.base import Base
from graftmt.experiments import residents
from graftmt.experiments.residents import Look, Resident

TEXTS = {"en": ["a b c"], "fr": ["d e f"]}


@pytest.fixture(params=[("fp32", "fp32"), ("fp32", "bf16"), ("bf16", "bf16"), ("bf16", "fp32"), ("fp16", "bf16")], ids="-".join)
def resident(request: pytest.FixtureRequest, graft_base, tmp_path: Path) -> Resident:
    """Stored in one precision, held in training in the other."""
    stored, held = request.param
    Base.load(graft_base()).save(tmp_path / "base", dtype=stored)
    return Resident.load(tmp_path / "base", device="cpu", dtype=held)


def look(resident: Resident) -> Look:
    return resident.look(TEXTS, 8)


def test_every_bit_of_every_copy_counts(resident: Resident) -> None:
    before = look(resident)
    assert resident.verified(before, look(resident)) == {"base_unchanged": True, "base_scores_identical": True}
    for one in (resident.trainer, resident.scorer):
        for parameter in (next(one.model.parameters()), list(one.model.parameters())[-1]):
            bits = parameter.detach().view(torch.int32 if parameter.dtype == torch.float32 else torch.int16).view(-1)
            bits[0] ^= 1  # the least
            assert not resident.verified(before, look(resident))["base_unchanged"]
            bits[0] ^= 1
    assert resident.verified(before, look(resident))["base_unchanged"]


def test_a_copy_is_hashed_once_where_it_is_held_as_it_is_stored(resident: Resident, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[set[torch.dtype]] = []
    hash_tensors = bases.hash_tensors

    def noted(digest: Any, tensors: Mapping[str, torch.Tensor]) -> None:
        hashed.append({tensor.dtype for tensor in tensors.values()})
        hash_tensors(digest, tensors)

    for module in (bases, residents):
        monkeypatch.setattr(module, "hash_tensors", noted)
    look(resident)
    copies = {id(one): next(one.model.parameters()).dtype for one in (resident.trainer, resident.scorer)}
    stored = hashed[0]
    assert len(hashed) == len(copies) + (not any({dtype} == stored for dtype in copies.values()))
