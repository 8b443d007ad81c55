"""`graftmt prepare segment`: Chinese in words and back, every split, other languages as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graftmt.progress import PlainProgress


@pytest.fixture
def chinese_corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "valid"):
        (folder / f"{split}.zh_cn.txt").write_text("我们今天去北京。\n你好 world 2024年\n", encoding="utf-8")
        (folder / f"{split}.en.txt").write_text("We go to Beijing today.\nHello world 2024\n", encoding="utf-8")
    return folder


def test_chinese_is_segmented_and_joined_again(graftmt, chinese_corpus: Path, tmp_path: Path) -> None:
    words, joined = tmp_path / "words", tmp_path / "joined"
    result = graftmt("prepare", "segment", str(chinese_corpus), "-o", str(words), "--json")
    assert result.code == 0, result.stderr
    assert json.loads(result.stdout)["lines"] == {"train": 2, "valid": 2}
    text = (words / "train.zh_cn.txt").read_text(encoding="utf-8")
    assert "今天" in text.split() or "今天" in text.replace("\n", " ").split(" ")
    assert (words / "valid.en.txt").read_text(encoding="utf-8") == (chinese_corpus / "valid.en.txt").read_text(encoding="utf-8")
    assert graftmt("prepare", "segment", str(words), "-o", str(joined), "--undo").code == 0
    for name in ("train.zh_cn.txt", "valid.zh_cn.txt", "train.en.txt"):
        assert (joined / name).read_bytes() == (chinese_corpus / name).read_bytes()


@pytest.mark.parametrize("command", [("segment",), ("clean", "--no-language-id")])
@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_shown_unless_it_is_to_be_quiet(
    graftmt, chinese_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], quiet: bool
) -> None:
    for path in chinese_corpus.iterdir():
        path.write_text(path.read_text(encoding="utf-8") * 600, encoding="utf-8")
    monkeypatch.setattr(PlainProgress.__init__, "__defaults__", (0.0,))  # seconds between two lines
    rules = ("--rules=-duplicates",) if "clean" in command else ()
    result = graftmt("prepare", *command, *rules, str(chinese_corpus), "-o", str(tmp_path / "out"), *["-q"] * quiet)
    assert result.code == 0, result.stderr
    assert ("train: lines written: 1,000" in result.stderr) is not quiet


def test_a_corpus_without_chinese_is_an_error_that_names_what_it_has(graftmt, toy_corpus: Path, tmp_path: Path) -> None:
    result = graftmt("prepare", "segment", str(toy_corpus), "-o", str(tmp_path / "out"))
    assert result.code == 1
    assert "has no Chinese text: en, xa, xb, xc" in result.stderr
    assert not (tmp_path / "out").exists()


def test_translations_can_be_joined(graftmt, toy_base: Path) -> None:
    plain = graftmt("translate", "-b", str(toy_base), "-s", "en", "-t", "xa", "--desegment", stdin=b"bado\n")
    assert plain.code == 0, plain.stderr
    assert len(plain.stdout.splitlines()) == 1


def marked(folder: Path) -> list[str]:
    return json.loads((folder / "corpus.json").read_text(encoding="utf-8")).get("segmented", [])


@pytest.mark.parametrize(
    "command",
    [
        ("clean", "--rules", "whitespace"),
        ("split", "--valid", "1", "--test", "0"),
        ("align",),
        ("segment", "--languages", "en"),
    ],
)
def test_what_is_made_of_a_segmented_corpus_says_so_too(
    graftmt, chinese_corpus: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """`graftmt evaluate` takes the spaces out of what is marked."""
    words, made, plain = tmp_path / "words", tmp_path / "made", tmp_path / "plain"
    assert graftmt("prepare", "segment", str(chinese_corpus), "-o", str(words)).code == 0
    for corpus, output in ((words, made), (chinese_corpus, plain)):
        result = graftmt("prepare", command[0], str(corpus), *command[1:], "-o", str(output), "-q")
        assert result.code == 0, result.stderr
    english = ["en"] if "segment" in command else []
    assert marked(made) == [*english, "zh_cn"]
    assert marked(plain) == english


def test_undone_for_one_language_the_others_stay_marked(graftmt, chinese_corpus: Path, tmp_path: Path) -> None:
    words, undone = tmp_path / "words", tmp_path / "undone"
    assert graftmt("prepare", "segment", str(chinese_corpus), "-o", str(words), "--languages", "en,zh_cn").code == 0
    assert marked(words) == ["en", "zh_cn"]
    assert graftmt("prepare", "segment", str(words), "-o", str(undone), "--undo", "--languages", "en").code == 0
    assert marked(undone) == ["zh_cn"]


def test_a_corpus_of_training_text_alone_is_enough(graftmt, chinese_corpus: Path, tmp_path: Path) -> None:
    for path in chinese_corpus.glob("valid.*"):
        path.unlink()
    result = graftmt("prepare", "segment", str(chinese_corpus), "-o", str(tmp_path / "words"), "--json")
    assert result.code == 0, result.stderr
    assert json.loads(result.stdout)["lines"] == {"train": 2}
