"""Cleaning a line-aligned corpus: what is repaired, what is dropped, and why. Layer 4.

A bad text is emptied, and a line with fewer than two texts left is dropped. `clean_chunk` is a pure function of a few thousand
lines, so that chunks can go to any number of processes; duplicates need to know the lines before, and follow in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

from graftmt.errors import LanguageError, nearest
from graftmt.prepare.cleaning_rules import ALONE, RULES, CleaningConfig, Counts
from graftmt.prepare.detector import detector_code
from graftmt.prepare.evidence import MOST_TEXTS, spread
from graftmt.prepare.hashes import SeenLines
from graftmt.prepare.language_id import LanguageFilter
from graftmt.prepare.markup import without_markup
from graftmt.prepare.placeholders import difference
from graftmt.prepare.repairs import (
    normalised,
    prose,
    with_plain_spaces,
    with_right_encoding,
    without_control_characters,
)
from graftmt.prepare.scripts import expected_scripts, foreign_share, length_of
from graftmt.prepare.source import Line, Source, spread_lines
from graftmt.workers import pool

CHUNK = 2_000
"""Lines; the result does not depend on it."""
SAMPLE = 10_000
"""Lines spread over the whole corpus, at most: what is learnt about its languages and scripts is learnt from them."""
SLACK = 10
"""Characters added to both lengths of a ratio, so that short texts may differ more."""

__all__ = [
    "CleaningConfig",
    "CleaningReport",
    "CleaningState",
    "Counts",
    "chunks_of",
    "clean",
    "clean_chunk",
    "examine",
]

Chunk: TypeAlias = list[Line]


@dataclass(frozen=True)
class CleaningState:
    """What the rules need to know about the corpus as a whole; plain data, the same for every chunk."""

    languages: tuple[str, ...]
    reference: int
    """Place of the reference among the languages."""
    scripts: tuple[frozenset[str], ...] = ()
    """Expected ones, by language; none where that is not known."""
    filter: LanguageFilter = field(default_factory=LanguageFilter)


@dataclass
class CleaningReport:
    """Filled while the cleaned source is read; complete at its end."""

    name: str
    config: CleaningConfig
    state: CleaningState
    counts: Counts = field(default_factory=Counts)

    def document(self) -> dict[str, Any]:
        """For report.json."""
        counts, languages = self.counts, self.state.languages
        dropped = {rule: counts.lines[rule] for rule in (ALONE, "duplicates") if counts.lines[rule]}
        ordered = [rule for rule in (*RULES, ALONE) if rule in counts.dropped or rule in counts.repaired]
        return {
            "source": self.name,
            "config": asdict(self.config),
            "lines": {"read": counts.lines["read"], "kept": counts.lines["kept"], "dropped": dropped},
            "texts": {name: {"read": counts.read[name], "kept": counts.kept[name]} for name in languages},
            "repaired": {rule: dict(counts.repaired[rule]) for rule in ordered if rule in counts.repaired},
            "dropped": {rule: dict(counts.dropped[rule]) for rule in ordered if rule in counts.dropped},
            "scripts": {name: sorted(found) for name, found in zip(languages, self.state.scripts, strict=False)},
            "language_id": dict(self.state.filter.notes),
            "examples": {rule: counts.examples[rule] for rule in ordered if rule in counts.examples},
        }


ChunkMapper: TypeAlias = Callable[[Iterator[Chunk], CleaningConfig, CleaningState], Iterator[tuple[Chunk, Counts]]]
"""Runs `clean_chunk` on chunks and gives the results in their order; another engine can take its place."""


def clean(
    source: Source,
    config: CleaningConfig | None = None,
    *,
    trusted: Mapping[str, Sequence[str]] | None = None,
    mapper: ChunkMapper | None = None,
) -> tuple[Source, CleaningReport]:
    """The source as it is after cleaning, and a report that fills while it is read.

    `trusted`: text in languages that the detector does not know. `mapper`: where chunks are cleaned, default: here; the
    result is the same.
    """
    config = config or CleaningConfig()
    state = examine(source, config, trusted)
    report = CleaningReport(source.name, config, state)
    run = mapper or in_this_process

    def read() -> Iterator[Line]:
        report.counts = Counts()
        seen = SeenLines()
        for lines, counts in run(chunks_of(source), config, state):
            report.counts.add(counts)
            kept = without_duplicates(lines, seen, state, report.counts) if config.duplicates else lines
            report.counts.lines["kept"] += len(kept)
            for line in kept:
                report.counts.kept.update(language for language, text in zip(state.languages, line, strict=True) if text)
            yield from kept

    return Source(f"{source.name}, cleaned", source.languages, read), report


def examine(source: Source, config: CleaningConfig, trusted: Mapping[str, Sequence[str]] | None = None) -> CleaningState:
    """What can be known before the first line is cleaned, from the languages' names and lines spread over the whole corpus."""
    languages = source.languages
    if config.reference and config.reference not in languages:
        raise LanguageError(
            f"the reference language {config.reference!r} is not in {source.name}{nearest(config.reference, languages) or '.'} "
            f"Languages there: {', '.join(languages)}."
        )
    english = [name for name in languages if detector_code(name) == "en"]
    reference = languages.index(config.reference or (english or languages)[0])
    lines = spread_lines(source, SAMPLE) if config.scripts or config.language_id else []
    sample = {name: [text for line in lines if (text := line[place])] for place, name in enumerate(languages)}
    state = CleaningState(languages, reference)
    if config.scripts:
        found = tuple(expected_scripts(name, detector_code(name), sample[name]) for name in languages)
        state = replace(state, scripts=found)
    if config.language_id:
        words = {
            name: [prose(repair(text, name, config, Counts())) for text in spread(list(dict.fromkeys(texts)), MOST_TEXTS)]
            for name, texts in sample.items()
        }
        judge = LanguageFilter.make(
            languages,
            open_set=config.open_set,
            trusted=trusted,
            sample=words,
            candidates=config.candidates,
            margin=config.margin,
        )
        state = replace(state, filter=judge)
    return state


