"""Pairs in memory, in the shapes that Python programs have them: the same text is found in each, or an error says where not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graftmt.errors import DataError, GraftError, LanguageError
from graftmt.pairs import stored_pairs

KNOWN = ("de", "en", "fr", "id")
ROWS = [{"ca": "Bon dia", "en": "Good morning"}, {"ca": "Hola", "en": "Hello"}]
TEXTS = {"ca": "Bon dia\nHola\n", "en": "Good morning\nHello\n"}


class Iterable:
    """Rows without columns that can be taken, as a streamed data set has them."""

    column_names = None

    def __iter__(self) -> Iterator[Any]:
        return iter(ROWS)


class Split(dict[str, list[str]]):
    """A split of a DatasetDict: columns, and their names."""

    @property
    def column_names(self) -> list[str]:
        return list(self)


class DatasetDict(dict[str, Split]):
    pass


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))


def read(pairs: Any, partner: str | None = "en", new: str = "ca") -> dict[str, str]:
    files, _ = stored_pairs(pairs, (new,), None if partner is None else tuple(partner.split(",")), KNOWN)
    return {language: path.read_text(encoding="utf-8") for language, path in files.items()}


SHAPES: dict[str, Any] = {
    "tuples": [tuple(row.values()) for row in ROWS],
    "iterators": [iter(row.values()) for row in ROWS],
    "rows": ROWS,
    "other order": [{"en": row["en"], "id": 7, "ca": row["ca"]} for row in ROWS],
    "nested rows": [{"id": str(number), "translation": row} for number, row in enumerate(ROWS)],
    "nested column": {"id": ["0", "1"], "translation": ROWS},
    "columns": {name: [row[name] for row in ROWS] for name in ("ca", "en")},
    "names": [{"Catalan": row["ca"], "English": row["en"], "source": "a book"} for row in ROWS],
    "stream": Iterable(),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_text(shape: str) -> None:
    if shape == "names":
        pytest.importorskip("langcodes")
    assert read(SHAPES[shape]) == TEXTS


@pytest.mark.parametrize("shape", [name for name in SHAPES if name not in ("tuples", "iterators")])
def test_names_say_who_the_partner_is(shape: str) -> None:
    if shape == "names":
        pytest.importorskip("langcodes")
    pairs = list(SHAPES[shape]) if shape == "stream" else SHAPES[shape]
    files, partners = stored_pairs(pairs, ("ca",), None, KNOWN)
    assert partners == ("en",) and list(files) == [name for name in files if name in TEXTS]
    assert {language: path.read_text(encoding="utf-8") for language, path in files.items()} == TEXTS


def test_a_partner_that_the_base_does_not_know_is_named() -> None:
    for pairs in (SHAPES["tuples"], ROWS):
        with pytest.raises(LanguageError, match=r"partner: 'kk' is not a language of this base.*de, en, fr"):
            read(pairs, "kk")


def test_the_languages_may_be_called_by_their_names_too() -> None:
    pytest.importorskip("langcodes")
    assert read(ROWS, "English", "Catalan") == TEXTS


@pytest.mark.parametrize(
    ("rows", "row"),
    [
        ([*ROWS, ("Adéu", "Bye")], "row 3 "),
        ([*ROWS, None], "row 3 "),
        ([*ROWS, {"en": "Bye"}], "row 3 "),
        ([ROWS[0], {}, ROWS[1]], "row 2 "),
        ([{"translation": ROWS[0]}, {"translation": None}], "row 2 "),
        ([{"translation": ROWS[0]}, ROWS[1]], "row 2 "),
        ([("Adéu", "Bye"), ROWS[0]], "pair 2 "),
        ([("Adéu", "Bye"), {"Hola", "Hello"}], "pair 2 "),
        ([("Adéu", "Bye"), "ab"], "pair 2 "),
        ([*ROWS, {"ca": "Adéu", "en": 3}], "line 3 in en"),
    ],
)
def test_a_row_that_is_not_as_the_others_is_named(rows: list[Any], row: str) -> None:
    with pytest.raises(DataError, match=row):
        read(rows)


def test_a_row_may_lack_a_translation_but_not_all_of_them() -> None:
    rows = [{"ca": "Bon dia", "en": "Good morning"}, {"ca": "Hola", "fr": "Salut"}, {"ca": "Adéu", "en": None, "fr": None}]
    assert read(rows, None) == {"ca": "Bon dia\nHola\nAdéu\n", "en": "Good morning\n\n\n", "fr": "\nSalut\n\n"}


def test_the_columns_that_are_there_are_named_and_how_to_rename_them() -> None:
    with pytest.raises(LanguageError, match=r"columns 'source', 'target'; expected 'ca' and 'en'.*'ca' for 'source'"):
        read({"source": ["Hola"], "target": ["Hello"]})
    with pytest.raises(LanguageError, match=r"columns 'ca', 'text'; expected 'ca' and one of the base.*'en' for 'text'"):
        read({"ca": ["Hola"], "text": ["Hello"]}, None)
    with pytest.raises(LanguageError, match=r"columns 0, 1; .*'ca' for 0"):
        read([{0: "Hola", 1: "Hello"}])
    with pytest.raises(LanguageError, match=r"column 'ca'; expected 'ca' and 'en'. Give each"):
        read({"ca": ["Hola"]})


def test_columns_of_pandas_are_named_and_renamed_in_its_words() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2], "source": ["Bon dia", "Hola"], "target": ["Good morning", "Hello"]})
    with pytest.raises(LanguageError) as caught:
        read(frame)  # of numbers nobody thinks that they are Catalan
    assert "pairs.rename(columns={'source': 'ca', 'target': 'en'})" in str(caught.value)
    assert read(frame.rename(columns={"source": "ca", "target": "en"}), None) == TEXTS
    missing = pandas.DataFrame({"ca": ["Bon dia", "Hola"], "en": pandas.array(["Good morning", None], dtype="string")})
    assert read(missing)["en"] == "Good morning\n\n"
    frame.columns = ["ca", "en", "en"]
    with pytest.raises(DataError, match="2 columns called 'en'"):
        read(frame)


def test_a_column_of_numbers_is_ignored_unless_it_was_asked_for() -> None:
    columns = {"id": [1, 2], "score": [0.5, 0.25], **SHAPES["columns"]}
    assert read(columns) == read(columns, None) == TEXTS
    with pytest.raises(DataError, match="line 1 in id"):
        read(columns, "id")
    with pytest.raises(DataError, match="line 1 in id"):
        read({"ca": ["Hola"], "id": [1]}, None)


def test_of_several_splits_one_is_to_be_given() -> None:
    columns = Split(SHAPES["columns"])
    with pytest.raises(DataError, match=r"a DatasetDict with train, test; give one split: data\['train'\]"):
        read(DatasetDict(train=columns, test=columns))
    assert read(DatasetDict(train=columns, test=columns)["train"]) == TEXTS


@pytest.mark.parametrize("pairs", [[], {"ca": [], "en": []}, "text", b"text", 7, None])
def test_what_holds_no_pairs_is_an_error(pairs: Any) -> None:
    with pytest.raises(GraftError, match="pairs is "):
        read(pairs)
