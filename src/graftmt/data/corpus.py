"""Line-aligned multi-parallel corpora: one file per language, line i of each the same segment, empty = missing. Layer 3.

A corpus is a folder, or a file for each language, as people name them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from graftmt.data.line_files import read_lines
from graftmt.documents import read_json
from graftmt.errors import DataError, GraftError, LanguageError, nearest
from graftmt.files import kind_of_path
from graftmt.mistaken import instead_of_corpus
from graftmt.text.aliases import find_language, listed, match_names, nearest_language, resolved_names
from graftmt.text.languages import check_language_names

ENDINGS = (".txt", "", ".txt.xz", ".xz", ".txt.gz", ".gz", ".txt.zst", ".zst")
"""What may follow `train.en`."""

NO_LANGUAGES = frozenset(("source", "json", "md", "tsv", "txt", "gz", "xz", "zst"))
"""What may stand in a language's place: docs-l10n and others keep a file that says where each line is from."""


@dataclass(frozen=True)
class Corpus:
    """One split of a corpus: a file per language, all with the same number of lines."""

    folder: Path
    split: str
    files: dict[str, Path]

    @classmethod
    def open(cls, folder: str | Path, split: str, languages: Sequence[str] | None = None) -> Corpus:
        """The split's files in `folder`, named `train.en`, `train.en.txt`, with .gz, .xz or .zst; all languages or these."""
        folder = Path(folder)
        if not folder.is_dir():
            mistaken = instead_of_corpus(folder)
            said = f": {mistaken}" if mistaken else f"; expected files such as {split}.en.txt in it."
            raise DataError(f"there is no corpus folder {folder}{said}")
        found = find_files(folder, split)
        if not found:
            present = sorted({path.name.split(".")[0] for path in folder.iterdir() if path.is_file()})
            way_out = f" `graftmt prepare split {folder} -o NEW` holds lines of train out." if "train" in present else ""
            raise DataError(
                f"{folder} has no files of the split {split!r}, such as {split}.en.txt or {split}.en.txt.xz; "
                f"splits seen there: {', '.join(present) or 'none'}.{way_out}"
            )
        if languages is None:
            return cls(folder, split, found)
        for language in languages:
            if language not in found:
                raise LanguageError(
                    f"{folder} has no {split} text for language {language!r}{nearest(language, found) or '.'} "
                    f"Languages there: {', '.join(found)}."
                )
        return cls(folder, split, {language: found[language] for language in languages})

    def known_as(self, codes: Sequence[str]) -> Corpus:
        """The same files under these codes where their names mean the same languages: train.en for `eng_Latn`."""
        names = match_names(self.files, codes)
        resolved_names(names)
        return replace(self, files={names.get(name, name): path for name, path in self.files.items()})

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.files)

    def lines(self, language: str) -> Iterator[str]:
        return read_lines(self.files[language])

    def texts(self, languages: Iterable[str], limit: int | None = None) -> dict[str, list[str]]:
        """The first `limit` lines of these languages in memory; unequal lengths are an error."""
        texts = {}
        for language in languages:
            lines: list[str] = []
            for line in self.lines(language):
                if limit is not None and len(lines) == limit:
                    break
                lines.append(line)
            texts[language] = lines
        check_equal_lengths({language: len(lines) for language, lines in texts.items()}, self)
        return texts


def find_files(folder: Path, split: str) -> dict[str, Path]:
    """language → file, in the order of the languages' names. What is no file, or the second one, is an error, not left out."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        parts = path.name.split(".")
        if len(parts) < 2 or parts[0] != split or path.name[len(f"{split}.{parts[1]}") :] not in ENDINGS:
            continue
        language = parts[1]
        if language in NO_LANGUAGES:
            continue
        check_language_names([language], str(path))
        if language in found:
            raise DataError(
                f"{folder} has two files for {language} in {split}: {found[language].name} and {path.name}; keep one."
            )
        if not path.is_file():
            raise DataError(
                f"{path} is {kind_of_path(path)}; a text file was expected. Move it away, or put the text in its place."
            )
        found[language] = path
    return dict(sorted(found.items()))


def check_equal_lengths(counts: dict[str, int], corpus: Corpus) -> None:
    """A line-aligned corpus has as many lines in each language, and at least one."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{corpus.files[language].name}: {count:,}" for language, count in counts.items())
        raise DataError(
            f"the files of {corpus.split!r} in {corpus.folder} have different numbers of lines ({listed}); line i of each must "
            "be the same segment, with an empty line where a translation is missing."
        )
    if not counts or not max(counts.values()):
        raise DataError(
            f"the {corpus.split!r} split in {corpus.folder} is empty: no lines in {', '.join(counts) or 'any file'}."
        )


