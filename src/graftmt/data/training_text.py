"""Text as people name it for a new language: one corpus folder, or a file for each language. Layer 3."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from graftmt.data.corpus import Corpus
from graftmt.errors import DataError, LanguageError
from graftmt.text.aliases import find_language, listed, match_names, nearest_language
from graftmt.text.languages import check_language_names

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
