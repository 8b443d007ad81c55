"""Where text lies: files, files in folders, members of zip and tar archives, all read in place; nothing is unpacked. Layer 4.

`archive.zip!member` names a member, `archive.tar.gz!*.tsv` those that match. A folder stands for the files in it and for the
members of the archives in it.
"""

from __future__ import annotations

import fnmatch
import io
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from graftmt.errors import DataError, nearest
from graftmt.files import check_regular
from graftmt.prepare.readers.stored_parts import (
    COMPRESSIONS,
    DAMAGE,
    Limits,
    checked,
    damaged,
    decompressed,
    open_parts,
    readable_name,
)
from graftmt.prepare.readers.tar_headers import Ending, Slice, TarHeader

MOST_MEMBERS = 100_000
"""Of an archive; more would fill memory with names alone."""
_ARCHIVE = re.compile(r"\.(?:zip|tar|tgz|txz|tar\.(?:gz|xz|zst))(?:\.\d{2,3})?$", re.IGNORECASE)
_PART = re.compile(r"\.\d{2,3}$")
_LABEL = re.compile(r"(\w[\w-]*)=(.+)")


@dataclass(frozen=True)
class Member:
    """A file inside an archive: its place in a zip's list, or its first byte in a tar."""

    name: str
    place: int
    size: int


@dataclass(frozen=True)
class StoredFile:
    """A file that can be opened as bytes, wherever it lies; `str` of it is how errors and reports call it."""

    parts: tuple[Path, ...]
    """The file on disk; several where one was cut into parts: x.tar.gz.00, x.tar.gz.01."""
    name: str
    """Its path below what was asked for, without .gz, .xz or .zst: what formats recognise their files by."""
    member: Member | None = None
    label: str = ""
    """What stood before = where it was asked for: a split or a language."""
    limits: Limits = field(default=Limits(), repr=False)

    def __str__(self) -> str:
        path = readable_name(self.parts[0])
        return f"{path}!{self.member.name}" if self.member else path

    @property
    def is_plain(self) -> bool:
        """Whether the bytes on disk are the content."""
        return self.member is None and len(self.parts) == 1 and self.parts[0].suffix.lower() not in COMPRESSIONS

    def open(self) -> BinaryIO:
        """The uncompressed bytes, from the beginning."""
        where = str(self)
        try:
            if self.member is None:
                return decompressed(open_parts(self.parts), _whole_name(self.parts[0]), _size(self.parts), self.limits, where)
            opened = _open_zip_member if is_zip(self.parts[0]) else _open_tar_member
            return decompressed(opened(self, self.member), self.member.name, self.member.size, self.limits, where)
        except DAMAGE as error:
            raise damaged(where, error) from None


def find_files(
    inputs: Iterable[str | Path],
    wanted: Callable[[str], bool] = lambda name: True,
    *,
    what: str = "files",
    limits: Limits | None = None,
) -> list[StoredFile]:
    """The files that `inputs` stand for, in a fixed order: paths, folders, archives, archive!pattern, each LABEL=… or not.

    `wanted` is asked about the names in folders and archives, and of those given one by one only where they are archives.
    """
    limits = limits or Limits()
    found: list[StoredFile] = []
    for item in inputs:
        label, path, pattern = _parse(str(item))
        files = list(_files_at(path, pattern, label, limits, wanted))
        if not files:
            inside = f"members like {pattern!r}" if pattern else what
            raise DataError(f"{readable_name(path)} has no {inside}{_seen(path, limits)}")
        found += files
    if len({(file.parts, file.member) for file in found}) < len(found):
        twice = next(
            file
            for index, file in enumerate(found)
            if (file.parts, file.member) in [(f.parts, f.member) for f in found[:index]]
        )
        raise DataError(f"{twice} is asked for twice; name each file once.")
    return found


def is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def is_archive(path: Path) -> bool:
    return _ARCHIVE.search(path.name) is not None


