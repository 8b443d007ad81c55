"""Reports keep their translations: anyone can read them, score them, and make the report again from itself."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path

import pytest
from noisy_results import LINES, pairs, source
from sacrebleu.metrics.chrf import CHRF

from graftmt.errors import ConfigError, DataError
from graftmt.experiments.reporting import write_report
from graftmt.experiments.reporting.kept_texts import KeptTexts
from graftmt.experiments.reporting.stored_translations import StoredTranslations, TestLines


def rows(path: Path) -> list[list[str]]:
    """Read as by `xz -dc`, without graftmt."""
    with lzma.open(path, "rt", encoding="utf-8") as handle:
        return [json.loads(line) for line in handle]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_file_has_the_lines_with_text_on_both_sides_and_a_column_for_each_job(ran, tmp_path: Path) -> None:
    ran(7, source(0.6, 0.8))
    folder = ran(12, source(0.9, 0.2))
    _, written = write_report(folder, tmp_path / "out", tables=[2], figures=[])
    stored = tmp_path / "out" / "translations"
    assert stored in written
    assert sorted(path.name for path in stored.iterdir()) == [f"test.{name}.jsonl.xz" for name in ("el-de", "el-en", "el-fr")]
    header, *lines = rows(stored / "test.el-fr.jsonl.xz")
    assert header == {
        "format": 1,
        "set": "test",
        "source": "el",
        "target": "fr",
        "jobs": ["model-12-el-seed1", "model-7-el-seed1"],
        "lines": 80,
        "without_text": [4, 51],
    }
    numbers = pairs("el-fr")
    assert [line[:2] for line in lines] == [[LINES["el"][number], LINES["fr"][number]] for number in numbers]
    score = CHRF().corpus_score([line[3] for line in lines], [[line[1] for line in lines]]).score
    result = json.loads((folder / "results" / "model-7-el-seed1.json").read_text("utf-8"))
    assert result["scores"]["test"]["directions"]["el-fr"]["chrf"] == round(score, 3)
    assert "[Translations](translations)" in (tmp_path / "out" / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_a_report_of_a_report_is_the_same_and_compares_the_translations_again(ran, tmp_path: Path) -> None:
    for seed in (1, 2):
        ran(7, source(0.6, 0.8), seed=seed)
    ran(12, source(0.9, 0.2))
    folder = ran(103, source(0.9, 0.8))
    first, _ = write_report(folder, tmp_path / "first", figures=[])
    write_report(tmp_path / "first", tmp_path / "second", figures=[])
    made = files(tmp_path / "first")
    assert files(tmp_path / "second") == made and len([name for name in made if name.endswith(".xz")]) == 3

    (tmp_path / "first" / "comparisons.json").unlink()
    again, _ = write_report(tmp_path / "first", tmp_path / "third", figures=[])
    assert again.tested == first.tested and any(one.p is not None for one in again.tested)
    assert files(tmp_path / "third") == made

    shutil.rmtree(folder / "translations")  # an experiment that is tidied does not take them out of its report
    write_report(folder, tmp_path / "third", figures=[])
    assert files(tmp_path / "third") == made
    write_report(tmp_path / "third", tmp_path / "third", figures=[])
    assert files(tmp_path / "third") == made


def test_sets_of_the_last_checkpoint_and_what_a_base_does_between_its_languages_are_left_out(ran, tmp_path: Path) -> None:
    ran(4, {"fr-en": 0.7, "en-de": 0.7, "fr-de": 0.7}, languages=[], kind="model", trains="base")
    folder = ran(7, source(0.6, 0.8))
    path = folder / "results" / "model-7-el-seed1.json"
    document = json.loads(path.read_text("utf-8"))
    document["scores"]["test-last"] = {"set": "test-last", "settings": {"checkpoint": "last"}, **document["scores"]["test"]}
    path.write_text(json.dumps(document), encoding="utf-8")
    for one in (folder / "translations" / "model-7-el-seed1").iterdir():
        shutil.copy(one, one.with_name(one.name.replace("test.", "test-last.")))
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    names = {path.name.removesuffix(".jsonl.xz") for path in (tmp_path / "out" / "translations").iterdir()}
    assert names == {f"test.{name}" for name in ("el-en", "el-fr", "el-de", "fr-en", "en-de")}


def test_translations_can_be_left_out_and_are_not_lost_by_it(ran, graftmt, tmp_path: Path) -> None:
    folder, out = ran(7, source(0.6, 0.8)), tmp_path / "out"
    command = ["experiment", "report", "--results", str(folder), "-o", str(out), "--figures", "none", "--tables", "2"]
    assert graftmt(*command, "--no-translations").code == 0
    assert not (out / "translations").exists()
    assert "Translations" not in (out / "README.md").read_text("utf-8")
    assert graftmt(*command).code == 0
    (out / "translations" / "gone.el-en.jsonl.xz").write_bytes((out / "translations" / "test.el-en.jsonl.xz").read_bytes())
    assert graftmt(*command).code == 0
    assert not (out / "translations" / "gone.el-en.jsonl.xz").exists(), "of no result in this report"
    with pytest.raises(ConfigError, match="--no-translations"):
        write_report(folder, out, tables=[2], figures=[], translations=False)
    assert len(list((out / "translations").iterdir())) == 3
    write_report(folder, folder / "report", tables=[2], figures=[])
    assert not (folder / "report" / "translations").exists(), "they are next to it"


def test_some_translations_of_a_direction_are_not_stored(ran, tmp_path: Path) -> None:
    folder = ran(7, source(0.6, 0.8))
    kept = folder / "translations" / "model-7-el-seed1" / "test.el-en.txt"
    kept.write_text("a\nb\n", encoding="utf-8")
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    assert not (tmp_path / "out" / "translations" / "test.el-en.jsonl.xz").exists()


def test_translations_without_their_test_set_are_not_stored_and_the_rest_is(ran, tmp_path: Path) -> None:
    folder = ran(7, source(0.6, 0.8))
    (folder / "translations" / "lines" / "test.de.txt").unlink()
    (folder / "translations" / "lines" / "test.fr.txt").write_text("un\n", encoding="utf-8")  # of another corpus
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    assert [path.name for path in (tmp_path / "out" / "translations").iterdir()] == ["test.el-en.jsonl.xz"]


def test_a_report_in_place_of_the_experiment_does_not_take_its_plain_text_for_tables(ran) -> None:
    folder = ran(7, source(0.6, 0.8))
    write_report(folder, folder, tables=[2], figures=[])
    page = (folder / "README.md").read_text("utf-8")
    assert "[Results](results)" in page and "Translations" not in page


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Lines 1 and 3 of a test set of three, by two jobs."""
    lines = TestLines(numbers=(0, 2), of=3, sources=("ένα", "δύο"), references=("one\u2028", "two"))
    found = StoredTranslations(
        set_name="test.77ab01c3",
        source="el",
        target="en",
        lines=lines,
        translations={"b": ["1", "2"], "a": ["one", "to"]},
    )
    return found.write(tmp_path)


