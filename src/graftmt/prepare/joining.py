"""Several corpora as one: each line once, with where it came from, and as often as its source's weight says. Layer 4.

A line that is in several sources is taken from the first. What one source holds out, as its valid or test text, no source
trains on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from graftmt.data.corpus import NO_LANGUAGES
from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.prepare.hashes import SeenLines, hash_of
from graftmt.prepare.output_folder import check_replaceable, corpus_source, open_splits
from graftmt.prepare.readers import moses
from graftmt.prepare.readers.any_format import Wanted, files_of, is_readable, read_any
from graftmt.prepare.readers.archives import find_files, without_compression
from graftmt.prepare.repairs import one_line
from graftmt.prepare.source import ORIGIN, Line, Source, write_corpus

MOST_COPIES = 100
_BATCH = 2_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of the corpora to join."""

    name: str
    splits: Mapping[str, Source]
    weight: float = 1.0
    """How often each of its training lines is there; 0.25 is a quarter of them."""
    files: tuple[Path, ...] = ()


@dataclass
class Tally:
    """What became of the lines of a part, by split."""

    read: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    held_out: Counter[str] = field(default_factory=Counter)
    """Training lines that are in somebody's valid or test text."""
    written: Counter[str] = field(default_factory=Counter)

    def document(self) -> dict[str, dict[str, int]]:
        counts = {"read": self.read, "duplicates": self.duplicates, "held_out": self.held_out, "written": self.written}
        return {name: dict(counter) for name, counter in counts.items() if counter}


def open_parts(arguments: Sequence[str], languages: Sequence[str] = ()) -> list[Part]:
    """The corpora that a command names. Files such as pairs.en and pairs.ca, one after the other, are one corpus."""
    groups: list[list[str]] = []
    for argument in arguments:
        stem = _moses_stem(argument)
        if stem is not None and groups and _moses_stem(groups[-1][0]) == stem:
            groups[-1].append(argument)
        else:
            groups.append([argument])
    return [_open_sides(group, languages) if len(group) > 1 else open_part(group[0], languages) for group in groups]


def _moses_stem(argument: str) -> tuple[Path, str, float] | None:
    """What the sides of line-aligned files share: folder, name without the language, and weight. None of anything else."""
    path, weight = _weighted(argument)
    file = Path(path).expanduser()
    found = moses.language_and_stem(without_compression(file.name))
    if found is None or not file.is_file() or is_readable(path):
        return None
    return file.parent, found[1], weight


def _open_sides(arguments: Sequence[str], languages: Sequence[str]) -> Part:
    paths, weights = zip(*map(_weighted, arguments), strict=True)
    splits = {name: _chosen(source, languages) for name, source in moses.read_moses(find_files(paths)).items()}
    return Part(name=" and ".join(paths), splits=splits, weight=weights[0], files=tuple(map(Path, paths)))


def open_part(argument: str, languages: Sequence[str] = ()) -> Part:
    """PATH or PATH@WEIGHT: a corpus folder, or a file or folder in any format that is read, for which languages are needed."""
    path, weight = _weighted(argument)
    folder = Path(path).expanduser()
    if folder.is_dir() and not _is_other_format(folder):
        corpora = open_splits(folder)
        splits = {name: _chosen(corpus_source(corpus), languages) for name, corpus in corpora.items()}
        files = tuple(file for corpus in corpora.values() for file in corpus.files.values())
        return Part(name=path, splits=splits, weight=weight, files=(folder, *files))
    if _moses_stem(argument) is not None:
        raise DataError(f"{path} is one side of line-aligned files; name the other one next to it, as in pairs.en pairs.ca.")
    if not is_readable(path):
        raise DataError(f"{path}: there is no corpus folder and no file in a known format here; see graftmt prepare --help.")
    if len(languages) < 2:
        raise ConfigError(f"{path} is no corpus folder: say which languages to take from it, as in --languages en,ca.")
    wanted = Wanted(new=tuple(languages[1:]), partners=(), known=(languages[0],))
    found = read_any(path, wanted)
    splits = {"train": found.source}
    for name in found.splits:
        if name != "train" and not folder.is_file():
            splits[name] = read_any(path, wanted, name).source
    return Part(name=path, splits=splits, weight=weight, files=tuple(files_of(path)))


def _is_other_format(folder: Path) -> bool:
    """Whether a folder has files in a known format, and none of a corpus folder."""
    try:
        open_splits(folder)
    except (DataError, LanguageError):
        return is_readable(str(folder))
    return False


