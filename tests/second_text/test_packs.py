from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.errors import ConfigError, LanguageError
from graftmt.model.embeddings import ExtendedEmbedding
from graftmt.packs import Pack, compose
from graftmt.packs.alignment import translation_table, translations_of
from graftmt.packs.initialisation import OTHER_CASE, initialise
from graftmt.text import Layout, code_symbol, pieces_of

KINDS = ("characters", "ours")
METHODS = ("overlap", "alignment", "pieces", "random")


def alignment(base: Base, text: Any, side: str, corpus: Path, new: str, old: str) -> dict[str, dict[str, float]]:
    lines, base_text = Corpus.open(corpus, "train", (new, old)), base.tokenizer.side(side)  # type: ignore[arg-type]
    pairs = ((text.encode(a), base_text.encode(b)) for a, b in zip(lines.lines(new), lines.lines(old), strict=True))
    return translations_of(text, base_text, translation_table(pairs, text, base_text))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["source", "target"])
def test_rows_start_by_name(
    any_base: Base, make_pack: Callable[..., Pack], graft_corpus: Path, side: str, kind: str, method: str
) -> None:
    """uk shares letters with ru, which all bases here know on the target side; those on the source side know ru or Latin."""
    base_text = any_base.tokenizer.side(side)  # type: ignore[arg-type]
    text = make_pack(any_base, side, "uk", kind).tokenizer
    translations = alignment(any_base, text, side, graft_corpus, "uk", "ru") if method == "alignment" else None
    pack = make_pack(any_base, side, "uk", kind, f"embed + init:{method}", translations=translations)
    weight = pack.parameters["embedding.weight"]
    matrix = any_base.model.source_embedding if side == "source" else any_base.model.target_embedding
    assert weight.shape[0] == len(text) == len(text.symbols)
    counts = pack.card["initialisation"]
    assert sum(counts.values()) == len(text)
    shared = set(pieces_of(text)) & set(pieces_of(base_text))
    row_of = {symbol: row for row, symbol in enumerate(base_text.symbols)}
    for row in text.piece_rows:
        same = text.symbols[row] in shared and torch.equal(weight[row], matrix.weight[row_of[text.symbols[row]]])
        assert same == (method != "random" and text.symbols[row] in shared)
    if method != "random":
        assert torch.equal(weight[text.end_id], matrix.weight[base_text.end_id])
        assert counts["overlap"] >= len(shared) + 1
    for language in text.languages:  # the base's codes, wherever they stand
        assert torch.equal(weight[text.code(language)], matrix.weight[row_of[code_symbol(language)]])
    if method == "alignment" and side == "target":
        assert counts["alignment"] > 0
    if method == "pieces" and kind == "ours" and side == "target":
        assert counts["pieces"] > 0
    padding = matrix.weight[base_text.padding_id] if any_base.tokenizer.layout.decoder_start == "padding" else torch.zeros(32)
    assert torch.equal(weight[text.padding_id], padding)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recipe", ["embed", "embed + code:fixed:fr", "embed + code:none"])
def test_codes_of_packs_stand_where_the_base_writes_them(
    any_base: Base, make_pack: Callable[..., Pack], recipe: str, kind: str
) -> None:
    layout = any_base.tokenizer.layout
    if layout.code_matrix("target") is None and recipe != "embed":
        with pytest.raises(ConfigError, match="no language code"):
            make_pack(any_base, "target", "uk", kind, recipe)
        return
    target = make_pack(any_base, "target", "uk", kind, recipe)
    composition = compose(any_base, target=target)
    codec, read = composition.codec, any_base.source_languages[0]
    found = codec.source_prefix(read, "uk") + codec.source_suffix(read, "uk")
    start = codec.decoder_prefix("uk")
    source_text = any_base.tokenizer.side("source")
    if layout.source_code == "target":
        own = {"embed": [len(source_text)], "embed + code:fixed:fr": [source_text.code("fr")], "embed + code:none": []}[recipe]
        assert found == [*own, source_text.end_id]
        assert len(start) == 1
    elif layout.decoder_code:
        own = [] if recipe.endswith("none") else [len(target.tokenizer)]
        assert start[1:] == own
        assert set(found) == {source_text.code(read), source_text.end_id}
        assert isinstance(composition.model.target_embedding, ExtendedEmbedding) == bool(own)
    else:
        assert (found, len(start)) == ([source_text.end_id], 1)
    assert start[0] == (target.tokenizer.padding_id if layout.decoder_start == "padding" else target.tokenizer.end_id)


