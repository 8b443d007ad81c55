"""The text as it was given, in any number of pieces and formats, as one corpus whose lines can be told apart. Layer 6.

One corpus folder, or one file for each language, is taken as it is. All else is read once and kept with the token cache, by its
content, so that both sides of a language and a run that is resumed find the same files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from graftmt.data import Corpus
from graftmt.data.corpus import find_files, in_order, open_split
from graftmt.documents import read_json
from graftmt.errors import DataError, GraftError
from graftmt.files import open_regular
from graftmt.places import default_cache_folder
from graftmt.prepare.output_folder import corpus_source
from graftmt.prepare.readers.any_format import Found, Wanted, files_of, is_readable, read_any
from graftmt.prepare.readers.combination import concatenate
from graftmt.prepare.refusal import check_source, refuse
from graftmt.prepare.source import Line, Source, write_corpus

VERSION = 1
"""Of how text is read; what an earlier one has kept is not used."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What was given once: a file, a folder, or a file for each language."""

    name: str
    lines: int
    first_line: int = 1
    """What the first of its lines is counted as in its file: 2 after a header."""
    note: str = ""


def open_text(
    arguments: Sequence[str], split: str, known: Sequence[str], new: Sequence[str], partners: Sequence[str] | None
) -> Corpus:
    """The corpus that these arguments come to; `pieces_of` says what it was made of."""
    groups = _groups(arguments, split, known)
    if not groups or (len(groups) == 1 and isinstance(groups[0], tuple)):
        return open_split(arguments, split, known, new)
    asked = () if partners is None or tuple(partners) == ("all",) else tuple(partners)
    wanted = Wanted(new=tuple(new), partners=asked, known=tuple(name for name in known if name not in new))
    folder = default_cache_folder() / f"text-{_digest(groups, split, wanted)}"
    if not (folder / "corpus.json").is_file():
        _write(folder, [_read(group, split, wanted) for group in groups], split, known)
    corpus = in_order(Corpus(folder, split, find_files(folder, split)), known)
    if missing := [name for name in new if name not in corpus.files]:
        raise DataError(f"none of {', '.join(arguments)} has text in {', '.join(missing)}.")
    return corpus


def pieces_of(corpus: Corpus) -> list[Piece]:
    """What a corpus was made of by `open_text`; none of what was taken as it is."""
    if not corpus.folder.name.startswith("text-"):
        return []
    try:
        listed = read_json(corpus.folder / "corpus.json", "the text").get("made_of", [])
        return [Piece(**piece) for piece in listed]
    except (GraftError, OSError, TypeError):
        return []


Group = tuple[str, ...] | str
"""A tuple: what `open_split` takes; a text: one argument in another format."""


def _groups(arguments: Sequence[str], split: str, known: Sequence[str]) -> list[Group]:
    """Files of languages go together until one of these comes again; anything else is by itself."""
    groups: list[Group] = []
    open_files: list[str] = []
    seen: set[str] = set()

    def close() -> None:
        if open_files:
            groups.append(tuple(open_files))
        open_files.clear()
        seen.clear()

    for argument in arguments:
        path = Path(argument).expanduser()
        if path.is_dir() and find_files(path, split):
            close()
            groups.append((argument,))
        elif is_readable(argument):
            _check_alone(argument, known)
            close()
            groups.append(argument)
        else:
            language = _language_of(argument)
            if language in seen and len(open_files) > 1:
                close()
            seen.add(language)
            open_files.append(argument)
    close()
    return groups


def _language_of(argument: str) -> str:
    """As `open_split` reads it: what stands before =, or the end of the name."""
    if "=" in argument and not Path(argument).expanduser().exists():
        return argument.partition("=")[0]
    return re.sub(r"(\.txt)?(\.gz|\.xz|\.zst)?$", "", Path(argument).name).split(".")[-1]


def _check_alone(argument: str, known: Sequence[str]) -> None:
    """A file that has all languages in it is not one language's; a catalogue is."""
    language, equals, path = argument.partition("=")
    if equals and language in known and not Path(argument).expanduser().exists() and not path.endswith((".po", ".mo")):
        raise DataError(
            f"{argument}: {path} is not text in one language but a file of pairs; give it by itself: --train {path}"
        )