def chunks_of(source: Source) -> Iterator[Chunk]:
    lines = iter(source)
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def clean_chunk(chunk: Chunk, config: CleaningConfig, state: CleaningState) -> tuple[Chunk, Counts]:
    """All rules but duplicates. Pure: the same chunk gives the same result anywhere."""
    counts = Counts()
    kept = []
    fewest = min(2, len(state.languages)) if config.empty else 0
    for line in chunk:
        counts.lines["read"] += 1
        texts = clean_line(line, config, state, counts)
        if sum(map(bool, texts)) >= fewest:
            kept.append(tuple(texts))
            continue
        counts.lines[ALONE] += 1
        for language, text in zip(state.languages, texts, strict=True):
            if text:
                counts.drop(ALONE, language, text)
    return kept, counts


def clean_line(line: Line, config: CleaningConfig, state: CleaningState, counts: Counts) -> list[str]:
    """The line's texts, repaired, and "" for those that a rule dropped."""
    texts = list(line)
    for place, (language, text) in enumerate(zip(state.languages, line, strict=True)):
        if text:
            counts.read[language] += 1
            texts[place] = repair(text, language, config, counts)
    for place, rule, why in first_findings(texts, line, config, state):
        counts.drop(rule, state.languages[place], texts[place] or line[place], why)
        texts[place] = ""
    return texts


REPAIR_ROUNDS = 8


def repair(text: str, language: str, config: CleaningConfig, counts: Counts) -> str:
    """The text after the repairs, each counted where it changed something."""
    steps: list[tuple[str, Callable[[str], str]]] = []
    if config.encoding:
        steps.append(("encoding", with_right_encoding))
    if config.control_characters:
        steps.append(("control_characters", without_control_characters))
    if config.markup:
        steps.append(("markup", without_markup))
    if config.normalisation != "none":
        steps.append(("normalisation", lambda before: normalised(before, config.normalisation)))
    if config.whitespace:
        steps.append(("whitespace", with_plain_spaces))
    repaired: set[str] = set()
    # One repair can bring to light what another one mends, so they are done until nothing changes: clean text stays as it is.
    for _ in range(REPAIR_ROUNDS):
        before = text
        for rule, step in steps:
            after = step(text)
            if after != text and rule not in repaired:
                repaired.add(rule)
                counts.repair(rule, language, text, after)
            text = after
        if text == before:
            break
    return text


