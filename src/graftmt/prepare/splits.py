"""Valid and test splits taken out of a corpus, with nothing of them left in the training text. Layer 4.

What is held out is either fully multi-parallel lines, or random pairs for each direction (the paper's TED2020 validation).
A training line goes when, in any language, it has the letters of a line held out: the same text but for case, digits,
punctuation, symbols and whitespace. Memory is that of the lines held out, whatever the size of the corpus.
"""

from __future__ import annotations

import hashlib
import heapq
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from graftmt.data import Corpus, select_directions
from graftmt.data.corpus import segmented
from graftmt.errors import ConfigError, DataError
from graftmt.prepare.output_folder import check_replaceable, corpus_source, open_splits
from graftmt.prepare.source import Line, Source, write_corpus
from graftmt.progress import progress

Group: TypeAlias = tuple[int, ...]
"""Numbers of the languages in which the lines of a set all have text: every language, or the two of a direction."""
Letters: TypeAlias = list[set[str]]
"""Per language, the letters of the lines held out."""


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    valid: int = 2000
    """Lines; with `per_direction`, pairs of each direction."""
    test: int = 2000
    per_direction: bool = False
    directions: str | None = None
    """The directions that get a set of their own with `per_direction`, as a view or a list. Default: all."""
    train: bool = True
    """Whether to write what is left; a corpus for validation alone has no use for it."""
    seed: int = 1

    def __post_init__(self) -> None:
        if self.directions is not None and not self.per_direction:
            raise ConfigError(
                f"--directions {self.directions} is for sets of each direction: add --per-direction, or leave it out (lines "
                "held out have text in every language; --languages chooses those)."
            )
        for name, count in self.sizes.items():
            if count < 0:
                raise ConfigError(f"the number of {name} lines is {count}; expected 0 (no such split) or more.")
        if not self.train and not any(self.sizes.values()):
            raise ConfigError("neither train, nor valid, nor test is to be written; ask for one of them.")

    @property
    def sizes(self) -> dict[str, int]:
        return {"valid": self.valid, "test": self.test}


@dataclass(frozen=True)
class Split:
    """What was written."""

    lines: dict[str, int]
    """Per split. With `per_direction` a line has text in two languages, and serves both directions between them."""
    languages: tuple[str, ...]
    left_out: dict[str, int]
    """Of the training text: `held_out`, lines of which something is in valid or test, and `near_duplicates` of these lines
    or of the corpora to keep clear of."""


class _Candidate(NamedTuple):
    """Ordered as a draw: by a number that seed and text decide, then by place."""

    key: int
    position: int
    line: Line


class _LettersOf(dict[int, int | None]):
    """For `str.translate`: letters and the marks that belong to them stay, all else goes; looked up once a character."""

    def __missing__(self, character: int) -> int | None:
        kept = character if unicodedata.category(chr(character))[0] in "LM" else None
        self[character] = kept
        return kept


_LETTERS_OF = _LettersOf()


def letters(text: str) -> str:
    """What near-duplicates have in common: the letters, without case."""
    return unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS_OF)


def held_out_splits(folder: Path) -> list[Corpus]:
    """The splits of a corpus folder but `train`: valid, test, dev, devtest or whatever they are called."""
    splits = [corpus for name, corpus in open_splits(folder).items() if name != "train"]
    if not splits:
        raise DataError(f"{folder} has no split besides train, such as test.en.txt; nothing to keep clear of.")
    return splits


def split_corpus(
    corpus: Corpus, output: Path, options: SplitOptions | None = None, *, clear_of: Sequence[Corpus] = ()
) -> Split:
    """Writes train, valid and test of `corpus` as a folder, whole or not at all.

    `clear_of` are corpora, test sets for instance, whose lines are to have no near-duplicate in what is written.
    """
    options = options or SplitOptions()
    check_replaceable(output, [*corpus.files.values(), *(file for other in clear_of for file in other.files.values())])
    source = corpus_source(corpus)
    foreign = _letters_of_others(clear_of, corpus.languages)
    chosen = _choose(source, _groups(source, options), options, foreign)
    rest = _Rest(source, chosen, foreign)
    sources = {"train": rest.source()} if options.train else {}
    for name, sets in chosen.items():
        sources[name] = Source(name, source.languages, _written(sets, len(source.languages)))
    # The counts are filled while the training text is read, before the folder's corpus.json is written.
    made = {**asdict(options), "made_from": str(corpus.folder), "left_out": rest.left_out}
    facts = {"split": made, **segmented(corpus.files.items())}
    return Split(write_corpus(output, sources, facts), source.languages, rest.left_out)


def _letters_of_others(corpora: Iterable[Corpus], languages: Sequence[str]) -> Letters:
    found: Letters = [set() for _ in languages]
    for corpus in corpora:
        for texts, language in zip(found, languages, strict=True):
            if language in corpus.languages:
                texts.update(filter(None, map(letters, corpus.lines(language))))
    return found


def _groups(source: Source, options: SplitOptions) -> list[Group]:
    if len(source.languages) < 2:
        raise DataError(f"{source.name} has {', '.join(source.languages)} alone; splits are of lines in two or more languages.")
    if not options.per_direction:
        return [tuple(range(len(source.languages)))]
    directions = select_directions(options.directions or "multi-parallel", source.languages)
    pairs = {tuple(sorted(source.languages.index(language) for language in direction)) for direction in directions}
    return sorted(pairs)


Chosen: TypeAlias = dict[str, dict[Group, list[_Candidate]]]


