"""`add_language` from Python: what it returns, what it leaves behind, and what a base that is resident feels of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from graftmt.adding import add as run
from graftmt.adding.add_folder import check_earlier_run, steps_done, work_folder
from graftmt.adding.add_options import AddOptions
from graftmt.adding.examination import Examination
from graftmt.adding.plan import Request, requests_of
from graftmt.adding.result import AddResult
from graftmt.adding.verdict import Verdict
from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError, GraftError
from graftmt.folders import exclusive
from graftmt.packs import Recipe, load_pack
from graftmt.packs.card import kind_of
from graftmt.progress import Listener, heard_by
from graftmt.training import Stopped
from graftmt.translator import Translator


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


@pytest.fixture
def options(graft_base: Callable[..., Path], graft_corpus: Path, tmp_path: Path) -> AddOptions:
    return AddOptions(
        languages=("el",),
        base=graft_base(),
        train=(str(graft_corpus),),
        side="source",
        run=tmp_path / "run",
        steps=4,
        merges=30,
        device="cpu",
        test_lines=2,
        beam=1,
        overrides=("tensorboard=false", "threads=1", "validation.lines=4"),
    )


def request_of(options: AddOptions, base: Base) -> Request:
    (request,) = requests_of(options, base)
    return request


def add_language(
    options: AddOptions, listener: Listener, base: Base | None = None, told: Examination | None = None
) -> AddResult:
    base = base or Base.load(options.base)
    with heard_by(listener):
        return run.add_language(request_of(options, base), base, told=told)


def add(options: AddOptions, resident: Base | None = None, **changes: Any) -> AddResult:
    return add_language(replace(options, **changes), lambda _: None, resident)


def test_a_resident_base_is_used_and_stays_as_it_is(options: AddOptions, base: Base) -> None:
    before = {name: parameter.detach().numpy().tobytes() for name, parameter in base.model.named_parameters()}
    said: list[str] = []
    result = add_language(options, said.append, base)
    assert {name: parameter.detach().numpy().tobytes() for name, parameter in base.model.named_parameters()} == before
    assert result.pack is not None and result.verdict is not None and result.estimate is not None
    assert result.path == options.run / "pack"
    assert Translator(base, [result.pack]).translate(["κεκε"], source="el", target="fr") == Translator(
        options.base, [result.path]
    ).translate(["κεκε"], source="el", target="fr")
    assert said.index("The text:") < next(
        row for row, line in enumerate(said) if line.startswith("Estimate for el as source: ")
    )
    json.dumps(result.to_dict())


@pytest.mark.slow
def test_a_stopped_run_gives_what_one_in_a_single_go_gives(options: AddOptions, base: Base, tmp_path: Path) -> None:
    for _ in range(2):  # at the first time while lines in other languages are translated, of which one chunk is left then
        with pytest.raises(Stopped):
            add(options, base, minutes=0)
    assert not (options.run / "pack").exists()
    assert steps_done(add(options, base, dry_run=True).config) == 1
    resumed, whole = add(options, base), add(options, base, run=tmp_path / "whole")
    assert resumed.estimate is not None and resumed.estimate.done == 1
    assert resumed.pack is not None and whole.pack is not None
    assert resumed.pack.fingerprint == whole.pack.fingerprint
    assert resumed.verdict == whole.verdict
    assert steps_done(whole.config) == 4


def test_a_dry_run_looks_at_everything_and_writes_nothing(options: AddOptions, base: Base, tmp_path: Path) -> None:
    result = add(options, base, dry_run=True, output=tmp_path / "out")
    assert result.estimate is not None and result.estimate.steps == 4
    assert (result.pack, result.path, result.verdict) == (None, None, None)
    assert result.config.run == options.run
    assert list(tmp_path.iterdir()) == []
    assert result.lines()[:2] == ["The recipe, el as source: embed + enc-first-layer + init:alignment", "The text:"]


@pytest.mark.slow
def test_the_output_is_a_copy_of_the_run_s_pack(options: AddOptions, base: Base, tmp_path: Path) -> None:
    result = add(options, base, output=tmp_path / "packs" / "el.graftpack", steps=1)
    assert result.path == tmp_path / "packs" / "el.graftpack"
    assert load_pack(result.path).card == load_pack(options.run / "pack").card


@pytest.mark.slow
def test_settings_that_do_not_decide_what_is_learned_may_change(options: AddOptions, base: Base) -> None:
    first = add(options, base, steps=1)
    check_earlier_run(first.config)
    check_earlier_run(replace(first.config, log_every=7, device="cuda", threads=4))
    with pytest.raises(ConfigError, match="seed: 1 then, 2 now"):
        check_earlier_run(replace(first.config, seed=2))


def damage(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8")[:20], encoding="utf-8")


@pytest.mark.slow
def test_a_damaged_checkpoint_is_named_with_the_way_to_go_on(options: AddOptions, base: Base) -> None:
    first = add(options, base, overrides=(*options.overrides, "checkpoint_every=2"))
    checkpoints = sorted((options.run / "checkpoints").glob("stage1-step*"))
    damage(checkpoints[1] / "state.json")
    with pytest.raises(CheckpointError, match=rf"Restore \S+{checkpoints[1].name} from a copy"):
        check_earlier_run(first.config)
    said: list[str] = []
    again = add_language(replace(options, overrides=(*options.overrides, "checkpoint_every=2")), said.append, base)
    assert any(f"{checkpoints[1].name}/state.json" in line for line in said)
    assert f"resuming at {checkpoints[0].name}" in said
    assert again.pack is not None and first.pack is not None and again.pack.fingerprint == first.pack.fingerprint
    damage(checkpoints[0] / "state.json")
    damage(checkpoints[1] / "state.json")
    with pytest.raises(CheckpointError, match=r"--run FOLDER.*--fresh"):
        add(options, base, overrides=(*options.overrides, "checkpoint_every=2"))


@pytest.mark.slow
def test_a_run_on_other_text_is_refused_with_the_options_of_add(
    options: AddOptions, base: Base, graft_corpus: Path, tmp_path: Path
) -> None:
    add(options, base)
    corpus = Path(shutil.copytree(graft_corpus, tmp_path / "corpus"))
    text = (corpus / "train.en.txt").read_text(encoding="utf-8")
    (corpus / "train.en.txt").write_text(text.replace(text.split()[0], "bababa"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        add(options, base, train=(str(corpus),))
    assert "holds a corpus that was made otherwise: train.en has changed. Give the command as it was" in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        add(options, base, train=(str(corpus),), augment="none", recipe="embed + enc-first-layer + init:alignment")
    assert "holds a run with other settings" in str(caught.value)


@pytest.mark.slow
def test_a_run_of_embeddings_on_other_text_is_refused_with_the_options_of_add(
    options: AddOptions, base: Base, graft_corpus: Path, tmp_path: Path
) -> None:
    add(options, base, augment="none")
    corpus = Path(shutil.copytree(graft_corpus, tmp_path / "corpus"))
    text = (corpus / "train.en.txt").read_text(encoding="utf-8")
    (corpus / "train.en.txt").write_text(text.replace(text.split()[0], "bababa"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        add(options, base, train=(str(corpus),), augment="none")
    assert "was trained on other text" in str(caught.value)
    assert "Restore them, or use another folder (--run FOLDER), or --fresh to start over" in str(caught.value)
    assert "run=" not in str(caught.value)


@pytest.mark.slow
def test_a_run_begun_on_another_base_or_pack_is_refused_with_what_differs(
    options: AddOptions, base: Base, graft_base: Callable[..., Path], tmp_path: Path
) -> None:
    add(options, base, steps=1)
    torch.manual_seed(7)
    another = Base.create(base.model.config, base.tokenizer)
    another.save(tmp_path / "another")
    with pytest.raises(ConfigError) as caught:
        add(options, another, steps=1)
    marks = f"({base.fingerprint[:16]}, not {another.fingerprint[:16]})"
    assert f"was begun with another base {marks}. Give the same base, or use another folder (--run" in str(caught.value)
    assert "text" not in str(caught.value)
    state = next((options.run / "checkpoints").glob("stage1-step*")) / "state.json"
    document = json.loads(state.read_text(encoding="utf-8"))
    del document["marks"]  # as earlier versions wrote it
    state.write_text(json.dumps(document), encoding="utf-8")
    (state.parent / "checksums.json").unlink()
    add(options, base, steps=1)
    with pytest.raises(ConfigError, match=r"begun with other.*text.*base.*pack.*recipe"):
        add(options, another, steps=1)


@pytest.mark.slow
def test_a_run_that_continued_another_pack_says_so(options: AddOptions, base: Base, tmp_path: Path) -> None:
    packs = [add(options, base, run=tmp_path / name, steps=1, seed=seed) for name, seed in (("one", 1), ("two", 2))]
    continued = replace(options, merges=None, run=tmp_path / "run-2", steps=1)
    add(continued, base, parent=packs[0].path)
    with pytest.raises(ConfigError, match=r"another pack.*[0-9a-f]{16}, not [0-9a-f]{16}"):
        add(continued, base, parent=packs[1].path)


@pytest.mark.slow
def test_a_pack_that_is_continued_needs_no_verdict_either(options: AddOptions, base: Base, tmp_path: Path) -> None:
    first = add(options, base, steps=1)
    for language in ("el", "en"):
        (tmp_path / f"test.{language}.txt").write_text("κε " * 250 + "\n", encoding="utf-8")
    text = tuple(f"{language}={tmp_path / f'test.{language}.txt'}" for language in ("el", "en"))
    continued = add(options, base, parent=first.path, merges=None, test=text, run=tmp_path / "next", steps=1)
    assert continued.pack is not None and continued.path == tmp_path / "next" / "pack"
    assert (continued.verdict, continued.before) == (None, None)
    assert continued.unjudged.startswith("no verdict: no line of the test text")
    assert "scores_here" not in continued.pack.card["parent"]


def test_the_first_process_alone_looks_whether_the_folder_is_free(options: AddOptions, base: Base, tmp_path: Path) -> None:
    """Under torchrun the others do not wait for each other there: with a lock each, one would refuse the next."""
    assert options.run is not None
    with exclusive(options.run, "the run"):
        with work_folder(request_of(options, base), base, first=False) as folder:
            assert folder == options.run
        with (
            pytest.raises(GraftError, match="in use by another process"),
            work_folder(request_of(options, base), base, first=True),
        ):
            pass


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pack", "el.graftpack"])
def test_a_pack_of_another_run_is_never_replaced(options: AddOptions, base: Base, tmp_path: Path, name: str) -> None:
    place = tmp_path / "packs" / name
    received = add(options, base, run=tmp_path / "theirs", output=place, seed=2, steps=1)
    for changes in ({"dry_run": True}, {}, {"fresh": True}):
        with pytest.raises(GraftError, match=r"el \(source\): embed \+ .*-o"):
            add(options, base, output=place, **changes)
        assert not options.run.exists()
    assert received.pack is not None
    assert load_pack(place).fingerprint == received.pack.fingerprint


@pytest.mark.slow
def test_a_pack_that_this_run_has_made_is_replaced_by_it(options: AddOptions, base: Base, tmp_path: Path) -> None:
    place = tmp_path / "packs" / "el"
    first = add(options, base, output=place)
    assert add(options, base, output=place).pack.fingerprint == first.pack.fingerprint  # the same command again
    with pytest.raises(Stopped):
        add(options, base, output=place, fresh=True, seed=2, minutes=0)
    assert load_pack(place).fingerprint == first.pack.fingerprint
    second = add(options, base, output=place, seed=2)  # gone on with: the earlier run is aside
    assert load_pack(place).fingerprint == second.pack.fingerprint != first.pack.fingerprint


@pytest.mark.slow
def test_a_pack_that_is_continued_is_not_replaced_by_what_comes_of_it(options: AddOptions, base: Base, tmp_path: Path) -> None:
    place, place2 = tmp_path / "el", tmp_path / "el-2"
    add(options, base, output=place, steps=1)
    continued = replace(options, parent=place, merges=None, run=tmp_path / "run-2", steps=1)
    with pytest.raises(GraftError, match="is there already: another pack"):
        add(continued, base, output=place)
    for _ in range(2):
        assert add(continued, base, output=place2).path == place2


@pytest.mark.parametrize(
    "override",
    ["stages.0.stepz=4", "validation.watch=[el-xx]", "stages.0.packed=true precision=fp32 stages.0.batch_tokens=1"],
)
def test_what_is_refused_before_it_trains_leaves_nothing_behind(
    options: AddOptions, base: Base, graft_corpus: Path, tmp_path: Path, override: str
) -> None:
    text = tuple(f"{name}={graft_corpus / f'train.{name}.txt'}" for name in ("el", "en"))
    asked = replace(options, train=text, run=tmp_path / "runs" / "el", augment="none")
    with pytest.raises(GraftError):
        add(asked, base, overrides=(*options.overrides, *override.split()))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "runs" / "uk").mkdir(parents=True)
    with pytest.raises(GraftError):
        add(asked, base, overrides=(*options.overrides, *override.split()))
    assert list((tmp_path / "runs").iterdir()) == [tmp_path / "runs" / "uk"]
    add(asked, base)
    with pytest.raises(GraftError):
        add(asked, base, overrides=(*options.overrides, *override.split()))
    assert (asked.run / "pack").is_dir()


def test_a_mistake_in_an_override_is_said_before_more_text_is_made(options: AddOptions, base: Base, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"stages\.0\.stepz"):
        add(options, base, augment="20-bt", overrides=("stages.0.stepz=4",))
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_stopped_says_where_it_stands(options: AddOptions, base: Base) -> None:
    said: list[str] = []
    with pytest.raises(Stopped) as caught:
        add_language(replace(options, minutes=0, augment="none"), said.append, base)
    standing = {"languages": ["el"], "side": "source", "run": str(options.run), "step": 1, "steps": 4, "pack": None}
    assert caught.value.standing == standing
    assert f"there is no pack yet: 1 of 4 steps are done, in {options.run}" in said


@pytest.mark.slow
def test_the_time_may_be_over_before_all_lines_are_translated(options: AddOptions, base: Base) -> None:
    said: list[str] = []
    with pytest.raises(Stopped) as caught:
        add_language(replace(options, minutes=0), said.append, base)
    whose = {"languages": ["el"], "side": "source", "run": str(options.run)}
    assert caught.value.standing == {**whose, "translated": 37, "lines": 74, "step": 0, "steps": None, "pack": None}
    assert f"there is no pack yet: of 74 lines in other languages 37 are translated, in {options.run}" in said
    assert add(options, base).pack is not None


@pytest.mark.slow
def test_of_the_same_text_nothing_is_said_twice(options: AddOptions, base: Base, tmp_path: Path) -> None:
    first = add(options, base, steps=1)
    said: list[str] = []
    target = replace(options, side="target", run=tmp_path / "target", steps=1)
    add_language(target, said.append, base, told=first.examination)
    assert "The text:" not in said and not any(line.startswith("warning: There is little text") for line in said)
    assert any(line.startswith("Estimate for el as target: ") for line in said)
    other = replace(first.examination, pairs={"el-en": 7})
    assert first.lines(other) == first.lines()  # other text is said


@pytest.mark.slow
def test_a_pack_of_another_base_cannot_be_continued(
    options: AddOptions, base: Base, graft_base: Callable[..., Path], tmp_path: Path
) -> None:
    result = add(options, base, steps=1)
    another = Base.load(graft_base("post"))
    with pytest.raises(ConfigError, match="cannot be continued here: it has base"):
        add(options, another, parent=result.path, merges=None, run=tmp_path / "other")
    (options.run / "pack" / "pack.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="truncated or damaged"):
        add(options, base, parent=result.path, merges=None, run=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_parent_without_its_file_is_said_to_be_missing(options: AddOptions, base: Base, tmp_path: Path) -> None:
    with pytest.raises(GraftError, match="there is no pack"):
        add(options, base, parent=tmp_path / "gone", merges=None)


@pytest.mark.slow
def test_the_nearest_code_is_looked_up_in_another_model(
    options: AddOptions, base: Base, graft_base: Callable[..., Path]
) -> None:
    oracle = graft_base(languages=("en", "fr", "ru", "el"))
    recipe = "embed + code:proxy:nearest"
    result = add(options, base, side="target", recipe=recipe, codes_from=oracle, steps=1, merges=20)
    assert result.pack is not None
    assert result.pack.recipe.code.language in base.languages
    assert result.to_dict()["recipe"] == str(result.pack.recipe)


@pytest.mark.slow
def test_more_text_makes_partners_of_the_other_languages(options: AddOptions, base: Base, graft_corpus: Path) -> None:
    result = add(options, base, augment="20 lines per lang", recipe="embed + enc-first-layer")
    assert set(result.corpus.partners) == {"en", "fr", "ru"}
    assert result.config.data.partners == result.corpus.partners
    lines = list(result.corpus.train.lines("fr"))
    assert sum(1 for line in lines if line) == 20
    assert result.verdict is not None
    kinds = {direction: kind_of(entry) for direction, entry in result.verdict.scores.items()}
    assert kinds == {"el-en": "trained", "el-fr": "few lines", "el-ru": "few lines"}
    assert "With a few lines: " in result.verdict.words and "through en" in result.verdict.words
    assert (result.to_dict()["partners"], result.to_dict()["few_lines"]) == (["en"], ["fr", "ru"])
    assert result.config.data.few == ("fr", "ru")


@pytest.fixture(scope="module")
def phrases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text that the demo's base can translate: enough for 25 lines in each of its other languages."""
    pytest.importorskip("babel")
    from graftmt.demo.phrase_corpus import write_corpus

    folder = tmp_path_factory.mktemp("phrases") / "corpus"
    write_corpus(folder, ("en", "fr", "ru", "el"), train_lines=400, valid_lines=20, test_lines=20)
    return folder


