"""An evaluation gives the translator's own scores, and goes on where it was stopped."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graftmt.assessment import assess, scoring_pool
from graftmt.assessment.assess import AssessOptions, chunks, segmented_languages
from graftmt.assessment.direction_lines import DirectionLines, direction_lines, evaluate_directions, translate_directions
from graftmt.assessment.evaluation_folder import EvaluationFolder, changes_in_words
from graftmt.assessment.score_report import document
from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions
from graftmt.errors import ConfigError, GraftError, LanguageError
from graftmt.evaluation import joined
from graftmt.model import ModelConfig
from graftmt.text import Tokenizer, train_subwords
from graftmt.translator import Translator


class Stopped(Exception):
    """Stands for a kill."""


@pytest.fixture
def translated(toy_translator: Translator, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """Hears which directions are translated, chunk by chunk; begun with `["stop"]`, it stops the third chunk."""
    heard: list[list[str]] = []

    def listen(translator: Translator, found: list[DirectionLines], **options: Any) -> list[list[str]]:
        if len(heard) == 3 and heard[0] == ["stop"]:
            raise Stopped
        heard.append([str(one.direction) for one in found])
        return translate_directions(translator, found, **options)

    monkeypatch.setattr(assess, "translate_directions", listen)
    yield heard


def read(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*.*") if path.suffix in (".txt", ".json")}


def test_scores_are_those_that_the_translator_gives(assessed, toy_translator: Translator, toy_corpus: Path) -> None:
    found = assessed(None)
    options = SearchOptions(beam=1)
    peer = evaluate_directions(
        toy_translator,
        Corpus.open(toy_corpus, "test"),
        [Direction(*pair) for pair in found.scores.pairs],
        lines=6,
        options=options,
    )
    assert found.scores == joined(evaluation.scores for evaluation in peer)
    assert len(peer) == 12


def test_stopped_it_goes_on_and_ends_as_if_it_had_not_been(assessed, tmp_path: Path, translated: list[list[str]]) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    small = {"batch_tokens": 3}  # so that a few directions fill a chunk
    assessed(whole, **small)
    sizes = [len(chunk) for chunk in translated]
    assert len(sizes) >= 4
    translated[:] = [["stop"]]
    with pytest.raises(Stopped):
        assessed(cut, **small)
    done = {path.name: path.stat().st_mtime_ns for path in cut.glob("test.*.txt")}
    assert len(done) == sum(sizes[:2])
    assert not (cut / "report.json").exists()
    translated.clear()
    found = assessed(cut, **small)
    assert [len(chunk) for chunk in translated] == sizes[2:]
    assert not {f"test.{name}.txt" for chunk in translated for name in chunk} & done.keys()
    assert found.translated == sum(sizes[2:])
    assert {name: (cut / name).stat().st_mtime_ns for name in done} == done
    assert read(cut) == read(whole)


def test_nothing_is_done_twice(assessed, tmp_path: Path, translated: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    assessed(tmp_path, "en-xa,xa-en")
    before = read(tmp_path)
    monkeypatch.setattr(scoring_pool, "score_direction", None)  # would fail
    again = assessed(tmp_path, "en-xa,xa-en")
    assert (len(translated), again.translated) == (1, 0)
    assert read(tmp_path) == before


def test_a_translation_that_is_missing_or_cut_short_is_made_again(assessed, tmp_path: Path, translated: list) -> None:
    assessed(tmp_path)
    before = read(tmp_path)
    (tmp_path / "test.en-xa.txt").unlink()
    whole = (tmp_path / "test.xb-xc.txt").read_text(encoding="utf-8")
    (tmp_path / "test.xb-xc.txt").write_text(whole[: len(whole) // 2], encoding="utf-8")
    damaged = (tmp_path / "test.xc-xb.txt").read_text(encoding="utf-8")
    (tmp_path / "test.xc-xb.txt").write_text(damaged.replace("а", "о"), encoding="utf-8")  # as long as before
    (tmp_path / "scores" / "test.xa-en.json").write_text("{", encoding="utf-8")
    translated.clear()
    assessed(tmp_path)
    assert translated == [["en-xa", "xb-xc", "xc-xb"]]
    assert read(tmp_path) == before


def test_scored_otherwise_it_need_not_be_translated_again(assessed, tmp_path: Path, translated: list) -> None:
    assessed(tmp_path, "en-xa,xa-en")
    found = assessed(tmp_path, "en-xa,xa-en", tokenize="char", pivot="xa", batch_tokens=100)
    assert (len(translated), found.translated) == (1, 0)
    peer = assessed(None, "en-xa,xa-en", tokenize="char", pivot="xa")
    assert found.scores == peer.scores
    assert ["tok:char" in one for one in found.scores.signatures("bleu")] == [True]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"beam": 2}, "beam was 1, is 2"),
        ({"lines": 5}, "lines was 6, is 5"),
        ({"directions": "en-xa"}, "directions"),
        ({"through": "en"}, "through was None, is en"),
    ],
)
def test_another_evaluation_is_not_mixed_with_the_one_that_is_there(
    assessed, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    settings = {"directions": "xa-xb,xb-xa"}
    assessed(tmp_path, **settings)
    before = read(tmp_path)
    with pytest.raises(GraftError, match=f"begun otherwise: .*{words}.* --fresh"):
        assessed(tmp_path, **{**settings, **changes})
    assert read(tmp_path) == before


def test_text_that_changed_is_another_evaluation(assessed, tmp_path: Path, toy_corpus: Path) -> None:
    corpus = Path(shutil.copytree(toy_corpus, tmp_path / "corpus"))
    assessed(tmp_path / "scores", "en-xa", corpus=corpus)
    lines = (corpus / "test.xa.txt").read_text(encoding="utf-8").splitlines()
    (corpus / "test.xa.txt").write_text("\n".join([*lines[1:], lines[0]]) + "\n", encoding="utf-8")
    with pytest.raises(GraftError, match=r"text\.xa changed"):
        assessed(tmp_path / "scores", "en-xa", corpus=corpus)


def test_fresh_starts_over_and_leaves_other_files_alone(assessed, tmp_path: Path, translated: list) -> None:
    assessed(tmp_path, "en-xa,xa-en")
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assessed(tmp_path, "en-xa", beam=2, fresh=True)
    assert translated == [["en-xa", "xa-en"], ["en-xa"]]
    assert not (tmp_path / "test.xa-en.txt").exists(), "of the evaluation before"
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "name", ["test.en-xa.txt", "report.md", "report.json", "lines/test.en.txt", "notes.txt", ".hidden", "evaluation.json"]
)
def test_a_folder_of_others_stays_as_it_is(assessed, tmp_path: Path, translated: list, name: str, fresh: bool) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('{"accuracy": 1}', encoding="utf-8")
    with pytest.raises(GraftError, match=f"{tmp_path} is not empty and not an evaluation"):
        assessed(tmp_path, "en-xa,xa-en", fresh=fresh)
    assert (tmp_path / name).read_text(encoding="utf-8") == '{"accuracy": 1}'
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]
    assert not translated


@pytest.mark.parametrize("fresh", [False, True])
def test_a_corpus_stays_one(assessed, tmp_path: Path, toy_corpus: Path, fresh: bool) -> None:
    corpus = Path(shutil.copytree(toy_corpus, tmp_path / "corpus"))
    with pytest.raises(GraftError, match="is not empty and not an evaluation"):
        assessed(corpus, "en-xa", corpus=corpus, fresh=fresh)
    assert {path.name for path in corpus.iterdir()} == {path.name for path in toy_corpus.iterdir()}


@pytest.mark.parametrize("fresh", [False, True])
def test_killed_at_its_very_beginning_it_is_known_for_ours(
    assessed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / ".lock").touch()
    (killed / ".evaluation.json.4711.tmp").write_text('{"form', encoding="utf-8")

    def stop(*_: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(EvaluationFolder, "store_lines", stop)
        with pytest.raises(Stopped):
            assessed(killed, "en-xa", fresh=fresh)
    assert {path.name for path in killed.iterdir()} == {".lock", ".evaluation.json.4711.tmp", "evaluation.json"}
    assert assessed(killed, "en-xa", fresh=fresh).translated == 1


def test_processes_of_their_own_give_the_same_scores(assessed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = assessed(tmp_path / "alone", "en-xa,xa-en", off_target=True)
    monkeypatch.setattr(scoring_pool, "FEWEST_LINES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert assessed(tmp_path / "many", "en-xa,xa-en", off_target=True).scores == alone.scores
    assert read(tmp_path / "many") == read(tmp_path / "alone")


def test_chunks_fill_batches_and_keep_packs_together(toy_corpus: Path) -> None:
    corpus = Corpus.open(toy_corpus, "test")
    names = [("en", "xa"), ("xc", "en"), ("en", "xb"), ("xa", "en"), ("xc", "xa")]
    lines = direction_lines(corpus, [Direction(*name) for name in names])
    search = SearchOptions(beam=1, batch_tokens=10_000)
    (chunk,) = chunks(lines, ("en", "xa", "xb"), search)
    assert [tuple(one.direction) for one in chunk] == [*names[:1], *names[2:4], names[1], names[4]]
    one_each = list(chunks(lines, ("en", "xa", "xb"), SearchOptions(beam=1, batch_tokens=1)))
    assert [one for (one,) in one_each] == chunk


# New languages


def test_new_languages_are_those_of_the_packs_or_those_named(assessed) -> None:
    assert assessed(None, "en-xa").new == ()
    found = assessed(None, "en-xa,xb-xc,xc-en", new=("xc", "xb"))
    assert set(document(found)["averages"]) == {"from_pivot", "new_to_new", "new_to_pivot", "all"}
    by_language = document(found)["averages_by_language"]
    assert {name: set(groups) for name, groups in by_language.items()} == {"xc": {"new_to_pivot", "all"}}
    assert found.languages == ("en", "xa", "xc", "xb")
    with pytest.raises(LanguageError, match="--new xd: "):
        assessed(None, "en-xa", new=("xd",))
    with pytest.raises(LanguageError, match="--new en: it is the pivot"):
        assessed(None, "en-xa", new=("en",))


# Chinese


CHINESE = ["我们 在 学习 机器 翻译 。", "他 有 很多 书 。", "今天 天气 很 好 ， 我们 去 公园 。", "你 喜欢 喝茶 吗 ？"]
ENGLISH = ["we learn machine translation.", "he has many books.", "fine weather today, off to the park.", "do you like tea?"]


@pytest.fixture
def segmented(tmp_path: Path) -> Path:
    """A corpus as `graftmt prepare segment` leaves it."""
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "test.zh.txt").write_text("\n".join(CHINESE) + "\n", encoding="utf-8")
    (folder / "test.en.txt").write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    (folder / "corpus.json").write_text(json.dumps({"segmented": ["zh"]}), encoding="utf-8")
    return folder


@pytest.fixture
def chinese() -> Translator:
    """With random weights."""
    subwords = train_subwords({"zh": CHINESE, "en": ENGLISH}, merges=20, min_character_count=1)
    shape = ModelConfig(model_dim=16, ffn_dim=16, heads=2, encoder_layers=1, decoder_layers=1)
    return Translator(Base.create(shape, Tokenizer(subwords, ("en", "zh"), "source")))


def test_a_corpus_that_was_segmented_is_scored_without_the_spaces(
    assessed: Callable[..., Any], chinese: Translator, segmented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by_the_model: list[str] = []

    def perfect(translator: Translator, found: list[DirectionLines], **options: Any) -> list[list[str]]:
        read_by_the_model.extend(line for one in found for line in one.sources)
        return [one.references for one in found]

    monkeypatch.setattr(assess, "translate_directions", perfect)
    found = assessed(tmp_path / "joined", "en-zh,zh-en", corpus=segmented, translator=chinese, tokenize="none")
    assert read_by_the_model == [*ENGLISH, *CHINESE], "what goes into the model stays segmented"
    assert found.facts["desegmented"] == ["zh"]
    expected = [line.replace(" ", "") for line in CHINESE]
    assert (tmp_path / "joined" / "test.en-zh.txt").read_text(encoding="utf-8").splitlines() == expected
    assert (tmp_path / "joined" / "lines" / "test.zh.txt").read_text(encoding="utf-8").splitlines() == expected
    assert found.scores.known("chrf") == [100, 100]
    # Words without spaces have no four-grams: BLEU, here without a tokeniser, sees that they are gone on both sides.
    assert found.scores.by_pair()["en", "zh"].bleu == 0

    spaced = assessed(
        tmp_path / "spaced", "en-zh,zh-en", corpus=segmented, translator=chinese, tokenize="none", desegment=False
    )
    assert spaced.facts["desegmented"] == []
    assert (tmp_path / "spaced" / "test.en-zh.txt").read_text(encoding="utf-8").splitlines() == CHINESE
    assert spaced.scores.by_pair()["en", "zh"].bleu == 100
    texts = found.texts[Direction("en", "zh")], spaced.texts[Direction("en", "zh")]
    assert texts[0][0] == texts[1][0] and texts[0][1] != texts[1][1]


def test_without_a_word_in_corpus_json_it_is_a_choice(segmented: Path) -> None:
    (segmented / "corpus.json").unlink()
    corpus = Corpus.open(segmented, "test")
    directions = (Direction("en", "zh"),)
    assert segmented_languages(corpus, AssessOptions(directions=directions)) == ()
    assert segmented_languages(corpus, AssessOptions(directions=directions, desegment=True)) == ("zh",)


def test_other_directions_are_one_change_however_many_they_are() -> None:
    before, now = ({"directions": [f"{way}{number}-en" for number in range(30)]} for way in "ab")
    assert changes_in_words(before, now) == ["directions changed"]
    assert changes_in_words({"directions": ["en-fr"], "packs": {}}, {"directions": ["fr-en"], "packs": {"el": "12"}}) == [
        "directions was ['en-fr'], is ['fr-en']",
        "packs.el was None, is 12",
    ]


def test_starting_over_needs_a_folder_to_start_over_in(assessed) -> None:
    with pytest.raises(ConfigError, match=r"--fresh .*\(-o\)"):
        assessed(None, "en-xa", fresh=True)


@pytest.mark.parametrize("harm", [{"directions": 7}, {"directions": ["en-xa", 7]}, {"split": None}, {"split": "../outside"}])
def test_a_damaged_description_is_named_and_nothing_outside_is_touched(assessed, tmp_path: Path, harm: dict[str, Any]) -> None:
    assessed(tmp_path / "scores", "en-xa")
    path, outside = tmp_path / "scores" / "evaluation.json", tmp_path / "outside.en-xa.txt"
    outside.write_text("mine", encoding="utf-8")
    before = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**before, **harm}), encoding="utf-8")  # with a checksum that no longer fits
    for signed in (True, False):
        if not signed:
            del before["checksum"]
            path.write_text(json.dumps({**before, **harm}), encoding="utf-8")
        with pytest.raises(GraftError, match=r"evaluation\.json is damaged"):
            assessed(tmp_path / "scores", "en-xa", fresh=True)
    assert outside.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("harm", [{"scores": 7}, {"scores": {}}, {"off_target": 7}, {"scores": None}])
def test_damaged_scores_are_made_again(assessed, tmp_path: Path, translated: list, harm: dict[str, Any]) -> None:
    assessed(tmp_path, "en-xa")
    before = read(tmp_path)
    path = tmp_path / "scores" / "test.en-xa.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    for signed in (True, False):
        if not signed:
            document.pop("checksum")
        path.write_text(json.dumps({**document, **harm}), encoding="utf-8")
        assessed(tmp_path, "en-xa")
        assert read(tmp_path) == before
    assert translated == [["en-xa"]]
