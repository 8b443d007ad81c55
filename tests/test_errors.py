"""What is shown of text that comes from anyone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.errors import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bell\x07 and \x9b31m and \x7f", "bell\\x07 and \\x9b31m and \\x7f"),
        ("back\rfront", "back\\rfront"),
        ("\u202egpj.exe\u2066", "\\u202egpj.exe\\u2066"),
        ("name\udcff", "name\\udcff"),
        ("two\nlines\tand Ελληνικά, עברית 中文 [/x]", "two\nlines\tand Ελληνικά, עברית 中文 [/x]"),
    ],
)
def test_what_commands_a_terminal_is_escaped_and_text_stays(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_nothing_that_is_shown_is_a_control(text: str) -> None:
    shown = printable(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert printable(shown) == shown == shown.encode().decode()
