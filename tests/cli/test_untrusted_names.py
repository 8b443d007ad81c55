"""Names of languages come from bases, packs, files and arguments that anyone may have made: no file is made from a bad one."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ["../../evil", "/tmp/evil", "..", "a/b", "\x1b[31m", "en\n", "é", "x" * 41, ""]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder two levels down; nothing else may appear above it."""
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    yield inside
    assert {path.name for path in tmp_path.iterdir()} <= {"a", "standard-input"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"b"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["augment", "add"])
def test_a_base_with_such_a_language_is_refused(
    graftmt, grafted: Any, graft_corpus: Path, place: Path, command: str, name: str
) -> None:
    base = Path(shutil.copytree(grafted.base, place / "base"))
    document = json.loads((base / "base.json").read_text(encoding="utf-8"))
    document["languages"] = ["en", name, "ru"]
    (base / "base.json").write_text(json.dumps(document), encoding="utf-8")
    out = ["--spec", "5-bt", "-o", str(place / "out")] if command == "augment" else ["--run", str(place / "run")]
    result = graftmt(command, "el", "-b", str(base), "--train", str(graft_corpus), *out)
    assert result.code == 1
    assert not (place / "out").exists() and not (place / "run").exists()
    assert not set(result.stderr) & set("\x1b")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["augment", "add"])
def test_so_is_a_new_language(graftmt, grafted: Any, graft_corpus: Path, place: Path, command: str, name: str) -> None:
    out = ["--spec", "5-bt", "-o", str(place / "out")] if command == "augment" else ["--run", str(place / "run")]
    result = graftmt(command, f"{name}", "-b", str(grafted.base), "--train", str(graft_corpus), *out)
    assert result.code == 1
    assert not (place / "out").exists() and not (place / "run").exists()


def table(name: str) -> tuple[str, bytes]:
    return "x.tsv", f"en\t{name}\none\tun\n".encode()


def ted(name: str) -> tuple[str, bytes]:
    return "all_talks_train.tsv", f"talk_name\ten\t{name}\nx\tone\tun\n".encode()


def jsonl(name: str) -> tuple[str, bytes]:
    return "x.jsonl", json.dumps({"translation": {"en": "one", name: "un"}}).encode()


def tmx(name: str) -> tuple[str, bytes]:
    code = name.replace("\x1b", "").replace("\n", "&#10;")
    units = "".join(f'<tuv xml:lang="{one}"><seg>word</seg></tuv>' for one in ("en", code))
    return "x.tmx", f'<tmx version="1.4"><header/><body><tu>{units}</tu></body></tmx>'.encode()


def po(name: str) -> tuple[str, bytes]:
    return "x.po", f'msgid ""\nmsgstr "Language: {name}\\n"\n\nmsgid "one"\nmsgstr "un"\n'.encode()


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "..", "a/b", "\x1b[31m", "a__b", "x" * 41])
@pytest.mark.parametrize("make", [table, ted, jsonl, tmx, po], ids=["tsv", "ted", "jsonl", "tmx", "po"])
def test_so_are_the_languages_of_files(graftmt, place: Path, make: Any, name: str, request: pytest.FixtureRequest) -> None:
    file, content = make(name)
    (place / file).write_bytes(content)
    command = request.node.callspec.id.split("-")[0]
    result = graftmt("prepare", command, str(place / file), "-o", str(place / "out"))
    assert result.code == 1, result
    assert not (place / "out").exists()
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize("member", ["../../evil.en", "/tmp/evil.en", "a/../../../b.en", "x.\x1b[31m"])
def test_members_of_archives_name_no_file(graftmt, place: Path, member: str) -> None:
    with zipfile.ZipFile(place / "x.zip", "w") as archive:
        archive.writestr(member, "one\n")
        archive.writestr(member.replace(".en", ".fr"), "un\n")
    result = graftmt("prepare", "moses", str(place / "x.zip"), "-o", str(place / "out"))
    assert result.code in (0, 1)
    assert "\x1b" not in result.stderr + result.stdout
    if (place / "out").exists():
        assert {path.name for path in (place / "out").iterdir()} == {"train.en.txt", "train.fr.txt", "corpus.json"}


@pytest.mark.parametrize("label", ["../../evil", "..", "a/b", "\x1b[31m", "é" * 3])
def test_a_split_needs_a_plain_name(graftmt, place: Path, label: str) -> None:
    file, content = table("fr")
    (place / file).write_bytes(content)
    result = graftmt("prepare", "tsv", f"{label}={place / file}", "-o", str(place / "out"))
    assert result.code == 1, result
    assert not (place / "out").exists()
