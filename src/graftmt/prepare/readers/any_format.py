"""Text in any format with a reader, for whoever knows which languages are wanted and not what a file calls them. Layer 4.

A format is an entry of FORMATS: how its files are named, and how they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from graftmt.errors import DataError, LanguageError
from graftmt.prepare.pair_evidence import exchanged
from graftmt.prepare.readers import arrow, delimited, gettext, jsonl, moses, parquet, tmx
from graftmt.prepare.readers.archives import StoredFile, find_files, is_archive, without_compression
from graftmt.prepare.readers.combination import concatenate
from graftmt.prepare.source import Line, Source
from graftmt.text.aliases import english_in, find_language, listed, match_names, variants_of

_SAMPLE = 2000


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which languages are looked for."""

    new: tuple[str, ...]
    partners: tuple[str, ...]
    """Those that were asked for; empty where any known one will do."""
    known: tuple[str, ...]

    def codes_of(self, names: Sequence[str]) -> dict[str, str]:
        """name → code, for the names that mean a language that is wanted; each code once."""
        codes = (*self.new, *(self.partners or self.known))
        found = match_names(names, codes)
        for name in names:  # en-US is English where that is all there is
            if name not in found:
                with suppress(LanguageError):
                    code = find_language(name, codes) if name.strip() else None
                    if code is not None and code not in found.values():
                        found[name] = code
        return found

    def are_all(self, codes: Sequence[str]) -> bool:
        """Whether a pack can learn from these: a new language, and one that the base knows."""
        return bool(set(codes) & set(self.new)) and bool(set(codes) - set(self.new))


@dataclass(frozen=True)
class Found:
    """What a file held, in the wanted languages."""

    name: str
    source: Source
    splits: tuple[str, ...] = ()
    first_line: int = 1
    """Of the file, where its lines are counted: 2 after a header."""
    note: str = ""
    """What was decided about it, for a person."""


Reader: TypeAlias = Callable[[Sequence[StoredFile], Wanted], tuple[dict[str, Source], str, int]]
"""Files → sources by split, a note, and the number of the first line."""


def read_any(argument: str, wanted: Wanted, split: str = "train") -> Found:
    """A file, a folder or an archive in a format that is known; of a folder with splits, this one."""
    path = Path(_path_of(argument)).expanduser()
    for name, is_one, read in FORMATS:
        if path.is_file() and not is_archive(path):
            files = find_files([argument]) if is_one(without_compression(path.name)) else []
        else:
            files = _files_in(argument, is_one, name)
        if files:
            splits, note, first_line = read(files, wanted)
            whole = path.is_file() and not is_archive(path)
            chosen = list(splits.values()) if whole else [splits[split]] if split in splits else []
            if not chosen:
                raise DataError(f"{path} has no {split} text; the splits there: {', '.join(splits)}.")
            return Found(str(path), _in_wanted(concatenate(chosen), wanted, str(path)), tuple(splits), first_line, note)
    raise DataError(f"{path} is in no format that is known: {', '.join(name for name, _, _ in FORMATS)}.")


def is_readable(argument: str) -> bool:
    """Whether a file's name, or what is in a folder, is of a format that is read here."""
    path = Path(_path_of(argument)).expanduser()
    if path.is_dir() or (path.is_file() and is_archive(path)):
        return any(_files_in(argument, is_one, name) for name, is_one, _ in FORMATS)
    return path.is_file() and any(is_one(without_compression(path.name)) for name, is_one, _ in FORMATS if name != "Moses")


def files_of(argument: str) -> list[Path]:
    """All files that are read for an argument."""
    path = Path(_path_of(argument)).expanduser()
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _path_of(argument: str) -> str:
    """Without the label that may stand before =, and the member after !."""
    if Path(argument).expanduser().exists():
        return argument
    label, equals, path = argument.partition("=")
    return (path if equals and "/" not in label else argument).partition("!")[0]


def _files_in(argument: str, is_one: Callable[[str], bool], name: str) -> list[StoredFile]:
    with suppress(DataError):
        return find_files([argument], is_one, what=f"{name} files")
    return []


def _in_wanted(source: Source, wanted: Wanted, where: str) -> Source:
    """The same lines in the wanted languages, by their codes.

    A line without text in a language has that of its regions and variants, as ca-ES-valencia for ca; never of another script.
    """
    codes = wanted.codes_of(source.languages)
    if not wanted.are_all(list(codes.values())):
        raise LanguageError(
            f"{where} has text in {', '.join(source.languages)}; expected {' or '.join(wanted.new)} and "
            f"{'one' if len(wanted.partners) != 1 else wanted.partners[0]} of the base's languages"
            f"{'' if wanted.partners else ': ' + listed(wanted.known)}. Say what each is called, and convert it first: "
            f"graftmt prepare --help"
        )
    kinds = variants_of(codes, source.languages)
    places = [[source.languages.index(one) for one in (name, *kinds.get(name, ()))] for name in codes]

    def read() -> Iterator[Line]:
        for line in source:
            texts = tuple(next((line[place] for place in alike if line[place]), "") for alike in places)
            if any(texts):
                yield texts

    return Source(source.name, tuple(codes.values()), read)


