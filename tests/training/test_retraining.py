"""Re-training: rows moved exactly, the same model under another vocabulary, exact resumption, a base of its own at the end."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from graftmt.base import Base
from graftmt.configuration import apply_overrides, to_mapping
from graftmt.data import Corpus, Direction
from graftmt.data.cache import cache_key
from graftmt.errors import ConfigError, GraftError
from graftmt.model import ModelConfig, Transformer
from graftmt.progress import heard_by
from graftmt.training import RetrainConfig, Stopped, retrain_base
from graftmt.training.drift import Drift
from graftmt.training.journal import read_log
from graftmt.training.retrain_request import check, is_new, retrain_config, retrain_directions, validation_text
from graftmt.training.retraining import (
    BY_ROW,
    RetrainJob,
    map_rows,
    move_rows,
    prepare_retraining,
    row_facts,
    with_vocabulary,
)
from graftmt.training.stages import batch_plan
from graftmt.translator import Translator

VOCABULARIES = st.lists(st.sampled_from([f"t{number}" for number in range(40)]), unique=True, min_size=1)
ALL = ("en", "fr", "ru", "el")


# Rows


@given(old=VOCABULARIES, new=VOCABULARIES, reuse=st.booleans())
def test_a_common_symbol_keeps_its_row_and_no_old_row_is_used_twice(old: list[str], new: list[str], reuse: bool) -> None:
    rows = map_rows(old, new, reuse=reuse)
    for symbol, source, rule in zip(new, rows.sources, rows.rules, strict=True):
        assert (rule == "copied") == (symbol in old)
        assert (rule == "new") == (source is None)
        if symbol in old:
            assert source == old.index(symbol)
        elif source is not None:
            assert reuse
            assert old[source] not in new
    used = [source for source in rows.sources if source is not None]
    assert len(set(used)) == len(used)
    counts = rows.counts()
    assert counts.pop("outdated") == len(set(old) - set(new))
    assert sum(counts.values()) == len(new)


@given(old=VOCABULARIES, new=VOCABULARIES)
def test_reuse_takes_every_outdated_row_that_is_needed_in_order(old: list[str], new: list[str]) -> None:
    rows = map_rows(old, new, reuse=True)
    taken = [source for source, rule in zip(rows.sources, rows.rules, strict=True) if rule == "substituted"]
    assert taken == list(rows.outdated)[: len(taken)]
    assert len(taken) == min(len(rows.outdated), len(set(new) - set(old)))
    if len(old) == len(new):  # a permutation: nothing is lost, nothing is random
        assert sorted(source for source in rows.sources if source is not None) == list(range(len(old)))


@given(old=VOCABULARIES, new=VOCABULARIES, reuse=st.booleans(), dim=st.sampled_from([None, 3]))
def test_rows_are_moved_exactly_and_others_stay_as_they_were_made(
    old: list[str], new: list[str], reuse: bool, dim: int | None
) -> None:
    shape = () if dim is None else (dim,)
    before = torch.randn(len(old), *shape)
    fresh = torch.randn(len(new), *shape)
    kept = before.clone(), fresh.clone()
    rows = map_rows(old, new, reuse=reuse)
    moved = move_rows(before, fresh, rows)
    for row, source in enumerate(rows.sources):
        assert torch.equal(moved[row], fresh[row] if source is None else before[source])
    assert torch.equal(before, kept[0]) and torch.equal(fresh, kept[1])


def test_the_overlap_is_counted_both_ways() -> None:
    facts = row_facts(map_rows(["a", "b", "c", "d"], ["a", "b", "x", "y", "z"], reuse=False))
    assert facts == {"copied": 2, "new": 3, "outdated": 2, "new_in_old": 0.4, "old_in_new": 0.5}


@pytest.mark.parametrize("embeddings", ["tied", "tied-target", "separate"])
@pytest.mark.parametrize("output_bias", [False, True])
def test_the_tensors_by_row_are_those_whose_shape_follows_the_vocabulary(embeddings: Any, output_bias: bool) -> None:
    config = ModelConfig(
        model_dim=8, ffn_dim=8, heads=2, encoder_layers=1, decoder_layers=1, embeddings=embeddings, output_bias=output_bias
    )
    with torch.device("meta"):
        one, two = (dict(Transformer.build(config, rows).named_parameters()) for rows in (50, 60))
    assert {name for name in one if one[name].shape != two[name].shape} == BY_ROW & one.keys()


# Configurations


@pytest.fixture(scope="module")
def settings(graft_base: Callable[..., Path], graft_corpus: Path) -> Callable[..., dict[str, Any]]:
    """`settings(run, "method=substitute")`: the plain form of a re-training of some steps that adds Greek."""

    def make(run: Path, *overrides: str) -> dict[str, Any]:
        stage = {
            "directions": ["multi-parallel"],
            "steps": 12,
            "batch_tokens": 400,
            "learning_rate": 0.01,
            "warmup": 4,
            "dropout": 0.1,
        }
        mapping = {
            "run": str(run),
            "base": str(graft_base()),
            "new": ["el"],
            "data": {"corpus": str(graft_corpus)},
            "stages": [stage],
            "validation": {"lines": 6, "every": 4},
            "checkpoint_every": 5,
            "log_every": 1,
            "device": "cpu",
            "threads": 1,
            "tensorboard": False,
        }
        return apply_overrides(mapping, overrides)

    return make


@pytest.fixture(scope="module")
def config(settings: Callable[..., dict[str, Any]]) -> Callable[..., RetrainConfig]:
    return lambda run, *overrides: retrain_config(settings(run, *overrides))


def retrain(config: RetrainConfig, **options: Any) -> list[str]:
    """In this process; what was said, the reason of a stop included."""
    said: list[str] = []
    try:
        with heard_by(said.append):
            retrain_base(config, **options)
    except Stopped as stop:
        said.append(stop.reason)
    return said


def job_of(config: RetrainConfig, languages: Sequence[str] = ALL) -> tuple[Base, RetrainJob]:
    base = Base.load(config.base)
    return base, prepare_retraining(config, base, languages)


def test_subword_options_that_are_not_given_are_those_of_the_base(tmp_path: Path, settings, graft_base) -> None:
    base = shutil.copytree(graft_base(), tmp_path / "base")
    document = json.loads((base / "base.json").read_text())
    seen = retrain_config(settings(tmp_path / "run", f"base={base}")).subwords
    pieces = Base.load(base).tokenizer.subwords
    assert seen.merges == len(pieces.pieces) - len(pieces.alphabet)  # no card: counted
    stored = {"merges": 77, "temperature": 3.0, "min_character_count": 2, "sample_lines": 9, "model": None}
    document["card"] = {"config": {"subwords": stored}}
    (base / "base.json").write_text(json.dumps(document))
    chosen = retrain_config(settings(tmp_path / "run", f"base={base}", "subwords.temperature=4")).subwords
    assert (chosen.merges, chosen.temperature, chosen.min_character_count, chosen.sample_lines) == (77, 4.0, 2, 9)
    stored["model"] = "elsewhere/subwords.model"  # then `merges` says nothing of the vocabulary
    (base / "base.json").write_text(json.dumps(document))
    assert retrain_config(settings(tmp_path / "run", f"base={base}")).subwords.merges == seen.merges


def test_new_data_is_upsampled_for_substitution_alone_unless_it_is_said(tmp_path: Path, config) -> None:
    run = tmp_path / "run"
    assert config(run).upsample == 1
    assert config(run, "method=substitute").upsample == 5
    assert config(run, "method=substitute", "new_directions.upsample=2").upsample == 2


def test_directions_of_new_languages_can_be_fewer_than_the_base_s(tmp_path: Path, config) -> None:
    everything = config(tmp_path / "run")
    assert len(retrain_directions(everything, everything.stages[0], ALL)) == 12
    fewer = config(tmp_path / "run", "new_directions.directions=[english-centric]")
    found = retrain_directions(fewer, fewer.stages[0], ALL)
    assert {direction for direction in found if is_new(direction, ["el"])} == {("en", "el"), ("el", "en")}
    assert len([direction for direction in found if not is_new(direction, ["el"])]) == 6
    central = config(tmp_path / "run", "stages.0.directions=[english-centric]")
    assert len(retrain_directions(central, central.stages[0], ALL)) == 6


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ((), 1 / 12),
        (("new_directions.upsample=5",), 5 / (6 * 5 + 6)),
        (("new_directions.probability=0.05",), 0.05),
        (("new_directions={directions: [english-centric], probability: 0.05}",), 0.05),
        (("method=substitute", "stages.0.directions=[english-centric]"), 5 / (2 * 5 + 4)),
    ],
)
def test_new_directions_are_drawn_as_often_as_asked(
    tmp_path: Path, config, overrides: tuple[str, ...], expected: float
) -> None:
    chosen = config(tmp_path / "run", *overrides)
    _, job = job_of(chosen)
    sampler = batch_plan(chosen, job.prepared, 0, retrain_directions(chosen, chosen.stages[0], ALL)).sampler
    shares = dict(zip(sampler.directions, sampler.probabilities.tolist(), strict=True))
    new = {share for direction, share in shares.items() if is_new(direction, ["el"])}
    assert all(share == pytest.approx(expected) for share in new)
    assert sum(shares.values()) == pytest.approx(1)


# The start


@pytest.mark.parametrize("method", ["retrain", "substitute"])
@pytest.mark.parametrize("changes", [{}, {"embeddings": "separate", "output_bias": True}], ids=["tied", "separate"])
def test_the_start_has_the_base_s_rows_and_all_else_of_it(
    tmp_path: Path, config, graft_base, method: str, changes: dict[str, Any]
) -> None:
    base, job = job_of(config(tmp_path / "run", f"method={method}", f"base={graft_base(**changes)}"))
    old, new = base.tokenizer.vocabulary, job.start.tokenizer.vocabulary
    assert new.languages == (*old.languages, "el")
    assert (len(new) == len(old)) == (method == "substitute")
    assert ("new" in job.rows.counts()) == (method == "retrain")
    before, after = (dict(model.named_parameters()) for model in (base.model, job.start.model))
    torch.manual_seed(1)
    fresh = dict(Base.create(base.model.config, job.start.tokenizer).model.named_parameters())
    assert before.keys() == after.keys()
    for name, tensor in after.items():
        if name not in BY_ROW:
            assert torch.equal(tensor, before[name])
            continue
        for row, symbol in enumerate(new.symbols):
            if symbol in old.symbols:
                assert torch.equal(tensor[row], before[name][old.id(symbol)])
            elif method == "retrain":
                assert torch.equal(tensor[row], fresh[name][row])
            else:
                assert any(torch.equal(tensor[row], before[name][outdated]) for outdated in job.rows.outdated)


@pytest.mark.parametrize("method", ["retrain", "substitute"])
def test_text_whose_pieces_do_not_change_has_the_same_scores_as_with_the_base(tmp_path: Path, config, method: str) -> None:
    base, job = job_of(config(tmp_path / "run", f"method={method}"))
    old, new = base.tokenizer, job.start.tokenizer
    lines = (config(tmp_path).data.corpus / "train.fr.txt").read_text().split()
    words = [word for word in dict.fromkeys(lines) if old.subwords.encode(word) == new.subwords.encode(word)]
    assert len(words) >= 3, "some words must be cut alike for this test to say anything"
    text = " ".join(words[:5])
    common = [symbol for symbol in old.vocabulary.symbols if symbol in new.vocabulary.symbols]
    scores = []
    for model, tokenizer in ((base.model, old), (job.start.model, new)):
        source = [*tokenizer.source_prefix("fr", "ru"), *tokenizer.encode(text), tokenizer.end_id]
        target = [*tokenizer.decoder_prefix("ru"), *tokenizer.encode(text)]
        with torch.inference_mode():
            found = model.eval()(torch.tensor([source]), torch.tensor([target]))
        scores.append(found[0][:, tokenizer.vocabulary.ids(common)])
    torch.testing.assert_close(scores[0], scores[1], rtol=1e-5, atol=1e-5)


def test_a_vocabulary_that_does_not_change_leaves_the_model_as_it_is(graft_base) -> None:
    base = Base.load(graft_base())
    symbols = base.tokenizer.vocabulary.symbols
    again = with_vocabulary(base, base.tokenizer, map_rows(symbols, symbols, reuse=False), seed=3)
    for name, tensor in again.model.named_parameters():
        assert torch.equal(tensor, dict(base.model.named_parameters())[name])


# The run


@pytest.fixture(scope="module", params=["retrain", "substitute"])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, config) -> tuple[Path, str, list[str]]:
    """The folder of a finished run, its method and what it said; read only."""
    run = tmp_path_factory.mktemp("retrained") / request.param
    return run, request.param, retrain(config(run, f"method={request.param}"))


def test_the_result_is_a_base_of_its_own_that_names_its_parent(finished, graft_base) -> None:
    run, method, said = finished
    parent, result = Base.load(graft_base()), Base.load(run / "base")
    assert result.fingerprint != parent.fingerprint
    card = result.card
    assert (card["parent"], card["method"], card["new_languages"]) == (parent.fingerprint, method, ["el"])
    facts = card["rows_from_parent"]
    assert facts["copied"] + facts.get("new", 0) + facts.get("substituted", 0) == len(result.tokenizer)
    assert (len(result.tokenizer) == len(parent.tokenizer)) == (method == "substitute")
    assert any(text.startswith(f"rows: {facts['copied']} copied by token") for text in said)
    assert parent.fingerprint in (run / "base" / "README.md").read_text()


def test_it_translates_old_and_new_directions_like_any_base(finished) -> None:
    translator = Translator(Base.load(finished[0] / "base"))
    for source, target in (("fr", "ru"), ("en", "el"), ("el", "fr")):
        assert len(translator.translate(["fada", "goka"], source=source, target=target)) == 2


def test_every_row_is_listed(finished, graft_base) -> None:
    run, method, _ = finished
    lines = (run / "rows.tsv").read_text(encoding="utf-8").splitlines()
    result, parent = (Base.load(folder).tokenizer.vocabulary for folder in (run / "base", graft_base()))
    assert [line.split("\t")[1] for line in lines[1:]] == list(result.symbols)
    for line in lines[1:]:
        _, symbol, rule, origin = line.split("\t")
        assert rule == ("copied" if symbol in parent.symbols else {"retrain": "new"}.get(method, "substituted"))
        assert origin == (symbol if rule == "copied" else origin)
        assert (origin == "") == (rule == "new")


def test_new_directions_learn_and_the_drift_of_old_ones_is_measured(finished) -> None:
    run, _, said = finished
    drift = Base.load(run / "base").card["drift"]
    new = {name for name, entry in drift.items() if entry["new"]}
    assert new == {"en-el", "el-en"}
    assert len(drift) > len(new)
    for name, entry in drift.items():
        assert (entry["base"] is None) == (name in new)
        assert {"loss", "bleu", "chrf"} == entry["start"].keys() == entry["end"].keys()
    assert all(drift[name]["end"]["loss"] < drift[name]["start"]["loss"] for name in new)
    validations = [event for event in read_log(run / "log.jsonl") if event["event"] == "validation"]
    best = min(validations, key=lambda event: event["loss"])
    assert drift["en-el"]["end"]["loss"] == best["en-el/loss"]
    assert sum(text.split()[:2] in (["en-el", "new"], ["el-en", "new"]) for text in said) == 2


def test_a_metric_of_translations_measures_the_drift_in_it_too(tmp_path: Path, config) -> None:
    chosen = config(tmp_path / "run", "validation.metric=chrf", "validation.translate=false", "stages.0.steps=1")
    said = retrain(chosen)
    drift = Base.load(chosen.run / "base").card["drift"]
    for entry in drift.values():
        assert "chrf" in entry["start"] and "chrf" in entry["end"]
        assert (entry["base"] is None) == entry["new"]
    assert any(text.startswith("chrF ") for text in said)


@pytest.mark.parametrize("override", ["stages.0.label_smoothing=0.3", "data.max_length=20", "validation.lines=5"])
def test_what_was_measured_before_otherwise_is_measured_again(
    tmp_path: Path, config, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    """Before the first checkpoint the options may still change."""
    marks = []
    with monkeypatch.context() as patch:
        patch.setattr("graftmt.training.retraining.run_stages", lambda *_, **__: (_ for _ in ()).throw(Stopped("enough", 0)))
        for overrides in ([], [override]):
            retrain(config(tmp_path / "run", *overrides))
            marks.append(json.loads((tmp_path / "run" / "before.json").read_text(encoding="utf-8"))["of"])
    assert marks[0] != marks[1]


def test_the_table_shows_change_against_the_base_or_the_start() -> None:
    base, start, end = {"en-fr": {"chrf": 50.0}}, {"en-fr": {"chrf": 40.0}, "en-el": {"chrf": 1.0}}, {}
    end = {"en-fr": {"chrf": 48.5}, "en-el": {"chrf": 21.0}}
    lines = [line.split() for line in Drift(base, start, end, ("en-el",)).lines()]
    assert lines[1:] == [["en-fr", "old", "50.00", "40.00", "48.50", "-1.50"], ["en-el", "new", "–", "1.00", "21.00", "+20.00"]]


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_with_the_same_bits(
    tmp_path: Path, finished, config, stopping_after, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, method, _ = finished
    again = config(tmp_path / "run", f"method={method}")
    with monkeypatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", stopping_after(7))
        assert "--minutes" in retrain(again)[-1]
    assert not (again.run / "base").exists()
    measured = (again.run / "before.json").stat().st_mtime_ns
    said = retrain(again)
    assert any(text.startswith("resuming at stage1-step00000007") for text in said)
    assert (again.run / "before.json").stat().st_mtime_ns == measured  # by then the weights are others
    for name in ("base/model.safetensors", "base/subwords.model", "rows.tsv", "before.json"):
        assert (again.run / name).read_bytes() == (run / name).read_bytes()
    assert Base.load(again.run / "base").card["drift"] == Base.load(run / "base").card["drift"]


def test_a_base_may_move_but_not_be_another_one_when_a_run_goes_on(
    tmp_path: Path, config, graft_base, stopping_after, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", stopping_after(3))
        retrain(config(run, "validation.lines=0"))
    records = {name: (run / name).read_bytes() for name in ("vocabulary.json", "rows.tsv", "config.yaml")}
    for override, words in (
        (f"base={graft_base('post')}", "began with parent"),
        ("method=substitute", "began with method retrain, not substitute"),
        ("new=[uk]", "began with new_languages el, not uk"),
        ("seed=2", "seed: 1 then, 2 now"),
    ):
        with pytest.raises(ConfigError, match=words):
            retrain(config(run, "validation.lines=0", override))
        assert records == {name: (run / name).read_bytes() for name in records}
    moved = shutil.copytree(graft_base(), tmp_path / "moved")
    said = retrain(config(run, "validation.lines=0", f"base={moved}"))
    assert any("resuming at" in text for text in said)
    assert Base.load(run / "base").card["drift"] is None


def test_the_fingerprint_of_the_text_is_that_of_earlier_versions(tmp_path: Path, config) -> None:
    """So that runs begun with them go on."""
    chosen = config(tmp_path / "run")
    base, job = job_of(chosen)
    valid, _ = validation_text(chosen, ALL)
    digest = hashlib.sha256(f"{base.fingerprint} retrain ".encode())
    for corpus in (Corpus.open(chosen.data.corpus, "train", ALL), valid):
        digest.update(" ".join(cache_key(path, job.start.tokenizer) for path in corpus.files.values()).encode())
    assert job.prepared.data == digest.hexdigest()


def test_several_languages_at_once(tmp_path: Path, config) -> None:
    chosen = config(tmp_path / "run", "new=[el, uk]", "method=substitute", "stages.0.steps=1", "validation.translate=false")
    retrain(chosen)
    result = Base.load(chosen.run / "base")
    assert result.languages == ("en", "fr", "ru", "el", "uk")
    assert len(result.tokenizer) == len(Base.load(chosen.base).tokenizer)
    assert {"en-el", "el-en", "en-uk", "uk-en"} < result.card["drift"].keys()
    assert all(entry["base"] is None for entry in result.card["drift"].values())  # losses of two vocabularies do not compare


def test_a_base_stored_in_half_precision_is_trained_in_full(tmp_path: Path, config, graft_base) -> None:
    Base.load(graft_base()).save(tmp_path / "half", dtype="bf16")
    chosen = config(tmp_path / "run", f"base={tmp_path / 'half'}", "stages.0.steps=1", "validation.lines=0")
    retrain(chosen)
    assert {str(tensor.dtype) for tensor in load_file(chosen.run / "base" / "model.safetensors").values()} == {"torch.float32"}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["new=[fr]"], "fr: a language of the base"),
        (["new=[]"], "expected the new languages"),
        (["new=[el, el]"], "each once"),
        (["new=[xx]"], "has no train text in xx"),
        (["data.languages=[en, fr, el]"], "names 'el', which is new"),
        (["data.languages=[en, fx]"], "no language of the base"),
        (["model={size: tiny}"], "model_dim 16, not 128"),
        (
            ["model={size: tiny, model_dim: 16, ffn_dim: 24, heads: 2, encoder_layers: 3, decoder_layers: 3, norm: post}"],
            "norm pre",
        ),
        (["model.code_placement=decoder"], "code_placement source, not decoder"),
        (["method=substitut"], "did you mean 'substitute'"),
        (["new_directions={probability: 0.1, upsample: 5}"], "give one of them"),
        (["new_directions.probability=0.3"], "add up to 1.800"),
        (["new_directions.probability=2"], "between 0 and 1"),
        (["new_directions.upsample=0"], "upsample is 0"),
        (["new_directions.directions=[en-fr]"], "no direction of a new language"),
        (["stages.0.directions=[en-xx]"], "'xx' is not a language here"),
        (["base=nowhere"], "no base folder nowhere"),
        (["data.corpus=nowhere"], "no corpus folder nowhere"),
        (["validation.split=vaild"], "no files of the split 'vaild'"),
        (["sharded=true"], "sharded=true is for training a base or a pack"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, config, overrides: list[str], words: str) -> None:
    with pytest.raises(GraftError) as caught:
        retrain(config(tmp_path / "run", *overrides))
    assert words in str(caught.value)
    assert not (tmp_path / "run" / "base").exists()


def test_a_sharded_re_training_is_refused_before_anything_is_read(tmp_path: Path, config) -> None:
    chosen = replace(config(tmp_path / "run", "validation.lines=0"), sharded=True)
    with pytest.raises(GraftError, match=r"sharded=true .*a base or a pack"):
        check(chosen, {})


def test_the_base_s_own_architecture_may_be_stated(tmp_path: Path, config) -> None:
    shape = "{size: tiny, model_dim: 16, ffn_dim: 24, heads: 2, encoder_layers: 3, decoder_layers: 3}"
    chosen = config(tmp_path / "run", f"model={shape}")
    assert check(chosen, json.loads((chosen.base / "base.json").read_text())) == list(ALL)


def test_old_languages_without_text_are_an_error_unless_they_are_left_out(tmp_path: Path, config, graft_corpus: Path) -> None:
    corpus = shutil.copytree(graft_corpus, tmp_path / "corpus")
    for path in corpus.glob("*.ru.txt"):
        path.unlink()
    run = tmp_path / "run"
    with pytest.raises(GraftError, match="no train text in ru"):
        retrain(config(run, f"data.corpus={corpus}"))
    retrain(config(run, f"data.corpus={corpus}", "data.languages=[en, fr]", "stages.0.steps=1"))
    assert Base.load(run / "base").languages == ("en", "fr", "ru", "el")  # it can still be asked for


def test_a_vocabulary_of_another_size_is_no_substitution(tmp_path: Path, config, graft_subwords) -> None:
    with pytest.raises(ConfigError, match=r"keeps the size.*Leave subwords\.model out"):
        retrain(config(tmp_path / "run", "method=substitute", f"subwords.model={graft_subwords('el')}"))


def test_text_in_no_direction_that_trains_cannot_be_validated(tmp_path: Path, config, graft_corpus: Path) -> None:
    corpus = shutil.copytree(graft_corpus, tmp_path / "corpus")
    for path in corpus.glob("valid.*.txt"):
        if path.name != "valid.en.txt":
            path.write_text("\n" * 20)
    with pytest.raises(GraftError, match="no lines in any direction that trains"):
        retrain(config(tmp_path / "run", f"data.corpus={corpus}"))


def test_the_resolved_configuration_is_stored_and_read_back(finished, config) -> None:
    run, method, _ = finished
    from graftmt.configuration import from_mapping, load_yaml

    stored = from_mapping(RetrainConfig, load_yaml(run / "config.yaml"))
    assert to_mapping(stored) == to_mapping(config(run, f"method={method}"))
    assert Direction("en", "el") in retrain_directions(stored, stored.stages[0], ALL)


@pytest.mark.parametrize("value", [7, None, [1, 2], {"a": 1}, "x" * 100])
def test_an_origin_of_any_type_can_be_shown(value: object) -> None:
    from graftmt.training.retrain_request import on_one_line

    assert len(on_one_line(value)) <= 16
