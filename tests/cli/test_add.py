"""`graftmt add`: a pack from parallel text, with a look before and a verdict after; what stops it loses nothing."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.configuration import load_yaml
from graftmt.packs import load_pack, read_pack_document
from graftmt.translator import Translator

QUICK = ("--steps", "3", "--lines", "4", "--beam", "1", "tensorboard=false", "threads=1")
SMALL = ("--merges", "30")


@pytest.fixture
def add(
    graftmt: Callable[..., Any], graft_base: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """`add("el", "--train", …)` in a folder of its own, quick."""
    monkeypatch.chdir(tmp_path)
    return lambda languages, *options: graftmt("add", languages, "-b", str(graft_base()), *QUICK, *SMALL, *options)


@pytest.fixture
def source(add, graft_corpus: Path) -> Callable[..., Any]:
    """`source(…)`: el as source, from the whole corpus."""
    return lambda *options: add("el", "--train", str(graft_corpus), "--side", "source", *options)


@pytest.fixture
def pair(add, graft_corpus: Path) -> Callable[..., Any]:
    """`pair(…)`: the same text as tlh, which no detector knows, from two files and with French only."""
    files = (f"tlh={graft_corpus / 'train.el.txt'}", "--train", f"fr={graft_corpus / 'train.fr.txt'}")
    return lambda *options: add("tlh", "--train", *files, "--side", "source", *options)


def fingerprint(result: Any) -> str:
    assert result.code == 0, result.stderr
    return str(json.loads(result.stdout)["fingerprint"])


def test_a_pack_comes_with_what_was_found_before_and_after(source, graft_base, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in graft_base().iterdir()}
    result = source("--json", "--quiet")
    assert (result.code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["languages"], found["side"]) == (["el"], "source")
    assert found["recipe"] == "embed + init:alignment"  # this base cannot translate, and lines of its making are few
    assert (found["partners"], found["held_out"], found["steps"]) == (["en"], False, 3)
    assert found["text"]["pairs"] == {"el-en": 300}
    scores = found["verdict"]["scores"]
    assert {name: entry["zero_shot"] for name, entry in scores.items()} == {"el-en": False, "el-fr": True, "el-ru": True}
    assert all(entry["lines"] == 4 for entry in scores.values())
    assert {entry["pivot"]["through"] for entry in scores.values() if entry["zero_shot"]} == {"en"}
    assert len(found["verdict"]["samples"]) == 10

    pack = load_pack(tmp_path / found["pack"])
    assert pack.fingerprint == found["fingerprint"]
    assert found["parameters"] == found["estimate"]["parameters"] == pack.size
    assert pack.card["scores"] == scores
    assert pack.card["text"]["pairs"] == {"el-en": 300}
    card = (tmp_path / found["pack"] / "README.md").read_text(encoding="utf-8")
    assert "| direction |  | BLEU | chrF | lines | chrF through en |" in card
    assert {path: path.read_bytes() for path in graft_base().iterdir()} == before


@pytest.mark.slow
def test_it_says_what_it_sees_and_what_to_type_next(source) -> None:
    result = source("--lines", "20")
    assert result.code == 0
    for words in (
        "The text:",
        "el-en: line pairs",
        "Estimate for el as source: ",
        "% of the base's",
        "validation at step 3",
        "other directions",
    ):
        assert words in result.stderr
    for words in ("el (source): embed", "chrF through en", "Trained directions: chrF", "The pack: runs/el-source/pack"):
        assert words in result.stdout
    first, last = result.stdout.splitlines()[0], result.stdout.splitlines()[-1]
    assert "unusable" in first and "for the untranslated source" in first  # three steps make no pack that translates
    assert last.startswith("Verdict: unusable. chrF ") and "in the base's own on the same text (" in last
    assert "More text would help: twice the 300 line pairs" in result.stdout
    assert "Try it" not in result.stdout
    assert "Warning" not in result.stderr  # Python's own, with a line of code


@pytest.mark.slow
def test_a_few_lines_are_no_verdict_and_of_two_packs_each_has_its_line_at_the_end(add, graft_corpus: Path) -> None:
    result = add("el", "--train", str(graft_corpus), "-q")  # scored on four lines
    assert result.code == 0, result.stderr
    assert result.stdout.count("Verdict: unknown. 4 lines were scored (chrF ") == 2
    assert result.stdout.splitlines()[-2:] == [f"runs/el-{side}/pack: unknown" for side in ("source", "target")]


@pytest.mark.slow
def test_what_to_type_next_knows_codes_with_hyphens(add, graft_corpus: Path, tmp_path: Path) -> None:
    for language, line in {"el-GR": "κε " * 250, "en": "bada " * 250}.items():  # too long for a verdict
        (tmp_path / f"test.{language}.txt").write_text(f"{line}\n" * 3, encoding="utf-8")
    long_lines = [f"--test={language}={tmp_path / f'test.{language}.txt'}" for language in ("el-GR", "en")]
    text = [f"--train={code}={graft_corpus / f'train.{name}.txt'}" for code, name in (("el-GR", "el"), ("en", "en"))]
    for side, options in (("source", "-s el-GR -t en"), ("target", "-s en -t el-GR")):
        result = add("el-GR", *text, *long_lines, "--side", side, "-q")
        assert result.code == 0, result.stderr
        assert result.stdout.rstrip().endswith(f"--packs runs/el-GR-{side}/pack {options}")


@pytest.mark.slow
def test_a_test_split_of_long_lines_gives_a_pack_without_a_verdict(source, tmp_path: Path) -> None:
    for language, line in {"el": "κε " * 250, "en": "bada " * 250}.items():
        (tmp_path / f"test.{language}.txt").write_text(f"{line}\n" * 3, encoding="utf-8")
    text = [f"--test={language}={tmp_path / f'test.{language}.txt'}" for language in ("el", "en")]
    result = source(*text, "-q", "-o", "pk")
    assert result.code == 0, result.stderr
    assert "no verdict: no line of the test text in " in result.stdout and "at most 512 characters" in result.stdout
    assert "Try it: graftmt translate" in result.stdout and "-s el -t en" in result.stdout
    assert "scores" not in read_pack_document("pk")["card"]
    found = json.loads(source(*text, "-q", "-o", "pk", "--json").stdout)
    assert found["verdict"] is None and found["unjudged"].startswith("no verdict: ")


def test_a_negative_seed_is_refused(pair) -> None:
    result = pair("--seed", "-1")
    assert result.code == 2
    assert "Traceback" not in result.stderr and "--seed" in result.stderr


@pytest.mark.slow
def test_both_sides_are_made_unless_one_is_named(add, graft_corpus: Path) -> None:
    result = add("el", "--train", str(graft_corpus), "-q", "--json", "-o", "out/v1.2.graftpack")
    assert result.code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [one["side"] for one in found] == ["source", "target"]
    assert [one["pack"] for one in found] == ["out/v1.2-source.graftpack", "out/v1.2-target.graftpack"]
    assert found[1]["recipe"] == "embed + dec-last-layer + enc-adapters-last(32)"
    for one in found:
        archive = load_pack(one["pack"])
        assert (archive.side, archive.fingerprint) == (one["side"], load_pack(f"runs/el-{one['side']}/pack").fingerprint)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_of_both_sides_the_text_is_described_once_and_each_estimate_is_named(
    add, graft_corpus: Path, options: list[str]
) -> None:
    result = add("el", "--train", str(graft_corpus), *options)
    assert result.code == 0, result.stderr
    shown = result.stdout if options else result.stderr
    for words in ("The text:", "There is little text in el", "Estimate for el as source: ", "Estimate for el as target: "):
        assert shown.count(words) == 1, words


@pytest.mark.slow
def test_stopped_at_the_second_side_the_first_is_named(add, graft_corpus: Path) -> None:
    both = ("el", "--train", str(graft_corpus), "-q")
    assert add(*both, "--side", "source").code == 0
    stopped = add(*both, "--json", "--minutes", "0")
    assert stopped.code == 0, stopped.stderr
    found = json.loads(stopped.stdout)
    assert (found["side"], found["run"], found["pack"]) == ("target", "runs/el-target", None)
    assert found["made"] == ["runs/el-source/pack"]


@pytest.mark.slow
def test_the_verdict_says_on_how_many_lines_it_rests(pair) -> None:
    shown = pair("-q").stdout
    assert re.search(r"direction .* lines .* BLEU .* chrF", shown)
    assert re.search(r"tlh-fr .* trained .* 4 ", shown)
    assert "Scored on 4 lines of the valid text, by which the best checkpoint was chosen too" in shown


@pytest.mark.parametrize("number", ["14", "(14)", " ( 14 ) "])
def test_a_recipe_may_be_one_of_the_papers_numbers(source, number: str) -> None:
    found = json.loads(source("--recipe", number, "--dry-run", "--json", "-q").stdout)
    assert found["recipe"] == "embed + enc-first-layer"


@pytest.mark.slow
def test_several_languages_share_a_pack(add, graft_corpus: Path, graft_base) -> None:
    result = add("el, uk", "--train", str(graft_corpus), "--side", "target", "-q", "--json", "--with", "en,fr")
    assert result.code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["pack"] == "runs/el+uk-target/pack"
    trained = [name for name, entry in found["verdict"]["scores"].items() if not entry["zero_shot"]]
    assert trained == ["en-el", "fr-el", "en-uk", "fr-uk"]
    assert Translator(graft_base(), [found["pack"]]).target_languages == ("en", "fr", "ru", "el", "uk")


@pytest.mark.slow
def test_a_pair_of_files_without_english_is_enough(pair, tmp_path: Path) -> None:
    result = pair("--json")
    assert result.code == 0
    found = json.loads(result.stdout)
    assert (found["partners"], found["held_out"]) == (["fr"], True)
    assert list(found["verdict"]["scores"]) == ["tlh-fr"]
    assert found["verdict"]["scored_on"] == "valid, beam 1"
    assert "the language detector does not know tlh" in result.stderr
    assert f"lines are held out for validation, in {Path('runs/tlh-source/data')}" in result.stderr
    held_out = (tmp_path / "runs/tlh-source/data/valid.tlh.txt").read_text(encoding="utf-8").splitlines()
    assert not set(held_out) & set((tmp_path / "runs/tlh-source/data/train.tlh.txt").read_text(encoding="utf-8").splitlines())
    shown = pair().stdout
    assert "The valid text has no sentences in other languages of the base" in shown
    assert "through" not in shown


def test_text_that_the_base_s_vocabulary_covers_is_warned_of(add, graft_corpus: Path) -> None:
    files = ("--train", f"gl={graft_corpus / 'train.fr.txt'}", "--train", f"en={graft_corpus / 'train.en.txt'}")
    result = add("gl", *files, "--side", "source", "--dry-run", "--merges", "10")
    assert result.code == 0
    assert "warning: The base's vocabulary already covers this text in gl" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--fresh"]])
def test_a_dry_run_prints_its_findings_and_leaves_no_trace(pair, tmp_path: Path, options: list[str]) -> None:
    result = pair("--dry-run", "--quiet", *options)
    assert (result.code, result.stderr) == (0, "")
    for words in (
        "The text:",
        "tlh: words per line",
        "warning: There is little text in tlh",
        "Estimate for tlh",
        "3 steps, about ",
    ):
        assert words in result.stdout
    assert not (tmp_path / "runs").exists()
    found = json.loads(pair("--dry-run", "--quiet", "--json").stdout)
    assert (found["run"], found["pack"], found["verdict"]) == ("runs/tlh-source", None, None)
    assert found["estimate"]["steps"] == 3


@pytest.mark.slow
def test_a_dry_run_beside_a_run_leaves_it_alone(pair, tmp_path: Path) -> None:
    pair("-q")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")}
    assert pair("--dry-run", "--steps", "9", "--fresh").code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")} == before


@pytest.mark.slow
def test_the_same_command_again_trains_nothing_and_gives_the_same(pair) -> None:
    first = fingerprint(pair("--json"))
    again = pair("--json")
    assert fingerprint(again) == first
    assert "all 3 steps are done" in again.stderr
    assert "validation at step" not in again.stderr


@pytest.mark.slow
def test_other_settings_in_the_same_folder_need_fresh_which_loses_nothing(pair, tmp_path: Path) -> None:
    first = fingerprint(pair("--json"))
    refused = pair("--steps", "4", "--json")
    assert (refused.code, refused.stdout) == (1, "")
    assert "runs/tlh-source holds a run with other settings (stages.0.steps: 3 then, 4 now)" in refused.stderr
    assert "--fresh" in refused.stderr
    assert pair("--steps", "4", "--fresh", "--with", "en").code == 1  # nothing in English: the run stays
    assert not (tmp_path / "runs/tlh-source.old-1").exists()
    second = pair("--steps", "4", "--json", "--fresh")
    assert fingerprint(second) == load_pack(tmp_path / "runs/tlh-source/pack").fingerprint != first
    assert load_pack(tmp_path / "runs/tlh-source.old-1/pack").fingerprint == first
    assert (tmp_path / "runs/tlh-source/data/train.tlh.txt").is_file()
    assert (tmp_path / "runs/tlh-source.old-1/data/train.tlh.txt").is_file()


@pytest.mark.slow
def test_minutes_stop_it_and_the_same_command_goes_on(pair) -> None:
    stopped = pair("--minutes", "0", "--json")
    standing = json.loads(stopped.stdout)
    assert (stopped.code, standing["step"], standing["steps"]) == (0, 0, None)
    assert 0 < standing["translated"] < standing["lines"]
    assert "lines in other languages" in stopped.stderr and "are translated, in runs/tlh-source" in stopped.stderr
    stopped = pair("--minutes", "0", "--json")
    assert stopped.code == 0
    assert json.loads(stopped.stdout) == {
        "stopped": "the time given with --minutes is over",
        "languages": ["tlh"],
        "side": "source",
        "run": "runs/tlh-source",
        "step": 1,
        "steps": 3,
        "pack": None,
        "made": [],
    }
    for words in (
        "there will be no pack until the same command is given again",
        "stopped at step 1 of 3",
        "Rerun the command to resume",
    ):
        assert words in stopped.stderr
    went_on = pair("--json")
    assert "2 of 3 steps left" in went_on.stderr
    assert fingerprint(went_on) == fingerprint(pair("--json", "--run", "elsewhere"))


@pytest.mark.slow
def test_interrupted_it_goes_on_where_it_was(start_graftmt, graftmt, graft_base, graft_corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ("--train", str(graft_corpus), "--side", "source", "--run", str(run), *QUICK, *SMALL)
    command = ("add", "el", "-b", str(graft_base()), *options, "--steps", "100000", "log_every=1")
    with start_graftmt(*command) as process:
        for line in process.stderr:
            if b"100,000 steps" in line and b"line pairs" in line:
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
    assert process.returncode == 130
    assert "stopped at step " in said
    assert "everything is saved. Rerun the command to resume." in said
    (checkpoint,) = (run / "checkpoints").glob("stage1-step*")
    went_on = graftmt(*command, "--minutes", "0")
    assert f"resuming at {checkpoint.name}" in went_on.stderr


@pytest.fixture
def continued(graftmt, grafted, graft_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`continued(…)`: a pack that is there already, trained on."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(grafted.el.parent, "runs/el-source")
    command = ("add", "el", "-b", str(grafted.base), "--train", str(graft_corpus), *QUICK)
    return lambda *options: graftmt(*command, "--continue", "runs/el-source/pack", *options)


@pytest.mark.slow
def test_a_continued_pack_takes_side_and_recipe_from_its_parent(continued, tmp_path: Path) -> None:
    parent = load_pack("runs/el-source/pack")
    found = json.loads(continued("--json").stdout)
    assert (found["pack"], found["side"], found["recipe"]) == ("runs/el-source-2/pack", "source", "embed")
    assert found["before"]["scores"].keys() == found["verdict"]["scores"].keys()
    card = load_pack("runs/el-source-2/pack").card
    assert (card["version"], card["parent"]["fingerprint"]) == (2, parent.fingerprint)
    assert card["parent"]["scores_here"] == found["before"]["scores"]
    assert "chrF before" in Path("runs/el-source-2/pack/README.md").read_text(encoding="utf-8")
    assert "chrF before" in continued().stdout
    assert load_pack("runs/el-source/pack").fingerprint == parent.fingerprint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--side", "target"], "cannot be continued here: it has side source, not target"),
        (["--side", "both"], "is a source pack; leave --side out"),
        (["--recipe", "embed + enc-norm"], "keeps its own, 'embed'"),
        (["--merges", "20"], "keeps its vocabulary"),
        (["--run", "runs/el-source", "--fresh"], "would move the pack to continue"),
        (["--continue", "nowhere"], "there is no pack nowhere"),
        (["--continue", "runs/el-source"], "did you mean runs/el-source/pack?"),
    ],
)
def test_what_a_continued_pack_keeps_cannot_be_changed(continued, options: list[str], words: str) -> None:
    before = load_pack("runs/el-source/pack").fingerprint
    result = continued(*options)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert load_pack("runs/el-source/pack").fingerprint == before
    assert [path.name for path in Path("runs").iterdir()] == ["el-source"]


@pytest.mark.parametrize(
    ("options", "recipe", "lines"),
    [
        (["--recipe", "106"], "embed + enc-first-layer + init:alignment", "1000-bt"),
        (["--recipe", "16"], "embed + enc-adapters-all(512)", "multi-aligned"),
        (["--recipe", "(19)", "--augment", "20-bt"], "embed + enc-adapters-all(512)", "20-bt"),
        (["--recipe", "20", "--augment", "none"], "embed + enc-first-layer", None),
        (["--recipe", "12"], "embed + enc-adapters-all(512)", None),
        (["--recipe", "118", "--side", "target"], "embed + enc-adapters-last(1024) + dec-last-layer", "1000-bt"),
    ],
)
def test_a_number_is_a_recipe_and_the_lines_that_go_with_it(add, graft_corpus, options, recipe, lines) -> None:
    result = add("el", "--train", str(graft_corpus), "--side", "source", *options, "--with", "en", "--dry-run", "--json")
    found = json.loads(result.stdout)
    assert sorted(found["recipe"].split(" + ")) == sorted(recipe.split(" + "))
    assert (found["planned"] or {}).get("spec") == lines


@pytest.mark.slow
def test_the_stage_that_trained_parts_add_can_be_changed(source) -> None:
    found = json.loads(source("--recipe", "embed + enc-layer-2@trained", "--with", "en", "stages.1.steps=3", "--json").stdout)
    stages = load_yaml(Path(found["run"]) / "config.yaml")["stages"]
    assert [stage["steps"] for stage in stages] == [found["steps"] - 3, 3]
    assert stages[1]["warmup"] == 1
    assert "stages.1.steps: '1' is not one of the 1 entries" in source("stages.1.steps=3").stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--recipe", "embed + frob"], "frob"),
        (["--recipe", "30"], "(30) is a target pack, and this one is a source pack; give --side target"),
        (["--recipe", "(14)", "--side", "both"], "(14) is a source pack, and this one is a target pack"),
        (["--recipe", "38"], "no incremental model (38)"),
        (["--recipe", "123"], "differs from it in how long its second stage is. Write --recipe 'embed + enc-first-layer + "),
        (["--recipe", "123"], "--augment 1000-bt --steps N stages.1.steps=N."),
        (["--augment", ""], "augmentation '' is not known"),
        (["--recipe", "106", "--with", "en,fr"], "Name one with --with, or train without: --augment none."),
        (["--recipe", "embed + enc-layer-2@trained", "stages.1.directions=[el-xx]"], "xx"),
        (["--recipe", "63"], "differs from it in the text, AR-EN without lang ID filtering. Write --recipe 'embed'."),
        (["--recipe", "65"], "without lang ID filtering. Write --recipe 'embed + enc-first-layer' --augment 20000-bt."),
        (["--recipe", "12 + enc-norm"], "'12' is a number; write the components of that model"),
        (["--recipe", "embed + enc-adapters-9(4)"], "the base's encoder has no layer 9; expected 1 to 3"),
        (["--recipe", "embed + dec-last-layer"], "cannot be part of a source pack"),
        (["--recipe", "embed + dec-last-layer", "--side", "both"], "cannot be part of a source pack"),
        (["--side", "target", "--recipe", "embed + code:proxy:nearest"], "needs --codes-from"),
        (["--side", "target", "--recipe", "embed + code:proxy:xx"], "no code of 'xx'"),
        (["--codes-from", "nowhere"], "--codes-from is for a recipe with code:proxy:nearest"),
        (["--with", "de"], "'de' is not one of the base's languages"),
        (["--with", "en,uk"], "'uk' is not one of the base's languages"),
        (["--valid", "nowhere"], "there is no file nowhere"),
        (["-b", "nowhere"], "there is no base folder nowhere"),
        (["--beam", "0"], "beam"),
        (["--device", "tpu"], "device 'tpu'"),
        (["--base-dtype", "bf16", "--device", "cpu"], "for training on a GPU"),
        (["stages.0.stepz=4"], "unknown key 'stages.0.stepz'; did you mean 'steps'?"),
        (["run=elsewhere"], "override 'run=elsewhere': there is an option for this"),
        (["--output", "/dev/null/pack"], "/dev/null is no folder"),
    ],
)
def test_what_cannot_be_meant_is_one_paragraph_and_nothing_is_written(
    source, tmp_path: Path, options: list[str], words: str
) -> None:
    result = source(*options)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("languages", "train", "words"),
    [
        ("fr", ["corpus"], "'fr' is one of the base's languages already (en, fr, ru)"),
        ("el,el", ["corpus"], "one or several different languages"),
        (",", ["corpus"], "got none"),
        ("tlh", ["corpus"], "no train text for language 'tlh'"),
        ("el", ["nowhere"], "there is no file nowhere"),
        ("el", ["el=corpus/train.el.txt"], "no language of the base besides el"),
        ("el", ["el=corpus/train.el.txt", "en=gone.txt"], "there is no file gone.txt"),
        ("el", ["en=corpus/train.en.txt", "fr=corpus/train.fr.txt"], "no train file is in el"),
        ("el", ["el=corpus/train.el.txt", "en=corpus/test.en.txt"], "different numbers of lines"),
        ("el", ["el=corpus/train.el.txt", "fr=corpus/train.fr.txt", "ru=corpus/train.ru.txt"], "say which to train with"),
    ],
)
def test_text_that_cannot_be_used_is_named(
    add, graft_corpus: Path, tmp_path: Path, languages: str, train: list[str], words: str
) -> None:
    (tmp_path / "corpus").symlink_to(graft_corpus)
    result = add(languages, "--side", "source", *(part for path in train for part in ("--train", path)))
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_folder_of_other_things_is_never_replaced_by_a_pack(source, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work\n", encoding="utf-8")
    result = source("-o", "mine")
    assert result.code == 1
    assert "mine" in result.stderr and "thesis.txt" in result.stderr
    assert (tmp_path / "mine" / "thesis.txt").read_text(encoding="utf-8") == "years of work\n"
    assert not (tmp_path / "runs").exists()
    assert source("-o", "mine/pack", "-q").code == 0
    assert source("-o", "mine/pack", "-q").code == 0  # a pack may take a pack's place
    assert read_pack_document(tmp_path / "mine/pack")["side"] == "source"


def test_a_run_in_use_is_said_to_be_so_at_once(pair, tmp_path: Path) -> None:
    from graftmt.folders import exclusive

    with exclusive(tmp_path / "runs" / "tlh-source", "the run"):
        result = pair()
    assert result.code == 1
    assert "is in use by another process" in result.stderr
    assert "The text" not in result.stderr


@pytest.mark.slow
def test_text_aligned_through_english_alone_has_no_zero_shot_directions(add, graft_corpus: Path, tmp_path: Path) -> None:
    """French is there, but never on a line with Greek, and Greek only comes late in the file."""
    corpus = Path(shutil.copytree(graft_corpus, tmp_path / "corpus"))
    for split in ("train", "valid", "test"):
        for language, keep in (("el", slice(8, None)), ("fr", slice(0, 8)), ("ru", slice(0, 8))):
            path = corpus / f"{split}.{language}.txt"
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = range(len(lines))[keep]
            text = "".join(f"{line if row in kept else ''}\n" for row, line in enumerate(lines))
            path.write_text(text, encoding="utf-8")
    result = add("el", "--train", str(corpus), "--side", "source", "--json", "-q")
    assert result.code == 0, result.stderr
    scores = json.loads(result.stdout)["verdict"]["scores"]
    assert {name: entry["lines"] for name, entry in scores.items()} == {"el-en": 4}


@pytest.mark.slow
def test_a_run_that_is_removed_before_the_verdict_is_an_error(source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graftmt.adding import add as run
    from graftmt.adding.verdict import judge

    def remove(*arguments: Any, **options: Any) -> Any:
        shutil.rmtree(tmp_path / "runs")
        return judge(*arguments, **options)

    monkeypatch.setattr(run, "judge", remove)
    result = source()
    assert result.code == 1
    assert "el-source was removed" in result.stderr
    assert not (tmp_path / "runs" / "el-source" / "pack").exists()


# Text out of step


@pytest.fixture
def texts(tmp_path: Path) -> Callable[..., list[str]]:
    """Options for 900 lines of the demo's phrases in Greek and English, changed."""
    from graftmt.demo.phrase_corpus import build_corpus

    lines = build_corpus(("en", "el"), train_lines=900, valid_lines=1, test_lines=1)["train"]

    def write(change: Callable[[list[str], list[str]], tuple[list[str], list[str]]]) -> list[str]:
        for code, side in zip(("el", "en"), change(lines["el"], lines["en"]), strict=True):
            (tmp_path / f"text.{code}").write_text("\n".join(side) + "\n", encoding="utf-8")
        return [f"--train=el={tmp_path / 'text.el'}", f"--train=en={tmp_path / 'text.en'}", "--side", "source"]

    return write


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda el, en: (el[:-1], en[:200] + en[201:]), "on: the English side is one line ahead of the Greek side"),
        (lambda el, en: (el, sorted(en)), "do not belong together"),
        (lambda el, en: (en, el), "the text in Greek and that in English are exchanged"),
        (lambda el, en: (en, en), "in the same language"),
    ],
)
def test_text_out_of_step_is_not_trained_on(add, texts, change: Any, words: str) -> None:
    options = texts(change)
    result = add("el", *options, "--dry-run")
    assert result.code == 1 and not result.stdout
    assert words in result.stderr and "--force" in result.stderr
    assert not Path("runs").exists() or not any(Path("runs").rglob("pack.json"))


@pytest.mark.slow
def test_it_can_be_forced(add, texts) -> None:
    result = add("el", *texts(lambda el, en: (el[:-1], en[1:])), "--force", "--dry-run", "--json")
    assert result.code == 0, result.stderr
    assert "warning:" in result.stderr and "one line ahead" in result.stderr
    assert json.loads(result.stdout)["alignment"][0]["kind"] == "shifted"
