"""Whether two texts stand in each other's place, by their scripts and by language ID. Layer 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from graftmt.prepare.language_id import detector_code, language_detector
from graftmt.prepare.scripts import expected_scripts, letter_scripts

CHUNKS, CHUNK_LETTERS = 40, 300
"""Lines are judged together, this number of letters at once: single ones are too short for certainty."""
FEWEST_CHUNKS = 3
NEARLY_ALL, HARDLY_ANY = 0.8, 0.2


def exchanged(
    first: Sequence[str], second: Sequence[str], languages: tuple[str, str]
) -> Literal["exchanged", "same language"] | None:
    """`exchanged` if each text is in the other's language, `same language` if both are in one; None if neither can be told."""
    chunks = (_chunks(first), _chunks(second))
    if min(map(len, chunks)) < FEWEST_CHUNKS or len(set(languages)) < 2:
        return None
    return _by_script(chunks, languages) or _by_language(chunks, languages)


def _chunks(lines: Sequence[str]) -> list[str]:
    """Up to CHUNKS stretches of text, evenly spread."""
    present = [line for line in lines if line.strip()]
    starts = [number * len(present) // CHUNKS for number in range(CHUNKS)] if len(present) > CHUNKS else [0]
    ends = [*starts[1:], len(present)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        text = ""
        for line in present[start:end]:
            text += f"{line} "
            if len(text) > CHUNK_LETTERS:
                break
        found.append(text.strip())
    return found


def _by_script(chunks: tuple[list[str], list[str]], languages: tuple[str, str]) -> Literal["exchanged", "same language"] | None:
    """By the scripts that the languages are known to be written in, where these differ."""
    expected = [expected_scripts(name, detector_code(name), ()) for name in languages]
    found = [letter_scripts(" ".join(texts)) for texts in chunks]
    total = [sum(counts.values()) for counts in found]
    if not all(total):
        return None

    def share(side: int, scripts: frozenset[str]) -> float:
        return sum(found[side].get(script, 0.0) for script in scripts) / total[side]

    known = [side for side in (0, 1) if expected[side]]
    for side in known:
        other = 1 - side
        own, theirs = expected[side], expected[other]
        if theirs and own & theirs:
            return None
        wrong = share(side, own) < HARDLY_ANY and (not theirs or share(side, theirs) > NEARLY_ALL)
        if wrong and share(other, own) > NEARLY_ALL:
            return "exchanged"
        if theirs and share(side, own) > NEARLY_ALL and share(other, own) > NEARLY_ALL:
            return "same language"
    return None


def _by_language(
    chunks: tuple[list[str], list[str]], languages: tuple[str, str]
) -> Literal["exchanged", "same language"] | None:
    codes = [detector_code(name) for name in languages]
    known = language_detector(codes)
    if known is None or codes[0] == codes[1]:
        return None
    of_all = language_detector()
    between = known if all(code in known.labels for code in codes) else of_all  # of two languages the detector is surer
    has = [code in of_all.labels for code in codes]
    if not any(has):
        return None
    # Of a language that the detector does not know, all that can be seen is that the other one is in its place.
    away = [not has[side] or _share(between, chunks[side], codes[side]) < HARDLY_ANY for side in (0, 1)]
    crossed = [not has[1 - side] or _share(between, chunks[side], codes[1 - side]) > NEARLY_ALL for side in (0, 1)]
    if all(away) and all(crossed):
        return "exchanged"
    if all(has):
        for code in codes:
            if all(_share(of_all, texts, code) > NEARLY_ALL for texts in chunks):
                return "same language"
    return None


def _share(detector: Any, chunks: Sequence[str], code: str) -> float:
    """Of the chunks, those that are read as this language."""
    return sum(1 for text in chunks if detector.classify(text)[0] == code) / len(chunks)
