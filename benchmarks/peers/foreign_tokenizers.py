"""Tokenizers of transformers over SentencePiece models that are trained here, and lines in many scripts to compare on."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import sentencepiece

SCRIPTS = {
    "Latin": "en",
    "Cyrillic": "ru",
    "Greek": "el",
    "Arabic": "ar",
    "Hebrew": "he",
    "Devanagari": "hi",
    "Thai": "th",
    "Han": "zh",
    "Japanese": "ja",
    "Hangul": "ko",
    "Georgian": "ka",
    "Ethiopic": "am",
    "Myanmar": "my",
    "Tamil": "ta",
    "Armenian": "hy",
}
CODES = ("eng_Latn", "fra_Latn", "rus_Cyrl", "ell_Grek")
MESSY = (
    "",
    " leading",
    "trailing ",
    "trailing   ",
    "two  spaces   and more",
    "tab\tand\u00a0no-break\u202fspace",
    "zero\u200bwidth\u200djoiner\u2060and\ufeffmark",
    "soft\u00adhyphen \u200eleft\u200f right",
    "emoji 😀😃 👩‍👩‍👧 🇫🇷 ❤️",
    "mixed Привет-hello-Γειά-שלום-123",
    "https://example.org/path?a=1&b=%20#top mail@example.org",
    "cafe\u0301 nai\u0308ve e\u0301e\u0301 ก็ à̖̃",
    "ＦＵＬＬ ｗｉｄｔｈ ①②③ ﬁ ﬂ ™ ½ №",
    "x" * 3000,
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "unknown 𓀀𓀁𓀂 ᚠᚢᚦ 𐍈 end",
    "𓀀",
    "▁literal ▁▁ boundary▁",
    "control \x01\x02 \x7f end",
    "line\u2028separator\u2029paragraph",
    "\u3000ideographic\u3000space\u3000",
    "¡¿“quotes” ‘single’ «guillemets» „low“ — – - …",
    "1,234.56 €99 ٣٤٥ १२३ ๑๒๓ 50%",
    "CamelCase ALLCAPS lower Title ǅ İi ßẞ",
)
LITERALS = (
    "a </s> b",
    "<pad>",
    "<s><unk></s>",
    "eng_Latn is a code",
    "__en__ too",
    "<mask> here",
    ">>fra<< and <eos>",
    "<unk>",
)


@lru_cache(maxsize=1)
def cldr_lines() -> tuple[str, ...]:
    """Names of territories, languages and currencies in the language of each script, one to three a line."""
    from babel import Locale

    lines = []
    for number, language in enumerate(SCRIPTS.values()):
        locale = Locale(language)
        names = [*locale.territories.values(), *locale.languages.values(), *locale.currencies.values()]
        chance = random.Random(number)
        chance.shuffle(names)
        ends = (".", "", "!", ", 12", " (2024)", "?")
        for start in range(0, 450, 3):
            joined = ", ".join(names[start : start + chance.choice((1, 2, 3))])
            lines.append(joined + chance.choice(ends))
    return tuple(lines)


@lru_cache(maxsize=1)
def sample_lines() -> tuple[str, ...]:
    """Thirty lines in each of fifteen scripts, and messy ones; none has a special symbol in it."""
    every = len(cldr_lines()) // len(SCRIPTS)
    return (*(line for start in range(len(SCRIPTS)) for line in cldr_lines()[start * every : start * every + 30]), *MESSY)


@lru_cache(maxsize=8)
def model_bytes(kind: str = "unigram", size: int = 3500, seed: int = 1) -> bytes:
    """A SentencePiece model, with the library's own normalisation; a few characters of the text stay unknown to it."""
    lines = [*cldr_lines(), *["</s> <pad> eng_Latn __en__ >>fra<< _ / the theory of another thing"] * 20, *MESSY[-3:]]
    random.Random(seed).shuffle(lines)
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[: len(lines) - 200 * (seed - 1)]),
        model_writer=written,
        vocab_size=size,
        model_type=kind,
        character_coverage=0.998,
        minloglevel=2,
        num_threads=1,
    )
    return written.getvalue()


def processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def pieces_of(model: bytes) -> list[str]:
    loaded = processor(model)
    return [loaded.id_to_piece(number) for number in range(loaded.get_piece_size())]


def fairseq_order(model: bytes) -> list[str]:
    return ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(model)[3:]]


def character_rules(model: bytes) -> bytes:
    from sentencepiece import sentencepiece_model_pb2

    return bytes(sentencepiece_model_pb2.ModelProto.FromString(model).normalizer_spec.precompiled_charsmap)


def nllb(folder: Path, *, codes: Sequence[str] | None = None, legacy: bool = False) -> Any:
    """An NllbTokenizer, as transformers makes it from a BPE model, saved in `folder`."""
    from transformers import NllbTokenizer
    from transformers.tokenization_utils_sentencepiece import SentencePieceExtractor

    model = model_bytes("bpe")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "made.model").write_bytes(model)
    merges = SentencePieceExtractor(str(folder / "made.model")).extract(True)[2]
    (folder / "made.model").unlink()
    vocabulary = {piece: row for row, piece in enumerate(fairseq_order(model))}
    tokenizer = NllbTokenizer(
        vocab=vocabulary,
        merges=[merge for merge in merges if all(part in vocabulary for part in (*merge, "".join(merge)))],
        _spm_precompiled_charsmap=character_rules(model),
        extra_special_tokens=None if codes is None else list(codes),
        legacy_behaviour=legacy,
    )
    tokenizer.save_pretrained(folder)
    return NllbTokenizer.from_pretrained(folder)


def m2m_100(folder: Path, kind: str = "unigram") -> Any:
    """An M2M100Tokenizer saved in `folder`, with made-up words in its vocabulary."""
    from transformers import M2M100Tokenizer

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model_bytes(kind))
    tokens = [*fairseq_order(model_bytes(kind)), "madeupword0000", "madeupword0001"]
    (folder / "vocab.json").write_text(json.dumps({token: row for row, token in enumerate(tokens)}), encoding="utf-8")
    tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"))
    tokenizer.save_pretrained(folder)
    return M2M100Tokenizer.from_pretrained(folder)
