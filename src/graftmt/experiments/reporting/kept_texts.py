"""Test sets and translations where an experiment keeps them as plain text, or a report as compressed tables. Layer 7."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from graftmt.data.line_files import read_lines
from graftmt.errors import DataError
from graftmt.experiments.reporting.result_files import Result
from graftmt.experiments.reporting.stored_translations import StoredTranslations, TestLines, stored_file, stored_files

TRANSLATIONS = "translations"


class NoLines(DataError):
    """A test set whose lines were not kept, or not as they were scored."""


class KeptTexts:
    """The texts next to result files. Plain text counts; what a report has is for jobs without it."""

    def __init__(self, *folders: Path) -> None:
        """`folders`: the experiment's `translations`, or a report's, and then those of earlier reports."""
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        self.read = lru_cache(maxsize=24)(StoredTranslations.read)  # the directions of one pack
        self.plain = cache(self._plain)
        self.lines: Callable[[str, str], TestLines] = lru_cache(maxsize=64)(self._lines)
        """Of a test set in a direction, those with text on both sides."""

    def check(self) -> None:
        """An error that names the file if one of a report's is damaged."""
        for folder in self.folders:
            for path in stored_files(folder):
                self.read(path)

    def _lines(self, set_name: str, direction: str) -> TestLines:
        source, _, target = direction.partition("-")
        missing = next((one for one in (source, target) if self.plain(set_name, one) is None), None)
        if missing is not None:
            found = next(self._stored(set_name, direction), None)
            if found is None:
                raise NoLines(f"the test set's lines in {missing} were not kept")
            return found.lines
        texts = [self.plain(set_name, language) or [] for language in (source, target)]
        if len(texts[0]) != len(texts[1]):
            raise NoLines(f"the test set's lines that were kept for {direction} are of two corpora")
        pairs = list(zip(*texts, strict=True))
        numbers = tuple(number for number, pair in enumerate(pairs) if all(map(str.strip, pair)))
        sources, references = (tuple(pairs[number][side] for number in numbers) for side in (0, 1))
        return TestLines(numbers=numbers, of=len(pairs), sources=sources, references=references)

    def translations(self, name: str, set_name: str, direction: str) -> Sequence[str] | None:
        """Those of a job, None where they were not kept."""
        for folder in self.folders:
            path = folder / name / f"{set_name}.{direction}.txt"
            if path.is_file():
                return list(read_lines(path))
        for stored in self._stored(set_name, direction):
            if name in stored.translations and stored.lines == self.lines(set_name, direction):
                return stored.translations[name]
        return None

    def _plain(self, set_name: str, language: str) -> list[str] | None:
        for folder in self.folders:
            path = folder / "lines" / f"{set_name}.{language}.txt"
            if path.is_file():
                return list(read_lines(path))
        return None

    def _stored(self, set_name: str, direction: str) -> Iterator[StoredTranslations]:
        paths = (stored_file(folder, set_name, direction) for folder in self.folders)
        return (self.read(path) for path in paths if path.is_file())


def store_translations(folder: Path, results: Iterable[Result], texts: KeptTexts) -> list[Path]:
    """Writes a report's tables of translations to `folder`, and removes those of earlier ones that it does not have.

    Of each job the directions with one of its new languages, which bases have none of, in the sets of its best checkpoint.
    """
    jobs: dict[tuple[str, str], set[str]] = {}
    for result in results:
        for split, directions in result.by_set.items():
            for direction in directions if split not in result.last_sets else ():
                if {*direction.split("-", 1)} & {*result.languages}:
                    jobs.setdefault((result.set_names[split], direction), set()).add(result.name)
    written = [path for key, names in sorted(jobs.items()) if (path := _store(folder, *key, names, texts)) is not None]
    for path in {*stored_files(folder)} - {*written}:
        path.unlink()
    return written


def _store(folder: Path, set_name: str, direction: str, names: set[str], texts: KeptTexts) -> Path | None:
    try:
        lines = texts.lines(set_name, direction)
    except NoLines:  # nobody could score them
        return None
    found = {name: text for name in names if (text := texts.translations(name, set_name, direction)) is not None}
    whole = {name: text for name, text in found.items() if len(text) == len(lines.numbers)}  # evaluation.keep_lines
    source, _, target = direction.partition("-")
    stored = StoredTranslations(set_name=set_name, source=source, target=target, lines=lines, translations=whole)
    return stored.write(folder) if whole else None