def _variants_note(codes: Mapping[str, str], names: Sequence[str]) -> str:
    """Which other names are taken for a language too."""
    taken = [f"{', '.join(others)} is taken for {codes[name]} too" for name, others in variants_of(codes, names).items()]
    return "; ".join(taken)


# One function a format


def _tables(files: Sequence[StoredFile], wanted: Wanted) -> tuple[dict[str, Source], str, int]:
    """Columns by the header, or of two columns without one: the new language and its partner."""
    first = delimited.first_row(files[0])
    codes = wanted.codes_of([name.strip() for name in first])
    if wanted.are_all(list(codes.values())):
        columns = {code: str([cell.strip() for cell in first].index(name) + 1) for name, code in codes.items()}
        note = f"columns by the header: {', '.join(f'{name.strip()} is {code}' for name, code in codes.items())}"
        return delimited.read_tables(files, columns, header=True), note, 2
    if len(first) != 2 or len(wanted.new) != 1 or len(wanted.partners) != 1:
        raise LanguageError(_no_columns(files[0], first, wanted))
    one, other = wanted.new[0], wanted.partners[0]
    in_order = delimited.read_tables(files, {one: "1", other: "2"}, header=False)
    sample = [line for source in in_order.values() for line in islice(source, _SAMPLE)]
    swapped = exchanged([line[0] for line in sample], [line[1] for line in sample], (one, other)) == "exchanged"
    if not swapped:
        return in_order, f"no header: column 1 is taken for {one}, column 2 for {other}", 1
    found = delimited.read_tables(files, {other: "1", one: "2"}, header=False)
    return found, f"no header: going by their text, column 1 is {other} and column 2 {one}", 1


def _no_columns(file: StoredFile, first: Sequence[str], wanted: Wanted) -> str:
    cells = ", ".join(repr(cell[:30]) for cell in first[:6])
    new = wanted.new[0]
    partner = wanted.partners[0] if wanted.partners else english_in(wanted.known) or next(iter(wanted.known), "en")
    number = {1: "one column", 2: "two columns"}.get(len(first), f"{len(first)} columns")
    advice = f"say in which language the other column is (--with {partner})" if len(first) == 2 else ""
    advice = f"{advice}; or " if advice and not wanted.partners else ""
    return (
        f"{file} has {number}, and its first line names no languages ({cells}). To say which column is which, {advice}write "
        f"a first line such as {new}<TAB>{partner}, or convert it: graftmt prepare tsv {file} -o corpus --columns "
        f"{new}=1,{partner}=2"
    )


def _tmx(files: Sequence[StoredFile], wanted: Wanted) -> tuple[dict[str, Source], str, int]:
    found = tmx.read_tmx(files)
    try:
        for source in found.values():
            _in_wanted(source, wanted, source.name)
    except LanguageError:
        found = tmx.read_tmx(files, fold_regions=True)  # en-US and en-GB are both there, and each alone could be English
    names = list(dict.fromkeys(name for source in found.values() for name in source.languages))
    return found, _variants_note(wanted.codes_of(names), names), 1


def _jsonl(files: Sequence[StoredFile], wanted: Wanted) -> tuple[dict[str, Source], str, int]:
    columns = _flat(jsonl.keys_of(files[0]), wanted)
    return jsonl.read_jsonl(files, columns=columns), "", 1


def _parquet(files: Sequence[StoredFile], wanted: Wanted) -> tuple[dict[str, Source], str, int]:
    return parquet.read_parquet(files, columns=_flat(parquet.columns_of(files[0]), wanted)), "", 1


def _arrow(files: Sequence[StoredFile], wanted: Wanted) -> tuple[dict[str, Source], str, int]:
    return arrow.read_arrow(files, columns=_flat(arrow.columns_of(files[0]), wanted)), "", 1


def _flat(names: Sequence[str], wanted: Wanted) -> Mapping[str, str] | None:
    """Columns by language, where there are such; None for a field with all languages."""
    codes = wanted.codes_of(list(names))
    return {code: name for name, code in codes.items()} if wanted.are_all(list(codes.values())) else None


def _gettext(files: Sequence[StoredFile], wanted: Wanted) -> tuple[dict[str, Source], str, int]:
    return gettext.read_gettext(files), "", 1


def _moses(files: Sequence[StoredFile], wanted: Wanted) -> tuple[dict[str, Source], str, int]:
    names = {found[0] for file in files if (found := moses.language_and_stem(file.name)) is not None}
    codes = wanted.codes_of(sorted(names))
    chosen = [file for file in files if (found := moses.language_and_stem(file.name)) and found[0] in codes]
    return moses.read_moses(chosen or files), "", 1


FORMATS: tuple[tuple[str, Callable[[str], bool], Reader], ...] = (
    ("tables (.tsv, .csv)", delimited.is_table, _tables),
    ("TMX", tmx.is_tmx, _tmx),
    ("JSON Lines", jsonl.is_jsonl, _jsonl),
    ("Parquet", parquet.is_parquet, _parquet),
    ("Arrow", arrow.is_arrow, _arrow),
    ("gettext (.po, .mo)", gettext.is_catalogue, _gettext),
    ("Moses", moses.is_moses_file, _moses),
)