@pytest.fixture(scope="module")
def able() -> Iterator[Base]:
    with resources.as_file(resources.files("graftmt.demo") / "base") as folder:
        yield Base.load(folder)


@pytest.fixture
def phrased(options: AddOptions, phrases: Path) -> Iterator[AddOptions]:
    with resources.as_file(resources.files("graftmt.demo") / "base") as folder:
        yield replace(options, base=folder, train=(str(phrases),), steps=2)


@pytest.mark.slow
def test_a_source_pack_keeps_the_other_languages_by_default(phrased: AddOptions, able: Base) -> None:
    said: list[str] = []
    result = add_language(phrased, said.append, able)
    assert result.config.recipe == "embed + enc-first-layer + init:alignment"
    assert set(result.config.data.few) == {"fr", "de", "es", "ru"}
    assert 20 <= sum(1 for line in result.corpus.train.lines("de") if line) <= 25
    assert list(result.seconds) == ["more text", "looking at the text", "preparing", "training", "verdict"]
    assert any("--augment 25-bt by default" in line and "--augment none" in line for line in said)
    assert "The recipe, el as source: embed + enc-first-layer + init:alignment" in said
    assert result.pack is not None
    made = result.pack.card["augmentation"]
    assert (made["spec"], made["pivot"], set(made["lines"])) == ("25-bt", "en", {"fr", "de", "es", "ru"})
    assert result.to_dict()["augmentation"] == made
    again = add_language(phrased, said.append, able)
    assert again.pack is not None
    assert again.pack.fingerprint == result.pack.fingerprint


