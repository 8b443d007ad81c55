"""Tokenizers of transformers over SentencePiece models that are trained here, and lines in many scripts to compare on."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
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


def nllb(folder: Path, *, codes: Sequence[str] | None = None, legacy: bool = False, pieces: int = 0) -> Any:
    """An NllbTokenizer, as transformers makes it from a BPE model, saved in `folder`; filled up to so many pieces."""
    from transformers import NllbTokenizer
    from transformers.tokenization_utils_sentencepiece import SentencePieceExtractor

    model = model_bytes("bpe")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "made.model").write_bytes(model)
    merges = SentencePieceExtractor(str(folder / "made.model")).extract(True)[2]
    (folder / "made.model").unlink()
    vocabulary = {piece: row for row, piece in enumerate(fairseq_order(model))}
    vocabulary |= {f"▁▁{row}": row for row in range(len(vocabulary), pieces)}  # which no text has
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


def mbart_50(folder: Path) -> Any:
    """An MBart50Tokenizer over a unigram model, saved in `folder`."""
    from transformers import MBart50Tokenizer

    model = model_bytes("unigram")
    loaded = processor(model)
    scores = [(loaded.id_to_piece(number), loaded.get_score(number)) for number in range(loaded.get_piece_size())]
    tokenizer = MBart50Tokenizer(vocab=scores, _spm_precompiled_charsmap=character_rules(model))
    tokenizer.save_pretrained(folder)
    return MBart50Tokenizer.from_pretrained(folder)


def marian(folder: Path, *, codes: Sequence[str] = (), separate: bool = False, kind: str = "unigram") -> Any:
    """A MarianTokenizer saved in `folder`, with models that are learned from the sample."""
    models = {"source": model_bytes(kind, 2800), "target": model_bytes(kind, 3000, seed=2)}
    return marian_of_models(folder, models, codes=codes, separate=separate)


def marian_of_models(folder: Path, models: dict[str, bytes], *, codes: Sequence[str] = (), separate: bool = False) -> Any:
    """A MarianTokenizer saved in `folder`: a SentencePiece model for each side, the end first, padding last.

    Its vocabulary has a character that no model knows, as one does that was made from text.
    """
    from transformers import MarianTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    for side, model in models.items():
        (folder / f"{side}.spm").write_bytes(model)
    pieces = {side: pieces_of(model)[3:] for side, model in models.items()}
    both = list(dict.fromkeys([*pieces["source"], *pieces["target"]]))
    marked = [f">>{code}<<" for code in codes]
    vocabularies = {"vocab.json": pieces["source"] if separate else both}
    if separate:
        vocabularies["target_vocab.json"] = pieces["target"]
    for name, tokens in vocabularies.items():
        listed = ["</s>", "<unk>", *tokens, "𓀀", *(marked if name == "vocab.json" else []), "<pad>"]
        (folder / name).write_text(json.dumps({token: row for row, token in enumerate(listed)}), encoding="utf-8")
    tokenizer = MarianTokenizer(
        str(folder / "source.spm"),
        str(folder / "target.spm"),
        str(folder / "vocab.json"),
        target_vocab_file=str(folder / "target_vocab.json") if separate else None,
        source_lang="en",
        target_lang="ru",
        separate_vocabs=separate,
    )
    tokenizer.save_pretrained(folder)
    return MarianTokenizer.from_pretrained(folder)


def fsmt(folder: Path, languages: tuple[str, str] = ("en", "ru")) -> Any:
    """An FSMTTokenizer saved in `folder`, with merges that are learned from the sample by counting."""
    from transformers import FSMTTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    words = Counter(word for line in cldr_lines()[:300] for word in line.replace(",", " ,").split())
    merges, pieces = _learn_merges(words, 300)
    (folder / "merges.txt").write_text("".join(f"{first} {second}\n" for first, second in merges), encoding="utf-8")
    entities = [*"&aposqult;#0123456789", ";</w>"]
    listed = ["<s>", "<pad>", "</s>", "<unk>", *dict.fromkeys([*pieces, *entities]), "madeupword0000"]
    for name, tokens in (("vocab-src.json", listed), ("vocab-tgt.json", [*listed, "ж</w>" * 2])):
        (folder / name).write_text(json.dumps({token: row for row, token in enumerate(tokens)}), encoding="utf-8")
    files = [str(folder / name) for name in ("vocab-src.json", "vocab-tgt.json", "merges.txt")]
    tokenizer = FSMTTokenizer(list(languages), *files)
    tokenizer.save_pretrained(folder)
    return FSMTTokenizer.from_pretrained(folder)


def _learn_merges(words: Counter[str], number: int) -> tuple[list[tuple[str, str]], list[str]]:
    cut = {word: [*word[:-1], word[-1] + "</w>"] for word in words}
    singles = {piece for pieces in cut.values() for piece in pieces} | {letter for word in words for letter in word}
    merges: list[tuple[str, str]] = []
    for _ in range(number):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, pieces in cut.items():
            for pair in pairwise(pieces):
                pairs[pair] += words[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for pieces in cut.values():
            place = 0
            while place < len(pieces) - 1:
                if (pieces[place], pieces[place + 1]) == best:
                    pieces[place : place + 2] = ["".join(best)]
                place += 1
    return merges, [*sorted(singles), *dict.fromkeys("".join(merge) for merge in merges)]
