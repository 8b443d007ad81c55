"""FSMT, fairseq's models of WMT19: Moses tokenisation, BPE, a vocabulary for each side, no codes, one way. Layer 1."""

from __future__ import annotations

from graftmt.text.foreign.row_table import table_of
from graftmt.text.foreign.tokenizer_folder import TextFolder
from graftmt.text.kinds.moses_bpe import FILE, WORD_END, Merges, MosesText
from graftmt.text.kinds.two_sided import TwoSidedText
from graftmt.text.languages import is_language_name
from graftmt.text.protocol import SIDES, BaseText, Layout

VOCABULARIES = {"source": "vocab-src.json", "target": "vocab-tgt.json"}


def read_text(found: TextFolder) -> BaseText:
    languages = _languages(found)
    lowercase = found.tokenizer_settings.get("do_lower_case") or False
    if not isinstance(lowercase, bool):
        raise ValueError(f"do_lower_case is {lowercase!r:.40}; expected true or false")
    merges = Merges(found.read(FILE), str(found.path / FILE))
    made = merges.results
    sides = []
    for side, language, rows in zip(SIDES, languages, found.rows, strict=True):
        names = found.read_vocabulary(VOCABULARIES[side])
        texts = {name for name in names if name and (name in made or len(name.removesuffix(WORD_END)) == 1)}
        table = table_of(names, rows, specials=found.specials, codes={}, texts=texts)
        arguments = {"source_languages": languages[:1], "target_languages": languages[1:], "layout": Layout(source_code=None)}
        sides.append(MosesText(merges, language, lowercase, str(found.path), table=table, **arguments))
    return TwoSidedText(*sides)


def _languages(found: TextFolder) -> tuple[str, str]:
    """Source and target: as the caller says, or as `langs` of either configuration has them."""
    if found.source_languages and found.target_languages:
        return found.source_languages[0], found.target_languages[0]
    for settings in (found.tokenizer_settings, found.settings):
        named = settings.get("langs")
        if isinstance(named, list) and len(named) == 2 and all(map(is_language_name, named)):
            return named[0], named[1]
    raise ValueError("neither tokenizer_config.json nor config.json has langs, its two languages; name them")