@pytest.mark.slow
def test_directions_of_a_few_lines_stay_such_when_a_pack_is_continued(phrased: AddOptions, able: Base, tmp_path: Path) -> None:
    first = add(phrased, able)
    go_on = replace(phrased, parent=first.path, merges=None, steps=1)
    second = add(go_on, able, run=tmp_path / "second")
    assert set(second.config.data.few) == {"fr", "de", "es", "ru"}
    alone = add(go_on, able, run=tmp_path / "alone", augment="none")
    assert alone.config.data.few == ()
    french = add(go_on, able, run=tmp_path / "french", partners=("fr",))
    kinds = [
        {name: kind_of(entry) for name, entry in result.verdict.scores.items()}
        for result in (second, alone, french)
        if result.verdict is not None
    ]
    few = {"el-en": "trained", "el-fr": "few lines", "el-ru": "few lines"}
    assert kinds == [few, few, {"el-en": "trained", "el-fr": "trained", "el-ru": "few lines"}]
    assert french.pack is not None
    assert set(french.pack.card["few"]) == {"de", "es", "ru"}


@pytest.mark.slow
def test_a_base_that_cannot_translate_teaches_no_lines(options: AddOptions, base: Base) -> None:
    said: list[str] = []
    result = add_language(replace(options, steps=2), said.append, base)
    assert (result.config.recipe, result.config.data.few) == ("embed + init:alignment", ())
    (warning,) = (
        words for words in said if words.startswith("warning: of the lines translated into 2 of 2 languages (fr, ru)")
    )
    assert "Embeddings alone are trained instead: embed + init:alignment" in warning
    again = add(options, base, steps=2)
    assert result.pack is not None and again.pack is not None
    assert again.pack.fingerprint == result.pack.fingerprint


