"""The rule that names of languages keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.errors import LanguageError
from graftmt.text.languages import check_language_names, is_language_name


@pytest.mark.parametrize("name", ["en", "pt_br", "zh-Hans", "eng_Latn", "ca@valencia", "sr-Latn-RS", "x1", "EN", "be_tarask"])
def test_names_in_use_pass(name: str) -> None:
    check_language_names([name], "a base")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "../../evil",
            "/etc/x",
            "a/b",
            "a.b",
            ".",
            "..",
            "a b",
            "a\nb",
            "\x1b[31m",
            "<en>",
            "en+fr",
            "en:fr",
            "-b",
            "a--b",
        ),
        *("ё", "a" * 41, "en\n", 3, None, ["en"], "a\\b", "a\0b"),
    ],
)
def test_anything_else_is_named_in_an_error_that_can_be_printed(name: object) -> None:
    with pytest.raises(LanguageError) as caught:
        check_language_names(["en", name], "the base here")
    assert "the base here" in str(caught.value)
    assert str(caught.value).isprintable()


@given(st.text(max_size=50))
def test_a_name_that_passes_is_a_file_name_of_its_own(name: str) -> None:
    if is_language_name(name):
        path = Path("folder") / f"train.{name}.txt"
        assert path.parent == Path("folder") and path.name.split(".") == ["train", name, "txt"]
        assert name.isprintable() and name.isascii()
