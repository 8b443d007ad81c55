"""The demo's multi-parallel corpus: phrases drawn from a seed, split so that valid and test hold combinations never
trained on, and written one file per split and language. The demo's upper file; made from CLDR on the fly."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graftmt.demo.inventory import BASE_LANGUAGES, NEW_LANGUAGES, Inventory, inventory_of, require_babel
from graftmt.demo.phrases import TEMPLATES, Phrase, draw_phrase, render
from graftmt.demo.slots import KINDS
from graftmt.documents import write_json
from graftmt.errors import DataError, LanguageError
from graftmt.files import write_text

__all__ = ["BASE_LANGUAGES", "NEW_LANGUAGES", "SPLITS", "build_corpus", "build_segments", "write_corpus"]

SPLITS = ("train", "valid", "test")

# Shares of the combinations that belong to each split, in thousandths; the rest is train's.
_VALID_SHARE, _TEST_SHARE = 40, 60
# Draws per wanted line before giving up; held-out splits keep about one draw in twenty, hence the room.
_DRAWS_PER_LINE = 400


class Segment(NamedTuple):
    """One phrase with its text in each language."""

    phrase: Phrase
    texts: dict[str, str]


def build_corpus(
    languages: Sequence[str],
    *,
    train_lines: int = 40000,
    valid_lines: int = 300,
    test_lines: int = 500,
    seed: int = 1,
) -> dict[str, dict[str, list[str]]]:
    """Lines by split and language; line i of a split says the same in each language."""
    sizes = {"train": train_lines, "valid": valid_lines, "test": test_lines}
    return _lines_of(build_segments(languages, sizes, seed), languages)


def write_corpus(
    folder: Path,
    languages: Sequence[str],
    *,
    train_lines: int = 40000,
    valid_lines: int = 300,
    test_lines: int = 500,
    seed: int = 1,
) -> dict[str, Any]:
    """Writes `train.en.txt` and its like, then `corpus.json`, whose contents it returns."""
    sizes = {"train": train_lines, "valid": valid_lines, "test": test_lines}
    segments = build_segments(languages, sizes, seed)
    for split, by_language in _lines_of(segments, languages).items():
        for language, lines in by_language.items():
            write_text(folder / f"{split}.{language}.txt", "".join(f"{line}\n" for line in lines))
    description = _describe(segments, languages, seed)
    # Last, so that a folder with a description is a whole one.
    write_json(folder / "corpus.json", description)
    return description


def build_segments(languages: Sequence[str], sizes: dict[str, int], seed: int) -> dict[str, list[Segment]]:
    """The phrases of each split with their texts. A smaller train is the beginning of a larger one."""
    require_babel()
    _check(languages, sizes)
    builder = _Builder(languages, seed)
    # Train first: what is held out may only use names that train has.
    drawn = {split: builder.fill(split, sizes[split]) for split in ("train", "test", "valid")}
    return {split: drawn[split] for split in SPLITS}


def combination_key(phrase: Phrase) -> str:
    """What a phrase combines: its template and the identities in its slots, in whatever order, without the numbers.
    A phrase of a single slot combines little, so there 1 and all other numbers are told apart as well."""
    parts = [phrase.template]
    for slot in phrase.slots:
        parts.append(",".join(sorted(slot.names)))
        if not TEMPLATES[phrase.template].combined:
            parts.append(",".join("one" if number == "1" else "more" for number in slot.numbers))
    return "|".join(parts)


def slot_values(phrase: Phrase) -> set[tuple[str, str]]:
    """Each single thing the phrase names, with the family of names it is one of."""
    return {(KINDS[slot.kind].family, name) for slot in phrase.slots for name in slot.names}


def without_numbers(text: str) -> str:
    """The text with each number, separators and all, as one `#`: equal texts differ in numbers at most."""
    return re.sub(r"\d(?:[\d.,]*\d)?", "#", text)


class _Builder:
    """Fills the splits one after the other, remembering what has been said."""

    def __init__(self, languages: Sequence[str], seed: int) -> None:
        self.languages = tuple(dict.fromkeys(languages))
        self.seed = seed
        # The demo's own languages always count, so that asking for fewer of them gives the same segments.
        everyone = {*self.languages, *BASE_LANGUAGES, *NEW_LANGUAGES}
        self.inventory: Inventory = inventory_of(tuple(sorted(everyone)))
        self.seen: dict[str, set[str]] = {language: set() for language in self.languages}
        self.masks: dict[str, set[str]] = {split: set() for split in SPLITS}
        self.known: set[tuple[str, str]] = set()

    def fill(self, split: str, size: int) -> list[Segment]:
        segments: list[Segment] = []
        for phrase in self._draws(split, size * _DRAWS_PER_LINE):
            if len(segments) == size:
                break
            # English is the yardstick of "differs by numbers only", whether or not it is among the languages.
            mask = without_numbers(render(phrase, "en"))
            if not self._admits(split, phrase, mask):
                continue
            texts = {language: render(phrase, language) for language in self.languages}
            if any(text in self.seen[language] for language, text in texts.items()):
                continue
            for language, text in texts.items():
                self.seen[language].add(text)
            self.masks[split].add(mask)
            if split == "train":
                self.known |= slot_values(phrase)
            segments.append(Segment(phrase, texts))
        if len(segments) < size:
            raise DataError(
                f"the demo corpus has room for {len(segments)} {split} lines, {size} were asked for; "
                "ask for fewer, or for more train lines, whose names the others may use."
            )
        return segments

    def _draws(self, split: str, limit: int) -> Iterator[Phrase]:
        """Random phrases whose combination belongs to the split; each split has a source of its own."""
        source = random.Random(f"{self.seed} {split}")
        for _ in range(limit):
            phrase = draw_phrase(source, self.inventory)
            # `Greek (Cyprus) / Greek (Cyprus)` is nothing anyone says.
            if len(set(phrase.slots)) == len(phrase.slots) and _split_of(phrase, self.seed) == split:
                yield phrase

    def _admits(self, split: str, phrase: Phrase, mask: str) -> bool:
        if split == "train":
            return True
        # One line per combination, so that the held-out scores are of as many combinations as lines.
        return slot_values(phrase) <= self.known and not any(mask in masks for masks in self.masks.values())


def _split_of(phrase: Phrase, seed: int) -> str:
    """A hash decides, so that a combination belongs to one split whatever the sizes and the order of drawing."""
    digest = hashlib.sha256(f"{seed} {combination_key(phrase)}".encode()).digest()
    point = int.from_bytes(digest[:4], "big") % 1000
    if point < _TEST_SHARE:
        return "test"
    return "valid" if point < _TEST_SHARE + _VALID_SHARE else "train"


def _check(languages: Sequence[str], sizes: dict[str, int]) -> None:
    if not languages or len(set(languages)) < len(languages):
        raise LanguageError(f"the demo corpus needs one or more languages, each once; got {list(languages)}.")
    for split, size in sizes.items():
        if size < 0:
            raise DataError(f"the demo corpus cannot have {size} {split} lines; expected 0 or more.")


def _lines_of(segments: dict[str, list[Segment]], languages: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    return {
        split: {language: [segment.texts[language] for segment in drawn] for language in languages}
        for split, drawn in segments.items()
    }


def _describe(segments: dict[str, list[Segment]], languages: Sequence[str], seed: int) -> dict[str, Any]:
    import babel
    from babel.core import get_cldr_version

    return {
        "languages": list(languages),
        "seed": seed,
        "lines": {split: len(drawn) for split, drawn in segments.items()},
        "combined_share": {split: _share(drawn, combined=True) for split, drawn in segments.items()},
        "template_shares": {split: _template_shares(drawn) for split, drawn in segments.items()},
        "babel": babel.__version__,
        "cldr": get_cldr_version(),
    }


def _share(drawn: list[Segment], *, combined: bool) -> float:
    matching = sum(TEMPLATES[segment.phrase.template].combined == combined for segment in drawn)
    return round(matching / max(1, len(drawn)), 4)


def _template_shares(drawn: list[Segment]) -> dict[str, float]:
    counts = Counter(segment.phrase.template for segment in drawn)
    return {template: round(counts[template] / max(1, len(drawn)), 4) for template in TEMPLATES}