def first_findings(
    texts: list[str], line: Line, config: CleaningConfig, state: CleaningState
) -> Iterator[tuple[int, str, str]]:
    """(place, rule, why) for each text to drop. The caller empties it before it asks for the next one."""
    for place, text in enumerate(texts):
        if line[place] and not text.strip():
            # The repairs left nothing, so this is no choice.
            yield place, "empty", ""
        elif config.invalid and text and not is_valid(text):
            yield place, "invalid", "characters were lost"
        elif config.too_long and len(text) > config.longest_characters:
            yield place, "too_long", f"{len(text):,} characters"
        elif config.too_long and len(text.split()) > config.longest_words:
            yield place, "too_long", f"{len(text.split()):,} words"
    if config.copies:
        yield from ((place, "copies", "") for place in copies(texts, state.reference))
    if config.placeholders and texts[state.reference]:
        original = texts[state.reference]
        for place, text in enumerate(texts):
            if text and place != state.reference and (why := difference(original, text)):
                yield place, "placeholders", why
    if config.length_ratio:
        yield from (
            (place, "length_ratio", why) for place, why in out_of_proportion(texts, state.reference, config.largest_ratio)
        )
    for place, text in enumerate(texts):
        words = prose(text)
        if config.scripts and state.scripts[place]:
            share = foreign_share(words, state.scripts[place])
            if share > config.largest_foreign_share:
                yield place, "scripts", f"{share:.0%} of the letters are not {' or '.join(sorted(state.scripts[place]))}"
                continue
        if config.language_id and words:
            other = state.filter.other_language(words, state.languages[place])
            if other:
                yield place, "language_id", other


def is_valid(text: str) -> bool:
    if "\ufffd" in text:
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def copies(texts: Sequence[str], reference: int) -> Iterator[int]:
    """The places whose text repeats the reference's; where that is missing, nothing is known to be a copy."""
    original = texts[reference].casefold()
    if not any(map(str.isalpha, original)):
        return  # a number, or a placeholder by itself, is the same in all languages
    yield from (place for place, text in enumerate(texts) if place != reference and text and text.casefold() == original)


def out_of_proportion(texts: Sequence[str], reference: int, largest: float) -> list[tuple[int, str]]:
    """The places whose text is too long or too short for the line; of two, the one that is not the reference."""
    lengths = {place: length_of(text) + SLACK for place, text in enumerate(texts) if text}
    if len(lengths) < 2:
        return []
    if len(lengths) == 2:
        places = sorted(lengths, key=lambda place: place == reference)
        standard, checked = lengths[places[1]], places[:1]
    else:
        standard, checked = sorted(lengths.values())[len(lengths) // 2], list(lengths)
    ratios = {place: max(lengths[place], standard) / min(lengths[place], standard) for place in checked}
    return [(place, f"ratio {ratio:.1f}") for place, ratio in ratios.items() if ratio > largest]


def without_duplicates(lines: Chunk, seen: SeenLines, state: CleaningState, counts: Counts) -> Chunk:
    """The lines that are new; lines must come in the corpus's order."""
    kept = []
    for line, new in zip(lines, seen.add(lines), strict=True):
        if new:
            kept.append(line)
            continue
        counts.lines["duplicates"] += 1
        for language, text in zip(state.languages, line, strict=True):
            if text:
                counts.drop("duplicates", language, text)
    return kept


def in_this_process(chunks: Iterator[Chunk], config: CleaningConfig, state: CleaningState) -> Iterator[tuple[Chunk, Counts]]:
    for chunk in chunks:
        yield clean_chunk(chunk, config, state)


def in_processes(number: int) -> ChunkMapper:
    """Chunks go to `number` processes, a few ahead of what is read, and come back in order."""

    def run(chunks: Iterator[Chunk], config: CleaningConfig, state: CleaningState) -> Iterator[tuple[Chunk, Counts]]:
        with pool(number, _start_worker, (config, state)) as workers:
            waiting: list[Future[tuple[Chunk, Counts]]] = []
            for chunk in chunks:
                waiting.append(workers.submit(_clean_in_worker, chunk))
                if len(waiting) > 2 * number:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()

    return run


_worker: tuple[CleaningConfig, CleaningState]  # set in each process, so that a classifier is sent once and not per chunk


def _start_worker(config: CleaningConfig, state: CleaningState) -> None:
    global _worker
    _worker = (config, state)


def _clean_in_worker(chunk: Chunk) -> tuple[Chunk, Counts]:
    return clean_chunk(chunk, *_worker)
