"""Archives and folders of packs that somebody made to do harm are refused by name, before anything unfolds."""

from __future__ import annotations

import os
import shutil
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graftmt.base import Base
from graftmt.errors import CheckpointError, GraftError
from graftmt.packs import Pack, load_pack, read_pack_document, save_pack
from graftmt.packs.archive import ALWAYS_UNFOLDED, LARGEST_READ

FILES = ["pack.json", "pack.safetensors", "subwords.model"]


@pytest.fixture(scope="module")
def stored(base: Base, make_pack: Callable[..., Pack], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only."""
    folder = tmp_path_factory.mktemp("stored") / "el-target"
    save_pack(make_pack(base, "target", "embed + dec-last-layer"), folder, base.model.config)
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "pack"))


def pack_into(path: Path, files: Iterator[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as made:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in files:
            made.writestr(name, content)
    return path


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    return ((path.name, path.read_bytes()) for path in sorted(folder.iterdir()))


def refused(path: Path, *words: str) -> None:
    with pytest.raises(GraftError) as caught:
        load_pack(path)
    assert str(path) in str(caught.value)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_of_the_usual_kinds_are_read(folder: Path, tmp_path: Path, compression: int) -> None:
    archive = pack_into(tmp_path / "el.zip", contents(folder), compression)
    assert load_pack(archive).fingerprint == load_pack(folder).fingerprint


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_of_other_kinds_are_refused(folder: Path, tmp_path: Path, compression: int) -> None:
    refused(pack_into(tmp_path / "el.zip", contents(folder), compression), "pack.json", "compressed")


@pytest.mark.parametrize("name", FILES)
def test_a_name_that_is_there_twice_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    files = iter([*contents(folder), (name, b"another")])
    refused(pack_into(tmp_path / "twice.graftpack", files), f"2 files {name}")


@pytest.mark.parametrize("name", FILES)
def test_a_member_that_unfolds_to_far_more_than_the_archive_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    bomb = b"\0" * (2 * ALWAYS_UNFOLDED)
    files = ((file, bomb if file == name else content) for file, content in contents(folder))
    archive = pack_into(tmp_path / "el.graftpack", files, zipfile.ZIP_DEFLATED)
    assert archive.stat().st_size < 2**20
    refused(archive, name, f"{len(bomb):,}")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("size", [0, 100, 2**20, 2**31])
@pytest.mark.parametrize("name", FILES)
def test_a_directory_that_lies_about_a_size_is_refused(
    folder: Path, tmp_path: Path, name: str, size: int, compression: int
) -> None:
    archive = pack_into(tmp_path / "el.graftpack", contents(folder), compression)
    content = bytearray(archive.read_bytes())
    place = content.index(b"PK\x01\x02")
    while content[place + 46 : place + 46 + len(name)] != name.encode():
        place = content.index(b"PK\x01\x02", place + 4)
    struct.pack_into("<I", content, place + 24, size)
    archive.write_bytes(content)
    refused(archive)


def test_a_directory_of_very_many_names_is_refused(tmp_path: Path) -> None:
    files = ((f"{number:0200}", b"") for number in range(LARGEST_READ // 200))
    refused(pack_into(tmp_path / "el.graftpack", files), "directory is too large")


@pytest.mark.parametrize("name", FILES)
def test_pipes_and_devices_in_a_folder_are_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refused(folder, name)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    refused(folder, name)
    (folder / name).unlink()
    (folder / name).mkdir()
    refused(folder, name)


def test_a_pipe_in_place_of_an_archive_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "el.graftpack")
    refused(tmp_path / "el.graftpack")
    with pytest.raises(CheckpointError):
        read_pack_document(tmp_path / "el.graftpack")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_terabyte_is_refused(folder: Path, name: str) -> None:
    os.truncate(folder / name, 2**40)
    refused(folder, name)