def segmented(files: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """For the corpus.json of a corpus made from these files, by language: those that `prepare segment` has segmented.

    `graftmt evaluate` goes by it, so whatever makes a corpus of another one hands it on. Empty where there are none.
    """
    listed: dict[Path, list[str]] = {}
    found = set()
    for language, file in files:
        description = file.parent / "corpus.json"
        if description not in listed:
            marked = None
            with suppress(GraftError):  # somebody else's file of that name has not our mark
                marked = read_json(description, "the corpus").get("segmented") if description.is_file() else None
            listed[description] = marked if isinstance(marked, list) else []
        if language in listed[description]:
            found.add(language)
    return {"segmented": sorted(found)} if found else {}


_LANGUAGE_AND_FILE = re.compile(r"([^=/]+)=(.+)", re.DOTALL)


def open_split(arguments: Sequence[str], split: str, known: Sequence[str], new: Sequence[str]) -> Corpus:
    """A folder's files of this split, or the files named: LANG=FILE, or one like `data.kab.txt.gz`.

    All the `new` languages have to be there; those not `known`, neither new nor the base's, are left out.
    """
    if not arguments:
        raise DataError(f"no {split} text was given; expected a folder, or LANG=FILE for each language.")
    if len(arguments) == 1 and (folder := Path(arguments[0]).expanduser()).is_dir():
        found = in_order(Corpus.open(folder, split), known)
        Corpus.open(folder, split, [name for name in new if name not in found.files])  # says so where one of them is missing
        return found
    files: dict[str, Path] = {}
    for argument in arguments:
        language, path = _language_and_file(argument, known)
        if language in files:
            raise DataError(f"{split}: {language} has two files, {files[language]} and {path}; join them, and their partners'.")
        files[language] = path
    for language in new:
        if language not in files:
            raise LanguageError(f"no {split} file is in {language}, the language to add; add {language}=FILE.")
    folder = Path(os.path.commonpath([path.parent.absolute() for path in files.values()]))
    return in_order(Corpus(folder, split, files), known)


def in_order(corpus: Corpus, known: Sequence[str]) -> Corpus:
    """The corpus in the languages known, in their order and under their codes."""
    corpus = corpus.known_as(known)
    return Corpus(corpus.folder, corpus.split, {code: corpus.files[code] for code in known if code in corpus.files})


def _language_and_file(argument: str, known: Sequence[str]) -> tuple[str, Path]:
    """`kab=some/file`, or a file whose name ends in a language known here, before .txt and compression."""
    match = None if Path(argument).exists() else _LANGUAGE_AND_FILE.fullmatch(argument)
    if match:
        check_language_names([match[1]], argument)
    path = Path(match[2] if match else argument).expanduser()
    if path.is_dir():
        raise DataError(f"{path} is a folder; give one folder alone, or a file for each language as LANG=FILE.")
    if not path.is_file():
        raise DataError(f"there is no file {path}; check the path. Expected a folder, or LANG=FILE for each language.")
    if match:
        code = find_language(match[1], known, argument)
        if code is None:
            raise LanguageError(
                f"{argument}: {match[1]!r} is neither to be added nor one of the base's languages"
                f"{nearest_language(match[1], known) or '.'} Known: {listed(known)}."
            )
        return code, path
    language = re.sub(r"(\.txt)?(\.gz|\.xz|\.zst)?$", "", path.name).split(".")[-1]
    code = match_names([language], known).get(language)
    if code is None:
        raise DataError(
            f"{path}: its name does not tell its language; write LANG={argument}, where LANG is one of {listed(known)}."
        )
    return code, path
