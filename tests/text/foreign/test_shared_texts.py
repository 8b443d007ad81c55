"""NLLB-200, M2M-100 and SMaLL-100: the same ids as the tokenizers of transformers; literal special symbols stay text."""

from __future__ import annotations

import json
import pickle
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from peers import foreign_tokenizers as made

from graftmt.errors import DataError
from graftmt.text import BaseText, Text, TextCodec
from graftmt.text.foreign import foreign_text
from graftmt.text.foreign.language_codes import M2M_100, NLLB
from graftmt.text.kinds import text_kind

pytest.importorskip("transformers")
pytest.importorskip("babel")

PADDED = 16
"""Rows of a matrix beyond the tokenizer's last token."""


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """The folder of each tokenizer, and the tokenizer."""
    root = tmp_path_factory.mktemp("tokenizers")
    found = {
        "nllb": (root / "nllb", made.nllb(root / "nllb")),
        "nllb-legacy": (root / "legacy", made.nllb(root / "legacy", codes=made.CODES, legacy=True)),
        "m2m_100": (root / "unigram", made.m2m_100(root / "unigram")),
        "m2m_100-bpe": (root / "bpe", made.m2m_100(root / "bpe", "bpe")),
    }
    return found


@pytest.fixture(scope="session")
def text_of(folders: dict[str, tuple[Path, Any]]) -> Callable[..., Any]:
    """`text_of("nllb")`: our text for the tokenizer of this name."""

    def read(name: str, family: str = "") -> BaseText:
        folder, tokenizer = folders[name]
        rows = max(len(tokenizer), *getattr(tokenizer, "lang_code_to_id", {"": 0}).values()) + PADDED
        return foreign_text(family or name.partition("-")[0], folder, {}, (rows, rows))

    return read


NAMES = ("nllb", "nllb-legacy", "m2m_100", "m2m_100-bpe")


def test_the_sample_has_lines_in_twelve_scripts() -> None:
    lines = made.sample_lines()
    assert len(lines) >= 400
    scripts = {unicodedata.name(character, "").partition(" ")[0] for line in lines for character in line if character.isalpha()}
    assert len(scripts) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_ids_and_text_are_those_of_transformers(name: str, folders: Any, text_of: Callable[..., Any]) -> None:
    tokenizer, text = folders[name][1], text_of(name)
    lines = [line for line in made.sample_lines() if line.strip()]
    theirs = tokenizer(lines, add_special_tokens=False).input_ids
    assert text.encode_many(lines) == theirs
    assert [text.encode(line) for line in lines] == theirs
    assert sum(rows.count(text.unknown_id) for rows in theirs) > 3  # the sample has something that the model lacks
    for line, rows in zip(lines, theirs, strict=True):
        assert text.decode(rows) == tokenizer.decode(rows, skip_special_tokens=True), line
        assert text.decode([*rows, text.end_id, *rows]) == text.decode(rows)
    assert text.encode("") == text.encode(" \t\u3000 ") == []


@pytest.mark.parametrize("name", NAMES)
def test_special_symbols_in_a_text_stay_text(name: str, folders: Any, text_of: Callable[..., Any]) -> None:
    text = text_of(name)
    pieces = {*text.piece_rows, text.unknown_id}
    for line in made.LITERALS:
        rows = text.encode(line)
        assert set(rows) <= pieces
        assert text.unknown_id in rows or text.decode(rows).split() == line.split()
    assert text.decode(text.encode("a </s> b")) == "a </s> b"
    assert text.decode(text.encode("<pad>")) == "<pad>"


@pytest.mark.parametrize("name", NAMES)
def test_sentences_are_arranged_as_transformers_arranges_them(name: str, folders: Any, text_of: Callable[..., Any]) -> None:
    tokenizer, text = folders[name][1], text_of(name)
    source, target = ("eng_Latn", "rus_Cyrl") if name.startswith("nllb") else ("en", "ru")
    tokenizer.src_lang = source
    codec = TextCodec(text)
    rows = [*codec.source_prefix(source, target), *text.encode("Hello world"), *codec.source_suffix(source, target)]
    assert rows == tokenizer("Hello world").input_ids
    code = tokenizer.get_lang_id(target) if hasattr(tokenizer, "get_lang_id") else tokenizer.convert_tokens_to_ids(target)
    assert codec.decoder_prefix(target) == [tokenizer.eos_token_id, code]


def test_small_100_has_the_code_of_the_target_before_the_source(text_of: Callable[..., Any]) -> None:
    text = text_of("m2m_100", "small100")
    codec = TextCodec(text)
    assert codec.source_prefix("en", "ru") == [text.code("ru")]
    assert codec.decoder_prefix("ru") == [text.end_id]


