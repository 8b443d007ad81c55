"""Training of plain SentencePiece models: cased BPE that other programs read as it is. Layer 1, next to `learning`.

Words are counted per language and balanced as for our own kind. They are cut where scripts change, and between letters, digits
and the rest, as SentencePiece does by itself; there is no lowercasing, and the model normalises whitespace and nothing else.
"""

from __future__ import annotations

import io
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import sentencepiece

from graftmt.errors import ConfigError, DataError
from graftmt.text.foreign.model_file import message_fields
from graftmt.text.learning import FewerMerges, balance, frequent_characters, train_model
from graftmt.text.pretokenization import class_of
from graftmt.text.protocol import BOUNDARY

_NORMALIZER = 3  # the number of normalizer_spec in a model
_RULES = 2  # of precompiled_charsmap in a normalizer_spec


def train_plain_model(
    texts: Mapping[str, Iterable[str]],
    *,
    merges: int,
    temperature: float,
    min_character_count: int,
    byte_fallback: bool,
    pieces: int | None,
    sizes: Mapping[str, int] | None,
) -> bytes:
    """A SentencePiece model; the options are those of `train_subwords`."""
    counts, lines = {}, {}
    for language, text in texts.items():
        counts[language], lines[language] = _count_parts(text)
    alphabet = frequent_characters(counts.values(), min_character_count)
    if len(alphabet) == 1:
        raise DataError(
            f"no subwords to learn: the {sum(lines.values())} lines given have no character that occurs "
            f"{min_character_count} times or more; give more text or lower the minimum character count."
        )
    parts: Counter[str] = Counter()
    for part, count in balance(counts, lines, temperature, sizes).items():
        for known in _known_parts(part, alphabet):
            parts[known] += count  # type: ignore[assignment]
    single = len(alphabet) + (256 if byte_fallback else 0)
    wanted = merges if pieces is None else pieces - single
    if wanted < 0:
        raise ConfigError(f"subwords: {pieces} pieces were asked for, but the text's single characters alone are {single}.")
    content = train_model(parts, 1 + single + wanted, byte_fallback)
    learned = sentencepiece.SentencePieceProcessor(model_proto=content).get_piece_size() - 1 - single
    if learned < wanted:
        warnings.warn(FewerMerges(learned, wanted), stacklevel=2)
    return content + _normalisation()


def _count_parts(lines: Iterable[str]) -> tuple[Counter[str], int]:
    """Parts of words with their counts, the first one of each word with the boundary; the number of lines not blank."""
    words: Counter[str] = Counter()
    line_count = 0
    for line in lines:
        split = line.split()
        line_count += bool(split)
        words.update(split)
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for part in _cut(word):
            parts[part] += count
    return parts, line_count


def _cut(word: str) -> list[str]:
    """Where the class of characters changes; marks go with what they follow."""
    parts, last = [BOUNDARY], ""
    for character in word:
        kind = class_of(character)
        if kind in (last, "m") or len(parts) == 1 == len(parts[0]):
            parts[-1] += character
        else:
            parts.append(character)
        last = last if kind == "m" else kind
    return parts


def _known_parts(part: str, alphabet: frozenset[str]) -> list[str]:
    """What is left of a part between characters outside the alphabet."""
    return "".join(character if character in alphabet else "\0" for character in part).replace("\0", " ").split()


@cache
def _normalisation() -> bytes:
    """Fields to put after a model's own, which they are merged with: whitespace of all kinds becomes single spaces, none stands
    at the ends, and a boundary comes before the first word."""
    spaces = [chr(code) for code in range(0x3100) if chr(code).isspace() and code != 0x20]
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        rules.write_text("".join(f"{ord(space):X}\t20\n" for space in spaces), encoding="utf-8")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b"] * 10),
            model_writer=model,
            model_type="char",
            vocab_size=10,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            minloglevel=2,
        )
    spec = next(value for number, value in message_fields(model.getvalue()) if number == _NORMALIZER)
    table = next(value for number, value in message_fields(spec) if number == _RULES)
    # name, precompiled_charsmap, add_dummy_prefix, remove_extra_whitespaces
    body = b"\x0a" + _sized(b"whitespace") + b"\x12" + _sized(table) + b"\x18\x01" + b"\x20\x01"
    return b"\x1a" + _sized(body)


def _sized(content: bytes) -> bytes:
    """The content after its length, as a message has it."""
    length, size = len(content), bytearray()
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([*size, length]) + content
