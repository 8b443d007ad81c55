"""What follows from a request: recipes by side, steps by text, a pace by steps, a folder by languages and side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftmt.adding.add_options import AddOptions
from graftmt.adding.defaults import FEWEST_STEPS, MOST_STEPS, choose_steps, default_recipe, make_config
from graftmt.adding.examination import Examination, LanguageExamination, VocabularyFit
from graftmt.adding.pack_text import AddCorpus
from graftmt.adding.plan import AddPlan, Request, requests_of
from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.errors import ConfigError
from graftmt.packs import Pack, Recipe, check_recipe, save_pack
from graftmt.text import Tokenizer

OPTIONS = AddOptions(languages=("el",), base=Path("base"), train=("corpus",), side="source")


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


def examination(lines: int, tokens: float) -> Examination:
    fit = VocabularyFit(tokens_per_line=tokens, unknown_rate=0.0, byte_rate=0.0)
    found = LanguageExamination(
        lines=lines,
        sampled=lines,
        words_per_line=1.0,
        words_in_long_lines=1.0,
        under_base=fit,
        under_pack=fit,
        new_characters={},
        duplicates=0.0,
        copies=0.0,
        unequal=0.0,
    )
    return Examination(languages={"el": found, "uk": found}, pairs={}, wrong_language={}, overlap=None, warnings=())


def test_the_steps_are_some_passes_within_reason() -> None:
    assert choose_steps(examination(20_000, 20.0), "target", 2_000) == 20 * 2 * 20_000 * 20 // 2_000
    assert choose_steps(examination(20_000, 20.0), "source", 2_000) == 12 * 2 * 20_000 * 20 // 2_000
    assert choose_steps(examination(10, 5.0), "source", 2_000) == FEWEST_STEPS
    assert choose_steps(examination(10_000_000, 30.0), "target", 2_000) == MOST_STEPS


def config(corpus: Path, *overrides: str, device: str = "cpu", **options: Any) -> Any:
    train = Corpus.open(corpus, "train")
    opened = AddCorpus(train, train, None, ("en",), ("el",), held_out=False)
    request = Request(
        options=replace(OPTIONS, overrides=overrides, **options),
        side="source",
        recipe=None,
        augment=None,
        parent=None,
        run=Path("run"),
        output=None,
    )
    return make_config(
        AddPlan(
            request=request,
            base=None,  # type: ignore[arg-type]  # the configuration does not depend on it
            folder=Path("run"),
            device=device,
            given=opened,
            corpus=opened,
            recipe=Recipe(),
            augment=None,
        )
    )


def test_the_pace_follows_the_steps_also_where_they_are_overridden(graft_corpus: Path) -> None:
    asked, overridden = config(graft_corpus, steps=3000), config(graft_corpus, "stages.0.steps=3000")
    assert asked == overridden
    assert (asked.stages[0].warmup, asked.validation.every, asked.checkpoint_every) == (300, 300, 300)
    own = config(graft_corpus, "stages.0.steps=3000", "stages.0.warmup=7", "validation.every=11", "seed=4")
    assert (own.stages[0].warmup, own.validation.every, own.checkpoint_every, own.seed) == (7, 11, 300, 4)


def test_a_gpu_gets_packed_batches_in_bf16_and_compiles_where_it_pays(
    graft_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = config(graft_corpus, device="cuda", steps=300), config(graft_corpus, device="cuda", steps=2000)
    assert (short.stages[0].packed, short.precision, short.compile) == (True, "bf16", False)
    assert (long.stages[0].packed, long.compile, long.validation.every) == (True, True, 500)
    assert not config(graft_corpus, steps=2000).stages[0].packed
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert not config(graft_corpus, device="cuda:1", steps=300).stages[0].packed


@pytest.mark.parametrize("steps", [1, 9, 10, 300, 20_000])
def test_every_number_of_steps_has_a_pace(graft_corpus: Path, steps: int) -> None:
    found = config(graft_corpus, steps=steps)
    assert 1 <= found.stages[0].warmup <= max(1, steps // 10)
    assert found.validation.every == found.checkpoint_every >= min(50, steps)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("placement", ["source", "decoder"])
@pytest.mark.parametrize("languages", [("en", "fr", "ru"), ("fr", "ru")])
def test_the_default_recipe_fits_any_base(base: Base, side: Any, placement: Any, languages: tuple[str, ...]) -> None:
    other = Base.create(base.model.config, Tokenizer(base.tokenizer.subwords, languages, placement))
    recipe = default_recipe(side, other, ["ru"])
    check_recipe(recipe, side, ["el"], other)
    assert ("code:learned:ru" in str(recipe)) == ("en" not in languages and (side, placement) != ("source", "source"))


def test_the_folder_tells_languages_side_and_version(base: Base, make_parent: Callable[..., Pack], tmp_path: Path) -> None:
    assert [request.run for request in requests_of(OPTIONS, base)] == [Path("runs/el-source")]
    both = requests_of(replace(OPTIONS, languages=("el", "uk"), side=None), base)
    assert [request.run for request in both] == [Path("runs/el+uk-source"), Path("runs/el+uk-target")]
    named = requests_of(replace(OPTIONS, side="both", run=Path("here"), output=Path("el.graftpack")), base)
    assert [request.run for request in named] == [Path("here/source"), Path("here/target")]
    assert [request.output for request in named] == [Path("el-source.graftpack"), Path("el-target.graftpack")]
    save_pack(make_parent(version=2), tmp_path / "pack", base.model.config)
    (continued,) = requests_of(replace(OPTIONS, side=None, parent=tmp_path / "pack"), base)
    assert (continued.side, continued.run) == ("source", Path("runs/el-source-3"))


@pytest.fixture
def make_parent(base: Base, graft_subwords: Callable[..., Path]) -> Callable[..., Pack]:
    from graftmt.packs import create_pack
    from graftmt.text import Subwords

    def make(**card: Any) -> Pack:
        subwords = Subwords.load(graft_subwords("el"))
        pack = create_pack(base, side="source", languages=("el",), recipe=Recipe(), subwords=subwords)
        return replace(pack, card=card)

    return make


def test_a_request_has_no_parent_unless_it_names_one(base: Base, make_parent: Callable[..., Pack], tmp_path: Path) -> None:
    (request,) = requests_of(OPTIONS, base)
    assert request.parent is None
    parent = make_parent()
    save_pack(parent, tmp_path / "pack", base.model.config)
    (request,) = requests_of(replace(OPTIONS, parent=tmp_path / "pack", recipe="embed"), base)
    assert request.parent is not None
    assert request.parent.fingerprint == parent.fingerprint


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 2**63}, {"steps": 0}, {"merges": 0}, {"test_lines": 0}])
def test_numbers_without_sense_are_refused_before_anything_is_read(wrong: dict[str, int]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ConfigError, match=f"{name} is {value}; expected"):
        replace(OPTIONS, **wrong)