@pytest.mark.slow
def test_a_few_lines_that_were_asked_for_are_no_sign_of_a_bad_base(phrased: AddOptions, able: Base) -> None:
    said: list[str] = []
    result = add_language(replace(phrased, augment="5-bt"), said.append, able)
    assert result.corpus.augmentation is not None
    assert set(result.corpus.augmentation["chosen"].values()) == {5}
    assert not [line for line in said if "worth keeping" in line]


@pytest.mark.slow
def test_a_run_of_another_recipe_is_refused_before_anything_is_translated(phrased: AddOptions, able: Base) -> None:
    add(phrased, able, augment="none")
    with pytest.raises(ConfigError, match="holds a run with other settings"):
        add(phrased, able)
    assert not list(phrased.run.glob("augmented*"))


def test_a_request_that_cannot_be_met_leaves_the_run_that_it_would_replace(
    phrased: AddOptions, able: Base, phrases: Path
) -> None:
    text = tuple(f"{name}={phrases / f'train.{name}.txt'}" for name in ("el", "en"))
    add(phrased, able, train=text, augment="none")
    with pytest.raises(GraftError, match=r"no lines.* el and "):
        add(phrased, able, train=text, augment="20", fresh=True)
    assert (phrased.run / "pack").is_dir()


@pytest.mark.parametrize(
    ("changes", "recipe"),
    [
        ({"augment": "none"}, "embed + init:alignment"),
        ({"partners": ("all",)}, "embed + init:alignment"),
        ({"recipe": "embed + enc-norm"}, "embed + enc-norm"),
        ({"side": "target"}, "embed + dec-last-layer + enc-adapters-last(32)"),
    ],
)
def test_nothing_else_is_augmented_unasked(options: AddOptions, base: Base, changes: dict[str, Any], recipe: str) -> None:
    result = add(options, base, dry_run=True, **changes)
    assert (result.config.recipe, result.config.data.few, result.planned) == (recipe, (), None)


