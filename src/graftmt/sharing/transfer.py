"""Files from a web server: documents with a limit, and large files that resume, by their size and checksum alone. Layer 5."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from graftmt.files import open_regular
from graftmt.folders import claimed, could_not_write, make_folder
from graftmt.places import default_cache_folder
from graftmt.progress import Progress
from graftmt.sharing.checksums import Checksum
from graftmt.sharing.connections import PATIENCE, Patience, Refused, Reply, SharingError, StatusError, request

BLOCK = 2**18
SCRATCH = "scratch-"
PATIENT_DAYS = 14
"""How long what came of a file stays, for the download to resume."""
TRIES = 4
"""Attempts in a row that bring nothing new."""
_PASSING = (408, 429, 500, 502, 503, 504)
"""Statuses that may be others a moment later."""


def fetch_document(url: str, limit: int, headers: Mapping[str, str] | None = None, *, patience: Patience = PATIENCE) -> bytes:
    """All of a small file of unknown size; more than `limit` bytes are refused."""
    with request(url, headers, patience=patience, deadline=patience.document) as reply:
        if reply.status != 200:
            raise Refused(f"{url}: the server sent a part of it, and all of it was asked for.")
        said = _length(reply)
        content = bytearray()
        while (said is None or said <= limit) and len(content) <= limit and (part := reply.read(BLOCK)):
            content += part
        if len(content) > limit or (said is not None and said > limit):
            raise Refused(f"{url} has more than {limit:,} bytes, which is too much for what it should be.")
        if said is not None and len(content) < said:
            raise SharingError(f"{url}: the connection ended after {len(content):,} of {said:,} bytes. Run the command again.")
    return bytes(content)


@contextmanager
def fetched(
    url: str,
    size: int,
    checksum: Checksum,
    headers: Mapping[str, str] | None = None,
    *,
    bar: Progress,
    patience: Patience = PATIENCE,
) -> Iterator[Path]:
    """A file with this size and checksum, in graftmt's cache; it is gone from there after the block, if that ends well.

    What came of it before is kept and continued. Its name there is its checksum: another address may have the rest.
    """
    partial = downloads_folder() / f"{checksum.algorithm}-{checksum.value}.partial"
    with claimed(partial.with_suffix(".lock"), wait=True):
        try:
            _complete(url, size, checksum, headers or {}, partial, bar, patience)
        except OSError as error:
            raise could_not_write(partial, error) from error
        yield partial
        partial.unlink(missing_ok=True)


def downloads_folder() -> Path:
    """Where unfinished downloads are; those that nobody resumed for two weeks are removed."""
    folder = default_cache_folder() / "downloads"
    make_folder(folder)
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime <= PATIENT_DAYS * 86_400:
                continue
            if path.name.startswith(SCRATCH):
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix in (".partial", ".lock"):
                path.unlink()
    return folder


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of this process in graftmt's cache, gone with all in it after the block."""
    folder = downloads_folder()
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH, ignore_cleanup_errors=True) as place:
            yield Path(place)
    except OSError as error:
        raise could_not_write(folder, error) from error


@contextmanager
def copied(path: Path) -> Iterator[Path]:
    """A copy of a file for as long as a block runs; it may be moved away."""
    with scratch_folder() as folder:
        copy = folder / "copy"
        try:
            with open_regular(path) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise SharingError(f"{path} cannot be copied: {error.strerror or error}.") from None
        yield copy


def check_space(size: int, place: Path) -> None:
    """An error before a download that does not fit on the disk, in the cache or where it goes."""
    nearest_folder = next(folder for folder in (place, *place.resolve().parents) if folder.is_dir())
    for folder in (downloads_folder(), nearest_folder):
        free = shutil.disk_usage(folder).free
        if free < size:
            raise SharingError(
                f"{size:,} bytes are to be downloaded, and the disk of {folder} has {free:,} left; free some space."
            )


def _complete(
    url: str, size: int, checksum: Checksum, headers: Mapping[str, str], partial: Path, bar: Progress, patience: Patience
) -> None:
    """Downloads what is missing. Where a part was old and the whole is wrong, all of it is fetched once more."""
    for _ in range(2):
        resumed = _size(partial)
        if resumed > size:
            partial.unlink()
            resumed = 0
        _download(url, size, headers, partial, bar, patience)
        if checksum.fits(partial):
            return
        partial.unlink()
        if not resumed:
            break
        bar.message(f"{url}: what was there of it did not fit; downloading it from the beginning")
    raise Refused(
        f"{url} does not have the checksum {str(checksum)[:23]}… that was promised; it was changed or damaged, and is not kept."
    )


def _download(url: str, size: int, headers: Mapping[str, str], partial: Path, bar: Progress, patience: Patience) -> None:
    """Until all bytes are there. A connection that breaks is opened again as long as each brings something."""
    failures = 0
    while (before := _size(partial)) < size or not partial.exists():
        try:
            _download_once(url, size, headers, partial, bar, patience)
            return
        except Refused:
            raise
        except SharingError as error:
            if isinstance(error, StatusError) and error.status not in _PASSING:
                raise
            failures = failures + 1 if _size(partial) == before else 0
            if failures >= TRIES:
                raise
            time.sleep(min(8.0, patience.window / 30 * 2**failures))
            bar.message(f"{error} Trying again.")


def _download_once(url: str, size: int, headers: Mapping[str, str], partial: Path, bar: Progress, patience: Patience) -> None:
    start = _size(partial)
    asked = {**headers, "Range": f"bytes={start}-"} if start else headers
    with request(url, asked, patience=patience) as reply:
        if reply.status == 206:
            _check_range(reply, start, size)
        elif (said := _length(reply)) is not None and said != size:
            raise Refused(f"{url} has {said:,} bytes, and {size:,} were promised; it is not what it should be.")
        with open(partial, "ab" if reply.status == 206 else "wb") as handle:
            done = handle.tell()
            while done < size and (part := reply.read(min(BLOCK, size - done))):
                handle.write(part)
                done += len(part)
                bar.update(done)
    if done < size:
        raise SharingError(
            f"{url}: the connection ended after {done:,} of {size:,} bytes. Run the same command again to resume."
        )


def _check_range(reply: Reply, start: int, size: int) -> None:
    said = reply.headers.get("Content-Range", "")
    found = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", said)
    if not found or int(found[1]) != start or found[3] not in (str(size), "*"):
        raise Refused(f"{reply.url}: the server sent the part {said!r:.60}, and {start}-{size - 1}/{size} was asked for.")


def _length(reply: Reply) -> int | None:
    said = reply.headers.get("Content-Length")
    return int(said) if said is not None and re.fullmatch(r"\d{1,18}", said) else None


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
