"""Training of subword models: counts segments per language, balances the languages, learns the merges.

Layer 1, above `pretokenization`; the result is a `Subwords`. SentencePiece never sees a sentence, only counted segments.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import sentencepiece

from graftmt.errors import ConfigError, DataError
from graftmt.text.pretokenization import Segmenter, lowercase
from graftmt.text.protocol import BOUNDARY
from graftmt.text.subwords import Subwords

# SentencePiece drops NUL and uses ▅ for itself, so it would learn neither.
_RESERVED = {"\0", "\u2585"}
_WORDS_IN_MEMORY = 1_000_000
_LONGEST_SEGMENT = 1_000  # SentencePiece skips lines over 4,192 bytes
_LONGEST_PIECE = 32
# Scaled counts are fractions and SentencePiece reads whole numbers; merges depend on ratios only.
_PRECISION = 1_000


class FewerMerges(UserWarning):
    """A text that supports fewer merges than were asked for."""

    def __init__(self, learned: int, asked: int) -> None:
        super().__init__(f"the text supports {learned:,} merges only, {asked:,} were asked for")
        self.learned, self.asked = learned, asked


def train_subwords(
    texts: Mapping[str, Iterable[str]],
    *,
    merges: int,
    temperature: float = 5.0,
    min_character_count: int = 10,
    byte_fallback: bool = False,
    pieces: int | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Subwords:
    """Learns `merges` merges over the lines of each language; the same input gives the same model, byte for byte.

    `sizes`: how many lines each language has, blank ones not counted, where `texts` are samples. Temperature goes by them.
    `pieces` asks for this number of pieces in all instead, characters included.
    Characters that occur fewer than `min_character_count` times in all (lowercased, before balancing) are left out.
    Where the text supports fewer merges than asked the model has fewer, and a warning says how many.
    """
    if merges < 0 or temperature <= 0 or min_character_count < 1:
        raise ConfigError(
            f"subwords: got merges={merges}, temperature={temperature}, min_character_count={min_character_count}; "
            "expected merges ≥ 0, temperature > 0 and min_character_count ≥ 1."
        )
    counts: dict[str, Counter[str]] = {}
    lines: dict[str, int] = {}
    for language, text in texts.items():
        counts[language], lines[language] = count_segments(text)
    alphabet = frequent_characters(counts.values(), min_character_count)
    if len(alphabet) == 1:  # the boundary, which is always there
        raise DataError(
            f"no subwords to learn: the {sum(lines.values())} lines given have no character that occurs "
            f"{min_character_count} times or more; give more text or lower the minimum character count."
        )
    segments = _cut_to_alphabet(balance(counts, lines, temperature, sizes), alphabet)
    single_pieces = len(alphabet) + (256 if byte_fallback else 0)
    if pieces is not None:
        merges = pieces - single_pieces
        if merges < 0:
            raise ConfigError(
                f"subwords: {pieces} pieces were asked for, but the text's single characters alone are {single_pieces}; "
                "raise min_character_count."
            )
    trained = Subwords(train_model(segments, 1 + single_pieces + merges, byte_fallback))
    assert trained.alphabet == alphabet, f"SentencePiece changed the alphabet: {trained.alphabet ^ alphabet}"
    learned = len(trained.pieces) - single_pieces
    if learned < merges:
        warnings.warn(FewerMerges(learned, merges), stacklevel=2)
    return trained


def count_segments(lines: Iterable[str]) -> tuple[Counter[str], int]:
    """Lowercase segments with their counts, and the number of lines that are not blank."""
    segmenter = Segmenter()
    segments: Counter[str] = Counter()
    words: Counter[str] = Counter()
    line_count = 0

    def flush() -> None:
        for word, count in words.items():
            for segment in segmenter(word):
                segments[lowercase(segment)] += count
        words.clear()

    for line in lines:
        split = line.split()
        line_count += bool(split)
        words.update(split)
        if len(words) > _WORDS_IN_MEMORY:
            flush()
    flush()
    return segments, line_count


def frequent_characters(counts: Iterable[Mapping[str, int]], minimum: int) -> frozenset[str]:
    """The alphabet: the boundary, and the lowercase characters that occur at least `minimum` times in all."""
    totals: Counter[str] = Counter()
    for segments in counts:
        for segment, count in segments.items():
            for character in segment:
                totals[character] += count
    frequent = {
        character
        for character, total in totals.items()
        if total >= minimum and character not in _RESERVED and not "\ud800" <= character <= "\udfff"
    }
    return frozenset(frequent | {BOUNDARY})


def balance(
    counts: Mapping[str, Mapping[str, int]],
    lines: Mapping[str, int],
    temperature: float,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Counts of all languages together, as if language k had p_k ∝ D_k^(1/T) of the lines, D_k being its lines.

    The total number of lines stays, so T=1 leaves the counts as they are. `sizes` are the D_k where only some were counted.
    """
    total = sum(lines.values())
    weights = {language: (sizes or lines)[language] ** (1 / temperature) if count else 0.0 for language, count in lines.items()}
    norm = sum(weights.values())
    scaled: dict[str, float] = {}
    for language, segments in counts.items():
        if not segments:
            continue
        factor = weights[language] / norm * total / lines[language]
        for segment, count in segments.items():
            scaled[segment] = scaled.get(segment, 0.0) + factor * count
    return scaled


def _cut_to_alphabet(segments: Mapping[str, float], alphabet: frozenset[str]) -> dict[str, float]:
    """The segments as `Subwords.encode` will see them: cut around characters outside the alphabet."""
    segmenter = Segmenter(alphabet)
    result: dict[str, float] = {}
    for segment, count in segments.items():
        if segment.startswith(BOUNDARY) and len(segment) > 1:
            parts = segmenter(segment[1:])
        elif segment == BOUNDARY:
            parts = [BOUNDARY]
        else:
            parts = segmenter(segment)
            parts[0] = parts[0][1:]  # the boundary that the segmenter adds
        for part in parts:
            if part and (part == BOUNDARY or alphabet.issuperset(part)):
                result[part] = result.get(part, 0.0) + count
    return result


def _rows(segments: Mapping[str, float]) -> Iterator[str]:
    """Lines of SentencePiece's TSV input, in a fixed order."""
    for segment, count in sorted(segments.items()):
        frequency = max(1, round(count * _PRECISION))
        for start in range(0, len(segment), _LONGEST_SEGMENT):
            yield f"{segment[start : start + _LONGEST_SEGMENT]}\t{frequency}"


def train_model(segments: Mapping[str, float], vocabulary_size: int, byte_fallback: bool) -> bytes:
    """The bytes of a BPE model of counted segments, whose first piece is <unk>; the same counts give the same bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        # An iterator and a writer rather than files, because file names would end up in the model's bytes.
        sentence_iterator=_rows(segments),
        model_writer=model,
        input_format="tsv",
        model_type="bpe",
        vocab_size=vocabulary_size,
        hard_vocab_limit=False,
        byte_fallback=byte_fallback,
        character_coverage=1.0,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        split_by_unicode_script=False,
        split_by_number=False,
        split_by_whitespace=False,
        split_digits=False,
        max_sentencepiece_length=_LONGEST_PIECE,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()