def _choose(source: Source, groups: Sequence[Group], options: SplitOptions, foreign: Letters) -> Chosen:
    """The lines of each split and group. More are drawn than needed, for near-duplicates go; again where too few stay."""
    wanted = sum(options.sizes.values())
    if not wanted:
        return {}
    limit = 2 * wanted + 100
    while True:
        drawn, exhausted = _draw(source, groups, limit, options.seed)
        chosen: Chosen = {}
        taken: Letters = [set(texts) for texts in foreign]
        short: dict[Group, int] = {}
        for name, size in options.sizes.items():
            if not size:
                continue
            here: Letters = [set() for _ in source.languages]
            chosen[name] = {}
            for group in groups:
                chosen[name][group] = _different(drawn[group], group, size, taken, here)
                if len(chosen[name][group]) < size:
                    short[group] = min(short.get(group, size), len(chosen[name][group]))
            for texts, more in zip(taken, here, strict=True):
                texts |= more
        if not short:
            return chosen
        if all(group in exhausted for group in short):
            raise _too_few(source, options, short, drawn)
        limit *= 4


def _draw(source: Source, groups: Sequence[Group], limit: int, seed: int) -> tuple[dict[Group, list[_Candidate]], set[Group]]:
    """For each group the `limit` first lines of a random order, and the groups that have no more lines than these.

    The order comes from the text of a line's first language: a line that is there often is no likelier than a rare one.
    Groups share it, so that sets for many directions are made from few lines of the corpus.
    """
    heaps: dict[Group, list[tuple[int, int, Line]]] = {group: [] for group in groups}
    overflowed: set[Group] = set()
    salt = hashlib.sha256(str(seed).encode()).digest()
    with progress(f"choosing lines of {source.name}", 0) as report:
        for position, line in enumerate(source):
            if position % 10_000 == 0:
                report.update(position, "lines")
            present = {number for number, text in enumerate(line) if text and not text.isspace()}
            fitting = [group for group in groups if present.issuperset(group)]
            if not fitting:
                continue
            first = letters(line[min(present)])
            key = int.from_bytes(hashlib.blake2b(first.encode(), key=salt, digest_size=8).digest(), "big")
            for group in fitting:
                item = (-key, -position, line)  # the largest key is the first to go
                if len(heaps[group]) < limit:
                    heapq.heappush(heaps[group], item)
                else:
                    overflowed.add(group)
                    if item[:2] > heaps[group][0][:2]:
                        heapq.heapreplace(heaps[group], item)
    drawn = {group: sorted(_Candidate(-key, -place, line) for key, place, line in heap) for group, heap in heaps.items()}
    return drawn, set(groups) - overflowed


def _different(candidates: Sequence[_Candidate], group: Group, size: int, taken: Letters, here: Letters) -> list[_Candidate]:
    """The first `size` lines that share no text with each other, nor with what is taken; what they have is noted in `here`."""
    chosen: list[_Candidate] = []
    own: Letters = [set() for _ in taken]
    for candidate in candidates:
        if len(chosen) == size:
            break
        texts = {number: letters(candidate.line[number]) for number in group}
        # A line without letters, such as a date, tests no translation and would be a duplicate of all the like.
        if not all(texts.values()) or any(text in taken[number] or text in own[number] for number, text in texts.items()):
            continue
        chosen.append(candidate)
        for number, text in texts.items():
            own[number].add(text)
    for noted, more in zip(here, own, strict=True):
        noted |= more
    return chosen


def _too_few(
    source: Source, options: SplitOptions, short: Mapping[Group, int], drawn: Mapping[Group, Sequence[_Candidate]]
) -> DataError:
    group = min(short, key=lambda group: len(drawn[group]))
    names = " and ".join(source.languages[number] for number in group)
    many = f" ({len(short)} such pairs)" if len(short) > 1 else ""
    asked = " and ".join(f"{size:,} {name}" for name, size in options.sizes.items() if size)
    return DataError(
        f"{source.name} has {len(drawn[group]):,} lines with text in {names}{many}, too few that differ in more than case, "
        f"digits and punctuation for {asked} lines. Ask for fewer lines, or name fewer languages."
    )


def _written(sets: Mapping[Group, Sequence[_Candidate]], languages: int) -> Callable[[], Iterator[Line]]:
    """The lines of a split, in the order of the draw: the first N of them are as good a sample as any."""

    def read() -> Iterator[Line]:
        rows = sorted(
            (candidate.key, candidate.position, group, candidate.line) for group, found in sets.items() for candidate in found
        )
        for _, _, group, line in rows:
            yield tuple(line[number] if number in group else "" for number in range(languages))

    return read


class _Rest:
    """The lines that stay for training: neither held out, nor near-duplicates of what is."""

    def __init__(self, source: Source, chosen: Chosen, foreign: Letters) -> None:
        self.all = source
        self.positions = {candidate.position for sets in chosen.values() for found in sets.values() for candidate in found}
        self.letters: Letters = [set(texts) for texts in foreign]
        for sets in chosen.values():
            for group, found in sets.items():
                for number in group:
                    self.letters[number].update(letters(candidate.line[number]) for candidate in found)
        self.left_out = {"held_out": len(self.positions), "near_duplicates": 0}

    def source(self) -> Source:
        name = f"what is left of {self.all.name} besides the lines held out and their near-duplicates"
        return Source(name, self.all.languages, self._read)

    def _read(self) -> Iterator[Line]:
        self.left_out["near_duplicates"] = 0
        with progress("writing what is left", 0) as report:
            for position, line in enumerate(self.all):
                if position % 10_000 == 0:
                    report.update(position, "lines")
                if position in self.positions:
                    continue
                if any(text and letters(text) in held_out for text, held_out in zip(line, self.letters, strict=True)):
                    self.left_out["near_duplicates"] += 1
                    continue
                yield line