def test_a_piece_that_is_called_as_a_symbol_is_not_that_symbol(characters: Any, graft_base: Callable[..., Path]) -> None:
    base = Base.load(graft_base())
    text = characters.CharacterText(("▁", "a", "<s>"), (), Layout())
    weight = base.model.source_embedding.weight
    made = initialise(text, base.tokenizer.side("source"), weight, method="overlap", seed=1)
    rules = dict(zip(text.symbols, made.rules, strict=True))
    assert rules == {"</s>": "overlap", "▁": "overlap", "a": "overlap", "<unk>": "overlap", "<s>": "random"} | {
        "<unused>": "random",
        "<pad>": "padding",
    }


def test_a_piece_of_another_case_is_the_one_with_the_fewest_capitals(characters: Any) -> None:
    base = characters.CharacterText(("▁BERLIN", "▁Berlin", "▁London", "▁london", "<U>", "<0xCE>"), (), Layout())
    weight = torch.randn(len(base), 8)
    rows = {symbol: row for row, symbol in enumerate(base.symbols)}
    text = characters.CharacterText(("▁berlin", "▁london", "<u>", "<U>", "<0xce>", "▁LONDON"), (), Layout())
    made = initialise(text, base, weight, method="overlap", seed=1)
    rules = {text.symbols[row]: (made.rules[row], made.base_rows.get(row)) for row in text.piece_rows}
    assert rules == {
        "▁berlin": (OTHER_CASE, rows["▁Berlin"]),
        "▁london": ("overlap", rows["▁london"]),
        "▁LONDON": (OTHER_CASE, rows["▁london"]),
        "<u>": ("random", None),  # <U> says how a piece is written, and the other is a byte
        "<0xce>": ("random", None),
        "<U>": ("overlap", rows["<U>"]),
    }
    assert torch.equal(made.weight[text.piece_rows[0]], weight[rows["▁Berlin"]])


@pytest.mark.parametrize(("arrangement", "learned"), [("marian", True), ("nllb-legacy", False)])
def test_padding_is_learned_where_the_decoder_starts_from_it(
    make_base: Callable[..., Path], make_pack: Callable[..., Pack], arrangement: str, learned: bool
) -> None:
    base = Base.load(make_base(arrangement))
    pack = make_pack(base, "target", "uk", "ours", "embed + non-tied")
    composition = compose(base, target=pack)
    text, codec = pack.tokenizer, composition.codec
    source = torch.tensor([[*codec.source_prefix("en", "uk"), *codec.source_suffix("en", "uk")]])
    decoder_input = torch.tensor([[*codec.decoder_prefix("uk"), *text.encode("бану"), text.padding_id]])
    composition.model(source, decoder_input).sum().backward()
    gradient = pack.parameters["embedding.weight"].grad
    assert gradient is not None
    assert bool(gradient[text.padding_id].any()) == learned


def test_languages_belong_to_sides(make_base: Callable[..., Path], make_pack: Callable[..., Pack]) -> None:
    base = Base.load(make_base("one-way"))
    assert (base.source_languages, base.target_languages, base.languages) == (("en", "fr"), ("ru",), ("en", "fr", "ru"))
    with pytest.raises(LanguageError, match=r"'ru'.*as source.*en, fr"):
        compose(base).codec.source_tokenizer("ru")
    make_pack(base, "source", "ru", "characters")  # the base writes it, and cannot read it
    with pytest.raises(LanguageError, match="'ru'"):
        make_pack(base, "target", "ru", "characters")