def without_compression(name: str) -> str:
    """`en-fr.txt` for en-fr.txt.gz."""
    return next((name[: -len(ending)] for ending in COMPRESSIONS if name.lower().endswith(ending)), name)


def _parse(item: str) -> tuple[str, Path, str]:
    """LABEL=PATH!PATTERN into its three parts; a path that exists as it stands is one."""
    label = ""
    if not Path(item).exists() and (match := _LABEL.fullmatch(item)):
        label, item = match[1], match[2]
    if Path(item).exists() or "!" not in item:
        return label, Path(item), ""
    path, _, pattern = item.partition("!")
    return label, Path(path), pattern


def _files_at(path: Path, pattern: str, label: str, limits: Limits, wanted: Callable[[str], bool]) -> Iterator[StoredFile]:
    if pattern and not is_archive(path):
        raise DataError(f"{readable_name(path)}!{pattern}: only members of .zip and .tar archives are named with !")
    if path.is_dir():
        for below in sorted(_walk(path)):
            if not is_archive(below):
                name = without_compression(_whole_name(below.relative_to(path)))
                if wanted(name):
                    check_regular(below)
                    yield StoredFile(_parts_of(below), name, None, label, limits)
            elif _parts_of(below)[0] == below:
                yield from _members(below, "", label, limits, wanted)
    elif not path.exists():
        raise DataError(f"there is no file or folder {readable_name(path)}; check the path.")
    elif not path.is_file():
        check_regular(path)
    elif is_archive(path):
        yield from _members(path, pattern, label, limits, wanted)
    else:
        yield StoredFile(_parts_of(path), without_compression(_whole_name(Path(path.name))), None, label, limits)


def _walk(folder: Path) -> Iterator[Path]:
    """What is no folder below a folder; hidden files (.git, ._ files of a Mac) are not meant."""
    for path in folder.rglob("*"):
        if not path.is_dir() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def _parts_of(path: Path) -> tuple[Path, ...]:
    """A file, or all the parts of one that was cut up, in order."""
    if not _PART.search(path.name) or not is_archive(path):
        return (path,)
    whole = _whole_name(Path(path.name))
    parts = sorted(
        other for other in path.parent.iterdir() if other.name.startswith(whole) and _PART.fullmatch(other.name[len(whole) :])
    )
    numbers = [int(part.suffix[1:]) for part in parts]
    if numbers != list(range(numbers[0], numbers[0] + len(parts))) or numbers[0] > 1:
        raise DataError(f"{readable_name(path.parent / whole)}: parts {numbers} are there, so one is missing; download it.")
    return tuple(parts)


def _whole_name(path: Path) -> str:
    """x.tar.gz for its part x.tar.gz.00."""
    return _PART.sub("", str(path)) if _ARCHIVE.search(path.name) else str(path)


def _size(parts: tuple[Path, ...]) -> int:
    return sum(part.stat().st_size for part in parts)


def _seen(path: Path, limits: Limits) -> str:
    """The end of an error: a few names that are there."""
    names = sorted(str(file) for file in _files_at(path, "", "", limits, lambda name: True))
    listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"; there: {listed}." if names else "; it is empty."


def _members(path: Path, pattern: str, label: str, limits: Limits, wanted: Callable[[str], bool]) -> Iterator[StoredFile]:
    """The files in an archive; one that could write outside the folder it is unpacked in is refused as a whole."""
    parts = _parts_of(path)
    where = readable_name(path)
    listing = _zip_members if is_zip(path) else _tar_members
    try:
        members = list(listing(parts, limits, where))
    except DAMAGE as error:
        raise damaged(where, error) from None
    chosen = 0
    for member in sorted(members, key=lambda member: (member.name, member.place)):
        name = without_compression(member.name)
        hidden = any(piece.startswith(".") and piece != "." for piece in PurePosixPath(name).parts)
        if fnmatch.fnmatchcase(member.name, pattern) if pattern else wanted(name) and not hidden:
            chosen += 1
            yield StoredFile(parts, name, member, label, limits)
    if pattern and not chosen:
        names = [member.name for member in members]
        raise DataError(
            f"{where} has no member {pattern!r}{nearest(pattern, names) or ';'} members: "
            f"{', '.join(sorted(names)[:8]) or 'none'}{', …' if len(names) > 8 else ''}."
        )