def test_what_is_stored_is_what_is_read(stored: Path, tmp_path: Path) -> None:
    found = StoredTranslations.read(stored)
    assert found.translations == {"a": ("one", "to"), "b": ("1", "2")}
    assert found.lines == TestLines(numbers=(0, 2), of=3, sources=("ένα", "δύο"), references=("one\u2028", "two"))
    before = stored.read_bytes()
    assert found.write(tmp_path).read_bytes() == before


def changed(content: bytes, old: bytes, new: bytes) -> bytes:
    text = lzma.decompress(content)
    assert old in text
    return lzma.compress(text.replace(old, new))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-9],
        lambda content: content[:40],
        lambda content: b"",
        lambda content: content[:60] + bytes([content[60] ^ 255]) + content[61:],
        lambda content: content + b"more",
        lambda content: lzma.compress(b""),
        lambda content: lzma.compress(b"[]\n"),
        lambda content: changed(content, '["ένα"'.encode(), b'["a", "b"'),
        lambda content: changed(content, '["ένα"'.encode(), b"[1"),
        lambda content: changed(content, b'"lines": 3', b'"lines": 4'),
        lambda content: changed(content, b'"lines": 3', b'"lines": 100000000000'),
        lambda content: changed(content, b'"jobs": ["a", "b"]', b'"jobs": ["a", "a"]'),
        lambda content: changed(content, b'"jobs": ["a", "b"]', b'"jobs": "ab"'),
        lambda content: changed(content, b'"set": ', b'"sets": '),
        lambda content: changed(content, b'"format": 1', b'"format": 2'),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(stored: Path, damage) -> None:
    stored.write_bytes(damage(stored.read_bytes()))
    with pytest.raises(DataError, match=r"test\.77ab01c3\.el-en\.jsonl\.xz"):
        StoredTranslations.read(stored)
    with pytest.raises(DataError, match=r"test\.77ab01c3\.el-en\.jsonl\.xz"):
        KeptTexts(stored.parent).check()


def test_a_report_with_a_damaged_file_is_not_made_again_without_it(ran, tmp_path: Path) -> None:
    write_report(ran(7, source(0.6, 0.8)), tmp_path / "out", tables=[2], figures=[])
    damaged = tmp_path / "out" / "translations" / "test.el-de.jsonl.xz"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(DataError, match="el-de"):
        write_report(tmp_path / "out", tmp_path / "again", tables=[2], figures=[])


def test_a_set_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    lines = TestLines(numbers=(), of=0, sources=(), references=())
    with pytest.raises(DataError, match="no name"):
        StoredTranslations(set_name="../test", source="el", target="en", lines=lines).write(tmp_path)
