"""fairseq checkpoints with SentencePiece: rows by a `dict.txt`, codes as the arguments of the training say. Layer 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graftmt.errors import DataError
from graftmt.text.foreign.row_table import MOST_ROWS, RowTable, table_of
from graftmt.text.foreign.tokenizer_folder import SPECIALS, TextFolder
from graftmt.text.kinds.sentencepiece import SentencePieces, SentencePieceText
from graftmt.text.kinds.two_sided import TwoSidedText
from graftmt.text.languages import is_language_name
from graftmt.text.protocol import SIDES, BaseText, Layout, Side

MODELS = ("sentencepiece.bpe.model", "sentencepiece.model", "spm.model")
SIDE_MODELS: dict[Side, str] = {"source": "source.spm", "target": "target.spm"}
_WHOSE: dict[str, Side] = {"src": "source", "tgt": "target"}
_CODE_STYLES = {"multilingual": "__{}__", "mbart": "[{}]"}


def read_text(found: TextFolder) -> BaseText:
    if found.settings.get("task") == "translation_from_pretrained_bart":
        raise ValueError("it was trained for translation_from_pretrained_bart, which puts codes after texts on both sides")
    languages, layout = _languages(found), _layout(found.settings)
    models = {side: _model(found, side) for side in SIDES}
    # fairseq gives each dictionary the codes of all languages, also of those that it does not use there.
    has_codes = layout.source_code is not None or layout.decoder_code
    coded = dict.fromkeys(language for side in SIDES for language in languages[side]) if has_codes else ()
    tables = {}
    for number, side in enumerate(SIDES):
        names = _dictionary(found, side, languages)
        tables[side] = _table(found.settings, names, models[side], found.rows[number], coded)
    named = {f"{side}_languages": languages[side] for side in SIDES}
    source, target = (SentencePieceText(models[side], table=tables[side], layout=layout, **named) for side in SIDES)
    return source if source == target else TwoSidedText(source, target)


def _layout(settings: Any) -> Layout:
    whose = settings.get("encoder_langtok") or ""
    if whose and whose not in list(_WHOSE):
        raise ValueError(f"encoder_langtok is {whose!r:.40}; expected src, tgt or nothing")
    source_code = _WHOSE.get(whose)
    decoder_code = bool(settings.get("decoder_langtok"))
    if source_code == "target" and decoder_code:
        raise ValueError("encoder_langtok is tgt and decoder_langtok is set; only one place for the target's code can be read")
    return Layout(source_code=source_code, decoder_code=decoder_code)


def _languages(found: TextFolder) -> dict[Side, tuple[str, ...]]:
    """Of each side: as the caller says, all of a multilingual model, or the two of a bilingual one."""
    several = found.settings.get("langs")
    several = several.split(",") if isinstance(several, str) else several
    result: dict[Side, tuple[str, ...]] = {}
    for side in SIDES:
        one = found.settings.get(f"{side}_lang")
        names = found.languages(side) or (tuple(several) if isinstance(several, list) and several else ())
        names = names or ((one,) if isinstance(one, str) else ())
        if not names or not all(map(is_language_name, names)):
            raise ValueError(f"its arguments name no languages (langs, or {side}_lang); say which its {side} is")
        result[side] = names
    return result


def _model(found: TextFolder, side: Side) -> SentencePieces:
    name = SIDE_MODELS[side] if found.has(*SIDE_MODELS.values()) else found.first(*MODELS)
    return SentencePieces(found.read(name), str(found.path / name))


def _dictionary(found: TextFolder, side: Side, languages: dict[Side, tuple[str, ...]]) -> list[str]:
    """Tokens by row: the special symbols, then the lines of the dictionary."""
    one = found.settings.get(f"{side}_lang")
    candidates = dict.fromkeys(name for name in (one, *languages[side]) if is_language_name(name))
    name = found.first(*(f"dict.{language}.txt" for language in candidates), "dict.txt")
    try:
        lines = found.read(name).decode().split("\n")
    except UnicodeDecodeError:
        raise DataError(f"{found.path / name} is not text; restore it from a copy.") from None
    if len(lines) > MOST_ROWS:
        raise DataError(f"{found.path / name} has more than {MOST_ROWS:,} lines.")
    tokens = list(SPECIALS.values())
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        token, _, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not token or not count.isdigit():
            raise DataError(f"{found.path / name}, line {number}: expected a token and a number; got {line!r:.60}.")
        tokens.append(token)
    return tokens


def _table(settings: Any, names: list[str], model: SentencePieces, rows: int, coded: Iterable[str]) -> RowTable:
    style = settings.get("lang_tok_style") or "multilingual"
    if style not in _CODE_STYLES:
        raise ValueError(f"lang_tok_style is {style!r:.40}; known: {', '.join(_CODE_STYLES)}")
    row_of = {name: row for row, name in enumerate(names)}
    if len(row_of) < len(names):
        raise ValueError("its dictionary has a token twice")
    codes = {}
    for language in coded:  # those that the dictionary lacks follow it, as fairseq adds them
        token = _CODE_STYLES[style].format(language)
        if token not in row_of:
            row_of[token] = len(names)
            names = [*names, token]
        codes[language] = row_of[token]
    texts = {name for name in names if model.writes(name)}
    return table_of(names, rows, specials=SPECIALS, codes=codes, texts=texts)