def _zip_members(parts: tuple[Path, ...], limits: Limits, where: str) -> Iterator[Member]:
    with zipfile.ZipFile(open_parts(parts)) as archive:
        entries = archive.infolist()
        _check_count(len(entries), where)
        # Before any member is opened: sizes in the list are upper bounds for what zipfile gives out.
        limits.check(sum(entry.file_size for entry in entries), _size(parts), where)
        for place, entry in enumerate(entries):
            _check_name(entry.filename, where)
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise _escapes(entry.filename, where, "is a link")
            if not entry.is_dir():
                limits.check(entry.file_size, entry.compress_size, f"{where}!{entry.filename}")
                yield Member(entry.filename, place, entry.file_size)


def _open_zip_member(file: StoredFile, member: Member) -> BinaryIO:
    archive = zipfile.ZipFile(open_parts(file.parts))
    opened = archive.open(archive.infolist()[member.place])
    archive.close()  # the member keeps the file below it open until it is closed itself
    return checked(cast(BinaryIO, opened), str(file))


def _tar_members(parts: tuple[Path, ...], limits: Limits, where: str) -> Iterator[Member]:
    with (
        _open_tar(parts, limits, where) as content,
        tarfile.open(fileobj=cast(BinaryIO, Ending(content)), mode="r|", tarinfo=TarHeader, errors="replace") as archive,
    ):
        for count, entry in enumerate(archive, 1):
            _check_count(count, where)
            _check_name(entry.name, where)
            if entry.issym() or entry.islnk():
                folder = PurePosixPath(entry.name).parent if entry.issym() else PurePosixPath()
                _check_link(entry.name, folder, entry.linkname, where)
            elif entry.issparse():
                raise DataError(f"{where}!{entry.name} is a sparse file, which is not read; pack it again without --sparse.")
            elif entry.isreg():
                yield Member(entry.name, entry.offset_data, entry.size)


def _open_tar_member(file: StoredFile, member: Member) -> BinaryIO:
    content = _open_tar(file.parts, file.limits, readable_name(file.parts[0]))
    return cast(BinaryIO, io.BufferedReader(Slice(content, member.place, member.size), 1 << 18))


def _open_tar(parts: tuple[Path, ...], limits: Limits, where: str) -> BinaryIO:
    name = re.sub(r"\.t([gx])z$", r".tar.\1z", _whole_name(parts[0]), flags=re.IGNORECASE)
    return decompressed(open_parts(parts), name, _size(parts), limits, where)


def _check_count(count: int, where: str) -> None:
    if count > MOST_MEMBERS:
        raise DataError(f"{where} has more than {MOST_MEMBERS:,} members; unpack it, and give the folder instead.")


def _check_name(name: str, where: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name):
        raise _escapes(name, where, "is outside the archive's own folder")


def _check_link(name: str, folder: PurePosixPath, target: str, where: str) -> None:
    """A link inside the archive is only ignored; one that leads out of it is refused."""
    depth = len(folder.parts)
    path = PurePosixPath(target.replace("\\", "/"))
    for part in path.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            break
    if path.is_absolute() or depth < 0:
        raise _escapes(name, where, f"is a link to {target!r}, outside the archive's own folder")


def _escapes(name: str, where: str, how: str) -> DataError:
    return DataError(
        f"{where}: the member {name!r} {how}; an archive of text has no such members, so none of it is read. "
        "Download it again from its publisher, or unpack what you trust and give the folder."
    )