def _weighted(argument: str) -> tuple[str, float]:
    if Path(argument).expanduser().exists():
        return argument, 1.0
    path, at, number = argument.rpartition("@")
    if not at:
        return argument, 1.0
    try:
        weight = float(number)
    except ValueError:
        return argument, 1.0
    if not (isfinite(weight) and 0 < weight <= MOST_COPIES):
        raise ConfigError(f"{argument}: the weight is {number}; expected more than 0 and at most {MOST_COPIES}.")
    return path, weight


def _chosen(source: Source, languages: Sequence[str]) -> Source:
    """The source in these languages alone; all where none are named."""
    if not languages:
        return source
    kept = tuple(language for language in languages if language in source.languages)
    if len(kept) < 2:
        raise LanguageError(f"{source.name} has {', '.join(source.languages)}; expected two or more of {', '.join(languages)}.")
    places = [source.languages.index(language) for language in kept]
    return Source(source.name, kept, lambda: (tuple(line[place] for place in places) for line in source))


def join(
    parts: Sequence[Part],
    output: Path,
    *,
    keep_duplicates: bool = False,
    progress: Callable[[Source, str], Source] = lambda source, name: source,
) -> dict[str, Any]:
    """Writes the joined corpus, and returns what became of each part's lines, which its corpus.json has too."""
    if not parts:
        raise ConfigError("there is nothing to join; name corpus folders or files.")
    check_replaceable(output, [path for part in parts for path in part.files])
    names = list(dict.fromkeys(split for part in parts for split in part.splits))
    # Held-out text first: what is there must not be trained on.
    names.sort(key=lambda name: name == "train")
    work = _Joining(parts, keep_duplicates)
    joined = {name: progress(work.split(name), name) for name in names}
    lines = write_corpus(output, joined, {"made_by": "graftmt prepare join", "sources": work.sources})
    return {"lines": lines, "sources": work.sources}


class _Joining:
    """The splits of several parts, in the order in which they are read; `sources` is filled on the way."""

    def __init__(self, parts: Sequence[Part], keep_duplicates: bool) -> None:
        self.parts, self.keep_duplicates = parts, keep_duplicates
        self.tallies = [Tally() for _ in parts]
        self.sources: list[dict[str, Any]] = []
        self.held_out = SeenLines()
        """(language, text) of each text that is held out."""

    def split(self, name: str) -> Source:
        having = [(part, tally) for part, tally in zip(self.parts, self.tallies, strict=True) if name in part.splits]
        found = {language for part, _ in having for language in part.splits[name].languages}
        languages = tuple(sorted(found - NO_LANGUAGES))

        def read() -> Iterator[Line]:
            seen = SeenLines()
            for part, tally in having:
                source = part.splits[name]
                places = [source.languages.index(code) if code in source.languages else None for code in languages]
                numbered = enumerate(source, 1)
                while batch := list(islice(numbered, _BATCH)):
                    lines = [tuple("" if place is None else one_line(line[place]) for place in places) for _, line in batch]
                    tally.read[name] += len(batch)
                    known = self._held_out(lines, languages, add=name != "train")
                    fresh = [True] * len(lines) if self.keep_duplicates else seen.add(lines)
                    for (number, _), line, is_held_out, new in zip(batch, lines, known, fresh, strict=True):
                        if is_held_out or not new:
                            (tally.held_out if is_held_out else tally.duplicates)[name] += 1
                            continue
                        copies = _copies(line, part.weight) if name == "train" else 1
                        tally.written[name] += copies
                        yield from [(*line, f"{part.name}:{number}")] * copies
            self.sources[:] = [
                {"name": part.name, "weight": part.weight, **tally.document()}
                for part, tally in zip(self.parts, self.tallies, strict=True)
            ]

        return Source(f"the {name!r} split of {len(having)} sources", (*languages, ORIGIN), read)

    def _held_out(self, lines: Sequence[Line], languages: Sequence[str], *, add: bool) -> list[bool]:
        """Whether each line is held out, in all languages it has; or these lines become so."""
        pairs = [[(code, text) for code, text in zip(languages, line, strict=True) if text] for line in lines]
        flat = [pair for line in pairs for pair in line]
        if add:
            self.held_out.add(flat)
            return [False] * len(lines)
        known = iter(self.held_out.has(flat))
        return [all([next(known) for _ in line]) and bool(line) for line in pairs]


def _copies(line: Line, weight: float) -> int:
    """The whole part of the weight. For a share of the lines, which is its fraction, one more; the text decides which."""
    whole = int(weight)
    return whole + (hash_of(("weight", *line)) < (weight - whole) * 2**64)
