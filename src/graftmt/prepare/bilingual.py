"""Bilingual corpora as people name them: a folder, two files, or the prefix of two files. Layer 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftmt.data.corpus import ENDINGS, Corpus
from graftmt.errors import DataError, LanguageError
from graftmt.text.languages import check_language_names, is_language_name


@dataclass(frozen=True)
class BilingualCorpus:
    """Two files, line i of each the same segment."""

    language: str
    pivot_file: Path
    file: Path

    @property
    def files(self) -> tuple[Path, Path]:
        return self.pivot_file, self.file

    def sides(self, pivot: str) -> tuple[tuple[str, Path], tuple[str, Path]]:
        """Each file with its language."""
        return (pivot, self.pivot_file), (self.language, self.file)


def find_corpora(arguments: Sequence[str], *, pivot: str = "en", split: str = "train") -> list[BilingualCorpus]:
    """What to align: `FOLDER` (each language in it with the pivot), `fr=FOLDER`, `fr=PREFIX` (of PREFIX.en and PREFIX.fr) or
    `fr=ENGLISH_FILE,FRENCH_FILE`; each language once."""
    check_language_names([pivot], "--pivot")
    corpora: dict[str, BilingualCorpus] = {}
    for argument in arguments:
        for corpus in _find(argument, pivot, split):
            if other := corpora.get(corpus.language):
                raise LanguageError(
                    f"{corpus.language} has two corpora, {other.file} and {corpus.file}; join them first "
                    "(which one comes first decides which translation of a repeated line is kept)."
                )
            corpora[corpus.language] = corpus
    if not corpora:
        raise DataError(f"no corpora to align were given; expected for instance fr=FOLDER de=FOLDER, each with {pivot}.")
    return [corpora[language] for language in sorted(corpora)]


def _find(argument: str, pivot: str, split: str) -> Iterator[BilingualCorpus]:
    language, equals, value = argument.partition("=")
    if Path(argument).expanduser().exists() or not equals or not is_language_name(language):
        folder = Corpus.open(Path(argument).expanduser(), split)
        _require_pivot(pivot, folder.languages, argument)
        for other in folder.languages:
            if other != pivot:
                yield BilingualCorpus(other, folder.files[pivot], folder.files[other])
        return
    if language == pivot:
        raise LanguageError(f"{argument}: {pivot} is the language that all corpora share; give the other language of this one.")
    path = Path(value).expanduser()
    if path.is_dir():
        files = Corpus.open(path, split, (pivot, language)).files
        yield BilingualCorpus(language, files[pivot], files[language])
    elif "," in value:
        first, _, second = value.partition(",")
        yield BilingualCorpus(language, _existing(first, argument), _existing(second, argument))
    else:
        sides = [_with_ending(path, code) for code in (pivot, language)]
        if sides[0] is None or sides[1] is None:
            raise DataError(
                f"{argument}: there is no folder {path}, and no files {path}.{pivot} and {path}.{language}; expected "
                f"{language}=FOLDER, {language}=PREFIX, or {language}={pivot.upper()}_FILE,{language.upper()}_FILE."
            )
        yield BilingualCorpus(language, sides[0], sides[1])


def _require_pivot(pivot: str, languages: Sequence[str], argument: str) -> None:
    if pivot not in languages or len(languages) < 2:
        raise LanguageError(
            f"{argument} has {', '.join(languages)}; expected {pivot}, through which to align, and other languages."
        )


def _existing(name: str, argument: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_file():
        raise DataError(f"{argument}: there is no file {path}; check the path.")
    return path


def _with_ending(prefix: Path, language: str) -> Path | None:
    candidates = (prefix.with_name(f"{prefix.name}.{language}{ending}") for ending in ENDINGS)
    return next((path for path in candidates if path.is_file()), None)
