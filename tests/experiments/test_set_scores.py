"""Scores of models in a row: Chinese that was segmented for the models is scored as people write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graftmt.data import Corpus, Direction
from graftmt.documents import write_json
from graftmt.experiments.profiles import TestSet, load_profile
from graftmt.experiments.set_scores import score_in_hops

CHINESE = ["他 有 两台 手机 。", "文件 打开 了 。"]


class Says:
    """Stands for a model that has learned segmented Chinese by heart."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.base: Any = type("Base", (), {"model": type("Model", (), {"device": type("Device", (), {"type": "cpu"})})})

    def translate(self, texts: list[str], **_: Any) -> list[str]:
        assert len(texts) == len(self.lines)
        return self.lines


@pytest.mark.parametrize("marked", [True, False])
def test_chinese_is_joined_where_the_test_set_was_segmented(tmp_path: Path, marked: bool) -> None:
    texts = {"ar": ["a b", "c d"], "en": ["He has two phones.", "The file is open."], "zh": CHINESE}
    for language, lines in texts.items():
        (tmp_path / f"test.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if marked:
        write_json(tmp_path / "corpus.json", {"segmented": ["zh"]})
    profile = load_profile("paracrawl", ["evaluation.sets.own={split: test, tokenize: char}"])
    assert profile.evaluation.sets["own"] == TestSet(split="test", tokenize="char")
    steps: Any = [(Says(texts["en"]), Direction("ar", "en")), (Says(CHINESE), Direction("en", "zh"))]
    found = score_in_hops(profile, "own", Corpus.open(tmp_path, "test"), steps)
    assert [row.value for row in found.scores if row.metric == "chrf"] == [pytest.approx(100)]
    expected = ["他有两台手机。", "文件打开了。"] if marked else CHINESE
    assert found.translations["ar-zh"] == expected
