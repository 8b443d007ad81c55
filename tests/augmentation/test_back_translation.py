"""Chunks: their translations do not depend on when, where or in what order they are made, and nothing spoils them."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from graftmt.augmentation.back_translation import (
    BackTranslator,
    Teacher,
    back_translate,
    is_copy,
    missing_chunks,
    search_options,
)
from graftmt.augmentation.chunk_workers import LOCAL
from graftmt.augmentation.chunks import Chunk, Work, differences
from graftmt.augmentation.line_choice import Plan, Spec, make_plan
from graftmt.data import Corpus
from graftmt.errors import GraftError, LanguageError
from graftmt.translation_requests import LONGEST_SOURCE
from graftmt.translator import Translator

SIZE = 16


@pytest.fixture
def plan(corpus: Path) -> Plan:
    text = Corpus.open(corpus, "train")
    spec = Spec.parse("50-bt")
    return make_plan(spec, text, new=["el"], pivot="en", languages=["fr", "ru"], named=False, seed=1)


@pytest.fixture
def translate(demo_base: Path) -> BackTranslator:
    return BackTranslator(Teacher(base=demo_base), "en", search_options("cpu", beam=2))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_the_order_of_chunks_does_not_matter(plan: Plan, corpus: Path, translate: BackTranslator, tmp_path: Path) -> None:
    text = Corpus.open(corpus, "train")
    chunks = [chunk for (chunk,) in missing_chunks(plan, text, Work(tmp_path), SIZE)]
    for language in ("fr", "ru"):
        assert [len(chunk.lines) for chunk in chunks if chunk.language == language] == [16, 16, 16, 2]
    alone = [[chunk] for chunk in chunks]
    orders = [alone, alone[::-1], random.Random(1).sample(alone, len(alone)), [chunks]]
    for number, order in enumerate(orders):
        back_translate(order, translate, Work(tmp_path / str(number)), LOCAL)
    assert all(contents(tmp_path / "0") == contents(tmp_path / str(number)) for number in (1, 2, 3))
    lines = list(text.lines("en"))
    assert all(lines[line] == text for chunk in chunks for line, text in zip(chunk.lines, chunk.texts, strict=True))


def test_they_are_the_translators_translations(translate: BackTranslator, corpus: Path) -> None:
    texts = tuple(Corpus.open(corpus, "train").lines("en"))[:10]
    (done,) = translate([Chunk("fr", 0, tuple(range(10)), texts)])
    expected = Translator(translate.teacher.base).translate(texts, source="en", target="fr", options=translate.options)
    for line, text in enumerate(done.texts):
        assert text == ("" if line in done.unfinished else expected[line])


def test_a_worker_gets_the_function_without_the_model(translate: BackTranslator) -> None:
    chunk = Chunk("fr", 0, (0,), ("3 days ago",))
    before = translate([chunk])
    sent = pickle.dumps(translate)
    assert len(sent) < 2000
    assert pickle.loads(sent)([chunk]) == before


def test_only_what_is_missing_or_damaged_is_made_again(
    plan: Plan, corpus: Path, translate: BackTranslator, tmp_path: Path
) -> None:
    text, work = Corpus.open(corpus, "train"), Work(tmp_path)
    back_translate(missing_chunks(plan, text, work, SIZE), translate, work, LOCAL)
    whole = contents(tmp_path)
    assert list(missing_chunks(plan, text, work, SIZE)) == []
    (tmp_path / "fr-000001.json").unlink()
    (tmp_path / "ru-000000.json").write_bytes(whole["ru-000000.json"][:100])
    (tmp_path / "ru-000002.json").write_text('{"lines": [1], "texts": []}')
    heard: list[int] = []
    missing = list(missing_chunks(plan, text, work, SIZE, heard.append))
    assert {(chunk.language, chunk.number) for (chunk,) in missing} == {("fr", 1), ("ru", 0), ("ru", 2)}
    assert heard == [100 - 48]
    back_translate(missing, translate, work, LOCAL)
    assert contents(tmp_path) == whole


def test_lines_too_long_for_the_teacher_are_left_out_alone(translate: BackTranslator) -> None:
    text = "2 days " * LONGEST_SOURCE
    first = Chunk("ru", 4, (3, 5), ("3 days ago", text))
    before, done = translate([first, Chunk("fr", 0, (3, 5, 8), ("3 days ago", text, "5 kilometers"))])
    assert (before.language, before.number, before.too_long) == ("ru", 4, (5,))
    assert (done.language, done.too_long) == ("fr", (5,))
    assert done.texts[1] == ""
    (alone,) = translate([Chunk("fr", 0, (3, 8), ("3 days ago", "5 kilometers"))])
    assert (done.texts[0], done.texts[2]) == alone.texts


class Counted(Corpus):
    """How often its text is read."""

    def lines(self, language: str) -> Iterator[str]:
        READ.append(language)
        return super().lines(language)


READ: list[str] = []


@pytest.mark.parametrize("together", [0, 40, 1000])
def test_the_text_is_read_once_and_chunks_come_together(plan: Plan, corpus: Path, tmp_path: Path, together: int) -> None:
    READ.clear()
    text, work = Counted.open(corpus, "train"), Work(tmp_path)
    groups = list(missing_chunks(plan, text, work, SIZE, together=together))
    assert READ == ["en"]
    assert max(sum(len(chunk.lines) for chunk in group) for group in groups) == {0: 16, 40: 36, 1000: 100}[together]
    chunks = [chunk for group in groups for chunk in group]
    lines = list(text.lines("en"))
    assert sorted(line for chunk in chunks for line in chunk.lines) == sorted([*plan.lines("fr"), *plan.lines("ru")])
    assert all(lines[line] == text for chunk in chunks for line, text in zip(chunk.lines, chunk.texts, strict=True))
    assert {(chunk.language, chunk.number) for chunk in chunks} == {(name, n) for name in ("fr", "ru") for n in range(4)}


def test_chunks_stay_together_whatever_is_done_of_them(
    plan: Plan, corpus: Path, translate: BackTranslator, tmp_path: Path
) -> None:
    text, work = Corpus.open(corpus, "train"), Work(tmp_path)
    groups = list(missing_chunks(plan, text, work, SIZE, together=40))
    assert len(groups) > 2
    back_translate(groups, translate, work, LOCAL)
    assert list(missing_chunks(plan, text, work, SIZE, together=40)) == []
    gone = groups[1][-1]
    (tmp_path / f"{gone.language}-{gone.number:06}.json").unlink()
    assert list(missing_chunks(plan, text, work, SIZE, together=40)) == [groups[1]]


@pytest.mark.parametrize(
    ("text", "source", "copy"),
    [("Paris", "paris ", True), ("3.14", "3.14", False), ("Genève", "Geneva", False), ("", "", False)],
)
def test_copies(text: str, source: str, copy: bool) -> None:
    assert is_copy(text, source) is copy


def test_a_teacher_has_to_know_the_languages(demo_base: Path) -> None:
    teacher = Teacher(base=demo_base)
    teacher.check("en", ["fr", "ru"])
    with pytest.raises(LanguageError, match=r"'it'.*--teacher"):
        teacher.check("en", ["fr", "it"])
    with pytest.raises(LanguageError, match="cannot read 'el'"):
        teacher.check("el", ["fr"])


def test_other_work_is_refused_with_what_differs(tmp_path: Path) -> None:
    work = Work(tmp_path)
    facts = {"beam": 1, "teacher": {"fingerprint": "a" * 64}, "text": {"train.en": "1", "train.el": "2"}}
    work.begin(facts)
    work.begin(facts)
    (tmp_path / ".fr-000000.json.123456789012.tmp").write_text("half")
    work.begin(facts)
    assert not list(tmp_path.glob("*.tmp")) and not list(tmp_path.glob(".*.tmp"))
    changed = {"beam": 5, "teacher": {"fingerprint": "b" * 64}, "text": {"train.en": "3"}}
    with pytest.raises(GraftError, match="--fresh") as caught:
        work.begin(changed)
    assert "beam was 1, is 5" in str(caught.value)
    assert "teacher fingerprint was aaaaaaaaaaaaaaaa…, is bbbbbbbbbbbbbbbb…" in str(caught.value)
    assert differences(facts, changed)[-2:] == ["train.en has changed", "train.el was removed"]
