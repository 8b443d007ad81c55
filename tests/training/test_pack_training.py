"""Packs train through the common loop: validated, resumed exactly, continued, with any partner; what cannot be is said."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.data.cache import cache_key
from graftmt.errors import ConfigError, GraftError, LanguageError
from graftmt.packs import Pack, compose, load_pack, save_pack
from graftmt.progress import heard_by
from graftmt.training import PackConfig, Stopped, SubwordConfig, ValidationConfig, train_pack
from graftmt.training.checkpoints import Checkpoints
from graftmt.training.journal import read_log
from graftmt.training.loop import FORGOTTEN, Trainer, forgetting
from graftmt.training.pack_job import pack_directions
from graftmt.training.pack_training import pack_subwords, prepare_pack
from graftmt.training.run_configuration import PACK_MERGES
from graftmt.training.stages import padded_where_unknown

Train = Callable[..., Pack]
Stopping = Callable[..., type[Trainer]]
RECIPE = "embed + dec-last-layer + enc-adapters-last(4)"


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


def tensors(pack: Pack) -> dict[str, bytes]:
    return {name: parameter.detach().numpy().tobytes() for name, parameter in pack.parameters.items()}


def test_the_fingerprint_of_the_text_is_that_of_earlier_versions(
    tmp_path: Path, base: Base, graft_config, graft_corpus: Path
) -> None:
    """So that runs begun with them go on."""
    train, valid = (Corpus.open(graft_corpus, split) for split in ("train", "valid"))
    config = graft_config(tmp_path / "run", "source", partners=("fr", "en"))
    job = prepare_pack(config, base, train, valid)
    tokenizers = {**dict.fromkeys(base.languages, base.tokenizer), "el": job.pack.tokenizer}
    digest = hashlib.sha256(f"{base.fingerprint}  {job.pack.recipe}".encode())
    for corpus, names in ((train, ["el", "fr", "en"]), (valid, ["el", "en", "fr", "ru"])):  # ru is watched
        digest.update(" ".join(cache_key(corpus.files[name], tokenizers[name]) for name in names).encode())
    assert job.prepared.data == digest.hexdigest()


# What a run gives


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, base: Base, train_graft: Train) -> Path:
    """The folder of a finished run with validations; read only."""
    run = tmp_path_factory.mktemp("runs") / "el-target"
    train_graft(run, base, "target", RECIPE, steps=12, validate=True, checkpoint_every=5)
    return run


def test_the_stored_pack_says_how_it_came_to_be(run: Path, base: Base) -> None:
    pack = load_pack(run / "pack")
    card = pack.card
    assert (pack.side, pack.languages, str(pack.recipe), pack.base) == ("target", ("el",), RECIPE, base.fingerprint)
    assert (card["seed"], card["steps"], card["partners"]) == (1, 12, ["en"])
    assert sum(card["initialisation"].values()) == len(pack.tokenizer)
    assert card["config"]["recipe"] == RECIPE
    best = min((event for event in read_log(run / "log.jsonl") if event["event"] == "validation"), key=lambda e: e["loss"])
    assert card["validation"]["step"] == best["step"]
    assert card["validation"]["loss"] == best["loss"]


def test_checkpoints_and_optimiser_hold_the_pack_alone(run: Path) -> None:
    from safetensors.torch import load_file

    latest = Checkpoints(run / "checkpoints", 1, PackConfig).latest()
    assert latest is not None
    names = set(load_pack(run / "pack").parameters)
    assert set(load_file(latest / "model.safetensors")) == names
    assert {key.rpartition("/")[0] for key in load_file(latest / "optimizer.safetensors")} == names


def test_watched_directions_are_scored_and_do_not_count(run: Path) -> None:
    events = json.loads((Checkpoints(run / "checkpoints", 1, PackConfig).latest() / "state.json").read_text())["state"]
    assert [event["step"] for event in events["validations"]] == [4, 8, 12]
    for event in events["validations"]:
        directions = event["directions"]
        assert directions.keys() == {"en-el", "fr-el", "ru-el"}
        for metric in ("loss", "bleu", "chrf"):
            assert event[metric] == directions["en-el"][metric]
            assert event["watched"][metric] == pytest.approx((directions["fr-el"][metric] + directions["ru-el"][metric]) / 2)
    logged = [event for event in read_log(run / "log.jsonl") if event["event"] == "validation"]
    assert all(
        event["ru-el/loss"] == entry["directions"]["ru-el"]["loss"]
        for event, entry in zip(logged, events["validations"], strict=True)
    )


def test_which_directions_are_watched(
    base: Base, graft_base: Callable[..., Path], graft_config: Callable[..., PackConfig], graft_corpus: Path, tmp_path: Path
) -> None:
    train, valid = (Corpus.open(graft_corpus, split) for split in ("train", "valid"))

    def validator(side: str, corpus: Corpus = valid, **options: Any) -> Any:
        config = graft_config(tmp_path / "run", side, **options)
        return prepare_pack(config, base, train, corpus).prepared.validator

    found = validator("source")
    assert (found.directions, found.watched) == ([Direction("el", "en")], [Direction("el", "fr"), Direction("el", "ru")])
    assert validator("source", partners=("en", "fr", "ru")).watched == []
    few = Corpus.open(graft_corpus, "valid", ["el", "en", "ru"])
    assert validator("target", few).watched == [Direction("ru", "el")]
    named = validator("source", validation=ValidationConfig(lines=5, directions=("el-ru",), watch=("el-en",)))
    assert (named.directions, named.watched) == ([Direction("el", "ru")], [Direction("el", "en")])
    assert validator("source", validation=ValidationConfig(lines=5, watch=())).watched == []
    assert validator("source", validation=ValidationConfig(lines=0)) is None
    for options, words in (
        ({"watch": ("en-fr",)}, "en-fr cannot be validated with this pack: its source side is el"),
        ({"directions": ("en-el",)}, "en-el cannot be validated"),
        ({"watch": ("el-de",)}, "'de' is not a language here"),
    ):
        with pytest.raises(LanguageError, match=words):
            validator("source", validation=ValidationConfig(lines=5, **options))
    with pytest.raises(LanguageError, match="none of the trained directions el-en"):
        validator("source", Corpus.open(graft_corpus, "valid", ["el", "ru"]))
    with pytest.raises(LanguageError, match="has no text in ru"):
        few = Corpus.open(graft_corpus, "valid", ["el", "en"])
        validator("source", few, validation=ValidationConfig(lines=5, watch=("el-ru",)))


def history(*scores: float | None) -> list[dict[str, Any]]:
    return [{"chrf": 50.0, **({} if score is None else {"watched": {"chrf": score}})} for score in scores]


def test_forgetting_is_said_once_when_it_happens() -> None:
    assert forgetting([]) == forgetting(history(40.0)) == forgetting(history(None, None)) == ""
    assert forgetting(history(40.0, 45.0)) == forgetting(history(40.0, 40.0 * FORGOTTEN)) == ""
    warning = forgetting(history(30.0, 40.0, 20.0))
    assert "chrF 20.0 after 40.0, while the trained ones are at 50.0" in warning
    assert "--with" in warning and "enc-norm" in warning
    assert forgetting(history(30.0, 40.0, 20.0, 10.0)) == ""  # said before
    assert forgetting(history(30.0, 40.0, 20.0, 35.0, 15.0))  # it recovered, and falls again
    assert forgetting(history(9.0, 1.0)) == ""  # nothing had been learned that could be forgotten
    assert forgetting(history(40.0, None, 20.0))


def test_where_the_trained_directions_fall_too_nothing_is_said_of_forgetting() -> None:
    falling = history(30.0, 40.0, 20.0)
    falling[-1]["chrf"] = FORGOTTEN * 50.0 - 1
    assert forgetting(falling) == ""
    recovered = [*falling, *history(20.0)]  # the trained ones only: now it is forgetting, and had not been said
    assert "chrF 20.0 after 40.0" in forgetting(recovered)
    assert forgetting([*recovered, *history(20.0)]) == ""


@pytest.mark.parametrize("partners", [("en",), ("en", "fr")])
def test_directions_without_a_line_in_common_are_not_validated(
    base: Base, graft_config: Callable[..., PackConfig], graft_corpus: Path, tmp_path: Path, partners: tuple[str, ...]
) -> None:
    corpus = Path(shutil.copytree(graft_corpus, tmp_path / "corpus"))
    lines = (corpus / "valid.fr.txt").read_text(encoding="utf-8").splitlines()
    (corpus / "valid.fr.txt").write_text("\n" * len(lines), encoding="utf-8")
    train, valid = (Corpus.open(corpus, split) for split in ("train", "valid"))
    job = prepare_pack(graft_config(tmp_path / "run", partners=partners), base, train, valid)
    validator = job.prepared.validator
    assert validator is not None
    assert (validator.directions, validator.watched) == ([Direction("el", "en")], [Direction("el", "ru")])


def test_a_text_too_small_for_the_merges_is_said_in_a_line(
    graft_config: Callable[..., PackConfig], graft_corpus: Path, tmp_path: Path
) -> None:
    config = graft_config(tmp_path / "run", subwords=SubwordConfig(merges=5000))
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with heard_by(said.append):
            pack_subwords(config, Corpus.open(graft_corpus, "train"))
    assert len(said) == 2
    assert "merges only, 5,000 were asked for" in said[1]


def test_nobody_is_told_that_they_asked_for_the_default(
    graft_config: Callable[..., PackConfig], graft_corpus: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    config = graft_config(tmp_path / "run", subwords=SubwordConfig(merges=PACK_MERGES), languages=("el", "uk"))
    with heard_by(said.append):
        text = pack_subwords(config, Corpus.open(graft_corpus, "train"))
    made = re.fullmatch(r"the default of 8,000 merges is more than this text supports: ([\d,]+) are made", said[1])
    assert made is not None and 0 < int(made[1].replace(",", "")) < len(text)


def test_the_warning_is_heard_and_logged(
    base: Base, train_graft: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[int] = []

    def forgotten(validations: list[dict[str, Any]]) -> str:
        seen.append(len(validations))
        return "codes are being forgotten" if len(validations) == 2 else ""

    monkeypatch.setattr("graftmt.training.loop.forgetting", forgotten)
    train_graft(tmp_path / "run", base, steps=12, validate=True)
    assert seen == [1, 2, 3]
    warnings = [event for event in read_log(tmp_path / "run" / "log.jsonl") if event["event"] == "warning"]
    assert [(event["step"], event["text"]) for event in warnings] == [(8, "codes are being forgotten")]


# Going on


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "recipe", "step"),
    [("target", RECIPE, 3), ("target", RECIPE, 5), ("target", RECIPE, 9), ("source", "embed + enc-adapters-all(4)", 6)],
)
def test_a_stopped_run_goes_on_as_if_it_had_not(
    base: Base, train_graft: Train, stopping_after: Stopping, tmp_path: Path, side: str, recipe: str, step: int
) -> None:
    options = {"steps": 12, "validate": True, "checkpoint_every": 5, "log_every": 1}
    whole = train_graft(tmp_path / "whole", base, side, recipe, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", stopping_after(step))
        with pytest.raises(Stopped):
            train_graft(tmp_path / "halves", base, side, recipe, **options)
    assert not (tmp_path / "halves" / "pack").exists()
    said: list[str] = []
    halves = train_graft(tmp_path / "halves", base, side, recipe, said=said, **options)
    assert any("resuming at stage1-step" in line for line in said)
    assert tensors(halves) == tensors(whole)
    assert halves.fingerprint == whole.fingerprint
    names = ("pack.safetensors", "subwords.model")
    assert all((tmp_path / "halves/pack" / n).read_bytes() == (tmp_path / "whole/pack" / n).read_bytes() for n in names)


def test_a_finished_run_given_again_changes_nothing(base: Base, train_graft: Train, tmp_path: Path) -> None:
    first = train_graft(tmp_path / "run", base, steps=4, validate=True)
    again = train_graft(tmp_path / "run", base, steps=4, validate=True)
    assert tensors(again) == tensors(first)


def test_a_run_refuses_another_recipe_or_base(
    base: Base, train_graft: Train, graft_base: Callable[..., Path], tmp_path: Path
) -> None:
    train_graft(tmp_path / "run", base)
    with pytest.raises(ConfigError, match=r"another configuration \(recipe.*--fresh"):
        train_graft(tmp_path / "run", base, recipe="embed + enc-first-layer")
    with pytest.raises(ConfigError, match="another run folder"):
        train_graft(tmp_path / "run", Base.load(graft_base("post")))


def test_a_fresh_run_keeps_the_earlier_one(
    base: Base, train_graft: Train, graft_config: Callable[..., PackConfig], graft_corpus: Path, tmp_path: Path
) -> None:
    first = train_graft(tmp_path / "run", base)
    config = graft_config(tmp_path / "run", seed=2)
    train = Corpus.open(graft_corpus, "train")
    second = train_pack(config, base, train, fresh=True)
    assert second.fingerprint != first.fingerprint
    assert load_pack(tmp_path / "run.old-1" / "pack").fingerprint == first.fingerprint


# A pack that goes on from another


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory, base: Base, train_graft: Train) -> Path:
    """Two versions old, so to say: a pack with scores."""
    run = tmp_path_factory.mktemp("parent")
    pack = train_graft(run, base, "target", RECIPE, steps=4)
    pack.card["scores"] = {"en-el": {"bleu": 12.0, "chrf": 34.0}}
    save_pack(pack, run / "pack", base.model.config)
    return run / "pack"


def test_a_continued_pack_keeps_what_it_is_and_names_its_parent(
    base: Base, parent: Path, train_graft: Train, graft_subwords: Callable[..., Path], tmp_path: Path
) -> None:
    old = load_pack(parent)
    before = {path.name: path.read_bytes() for path in parent.iterdir()}
    # Neither the recipe nor the vocabulary of the configuration counts.
    from graftmt.training import SubwordConfig

    subwords = SubwordConfig(model=graft_subwords("uk"))
    new = train_graft(tmp_path / "run", base, "target", "embed", parent=parent, subwords=subwords, steps=4)
    assert new.tokenizer.fingerprint == old.tokenizer.fingerprint
    assert (str(new.recipe), new.languages, new.side, new.base) == (RECIPE, old.languages, old.side, old.base)
    assert new.parameters.keys() == old.parameters.keys()
    assert all(not torch.equal(new.parameters[name], old.parameters[name]) for name in new.parameters)
    assert new.card["version"] == 2
    assert new.card["parent"] == {"fingerprint": old.fingerprint, "version": 1, "scores": old.card["scores"]}
    assert new.card["initialisation"] == old.card["initialisation"]
    assert new.card["partners"] == old.card["partners"] == ["en"]
    assert old.fingerprint in (tmp_path / "run/pack/README.md").read_text(encoding="utf-8")
    third = train_graft(tmp_path / "third", base, "target", parent=tmp_path / "run/pack", steps=2)
    assert (third.card["version"], third.card["parent"]["fingerprint"]) == (3, new.fingerprint)
    assert {path.name: path.read_bytes() for path in parent.iterdir()} == before


def test_a_continued_run_starts_from_its_parent_and_resumes_exactly(
    base: Base,
    parent: Path,
    stopping_after: Stopping,
    graft_config: Callable[..., PackConfig],
    graft_corpus: Path,
    tmp_path: Path,
) -> None:
    train = Corpus.open(graft_corpus, "train")
    config = graft_config(tmp_path / "first", "target", parent=parent)
    job = prepare_pack(config, base, train, None)
    assert tensors(job.pack) == tensors(load_pack(parent))
    # A clipped gradient's norm is a sum over all parameters in order.
    stage = replace(graft_config(tmp_path, "target", steps=8).stages[0], clip_norm=0.1)
    packs = []
    for name in ("whole", "halves"):
        config = replace(graft_config(tmp_path / name, "target", parent=parent), stages=(stage,))
        if name == "halves":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("graftmt.training.stages.Trainer", stopping_after(3))
                with pytest.raises(Stopped):
                    train_pack(config, base, train)
        packs.append(train_pack(config, base, train))
    assert tensors(packs[0]) == tensors(packs[1])


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("source",), {}, "side target, not source"),
        (("target",), {"languages": ("uk",)}, "languages el, not uk"),
        (("target",), {"languages": ("el", "uk")}, "languages el, not el+uk"),
    ],
)
def test_a_parent_that_is_something_else_is_refused(
    base: Base, parent: Path, train_graft: Train, tmp_path: Path, arguments: Any, options: Any, words: str
) -> None:
    with pytest.raises(ConfigError, match=rf"cannot be continued .*{words.replace('+', '[+]')}"):
        train_graft(tmp_path / "run", base, *arguments, parent=parent, **options)


def test_a_parent_of_another_base_is_refused(
    parent: Path, graft_base: Callable[..., Path], train_graft: Train, tmp_path: Path
) -> None:
    other = Base.load(graft_base("post"))
    with pytest.raises(ConfigError, match=rf"cannot be continued .*base .* not {other.fingerprint[:16]}"):
        train_graft(tmp_path / "run", other, "target", parent=parent)
    with pytest.raises(GraftError, match="there is no pack"):
        train_graft(tmp_path / "run", other, "target", parent=tmp_path / "nowhere")


# Codes, partners and directions


def near(base: Base, language: str) -> torch.Tensor:
    return base.model.source_embedding.weight[base.tokenizer.vocabulary.code(language)].detach() + 1e-3


def test_the_nearest_proxy_is_read_from_a_base_or_a_pack(
    base: Base, graft_base: Callable[..., Path], train_graft: Train, tmp_path: Path
) -> None:
    oracle = Base.load(graft_base("pre", "source", languages=("en", "fr", "ru", "el")))
    with torch.no_grad():
        oracle.model.source_embedding.weight[oracle.tokenizer.vocabulary.code("el")] = near(oracle, "ru")
    oracle.save(tmp_path / "oracle")
    learned = train_graft(tmp_path / "learned", base, "target")
    with torch.no_grad():
        learned.parameters["code.weight"][0] = near(base, "fr")
    save_pack(learned, tmp_path / "learned.graftpack", base.model.config)
    for model, expected in (("oracle", "ru"), ("learned.graftpack", "fr")):
        run = tmp_path / f"run-{model}"
        pack = train_graft(run, base, "target", "embed + code:proxy:nearest", codes_from=tmp_path / model)
        assert str(pack.recipe) == f"embed + code:proxy:{expected}" == str(load_pack(run / "pack").recipe)
        assert "code.weight" not in pack.parameters
    for options in ({}, {"languages": ("el", "uk"), "codes_from": tmp_path / "oracle"}):
        with pytest.raises(ConfigError, match="needs one new language and --codes-from"):
            train_graft(tmp_path / "run", base, "target", "embed + code:proxy:nearest", **options)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_language_can_be_paired_with_any_other(base: Base, train_graft: Train, tmp_path: Path, side: str) -> None:
    """As Kabyle and French: no English anywhere."""
    pack = train_graft(tmp_path / "run", base, side, partners=("fr",), validate=True, steps=4)
    assert pack.card["partners"] == ["fr"]
    directions = pack.card["validation"]["directions"]
    assert next(iter(directions)) == ("el-fr" if side == "source" else "fr-el")
    if side == "source":
        codes = [pack.tokenizer.vocabulary.code(language) for language in base.languages]
        known = [base.tokenizer.vocabulary.code(language) for language in base.languages]
        same = (pack.parameters["embedding.weight"][codes] == base.model.source_embedding.weight[known]).all(dim=1)
        assert dict(zip(base.languages, same.tolist(), strict=True)) == {"en": True, "fr": False, "ru": True}


def test_english_text_is_not_needed(
    base: Base, graft_config: Callable[..., PackConfig], graft_corpus: Path, tmp_path: Path
) -> None:
    train = Corpus.open(graft_corpus, "train", ["el", "fr"])
    train_pack(graft_config(tmp_path / "run", partners=("fr",)), base, train)


def test_directions_are_new_languages_with_partners(graft_config: Callable[..., PackConfig], tmp_path: Path) -> None:
    def found(side: str, *directions: str) -> list[str]:
        config = graft_config(tmp_path, side, languages=("el", "uk"), partners=("en", "fr"), directions=directions)
        return [str(direction) for direction in pack_directions(config, config.stages[0])]

    assert found("source") == ["el-en", "el-fr", "uk-en", "uk-fr"]
    assert found("target") == ["en-el", "fr-el", "en-uk", "fr-uk"]
    assert found("target", "en-el", "fr-uk") == ["en-el", "fr-uk"]
    for side, direction in (("source", "en-el"), ("target", "uk-en"), ("source", "en-fr"), ("source", "el-uk")):
        with pytest.raises(LanguageError, match=rf"{direction} .*{side} side .*el or uk"):
            found(side, direction)
    with pytest.raises(LanguageError, match="'ru' is not a language here"):
        found("source", "el-ru")


def test_a_stage_trains_the_directions_it_names(base: Base, train_graft: Train, tmp_path: Path) -> None:
    options = {"languages": ("el", "uk"), "partners": ("en", "fr")}
    pack = train_graft(tmp_path / "some", base, "target", directions=("fr-uk",), **options)
    start = base.model.source_embedding.weight[base.tokenizer.vocabulary.code("en")]
    assert torch.equal(pack.parameters["code.weight"][0], start)  # el was not seen
    assert not torch.equal(pack.parameters["code.weight"][1], start)
    both = train_graft(tmp_path / "all", base, "target", **options)
    assert (both.parameters["code.weight"] != start).any(dim=1).all()


def test_several_languages_share_one_vocabulary_of_their_own(base: Base, train_graft: Train, tmp_path: Path) -> None:
    from graftmt.training import SubwordConfig

    said: list[str] = []
    options = {"languages": ("el", "uk"), "subwords": SubwordConfig(merges=10, min_character_count=1), "said": said}
    pack = train_graft(tmp_path / "run", base, **options)
    assert any("20 merges from el, uk" in line for line in said)
    text = "καλο бану"
    assert pack.tokenizer.decode(pack.tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("languages", "partners", "present", "words"),
    [
        (("el",), ("de",), ("el", "en"), "pairs with the base's languages, en, fr, ru; got de"),
        (("el",), ("uk",), ("el", "uk"), "got uk"),
        (("el",), (), ("el", "en"), "got none"),
        (("el",), ("en", "fr"), ("el", "en"), "has no text in fr; it has el, en"),
        (("el",), ("en",), ("en", "fr"), "has no text in el; it has en, fr"),
        (("fr",), ("en",), ("en", "fr"), "'fr' is one of the base's languages already"),
    ],
)
def test_text_that_is_not_there_is_said_before_anything_is_done(
    base: Base,
    graft_config: Callable[..., PackConfig],
    graft_corpus: Path,
    tmp_path: Path,
    languages: Any,
    partners: Any,
    present: Any,
    words: str,
) -> None:
    train = Corpus.open(graft_corpus, "train", present)
    config = graft_config(tmp_path / "run", languages=languages, partners=partners)
    with pytest.raises(LanguageError) as caught:
        train_pack(config, base, train)
    assert words in str(caught.value)


# A base in half the bytes


def test_a_base_held_in_bf16_asks_for_bf16_and_a_gpu(
    graft_base: Callable[..., Path], train_graft: Train, tmp_path: Path
) -> None:
    half = Base.load(graft_base(), dtype="bf16")
    with pytest.raises(ConfigError, match=r"bf16: .*precision=bf16"):
        train_graft(tmp_path / "run", half)
    with pytest.raises(ConfigError, match="on a CPU load it in fp32"):
        train_graft(tmp_path / "run", half, precision="bf16")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_base_held_in_bf16_trains_packs_in_fp32(
    graft_base: Callable[..., Path], train_graft: Train, tmp_path: Path, norm: str, side: str
) -> None:
    half = Base.load(graft_base(norm), device="cuda", dtype="bf16")
    before = {name: parameter.detach().clone() for name, parameter in half.model.named_parameters()}
    recipe = "embed + enc-adapters-last(4)" + (" + dec-last-layer" if side == "target" else "")
    pack = train_graft(tmp_path / "run", half, side, recipe, precision="bf16", validate=True, steps=4)
    assert {parameter.dtype for parameter in pack.parameters.values()} == {torch.float32}
    first = train_graft(tmp_path / "less", half, side, recipe, precision="bf16", steps=1)
    assert all(not torch.equal(parameter, first.parameters[name]) for name, parameter in pack.parameters.items())
    assert all(torch.equal(parameter, before[name]) for name, parameter in half.model.named_parameters())
    assert pack.base == half.fingerprint


def test_batches_are_packed_only_for_modules_that_are_known(
    base: Base, graft_config: Callable[..., PackConfig], tmp_path: Path
) -> None:
    class Linear(torch.nn.Linear):
        pass

    config = graft_config(tmp_path)
    config = replace(config, stages=tuple(replace(stage, packed=True) for stage in config.stages))
    model = compose(base).model
    assert padded_where_unknown(config, model) is config
    model.decoder.layers[1].ffn.up = Linear(2, 2)  # type: ignore[union-attr]
    assert not any(stage.packed for stage in padded_where_unknown(config, model).stages)
