"""Marian, mBART-50, FSMT and fairseq: the same ids and texts as their own tokenizers give."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from peers import foreign_tokenizers as made

from graftmt.errors import DataError
from graftmt.text import BaseText, Layout, TextCodec
from graftmt.text.foreign import foreign_text, known_families
from graftmt.text.foreign.language_codes import MBART_50
from graftmt.text.foreign.subword_text import ForeignText
from graftmt.text.kinds import text_kind

pytest.importorskip("transformers")
pytest.importorskip("babel")
LINES = [line for line in made.sample_lines() if line.strip()]
MARIAN = ("bilingual", "codes", "separate", "separate-codes")


@pytest.fixture(scope="session")
def marians(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    root = tmp_path_factory.mktemp("marian")
    return {
        "bilingual": (root / "a", made.marian(root / "a")),
        "codes": (root / "b", made.marian(root / "b", codes=("fra", "cmn_Hans"), kind="bpe")),
        "separate": (root / "c", made.marian(root / "c", separate=True)),
        "separate-codes": (root / "d", made.marian(root / "d", codes=("fra", "cmn_Hans"), separate=True)),
    }


def marian_text(folder: Path, tokenizer: Any) -> BaseText:
    rows = len(tokenizer.encoder), len(getattr(tokenizer, "target_encoder", tokenizer.encoder))
    return foreign_text("marian", folder, {}, rows)


def side_of(text: BaseText, side: Any) -> ForeignText:
    found = text.side(side)
    assert isinstance(found, ForeignText)
    return found


@pytest.mark.parametrize("name", MARIAN)
def test_marian_has_the_ids_of_transformers(name: str, marians: Any) -> None:
    folder, tokenizer = marians[name]
    text = marian_text(folder, tokenizer)
    source, target = side_of(text, "source"), side_of(text, "target")
    assert source.encode_many(LINES) == tokenizer(LINES, add_special_tokens=False).input_ids
    written = tokenizer(text_target=LINES, add_special_tokens=False).input_ids
    assert target.encode_many(LINES) == written
    assert source.row_of["𓀀"] in source.encode("𓀀")  # which the SentencePiece model does not know
    for line, rows in zip(LINES, written, strict=True):
        assert target.decode(rows) == tokenizer.decode(rows, skip_special_tokens=True), line
    assert (source.end_id, source.padding_id, target.padding_id) == (0, len(source) - 1, len(target) - 1)
    assert target.beginning_id is None
    assert not {target.padding_id, target.unknown_id} - {*target.forbidden}


@pytest.mark.parametrize("name", MARIAN)
def test_marian_s_sentences_are_arranged_as_transformers_arranges_them(name: str, marians: Any) -> None:
    folder, tokenizer = marians[name]
    text = marian_text(folder, tokenizer)
    codec = TextCodec(text)
    target = "fra" if "codes" in name else "ru"
    assert text.source_languages == ("en",)
    assert text.target_languages == (("fra", "cmn_Hans") if "codes" in name else ("ru",))
    rows = [*codec.source_prefix("en", target), *side_of(text, "source").encode("Hello"), *codec.source_suffix("en", target)]
    assert rows == tokenizer(">>fra<< Hello" if "codes" in name else "Hello").input_ids
    assert codec.decoder_prefix(target) == [tokenizer.pad_token_id if "separate" not in name else len(text.side("target")) - 1]


def test_marian_s_literal_symbols_stay_text(marians: Any) -> None:
    text = marian_text(*marians["codes"])
    for side in ("source", "target"):
        one = side_of(text, side)
        for line in made.LITERALS:
            assert set(one.encode(line)) <= {*one.piece_rows, one.unknown_id}
        assert one.decode(one.encode(">>fra<< and </s>")) == ">>fra<< and </s>"


def test_a_marian_model_that_names_no_language_needs_them_named(marians: Any, tmp_path: Path) -> None:
    folder, tokenizer = marians["bilingual"]
    for name in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    rows = (len(tokenizer.encoder),) * 2
    with pytest.raises(DataError, match="source_lang"):
        foreign_text("marian", tmp_path, {}, rows)
    text = foreign_text("marian", tmp_path, {}, rows, source_languages=("eng",), target_languages=("deu",))
    assert (text.source_languages, text.target_languages) == (("eng",), ("deu",))


def test_mbart_50_has_the_ids_of_transformers(tmp_path: Path) -> None:
    tokenizer = made.mbart_50(tmp_path)
    text = foreign_text("mbart", tmp_path, {}, (len(tokenizer),) * 2)
    assert isinstance(text, ForeignText)
    assert text.languages == MBART_50
    theirs = tokenizer(LINES, add_special_tokens=False).input_ids
    assert text.encode_many(LINES) == theirs
    for line, rows in zip(LINES, theirs, strict=True):
        assert text.decode(rows) == tokenizer.decode(rows, skip_special_tokens=True), line
    codec = TextCodec(text)
    tokenizer.src_lang = "ru_RU"
    rows = [*codec.source_prefix("ru_RU", "en_XX"), *text.encode("Hello"), *codec.source_suffix("ru_RU", "en_XX")]
    assert rows == tokenizer("Hello").input_ids
    assert codec.decoder_prefix("en_XX") == [2, tokenizer.convert_tokens_to_ids("en_XX")]
    for line in (*made.LITERALS, "en_XX and ru_RU"):
        assert set(text.encode(line)) <= {*text.piece_rows, text.unknown_id}
    assert text.decode(text.encode("a </s> en_XX")) == "a </s> en_XX"
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "sentencepiece.bpe.model").write_bytes(made.model_bytes("unigram"))
    alone = foreign_text("mbart", tmp_path, {}, (len(tokenizer),) * 2)
    assert isinstance(alone, ForeignText)
    lines = [line for line in LINES if line == line.strip("▁ \u3000")]
    assert alone.encode_many(lines) == text.encode_many(lines)
    assert alone.table.codes == text.table.codes


def test_mbart_25_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "MBartTokenizer"}')
    with pytest.raises(DataError, match="mBART-50"):
        foreign_text("mbart", tmp_path, {}, (9, 9))


@pytest.mark.slow
def test_fsmt_has_the_ids_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses")
    tokenizer = made.fsmt(tmp_path / "forth")
    text = foreign_text("fsmt", tmp_path / "forth", {}, (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size + 3))
    source, target = side_of(text, "source"), side_of(text, "target")
    theirs = tokenizer(LINES, add_special_tokens=False).input_ids
    assert source.encode_many(LINES) == theirs
    for line, rows in zip(LINES, theirs, strict=True):
        assert target.decode(rows) == tokenizer.decode(rows, skip_special_tokens=True), line
    back = made.fsmt(tmp_path / "back", ("ru", "en"))  # whose source is written as the other's target is
    assert target.encode_many(LINES) == back(LINES, add_special_tokens=False).input_ids
    codec = TextCodec(text)
    assert [*source.encode("Hello"), *codec.source_suffix("en", "ru")] == tokenizer("Hello").input_ids
    assert codec.decoder_prefix("ru") == [2]
    assert (text.source_languages, text.target_languages) == (("en",), ("ru",))
    made_up = tokenizer.encoder["madeupword0000"]
    assert {made_up, len(target) - 1} <= set(target.forbidden)
    for line in made.LITERALS:
        assert set(source.encode(line)) <= {*source.piece_rows, source.unknown_id}


def write_fairseq(folder: Path, names: tuple[str, ...] = ("dict.txt",), extra: tuple[str, ...] = ()) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(made.model_bytes("bpe"))
    pieces = sorted(made.pieces_of(made.model_bytes("bpe"))[3:]) + list(extra)  # by another order than the model's
    for name in names:
        (folder / name).write_text("".join(f"{piece} {number}\n" for number, piece in enumerate(pieces)), encoding="utf-8")
    return pieces


@pytest.mark.parametrize("style", ["multilingual", "mbart"])
def test_fairseq_has_its_rows_by_the_dictionary(tmp_path: Path, style: str) -> None:
    pieces = write_fairseq(tmp_path, extra=("madeupword0000", "__fr__" if style == "multilingual" else "[fr]"))
    settings = {"langs": "en,fr,ru", "encoder_langtok": "src", "decoder_langtok": True, "lang_tok_style": style}
    rows = len(pieces) + 4 + 2 + 8
    text = foreign_text("fairseq", tmp_path, settings, (rows, rows))
    assert isinstance(text, ForeignText)
    assert text.layout == Layout(source_code="source", decoder_code=True)
    assert text.table.codes == {"en": len(pieces) + 4, "fr": len(pieces) + 3, "ru": len(pieces) + 5}
    model = made.processor(made.model_bytes("bpe"))
    row_of = {piece: 4 + number for number, piece in enumerate(pieces)}
    for line in LINES:
        found = text.encode(line)
        assert found == [row_of.get(piece, 3) for piece in model.encode(line, out_type=str)]
    assert len(pieces) + 2 in text.forbidden  # the made-up word


def test_a_bilingual_fairseq_model_with_two_dictionaries(tmp_path: Path) -> None:
    pieces = write_fairseq(tmp_path, ("dict.en.txt", "dict.de.txt"))
    settings = {"source_lang": "en", "target_lang": "de", "task": "translation"}
    text = foreign_text("fairseq", tmp_path, settings, (len(pieces) + 4, len(pieces) + 12))
    assert text.kind == "two-sided"
    assert text.layout == Layout(source_code=None)
    assert (text.source_languages, text.target_languages) == (("en",), ("de",))
    (tmp_path / "dict.de.txt").write_text("no number\n")
    with pytest.raises(DataError, match=r"dict\.de\.txt, line 1"):
        foreign_text("fairseq", tmp_path, settings, (len(pieces) + 4, len(pieces) + 12))


@pytest.mark.parametrize("name", [*MARIAN, "fsmt"])
def test_two_sided_texts_are_pickled_and_stored(name: str, marians: Any, tmp_path: Path) -> None:
    if name == "fsmt":
        pytest.importorskip("sacremoses")
        tokenizer = made.fsmt(tmp_path)
        text = foreign_text("fsmt", tmp_path, {}, (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size))
    else:
        text = marian_text(*marians[name])
    kind = text_kind(text.kind)
    assert set(text.files()) == set(kind.file_names(text.options()))
    stored = kind.read(text.files(), json.loads(json.dumps(text.options())), "here")
    for again in (pickle.loads(pickle.dumps(text)), stored):
        assert again == text
        for side in ("source", "target"):
            assert side_of(again, side).encode_many(LINES) == side_of(text, side).encode_many(LINES)
            assert pickle.loads(pickle.dumps(side_of(again, side))) == side_of(text, side)
    assert kind.fingerprint(text.files(), text.options()) == text.fingerprint


def test_every_family_is_known() -> None:
    assert set(known_families()) == {"m2m_100", "nllb", "small100", "marian", "mbart", "fsmt", "fairseq"}