@pytest.mark.parametrize("name", NAMES)
def test_rows_without_a_token_never_come_out(name: str, folders: Any, text_of: Callable[..., Any]) -> None:
    text = text_of(name)
    assert {*text.piece_rows, *text.forbidden, text.end_id} == set(range(len(text)))
    assert not {*text.piece_rows, text.end_id} & {*text.forbidden}
    assert set(range(len(text) - PADDED, len(text))) <= set(text.forbidden)
    assert {text.code(language) for language in text.languages} <= set(text.forbidden)
    assert text.decode(text.forbidden) == ""
    if name.startswith("m2m"):
        made_up = [text.encode(f"madeupword000{number}") for number in (0, 1)]
        assert all(set(rows) <= set(text.piece_rows) for rows in made_up)
        tokens = folders[name][1].encoder
        assert {tokens["madeupword0000"], tokens["madeupword0001"]} <= set(text.forbidden)


def test_codes_are_those_of_the_model(text_of: Callable[..., Any]) -> None:
    assert text_of("nllb").languages == NLLB
    assert text_of("nllb-legacy").languages == made.CODES
    assert text_of("m2m_100").languages == M2M_100["m2m100"]
    assert text_of("nllb").source_languages == text_of("nllb").target_languages == NLLB


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_pickled_and_stored(name: str, text_of: Callable[..., Any]) -> None:
    text = text_of(name)
    kind = text_kind(text.kind)
    assert set(text.files()) == set(kind.file_names(text.options()))
    stored = kind.read(text.files(), json.loads(json.dumps(text.options())), "here")
    for again in (pickle.loads(pickle.dumps(text)), stored):
        assert again == text
        assert again.symbols == text.symbols
        assert again.encode_many(made.sample_lines()) == text.encode_many(made.sample_lines())
    assert kind.fingerprint(text.files(), text.options()) == text.fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_the_same_pieces_with_other_codes(name: str, text_of: Callable[..., Any]) -> None:
    """As a pack has them that takes over the base's pieces."""
    text = text_of(name)
    other: Text = text.with_codes(("xx", "yy"), "source")
    assert other.languages == ("xx", "yy")
    assert len(other) == len(text.piece_rows) + 4 + 2
    for line in made.sample_lines():
        assert other.decode(other.encode(line)) == text.decode(text.encode(line))


def test_a_model_alone_has_the_published_codes(folders: Any, text_of: Callable[..., Any], tmp_path: Path) -> None:
    """transformers reads such a folder too, and takes all its codes for unknown words."""
    (tmp_path / "sentencepiece.bpe.model").write_bytes(made.model_bytes("bpe"))
    rows = len(made.fairseq_order(made.model_bytes("bpe"))) + len(NLLB) + 4
    text = foreign_text("nllb", tmp_path, {}, (rows, rows))
    assert text.kind == "sentencepiece"
    assert text.source_languages == NLLB
    assert text.side("source").code(NLLB[0]) == rows - len(NLLB) - 4
    # The two libraries differ on spaces at the end of a line.
    lines = [line for line in made.sample_lines() if line and line == line.strip("▁ \u3000")]
    assert len(lines) > 400
    assert text.side("source").encode_many(lines) == folders["nllb"][1](lines, add_special_tokens=False).input_ids  # type: ignore[attr-defined]


def test_both_files_must_be_of_one_model(folders: Any, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["nllb"][0], tmp_path / "both"))
    (folder / "sentencepiece.bpe.model").write_bytes(made.model_bytes("bpe"))
    rows = len(folders["nllb"][1]) + PADDED
    text = foreign_text("nllb", folder, {}, (rows, rows))
    assert text.kind == "sentencepiece"
    alone = foreign_text("nllb", folders["nllb"][0], {}, (rows, rows))
    assert text.side("source").code("eng_Latn") == alone.side("source").code("eng_Latn")
    (folder / "sentencepiece.bpe.model").write_bytes(made.model_bytes("unigram"))
    with pytest.raises(DataError, match=r"sentencepiece\.bpe\.model.*tokenizer\.json"):
        foreign_text("nllb", folder, {}, (rows, rows))


def test_a_matrix_that_is_too_small_is_refused(folders: Any) -> None:
    for name, family in (("nllb", "nllb"), ("m2m_100", "m2m_100")):
        with pytest.raises(DataError, match="rows"):
            foreign_text(family, folders[name][0], {}, (3000, 3000))
        with pytest.raises(DataError, match="rows"):
            foreign_text(family, folders[name][0], {}, (9000, 9001))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sentencepiece\.bpe\.model.*tokenizer\.json"):
        foreign_text("nllb", tmp_path, {}, (9, 9))
    with pytest.raises(DataError, match=r"nlllb.*nllb"):
        foreign_text("nlllb", tmp_path, {}, (9, 9))
