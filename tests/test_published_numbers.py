"""The numbers that we publish are those of the results: the reading is checked against them, the README against the reading."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
READING = ROOT / "docs" / "results" / "paper-settings.md"
NUMBER = re.compile(r"\d+\.\d+")


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(re.sub(r"\]\([^)]*\)|<!--.*?-->", "", text, flags=re.DOTALL)))


def test_the_readmes_table_has_no_numbers_but_those_of_the_reading() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## What has been measured\n(.*?)^\*\*Speed", text, flags=re.DOTALL | re.MULTILINE)
    assert len(numbers(section)) > 20
    assert numbers(section) <= numbers(READING.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_number_of_the_reading_is_what_the_published_translations_give(graftmt: Callable[..., Any]) -> None:
    result = graftmt("experiment", "check", str(READING), "--recompute")
    assert result.code == 0, result.stdout + result.stderr
