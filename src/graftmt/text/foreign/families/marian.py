"""Marian and OPUS-MT: a SentencePiece model for each side, one vocabulary or two, `>>xxx<<` codes or none, one way. Layer 1.

transformers has Moses' normalisation of punctuation in its tokenizer and does not apply it; so neither does this.
"""

from __future__ import annotations

from collections.abc import Sequence

from graftmt.text.foreign.row_table import table_of
from graftmt.text.foreign.tokenizer_folder import TextFolder
from graftmt.text.kinds.sentencepiece import SentencePieces, SentencePieceText
from graftmt.text.kinds.two_sided import TwoSidedText
from graftmt.text.languages import is_language_name
from graftmt.text.protocol import SIDES, BaseText, Layout, Side

MODELS: dict[Side, str] = {"source": "source.spm", "target": "target.spm"}


def read_text(found: TextFolder) -> BaseText:
    pieces = {side: SentencePieces(found.read(name), str(found.path / name)) for side, name in MODELS.items()}
    source_names = found.read_vocabulary("vocab.json")
    codes = _codes(source_names)
    layout = Layout(source_code="target" if codes else None, decoder_start="padding")
    languages = (one_way_languages(found, "source", ()), one_way_languages(found, "target", tuple(codes)))
    specials = {symbol: name for symbol, name in found.specials.items() if symbol != "beginning"}
    separate = bool(found.tokenizer_settings.get("separate_vocabs"))
    sides: dict[Side, SentencePieceText] = {}
    for side, rows in zip(SIDES, found.rows if separate else (found.shared_rows, found.shared_rows), strict=True):
        names = found.read_vocabulary("target_vocab.json") if separate and side == "target" else source_names
        # A target text may have pieces that only the source's model knows, such as names that are copied.
        models = [pieces[side]] if separate else list(pieces.values())
        texts = {name for name in names if name is not None and any(model.writes(name) for model in models)}
        table = table_of(
            names,
            rows,
            specials=specials,
            codes=codes if side == "source" else {},
            texts=texts,
            unused=_codes(names).values(),
        )
        arguments = {"source_languages": languages[0], "target_languages": languages[1], "layout": layout}
        sides[side] = SentencePieceText(pieces[side], table=table, **arguments)
    return TwoSidedText(sides["source"], sides["target"])


def one_way_languages(found: TextFolder, side: Side, codes: Sequence[str]) -> tuple[str, ...]:
    """The languages of one side: those with codes, as the caller says, or the one in the tokenizer's settings."""
    named = found.tokenizer_settings.get(f"{side}_lang")
    if codes or found.languages(side):
        return tuple(codes) or found.languages(side)
    if isinstance(named, str) and is_language_name(named):
        return (named,)
    raise ValueError(f"tokenizer_config.json names no {side}_lang; say which language its {side} is")


def _codes(names: Sequence[str | None]) -> dict[str, int]:
    """The rows of tokens such as `>>fra<<`, by language."""
    marked = {name[2:-2]: row for row, name in enumerate(names) if name and name.startswith(">>") and name.endswith("<<")}
    return {language: row for language, row in marked.items() if is_language_name(language)}
