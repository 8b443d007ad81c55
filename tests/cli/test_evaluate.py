"""`graftmt evaluate`: scores of many directions, as a table, as JSON, as files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from graftmt.packs import load_pack
from graftmt.translator import Translator


@pytest.fixture
def evaluate(graftmt: Callable[..., Any], toy_base: Path, toy_corpus: Path) -> Callable[..., Any]:
    """`evaluate("-d", "en-xa")`; later options win."""
    return lambda *options: graftmt("evaluate", "-b", str(toy_base), "-c", str(toy_corpus), "-q", "--beam", "1", *options)


def test_the_report_holds_scores_averages_and_every_translation(
    evaluate, tmp_path: Path, toy_base: Path, toy_corpus: Path
) -> None:
    output = tmp_path / "made" / "scores"
    result = evaluate("-d", "multi-parallel", "-n", "6", "-o", str(output), "--json")
    assert (result.code, result.stderr) == (0, "")
    report = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert json.loads(result.stdout) == report
    assert report["base"] == Translator(toy_base).base.fingerprint
    assert (report["split"], report["beam"], len(report["directions"])) == ("test", 1, 12)

    table = (output / "report.md").read_text(encoding="utf-8")
    for name, scores in report["directions"].items():
        lines = (output / f"test.{name}.txt").read_text(encoding="utf-8").splitlines()
        assert len(lines) == scores["lines"] == 6
        assert scores["chrf"] > 90
        assert f"| {name} | 6 | {scores['bleu']:.1f} | {scores['chrf']:.1f} |" in table
        assert scores["bleu_signature"] in table
    source = (toy_corpus / "test.en.txt").read_text(encoding="utf-8").splitlines()[:6]
    expected = Translator(toy_base).translate(source, source="en", target="xc")
    found = (output / "test.en-xc.txt").read_text(encoding="utf-8").splitlines()
    assert sum(a == b for a, b in zip(found, expected, strict=True)) >= 5  # beam 5 there, greedy here

    groups = {
        "to_pivot": lambda source, target: target == "en",
        "from_pivot": lambda source, target: source == "en",
        "non_pivot": lambda source, target: "en" not in (source, target),
        "all": lambda source, target: True,
    }
    for name, belongs in groups.items():
        members = [scores for key, scores in report["directions"].items() if belongs(*key.split("-"))]
        assert report["averages"][name]["directions"] == len(members)
        for metric in ("bleu", "chrf"):
            assert report["averages"][name][metric] == pytest.approx(fmean(scores[metric] for scores in members))


def test_the_table_names_directions_averages_and_signatures(evaluate) -> None:
    result = evaluate("-d", "en-xa,en-xb,xb-en", "--lines", "4")
    assert result.code == 0
    for words in ("en-xa", "xb-en", "←EN, mean of 2 directions", "all, mean of 3 directions", "nrefs:1|case:mixed"):
        assert words in result.stdout
    assert "xa-en" not in result.stdout
    assert "→EN" not in result.stdout, "the mean of one direction"


@pytest.mark.parametrize(
    ("directions", "words"),
    [
        ("en-xc", "has no test text in 'xc', no file such as test.xc.txt; it has en, xb, zz."),
        ("xa-en,en-xb", "has no test text in 'xa', no file such as test.xa.txt"),
        ("to-xc", "to-xc: "),
        ("en-zz", "neither the base nor a pack knows 'zz', though "),
        ("en-qq", "'qq' is not a language here"),
    ],
)
def test_what_the_corpus_lacks_is_told_apart_from_what_no_one_knows(
    evaluate, tmp_path: Path, toy_corpus: Path, directions: str, words: str
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name, other in (("en", "en"), ("xb", "xb"), ("xa", "zz")):
        shutil.copy(toy_corpus / f"test.{name}.txt", corpus / f"test.{other}.txt")
    result = evaluate("-c", str(corpus), "-d", directions)
    assert result.code == 1
    assert words in result.stderr


def test_a_file_is_no_folder_for_scores(evaluate, tmp_path: Path) -> None:
    (tmp_path / "clean.el").touch()
    result = evaluate("-d", "en-xa", "-n", "1", "-o", str(tmp_path / "clean.el"))
    assert result.code == 1
    assert "clean.el is a file" in result.stderr


@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
def test_a_corpus_is_no_folder_for_scores(evaluate, tmp_path: Path, toy_corpus: Path, fresh: list[str]) -> None:
    corpus = Path(shutil.copytree(toy_corpus, tmp_path / "corpus"))
    (corpus / "report.json").write_text("{}", encoding="utf-8")
    before = sorted(path.name for path in corpus.iterdir())
    result = evaluate("-c", str(corpus), "-d", "en-xa", "-n", "1", "-o", str(corpus), *fresh)
    assert (result.code, result.stdout) == (1, "")
    assert f"graftmt: {corpus} is not empty and not an evaluation" in result.stderr
    assert sorted(path.name for path in corpus.iterdir()) == before


def test_only_languages_of_both_the_base_and_the_corpus_count(evaluate, tmp_path: Path, toy_corpus: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("en", "xb"):
        shutil.copy(toy_corpus / f"test.{name}.txt", corpus)
    shutil.copy(toy_corpus / "test.xa.txt", corpus / "test.zz.txt")
    result = evaluate("-c", str(corpus), "-d", "multi-parallel", "-n", "2", "--json")
    assert set(json.loads(result.stdout)["directions"]) == {"en-xb", "xb-en"}
    (corpus / "test.xb.txt").unlink()
    result = evaluate("-c", str(corpus), "-d", "multi-parallel")
    assert result.code == 1
    assert "1 in common, where translation needs 2" in result.stderr


def test_lines_without_text_on_both_sides_are_left_out(evaluate, tmp_path: Path, toy_corpus: Path) -> None:
    corpus = Path(shutil.copytree(toy_corpus, tmp_path / "corpus"))
    lines = (corpus / "test.xa.txt").read_text(encoding="utf-8").splitlines()
    (corpus / "test.xa.txt").write_text("\n".join(["", "  ", *lines[2:]]) + "\n", encoding="utf-8")
    report = json.loads(evaluate("-c", str(corpus), "-d", "en-xa,en-xb", "-n", "5", "--json").stdout)
    assert {name: scores["lines"] for name, scores in report["directions"].items()} == {"en-xa": 3, "en-xb": 5}


def test_a_line_too_long_is_named_by_its_place_in_the_corpus(evaluate, tmp_path: Path, toy_corpus: Path) -> None:
    corpus = Path(shutil.copytree(toy_corpus, tmp_path / "corpus"))
    lines = (corpus / "test.xa.txt").read_text(encoding="utf-8").splitlines()
    (corpus / "test.xa.txt").write_text("\n".join(["", lines[1], lines[2] * 500, *lines[3:]]) + "\n", encoding="utf-8")
    result = evaluate("-c", str(corpus), "-d", "en-xb,xa-en")
    assert result.code == 1
    assert "line 3 of the 'xa' text of 'test'" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--split", "tset"], "no files of the split 'tset'"),
        (["--split", "tset"], "splits seen there: test, train, valid"),
        (["-c", "nowhere"], "there is no corpus folder nowhere"),
        (["-d", "en-xd"], "'xd' is not a language here"),
        (["-d", "en-en"], "goes from a language to itself"),
        (["--pivot", "fr"], "'fr' is not a language here"),
        (["-d", "en-xa", "--tokenize", "13b"], "did you mean '13a'"),
        (["-d", "en-xa", "--tokenize", "spm:nowhere.model"], "spm:nowhere.model: the SentencePiece model cannot be read"),
        (["-d", "en-xa", "--new", "xq"], "--new xq: this is not a language here"),
    ],
)
def test_what_cannot_be_meant_is_one_paragraph_and_exit_code_1(evaluate, options: list[str], words: str) -> None:
    result = evaluate(*options)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_stopped_and_started_again_only_the_rest_is_translated(evaluate, tmp_path: Path) -> None:
    output = tmp_path / "scores"
    command = ("-d", "en-xa,xa-en", "-n", "4", "-o", str(output), "--no-off-target")
    whole = evaluate(*command, "--json").stdout
    (output / "test.en-xa.txt").unlink()
    (output / "report.json").unlink()
    kept = (output / "test.xa-en.txt").stat().st_mtime_ns
    again = evaluate(*command, "--json")
    assert (again.code, again.stdout) == (0, whole)
    assert (output / "test.xa-en.txt").stat().st_mtime_ns == kept
    other = evaluate(*command, "--beam", "2")
    assert (other.code, other.stdout) == (1, "")
    assert "begun otherwise: beam was 1, is 2" in other.stderr
    assert evaluate(*command, "--beam", "2", "--fresh").code == 0


def test_off_target_rates_are_shown_with_what_they_are_read_against(evaluate) -> None:
    pytest.importorskip("py3langid")
    result = evaluate("-d", "xa-en,en-xa", "-n", "5")
    assert "off-target" in result.stdout
    assert "the judge's own error" in result.stdout
    assert "off-target rate of xa cannot be told" in result.stdout
    assert "off-target" not in evaluate("-d", "xa-en", "-n", "5", "--no-off-target").stdout


def test_the_heat_maps_lie_beside_the_report(evaluate, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    evaluate("-d", "xa-en,en-xa", "-n", "2", "-o", str(tmp_path / "scores"), "--no-off-target")
    assert {"chrf.png", "bleu.png"} <= {path.name for path in (tmp_path / "scores").iterdir()}


# Packs


@pytest.fixture
def with_packs(graftmt: Callable[..., Any], grafted, graft_corpus: Path) -> Callable[..., Any]:
    """`with_packs("{el},{uk}", "-d", "el-en", …)`, four lines a direction."""

    def run(packs: str, *options: str) -> Any:
        chosen = ("-b", str(grafted.base), "-p", packs.format(**grafted._asdict()), "-c", str(graft_corpus))
        return graftmt("evaluate", *chosen, "-q", "--beam", "1", "-n", "4", *options)

    return run


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("to-en", {"el-en", "fr-en", "ru-en"}),
        ("from-el", {"el-en", "el-fr", "el-ru", "el-uk"}),
        ("english-centric", {"el-en", "en-uk", "en-fr", "fr-en", "en-ru", "ru-en"}),
        ("el-uk,en-uk", {"el-uk", "en-uk"}),
    ],
)
def test_a_view_means_what_base_and_packs_can_translate(with_packs, grafted, view: str, expected: set[str]) -> None:
    result = with_packs("{el},{uk}", "-d", view, "--json")
    assert (result.code, result.stderr) == (0, "")
    report = json.loads(result.stdout)
    assert report["directions"].keys() == expected
    assert report["packs"] == {
        "el-source": load_pack(grafted.el).fingerprint,
        "uk-target": load_pack(grafted.uk).fingerprint,
    }


def test_a_direction_that_is_named_and_not_possible_is_an_error(with_packs) -> None:
    for directions in ("uk-el", "el-uk,uk-el"):
        result = with_packs("{el},{uk}", "-d", directions)
        assert (result.code, result.stdout) == (1, "")
        assert "'uk' is installed as a target only" in result.stderr


@pytest.mark.slow
def test_through_another_language_the_table_says_so(with_packs) -> None:
    assert "test, beam 1, through en" in with_packs("{el},{uk}", "-d", "el-uk", "--through", "en").stdout
    report = json.loads(with_packs("{el},{uk}", "-d", "el-uk,el-en", "--through", "en", "--json").stdout)
    direct = json.loads(with_packs("{el},{uk}", "-d", "el-en", "--json").stdout)
    assert report["through"] == "en"
    assert report["directions"]["el-en"] == direct["directions"]["el-en"]  # leads to it already
    unknown = with_packs("{el}", "-d", "el-fr", "--through", "it")
    assert unknown.code == 1
    assert "'it' is neither in the base" in unknown.stderr


@pytest.mark.slow
def test_of_several_packs_for_a_language_one_is_named(with_packs) -> None:
    both = "a={el},b={other},{uk}"
    ambiguous = with_packs(both, "-d", "el-en,en-fr")
    assert ambiguous.code == 1
    assert "has several packs: a, b. Say which one with --source-pack" in ambiguous.stderr
    found = json.loads(with_packs(both, "-d", "el-en,en-fr,en-uk", "--source-pack", "b", "--json").stdout)["directions"]
    alone = json.loads(with_packs("{other},{uk}", "-d", "el-en,en-fr,en-uk", "--json").stdout)["directions"]
    assert found == alone
    misspelt = with_packs(both, "-d", "el-en", "--target-pack", "bb")
    assert misspelt.code == 1
    assert "there is no target pack 'bb'" in misspelt.stderr


@pytest.mark.slow
def test_averages_of_new_languages_are_groups_of_their_own(with_packs) -> None:
    report = json.loads(with_packs("{el},{uk}", "-d", "multi-parallel", "--json").stdout)
    assert report["new"] == ["el", "uk"]
    counts = {name: average["directions"] for name, average in report["averages"].items()}
    assert counts == {
        "to_pivot": 2,
        "from_pivot": 2,
        "non_pivot": 2,
        "new_to_pivot": 1,
        "new_to_others": 2,
        "pivot_to_new": 1,
        "others_to_new": 2,
        "new_to_new": 1,
        "all": 13,
    }
    assert set(report["averages_by_language"]["el"]) == {"new_to_pivot", "new_to_others", "all"}
    one = report["directions"]["el-en"]["chrf"]
    assert report["averages"]["new_to_pivot"]["chrf"] == report["averages_by_language"]["el"]["new_to_pivot"]["chrf"] == one
    shown = with_packs("{el},{uk}", "-d", "el-en,el-fr,el-ru").stdout
    for words in ("X→/EN, mean of 2 directions", "all, mean of 3 directions", "X: el, uk"):
        assert words in shown
    assert "X→EN" not in shown, "the mean of one direction"


@pytest.mark.parametrize("moment", ["translating", "before the report"])
def test_a_folder_that_is_removed_in_mid_work_is_an_error(
    evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    from graftmt.assessment import assess
    from graftmt.assessment.direction_lines import translate_directions

    folder = tmp_path / "scores"

    def remove(*arguments: Any, **options: Any) -> Any:
        found = translate_directions(*arguments, **options)
        shutil.rmtree(folder)
        return found

    def all_but_the_folder(self: Any, directions: Any) -> Any:
        found = finish(self, directions)
        shutil.rmtree(folder)
        return found

    finish = assess._Work.all
    if moment == "translating":
        monkeypatch.setattr(assess, "translate_directions", remove)
    else:
        monkeypatch.setattr(assess._Work, "all", all_but_the_folder)
    result = evaluate("-d", "en-xa", "-n", "1", "-o", str(folder))
    assert (result.code, result.stdout) == (1, "")
    assert f"{folder} was removed" in result.stderr
    assert not folder.exists()
