"""Components for trained directions only (`@trained`): learned last, on top of all else, and out of the way elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.base import Base
from graftmt.errors import ConfigError
from graftmt.packs import Pack, load_pack
from graftmt.training import StageConfig, Stopped
from graftmt.training.journal import read_log
from graftmt.training.loop import Trainer
from graftmt.training.pack_job import with_scoped_stage
from graftmt.training.validation import Validator
from graftmt.translator import Translator

Train = Callable[..., Pack]
CASES = {
    "source": ("embed", "embed + enc-adapters-all(4)@trained"),
    "target": ("embed + dec-last-layer", "embed + dec-last-layer + enc-adapters-last(4)@trained"),
}


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


@pytest.mark.slow
@pytest.mark.parametrize("side", CASES)
def test_other_directions_are_those_of_the_pack_without_them(base: Base, train_graft: Train, tmp_path: Path, side: str) -> None:
    shared, scoped = CASES[side]
    plain = train_graft(tmp_path / "plain", base, side, shared, steps=8, validate=True)
    train_graft(tmp_path / "scoped", base, side, scoped, steps=8, validate=True)
    pack = load_pack(tmp_path / "scoped" / "pack")
    own = pack.scoped_names(base.model.config)
    assert own == {name for name in pack.parameters if ".adapters." in name}
    # What is learned first does not feel what comes later.
    for name, parameter in plain.parameters.items():
        assert torch.equal(parameter, pack.parameters[name]), name
    assert all(pack.parameters[name].abs().max() > 0 for name in own if name.endswith("up.weight"))

    ids = torch.arange(4, 16)[None]

    def scores(other: str) -> list[torch.Tensor]:
        direction = ("el", other) if side == "source" else (other, "el")
        return [Translator(base, [each]).composition(*direction).model(ids, ids) for each in (plain, pack)]

    assert torch.equal(*scores("fr"))
    assert not torch.equal(*scores("en"))

    log = read_log(tmp_path / "scoped" / "log.jsonl")
    watched = [
        {name: value for name, value in event.items() if name.endswith("/loss") and "en" not in name}
        for event in log
        if event["event"] == "validation" and event["stage"] == 1
    ]
    assert watched and all(entry == watched[0] for entry in watched)  # they stay as they are while the last stage trains
    assert max(event["step"] for event in log if event["stage"] == 1) == 4


def test_a_last_stage_that_was_stopped_goes_on_exactly(
    base: Base, train_graft: Train, stopping_after: Callable[..., type[Trainer]], tmp_path: Path
) -> None:
    recipe = CASES["source"][1]

    whole = train_graft(tmp_path / "whole", base, "source", recipe, steps=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", stopping_after(2, "@trained"))
        with pytest.raises(Stopped):
            train_graft(tmp_path / "cut", base, "source", recipe, steps=8)
    said: list[str] = []
    again = train_graft(tmp_path / "cut", base, "source", recipe, steps=8, said=said)
    assert any("resuming at stage2-step00000002" in line for line in said)
    assert all(torch.equal(whole.parameters[name], again.parameters[name]) for name in whole.parameters)
    assert all(parameter.requires_grad for parameter in again.parameters.values())


@pytest.mark.slow
def test_a_last_stage_that_gains_nothing_is_left_out(base: Base, train_graft: Train, tmp_path: Path) -> None:
    """What it starts from is the first candidate for its best."""
    own_validate, calls = Validator.validate, 0

    def worse_in_the_last_stage(*arguments: Any, **options: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        scores = own_validate(*arguments, **options)
        return scores if calls <= 2 else {**scores, "loss": scores["loss"] + 10}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Validator, "validate", worse_in_the_last_stage)
        said: list[str] = []
        pack = train_graft(tmp_path / "run", base, "source", CASES["source"][1], steps=8, validate=True, said=said)
    assert calls == 3
    assert any("brought no lower validation loss" in line for line in said)
    own = pack.scoped_names(base.model.config)
    assert all(not pack.parameters[name].any() for name in own if name.endswith("up.weight"))
    assert (pack.card["validation"]["stage"], pack.card["validation"]["step"]) == (1, 0)


def test_languages_with_a_few_lines_do_without_them(base: Base, train_graft: Train, tmp_path: Path) -> None:
    shared, scoped = "embed + enc-first-layer", "embed + enc-first-layer + enc-layer-2@trained"
    both = {"partners": ("en", "fr"), "few": ("fr",), "steps": 8}
    plain = train_graft(tmp_path / "plain", base, "source", shared, **both)
    said: list[str] = []
    pack = train_graft(tmp_path / "scoped", base, "source", scoped, said=said, **both)
    assert [line.partition(": ")[2].split(" in ")[1] for line in said if line.startswith("stage ")] == [
        "2 directions, 8 steps",
        "1 direction, 4 steps",
    ]
    assert [pack.is_whole_with(language) for language in ("en", "fr", "ru")] == [True, False, False]
    ids = torch.arange(4, 16)[None]
    first, second = (Translator(base, [each]).composition("el", "fr").model(ids, ids) for each in (plain, pack))
    assert torch.equal(first, second)
    own = pack.scoped_names(base.model.config)
    assert own and all(name.startswith("encoder.layers.1.") for name in own)
    before = dict(base.model.named_parameters())
    assert any(not torch.equal(pack.parameters[name], before[name]) for name in own)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_pack_gone_on_with_learns_for_others_without_them(
    base: Base, train_graft: Train, tmp_path: Path, stages: int
) -> None:
    """Its parts begin as those of before: what is shared must not come to lean on them."""
    both: dict[str, Any] = {"partners": ("en", "fr"), "few": ("fr",), "steps": 6}
    train_graft(tmp_path / "first", base, "source", CASES["source"][1], **both)
    parent, models = tmp_path / "first" / "pack", []

    class Watched(Trainer):
        def run(self, *arguments: Any) -> None:
            ids = torch.arange(4, 16)[None]
            models.append(self.model(ids, ids))
            super().run(*arguments)

    if stages == 2:
        stage = StageConfig(name="own", directions=(), batch_tokens=200, learning_rate=0.02, warmup=1, steps=3)
        both = {**both, "stages": (stage, replace(stage, name="last"))}
    said: list[str] = []
    before = load_pack(parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", Watched)
        again = train_graft(tmp_path / "again", base, "source", parent=parent, said=said, **both)
    ids = torch.arange(4, 16)[None]
    assert torch.equal(models[0], Translator(base, [before]).composition("el", "fr").model(ids, ids))
    assert len(models) == 2 and any("in 1 direction, 3 steps" in line for line in said)
    own = before.scoped_names(base.model.config)
    assert all(
        any(not torch.equal(before.parameters[n], again.parameters[n]) for n in names) for names in (own, {"embedding.weight"})
    )
    assert not any("brought no lower" in line for line in said)


def test_with_a_few_lines_everywhere_there_is_nothing_to_scope(
    base: Base, train_graft: Train, graft_config: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"data\.few names all of data\.partners"):
        train_graft(tmp_path / "run", base, "source", CASES["source"][1], few=("en",))
    assert not (tmp_path / "run").exists()
    config = graft_config(tmp_path / "run", "source", CASES["source"][1], partners=("en", "fr"), few=("fr",))
    few_alone = replace(config, stages=(replace(config.stages[0], directions=("el-fr",)),))
    with pytest.raises(ConfigError, match=r"last stage \(el-fr\) .*data\.few"):
        with_scoped_stage(few_alone)


def test_a_pack_gone_on_with_keeps_the_directions_of_before(base: Base, train_graft: Train, tmp_path: Path) -> None:
    train_graft(tmp_path / "first", base, "source", CASES["source"][1], steps=4)
    again = train_graft(tmp_path / "again", base, "source", parent=tmp_path / "first" / "pack", partners=("fr",), steps=4)
    assert again.card["partners"] == ["en", "fr"]
    assert [again.is_whole_with(language) for language in ("en", "fr", "ru")] == [True, True, False]