def test_too_little_text_is_not_augmented_unasked(
    options: AddOptions, base: Base, graft_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graftmt.adding.defaults.FEWEST_LINES", 1000)
    result = add(options, base, dry_run=True)
    assert (result.config.recipe, result.planned) == ("embed + init:alignment", None)


def test_a_base_of_many_languages_gets_fewer_lines_in_each(
    phrased: AddOptions, able: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graftmt.adding.defaults.MOST_IN_ALL", 84)
    planned = add(phrased, able, dry_run=True).planned
    assert planned is not None and set(planned.lines.values()) == {21}


@pytest.mark.slow
def test_what_is_added_goes_with_the_partner_that_was_named(phrased: AddOptions, able: Base) -> None:
    result = add(phrased, able, partners=("fr",))
    assert set(result.config.data.few) == {"en", "de", "es", "ru"}
    assert result.verdict is not None
    assert kind_of(result.verdict.scores["el-fr"]) == "trained"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"partners": ("all",)}, "embeddings alone by default: training sees several languages already."),
        ({"languages": ("el", "uk")}, "too few for lines in the base's other languages; 640 are needed."),
        ({"augment": "none"}, ""),
        ({"recipe": "embed"}, ""),
    ],
)
def test_what_is_chosen_unasked_is_said(
    phrased: AddOptions, able: Base, phrases: Path, changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(phrases, tmp_path / "corpus"))
    for split in ("train", "valid", "test"):
        shutil.copy(folder / f"{split}.el.txt", folder / f"{split}.uk.txt")
    said: list[str] = []
    add_language(replace(phrased, train=(str(folder),), dry_run=True, **changes), said.append, able)
    assert [line for line in said if "by default" in line] == [one for one in said if words and words in one]
    assert any(words in line for line in said)


