"""Corpus folders as sources, what their corpus.json says, and which of them a new one may take the place of. Layer 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graftmt.data.corpus import Corpus, check_equal_lengths, find_files
from graftmt.errors import DataError, GraftError
from graftmt.files import read_json
from graftmt.prepare.source import Line, Source


def open_splits(folder: Path) -> dict[str, Corpus]:
    """All splits of a corpus folder; an error says what was expected where there are none."""
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
    if not output.exists():
        return
    if not output.is_dir():
        raise DataError(f"{output} is a file; the output is a folder, choose another name.")
    # Where a file lies, and where the text is that it may be a link to.
    places = [place for path in inputs for place in (path.parent.resolve() / path.name, path.resolve())]
    if any(output.resolve() in (place, *place.parents) for place in places):
        raise DataError(f"{output} holds what is to be read, and would be replaced; choose another folder for the output.")
    if not any(output.iterdir()):
        return
    if not (output / "corpus.json").is_file():
        raise DataError(f"{output} is not empty and holds no corpus.json: it is not replaced; choose another folder.")
    if others := sorted({path.name for path in output.iterdir()} - _written_names(output)):
        listed = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
        raise DataError(f"{output} holds more than a corpus made here ({listed}): it is not replaced; choose another folder.")


def _written_names(folder: Path) -> set[str]:
    """What the commands write into a corpus folder, going by its corpus.json; `prepare clean` adds report.json."""
    try:
        languages: Any = read_json(folder / "corpus.json", "the corpus").get("languages")
    except GraftError:
        languages = None  # damaged: what else is there cannot be told
    splits = languages if isinstance(languages, dict) else {}
    texts = {f"{split}.{language}.txt" for split, codes in splits.items() for language in codes}
    return {"corpus.json", "report.json", *texts}