def _read(group: Group, split: str, wanted: Wanted) -> Found:
    if isinstance(group, str):
        return read_any(group, wanted, split)
    corpus = open_split(group, split, (*wanted.new, *wanted.known), ())
    codes = [name for name in corpus.languages if name in (*wanted.new, *(wanted.partners or wanted.known))]
    if not wanted.are_all(codes):
        raise DataError(
            f"{' and '.join(group)}: text in {', '.join(corpus.languages)}, where a new language and a partner are needed."
        )
    return Found(" and ".join(group), corpus_source(Corpus(corpus.folder, split, {name: corpus.files[name] for name in codes})))


def _write(folder: Path, found: Sequence[Found], split: str, known: Sequence[str]) -> None:
    """All pieces, one after the other, and corpus.json with how many lines each has."""
    counts = [0] * len(found)

    def counted(place: int, source: Source) -> Source:
        def read() -> Iterator[Line]:
            counts[place] = 0
            for line in source:
                counts[place] += 1
                yield line

        return Source(source.name, source.languages, read)

    joined = concatenate([counted(place, one.source) for place, one in enumerate(found)])
    order = [joined.languages.index(name) for name in known if name in joined.languages]

    def ordered() -> Iterator[Line]:
        for line in joined:
            yield tuple(line[place] for place in order)

    source = Source(joined.name, tuple(joined.languages[place] for place in order), ordered)
    facts: dict[str, object] = {"made_by": "graftmt add"}
    pieces: list[dict[str, object]] = []
    facts["made_of"] = pieces  # filled when all is written, and stored after

    def finished() -> Iterator[Line]:
        yield from source
        for one, count in zip(found, counts, strict=True):
            if not count:
                raise DataError(f"{one.name} has no lines.")
            pieces.append(asdict(Piece(name=one.name, lines=count, first_line=one.first_line, note=one.note)))

    write_corpus(folder, {split: Source(source.name, source.languages, finished)}, facts)


def _digest(groups: Sequence[Group], split: str, wanted: Wanted) -> str:
    """Of all files, and of what is taken from them."""
    digest = hashlib.sha256(f"{VERSION} {split} {wanted}".encode())
    for group in groups:
        digest.update(f"\n{group}".encode())
        if isinstance(group, str):
            files = files_of(group)
        else:
            files = list(open_split(group, split, (*wanted.new, *wanted.known), ()).files.values())
        for file in files:
            with open_regular(file) as handle:
                digest.update(f"\n{file} {hashlib.file_digest(handle, 'sha256').hexdigest()}".encode())
    return digest.hexdigest()[:32]


def piece_lines(corpus: Corpus, languages: Sequence[str]) -> Iterator[tuple[Piece, Source]]:
    """The lines of each piece, in these languages."""
    names = [name for name in dict.fromkeys(languages) if name in corpus.files]
    whole = corpus_source(Corpus(corpus.folder, corpus.split, {name: corpus.files[name] for name in names}))
    pieces = pieces_of(corpus) or [Piece(name=f"the {corpus.split} text in {corpus.folder}", lines=-1)]
    begin = 0
    for piece in pieces:
        end = None if piece.lines < 0 else begin + piece.lines

        def read(begin: int = begin, end: int | None = end) -> Iterator[Line]:
            yield from islice(whole, begin, end)

        yield piece, Source(piece.name, whole.languages, read)
        begin = end or 0


@dataclass
class TextCheck:
    """Text that is out of step stops `graftmt add` before anything is trained, unless it is forced.

    Asked about each split; remembers what it was asked, for both sides of a language are trained on the same text.
    """

    force: bool = False
    found: dict[tuple[Path, ...], list[dict[str, Any]]] = field(default_factory=dict)

    def __call__(self, corpus: Corpus, new: Sequence[str], partners: Sequence[str]) -> None:
        """Each new language with each partner, in each piece that the corpus was made of."""
        key = (corpus.folder, *corpus.files.values())
        if key in self.found:
            return
        self.found[key] = found = []
        for piece, source in piece_lines(corpus, [*new, *partners]):
            there = [language for language in new if language in source.languages]
            alignments = [
                one.counted_from(piece.first_line)
                for partner in partners
                if partner in source.languages
                for one in check_source(source, partner, there)
            ]
            found += [{"text": piece.name, **one.to_dict()} for one in alignments]
            refuse(alignments, piece.name, force=self.force)

    def to_list(self) -> list[dict[str, Any]]:
        return [entry for entries in self.found.values() for entry in entries]
