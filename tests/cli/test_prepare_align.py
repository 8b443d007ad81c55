"""`graftmt prepare align`: from bilingual files to a corpus folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")


@pytest.fixture
def bilingual(tmp_path: Path) -> Path:
    pairs = {"fr": [("Yes", "Oui"), ("No", "Non"), ("Yes", "Si")], "de": [("No", "Nein"), ("Hello", "Hallo"), ("", "x")]}
    for language, lines in pairs.items():
        (tmp_path / language).mkdir()
        for side, code in enumerate(("en", language)):
            text = "".join(f"{pair[side]}\n" for pair in lines)
            (tmp_path / language / f"train.{code}.txt").write_text(text, encoding="utf-8")
    return tmp_path


def test_corpora_are_aligned(graftmt, bilingual: Path) -> None:
    output = bilingual / "aligned"
    result = graftmt(
        "prepare", "align", f"fr={bilingual / 'fr'}", f"de={bilingual / 'de'}", "-o", str(output), "--memory", "500MB"
    )
    assert result.code == 0, result.stderr
    assert "3 different en lines" in result.stdout
    texts = {code: (output / f"train.{code}.txt").read_text(encoding="utf-8").splitlines() for code in ("en", "fr", "de")}
    assert sorted(zip(*texts.values(), strict=True)) == [("Hello", "", "Hallo"), ("No", "Non", "Nein"), ("Yes", "Oui", "")]
    again = graftmt(
        "prepare", "align", str(bilingual / "de"), f"fr={bilingual / 'fr'}", "-o", str(output), "--min-languages", "3", "--json"
    )
    facts = json.loads(again.stdout)
    assert (facts["lines"], facts["left_out"], facts["resumed"]) == (1, 2, [])
    assert facts["corpora"]["fr"] == {"pairs": 3, "incomplete": 0, "different": 2, "lines": 1, "repeated": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fr={}/nowhere"], "there is no folder"),
        (["fr={}/fr", "--memory", "lots"], "expected a size such as"),
        (["fr={}/fr", "--pivot", "es"], "no train text for language 'es'"),
    ],
)
def test_what_cannot_be_aligned_is_an_error(graftmt, bilingual: Path, arguments: list[str], words: str) -> None:
    filled = [argument.replace("{}", str(bilingual)) for argument in arguments]
    result = graftmt("prepare", "align", *filled, "-o", str(bilingual / "out"))
    assert result.code == 1
    assert words in result.stderr
    assert not (bilingual / "out").exists()
