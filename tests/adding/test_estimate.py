"""What a pack will cost is counted exactly where it can be, timed where it cannot, and nothing has moved after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.adding.add import too_little_time
from graftmt.adding.estimate import Estimate, duration, estimate, size
from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.packs import save_pack
from graftmt.training.pack_job import PackJob
from graftmt.training.pack_training import prepare_pack

FOUND = Estimate(
    parameters=2_000, base_parameters=10_000, bytes=8_000_000, memory=2 * 10**9, steps=1_000, done=0, seconds=600.0
)


@pytest.fixture
def prepare(
    graft_base: Callable[..., Path], graft_config: Callable[..., Any], graft_corpus: Path, tmp_path: Path
) -> Callable[..., PackJob]:
    def make(side: str, recipe: str, **options: Any) -> PackJob:
        config = graft_config(tmp_path / "run", side, recipe, **options)
        return prepare_pack(config, Base.load(graft_base()), Corpus.open(graft_corpus, "train"), None)

    return make


@pytest.mark.parametrize(
    ("side", "recipe", "dtype"),
    [("source", "embed", "fp32"), ("target", "embed + dec-last-layer + enc-adapters-last(4)", "bf16")],
)
def test_counts_are_those_of_base_and_pack(
    prepare: Callable[..., PackJob], tmp_path: Path, side: str, recipe: str, dtype: str
) -> None:
    job = prepare(side, recipe, store_dtype=dtype, steps=50)
    found = estimate(job)
    assert found.parameters == job.pack.size
    assert found.base_parameters == sum(parameter.numel() for parameter in job.base.model.parameters())
    save_pack(job.pack, tmp_path / "pack", job.base.model.config, dtype=dtype)
    stored = sum((tmp_path / "pack" / name).stat().st_size for name in ("pack.safetensors", "subwords.model"))
    assert 0 < stored - found.bytes < 200 * len(job.pack.parameters)  # the tensors' names and places
    assert found.memory > 4 * (found.parameters + found.base_parameters)
    assert (found.steps, found.done) == (50, 0)
    assert found.seconds > 0


def test_nothing_has_moved_after_it(prepare: Callable[..., PackJob]) -> None:
    job = prepare("target", "embed + dec-last-layer", dropout=0.3)
    before = {name: parameter.detach().clone() for name, parameter in job.pack.parameters.items()}
    frozen = {name: parameter.detach().clone() for name, parameter in job.base.model.named_parameters()}
    estimate(job)
    for name, parameter in job.pack.parameters.items():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None
    for name, parameter in job.base.model.named_parameters():
        assert torch.equal(parameter, frozen[name])
        assert parameter.grad is None
    assert not job.composition.model.training


def test_what_is_done_is_not_timed_again(prepare: Callable[..., PackJob]) -> None:
    found = estimate(prepare("source", "embed", steps=9), done=9)
    assert (found.done, found.seconds) == (9, 0.0)
    assert str(found).endswith("all 9 steps are done")


def test_the_words_have_the_figures() -> None:
    assert str(FOUND) == (
        "2,000 parameters (20.0 % of the base's 10,000), 8.0 MB on disk; about 2.0 GB of memory; "
        "1,000 steps, about 10 minutes plus validation"
    )
    assert "400 of 1,000 steps left" in str(replace(FOUND, done=600))


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (89, "89 s"), (120, "2 minutes"), (5_000, "83 minutes"), (9_000, "2.5 hours")]
)
def test_durations_are_in_the_unit_people_use(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_sizes_are_in_the_unit_people_use() -> None:
    assert (size(700_000), size(150_000_000)) == ("0.7 MB", "0.1 GB")


def test_too_few_minutes_are_warned_of_with_the_steps_that_would_fit() -> None:
    assert too_little_time(FOUND, None, 0) == too_little_time(FOUND, 11, 0) == ""
    assert too_little_time(replace(FOUND, done=1_000, seconds=0.0), 0, 100) == ""
    warning = too_little_time(FOUND, 6, 60)
    assert "about 10 minutes, and --minutes leaves 5 minutes" in warning
    assert "--steps 400" in warning  # half the time, less what validation and the verdict take
    assert "--steps" not in too_little_time(FOUND, 1, 120)  # nothing fits
    assert "--steps" not in too_little_time(replace(FOUND, done=10), 6, 60)  # a run keeps its number of steps
