"""Placeholders and addresses that got lost are found, and those that are only written otherwise are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.prepare.placeholders import difference

ICU = "{count, plural, one {# file} other {# files}} for {user}"


@pytest.mark.parametrize(
    ("original", "text"),
    [
        ("%s files", "%s fitxers"),
        ("%1$s of %2$d", "%d de %s"),
        ("%(name)s: %(size)d", "%(size)d: %(name)s"),
        ("%u files", "%d fitxers"),
        ("Copied %1 of %2", "S’han copiat %2 de %1"),
        ("Hello {name}, {{user}}", "Hola, {{user}} i {name}"),
        (ICU, "{count, plural, one {# файл} few {# файлы} many {# файлов} other {# файла}} ({user})"),
        ("100 % of it, 50%of that", "el 100 % i el 50%"),
        ("See https://en.wikipedia.org/wiki/A", "Vegeu https://ca.wikipedia.org/wiki/B."),
        ("No such thing", "Res"),
        ("文件 %s", "Fitxer %s"),
    ],
)
def test_the_same_written_otherwise(original: str, text: str) -> None:
    assert difference(original, text) == difference(text, original) == ""


@pytest.mark.parametrize(
    ("original", "text", "why"),
    [
        ("%s files", "fitxers", "without %s"),
        ("%s and %s", "%s", "without %s"),
        ("files", "fitxers {0}", "{0} is not in the original"),
        ("Hello {name}", "Hola {nom}", "without {name}"),
        (ICU, "{n, plural, other {# fitxers}} per a {user}", "without {count}"),
        ("See https://example.org/a", "Vegeu-ho", "other addresses: example.org"),
        ("See https://example.org/a", "Vegeu https://exemple.cat", "other addresses: example.org, exemple.cat"),
    ],
)
def test_what_differs_is_named(original: str, text: str, why: str) -> None:
    assert difference(original, text) == why


@given(st.text(st.sampled_from("%sd1$({}) a:/.,plural"), max_size=80))
def test_a_text_agrees_with_itself(text: str) -> None:
    assert difference(text, text) == ""
