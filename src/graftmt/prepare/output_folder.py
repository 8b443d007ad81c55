"""Corpus folders as sources, what their corpus.json says, and which of them a new one may take the place of. Layer 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from graftmt.data.corpus import Corpus, check_equal_lengths, find_files
from graftmt.errors import DataError
from graftmt.mistaken import instead_of_corpus
from graftmt.places import CORPUS, check_place
from graftmt.prepare.source import Line, Source


def open_splits(folder: Path) -> dict[str, Corpus]:
    """All splits of a corpus folder; an error says what was expected where there are none."""
    if mistaken := instead_of_corpus(folder):
        raise DataError(f"there is no corpus folder {folder}: {mistaken}")
    if not folder.is_dir():
        raise DataError(f"there is no corpus folder {folder}; expected files such as train.en.txt in it.")
    names = sorted({path.name.split(".")[0] for path in folder.iterdir() if path.is_file()})
    splits = {name: Corpus(folder, name, files) for name in names if name and (files := find_files(folder, name))}
    if not splits:
        raise DataError(f"{folder} has no files such as train.en.txt or train.en.txt.xz; is it a corpus folder?")
    return splits


def corpus_source(corpus: Corpus) -> Source:
    """A corpus on disk as lines; files of different lengths are an error."""

    def read() -> Iterator[Line]:
        try:
            yield from zip(*(corpus.lines(language) for language in corpus.languages), strict=True)
        except ValueError:
            check_equal_lengths({code: sum(1 for _ in corpus.lines(code)) for code in corpus.languages}, corpus)
            raise

    return Source(f"the {corpus.split!r} split in {corpus.folder}", corpus.languages, read)


def check_replaceable(output: Path, inputs: Iterable[Path]) -> None:
    """A folder that is made anew replaces the old one whole: never one with the input in it, or with something else."""
    # Where a file lies, and where the text is that it may be a link to.
    places = [place for path in inputs for place in (path.parent.resolve() / path.name, path.resolve())]
    if output.is_dir() and any(output.resolve() in (place, *place.parents) for place in places):
        raise DataError(f"{output} holds what is to be read, and would be replaced; choose another folder for the output.")
    check_place(output, CORPUS)
