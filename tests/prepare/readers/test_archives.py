"""Files wherever they lie: compressed, in archives, in parts, and archives made to do harm."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from graftmt.errors import ConfigError, DataError, GraftError
from graftmt.prepare.readers import Limits, find_files
from graftmt.prepare.readers.lines import read_lines

LINES = ["first", "Ελληνικά, 中文", "", "last"]
CONTENT = "".join(f"{line}\n" for line in LINES).encode()
COMPRESSIONS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}
NOISE = random.Random(1).randbytes(200_000)
ARCHIVES = ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz"]


@pytest.fixture
def make_archive(make_tar, make_zip):
    return lambda name, members: (make_zip if name.endswith(".zip") else make_tar)(name, members)


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_files_give_the_same_lines(write, stored, ending: str) -> None:
    (file,) = stored(write(f"text.en{ending}", COMPRESSIONS[ending](CONTENT)))
    assert file.name == "text.en"
    assert list(read_lines(file)) == LINES


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize("archive", ARCHIVES)
def test_members_of_archives_give_the_same_lines_even_if_compressed_themselves(
    make_archive, stored, archive: str, ending: str
) -> None:
    path = make_archive(archive, {"d/noise.bin": NOISE, f"d/text.en{ending}": COMPRESSIONS[ending](CONTENT), "d/after": NOISE})
    (named,) = stored(f"{path}!d/text.en{ending}")
    (found,) = stored(path.parent, wanted=lambda name: name.endswith(".en"))
    assert list(read_lines(named)) == list(read_lines(found)) == LINES
    assert str(named) == f"{path}!d/text.en{ending}"
    assert named.name == "d/text.en"


def test_an_archive_cut_into_parts_is_read_as_one(make_tar, stored) -> None:
    path = make_tar("un.tar.gz", {"noise": NOISE, "text.en": CONTENT})
    whole = path.read_bytes()
    path.unlink()
    for number in range(3):
        (path.parent / f"un.tar.gz.{number:02}").write_bytes(
            whole[number * 80_000 : (number + 1) * 80_000 if number < 2 else None]
        )
    for asked in (path.parent, path.parent / "un.tar.gz.00"):
        (file,) = stored(asked, wanted=lambda name: name == "text.en")
        assert list(read_lines(file)) == LINES
    (path.parent / "un.tar.gz.01").unlink()
    with pytest.raises(DataError, match=r"parts \[0, 2\] are there, so one is missing"):
        stored(path.parent)


def test_hidden_files_are_not_meant_and_the_order_is_fixed(write, make_tar, stored, tmp_path: Path) -> None:
    for name in ("b.en", "a.en", ".git/c.en", "._a.en"):
        write(f"folder/{name}", CONTENT)
    assert [file.name for file in stored(tmp_path / "folder")] == ["a.en", "b.en"]
    path = make_tar("a.tar", {"x/._b.en": b"", "./x/b.en": CONTENT, "x/a.en": CONTENT})
    assert [file.name for file in stored(path)] == ["./x/b.en", "x/a.en"]


def test_labels_and_odd_paths(write, stored) -> None:
    path = write("en=odd!name.txt", CONTENT)
    assert stored(path)[0].label == ""
    (file,) = stored(f"valid={path}")
    assert (file.label, list(read_lines(file))) == ("valid", LINES)


@pytest.mark.parametrize("cut", [0.3, 0.9])
@pytest.mark.parametrize("name", [*ARCHIVES, "text.en.gz", "text.en.xz", "text.en.zst"])
def test_a_truncated_file_says_so(make_archive, write, stored, name: str, cut: float) -> None:
    if name.startswith("text"):
        noise = "\n".join(NOISE[index : index + 50].hex() for index in range(0, len(NOISE), 50)).encode()
        path = write(name, COMPRESSIONS[name[7:]](noise))
    else:
        path = make_archive(name, {"text.en": CONTENT * 1000, "noise.en": NOISE[:5000].hex().encode()})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(DataError, match=rf"{name}.*truncated or damaged"):
        for file in stored(path):
            list(read_lines(file))


def test_a_tar_that_ends_without_its_end_or_is_damaged_between_members_is_truncated(make_tar, stored) -> None:
    path = make_tar("a.tar", {"a.en": CONTENT, "b.en": CONTENT})
    whole = path.read_bytes()
    path.write_bytes(whole[:1024])  # the first member and nothing else: tarfile alone would be content
    with pytest.raises(DataError, match="truncated or damaged"):
        stored(path)
    path.write_bytes(whole[:1024] + b"x" * 512 + whole[1536:])
    with pytest.raises(DataError, match="at byte 1,024 of the archive"):
        stored(path)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.en", "a/../../up.en", "..\\up.en", "C:\\up.en"])
@pytest.mark.parametrize("archive", ["a.zip", "a.tar.gz"])
def test_a_member_outside_the_archive_s_folder_is_refused(make_archive, stored, archive: str, name: str) -> None:
    path = make_archive(archive, {"good.en": CONTENT, name: CONTENT})
    with pytest.raises(DataError, match=r"a\.(zip|tar\.gz): the member .* is outside"):
        stored(path)


@pytest.mark.parametrize(
    ("entry", "refused"),
    [
        (link("x/l", "/etc/passwd"), True),
        (link("x/l", "../../etc/passwd"), True),
        (link("x/l", "../good.en"), False),
        (link("x/l", "../good.en", tarfile.LNKTYPE), True),
        (link("x/l", "good.en", tarfile.LNKTYPE), False),
    ],
)
def test_links_that_lead_out_are_refused_and_others_ignored(make_tar, stored, entry: tarfile.TarInfo, refused: bool) -> None:
    path = make_tar("a.tar", {"good.en": CONTENT, "x/l": entry})
    if refused:
        with pytest.raises(DataError, match="is a link to"):
            stored(path)
    else:
        assert [file.name for file in stored(path)] == ["good.en"]


def test_a_link_in_a_zip_is_refused(tmp_path: Path, stored) -> None:
    entry = zipfile.ZipInfo("link.en")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(DataError, match="is a link"):
        stored(tmp_path / "a.zip")


ZEROS = b"\n" * 6_000_000


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz", "bomb.en.gz", "bomb.en.xz", "bomb.en.zst"])
def test_a_bomb_is_refused_by_its_ratio_and_by_its_size(make_archive, write, stored, name: str) -> None:
    """6 MB out of some 6 kB; and 3 MB that are no bomb by their ratio, yet more than a limit on size allows."""
    honest = (NOISE.hex().encode() * 8)[:3_000_000]
    for content, limits, word in ((ZEROS, Limits(), "200 times"), (honest, Limits(size=1_000_000), "1,000,000 bytes")):
        path = make_archive(name, {"x.en": content}) if "en" not in name else write(name, COMPRESSIONS[name[7:]](content))
        with pytest.raises(DataError, match=f"bomb.*{word}.*--max-ratio"):
            for file in stored(path, limits=limits):
                list(file.open())
    path = make_archive(name, {"x.en": ZEROS}) if "en" not in name else write(name, COMPRESSIONS[name[7:]](ZEROS))
    (file,) = stored(path, limits=Limits(ratio=100_000))
    with file.open() as handle:
        assert sum(map(len, handle)) == len(ZEROS)


def test_a_bomb_inside_an_archive_is_seen_too(make_zip, stored) -> None:
    (file,) = stored(make_zip("a.zip", {"x.en.gz": gzip.compress(ZEROS)}))
    with pytest.raises(DataError, match=r"x\.en\.gz: .* bomb"):
        list(file.open())


def test_limits_below_one_cannot_be_meant() -> None:
    with pytest.raises(ConfigError):
        Limits(ratio=0)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("nowhere", "there is no file or folder"),
        ("a.zip!text.rn", "has no member 'text.rn'; did you mean 'text.en'"),
        ("b.txt!x", "only members of .zip and .tar archives"),
        ("empty", "it is empty"),
    ],
)
def test_what_is_not_there_is_named(make_zip, write, stored, tmp_path: Path, asked: str, words: str) -> None:
    make_zip("a.zip", {"text.en": CONTENT})
    write("b.txt", CONTENT)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=words):
        stored(f"{tmp_path}/{asked}")


def test_a_file_asked_for_twice_is_an_error(write, stored) -> None:
    path = write("a.en", CONTENT)
    with pytest.raises(DataError, match="asked for twice"):
        stored(path, path)


def test_an_encrypted_member_cannot_be_read(make_zip, stored) -> None:
    path = make_zip("a.zip", {"text.en": CONTENT})
    raw = bytearray(path.read_bytes())
    raw[6] |= 1  # the flag in the member's header
    raw[raw.index(b"PK\x01\x02") + 8] |= 1  # and in the list
    path.write_bytes(raw)
    (file,) = stored(path)
    with pytest.raises(DataError, match="encrypted"):
        file.open()


@pytest.mark.parametrize("inside", [True, False])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, inside: bool) -> None:
    (tmp_path / "x.en").write_text("one\n", encoding="utf-8")
    os.mkfifo(tmp_path / "x.fr")
    with pytest.raises(GraftError, match=r"x\.fr is a named pipe"):
        find_files([tmp_path] if inside else [tmp_path / "x.en", tmp_path / "x.fr"])