@pytest.mark.parametrize("spec", ["20-bt", "20"])
def test_a_dry_run_counts_what_more_text_would_be_and_makes_none(
    options: AddOptions, base: Base, spec: str, tmp_path: Path
) -> None:
    result = add(options, base, augment=spec, dry_run=True)
    assert result.planned is not None
    assert result.planned.lines == {"fr": 20, "ru": 20}
    assert result.to_dict()["planned"]["lines"] == result.planned.lines
    assert result.corpus.partners == ("en",)
    words = "\n".join(result.lines())
    assert f"--augment {spec}: a dry run does not make this text" in words
    assert "It would add 20 lines × 2 languages (fr, ru), 40 in all" in words
    assert ("translated first" in words) == spec.endswith("-bt")
    assert (result.planned.seconds is not None) == spec.endswith("-bt") == ("(which takes " in words)
    assert list(tmp_path.iterdir()) == []
    assert add(options, base, dry_run=True, augment="none").planned is None


@pytest.mark.slow
def test_the_steps_of_a_dry_run_are_those_of_the_text_with_what_would_be_added(
    options: AddOptions, base: Base, graft_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graftmt.adding.defaults.FEWEST_STEPS", 1)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for path in graft_corpus.glob("*.txt"):
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.name == "train.en.txt":  # most of it in the other languages only
            lines = [line if number < 60 else "" for number, line in enumerate(lines)]
        (corpus / path.name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    asked = replace(options, train=(str(corpus),), steps=None, overrides=(*options.overrides, "stages.0.batch_tokens=400"))
    alone, planned = add(asked, base, dry_run=True), add(asked, base, dry_run=True, augment="multi-aligned")
    assert planned.estimate is not None and alone.estimate is not None
    assert planned.estimate.steps > 3 * alone.estimate.steps
    made = add(asked, base, augment="multi-aligned", minutes=None)
    assert made.estimate is not None
    assert planned.estimate.steps == pytest.approx(made.estimate.steps, rel=0.1), "tokens per line are those of a sample"


def test_a_dry_run_says_what_more_text_would_fail_on(options: AddOptions, base: Base, graft_base) -> None:
    teacher = graft_base(languages=("en", "fr"))
    for dry_run in (True, False):
        with pytest.raises(GraftError, match=r"'ru'.*--teacher.*--augment none"):
            add(options, base, augment="20-bt", teacher=teacher, dry_run=dry_run)


def test_augmentation_that_makes_no_sense_is_said_before_any_text_is_read(options: AddOptions, base: Base) -> None:
    with pytest.raises(ConfigError, match="augmentation"):
        add(options, base, augment="many")
    with pytest.raises(ConfigError, match="--teacher"):
        add(options, base, teacher=options.base, augment="none")
    with pytest.raises(ConfigError, match="--teacher"):
        add(options, base, teacher=options.base, recipe="embed")
    with pytest.raises(ConfigError, match=r"en, fr, ru\b.*--with.*--augment none"):
        add(options, base, augment="20-bt", partners=("all",))


@pytest.mark.slow
def test_a_base_without_english_lends_the_code_of_what_is_trained_with(
    options: AddOptions, graft_base: Callable[..., Path]
) -> None:
    folder = graft_base(languages=("fr", "ru"))
    result = add(options, None, base=folder, side="target", partners=("fr",))
    assert result.pack is not None
    assert result.pack.recipe.code.language == "fr"


@pytest.mark.slow
def test_a_pack_takes_no_training_line_along(options: AddOptions, base: Base) -> None:
    result = add(options, base)
    assert result.pack is not None
    checks = load_pack(result.config.run / "pack").card["text"]["wrong_language"]
    assert checks and all("examples" not in check for check in checks.values())


def test_costs_in_other_directions_are_named_where_the_pack_can_have_them(options: AddOptions, base: Base) -> None:
    result = add(options, base, dry_run=True)
    entry = {"chrf": 50.0, "lines": 100, "zero_shot": False, "few_lines": False}
    verdict = Verdict("test", 1, {"el-en": entry}, [], copying=5.0)

    def costs(recipe: str, *partners: str, few: tuple[str, ...] = ()) -> list[str]:
        corpus = replace(result.corpus, partners=(*partners, *few), few=few)
        trained: Any = SimpleNamespace(recipe=Recipe.parse(recipe))
        plan = replace(result.plan, corpus=corpus)
        found = run.judgement_of(AddResult(plan, result.config, result.examination, pack=trained), verdict)
        assert found is not None
        return [words for words in found.advice if words.startswith("Zero-shot: ")]

    default = "embed + enc-first-layer + init:alignment"
    assert costs("embed + init:alignment", "en") == []
    for recipe in (default, "embed + enc-first-layer", f"{default} + code:learned:fr"):
        assert costs(recipe, "en", few=("fr", "ru")) == [], "the lines are what keeps the others"
        assert "first layer" in costs(recipe, "en")[0], "such as a default pack that is continued without lines"
    (cost,) = costs(f"{default} + enc-lora-all(4)", "en", few=("fr", "ru"))
    assert "LoRA" in cost and cost.endswith("which this pack had.")
    assert costs("embed + enc-lora-all(4)", "en", "fr")[0].endswith("which this pack had.")
    assert costs("embed + enc-lora-all(4)", *base.target_languages) == [], "no direction is zero-shot"
