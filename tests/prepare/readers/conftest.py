"""Small files to read, and short ways to read them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from graftmt.prepare.readers import StoredFile, find_files
from graftmt.prepare.source import Line, Source


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """`write("a/b.txt", "text")`: the path of a new file, text in UTF-8 or bytes."""

    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


@pytest.fixture
def stored() -> Callable[..., list[StoredFile]]:
    """`stored(path, …)`: the files there, as readers take them."""

    def find(*inputs: str | Path, **options: Any) -> list[StoredFile]:
        return find_files(inputs, **options)

    return find


@pytest.fixture
def lines_of() -> Callable[[Mapping[str, Source]], dict[str, list[Line]]]:
    """Everything that sources have, read twice to see that they start from the beginning each time."""

    def read(splits: Mapping[str, Source]) -> dict[str, list[Line]]:
        lines = {split: list(source) for split, source in splits.items()}
        assert lines == {split: list(source) for split, source in splits.items()}
        return lines

    return read


@pytest.fixture
def make_tar(tmp_path: Path) -> Callable[..., Path]:
    """`make_tar("a.tar.gz", {"x.en": b"…"})`; values may be TarInfo, for links and the like."""

    def make(name: str, members: Mapping[str, Any]) -> Path:
        path = tmp_path / name
        kind = {".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz"}.get(path.suffix, "w")
        with tarfile.open(path, kind) as archive:  # type: ignore[call-overload]
            for member, content in members.items():
                if isinstance(content, tarfile.TarInfo):
                    archive.addfile(content)
                    continue
                entry = tarfile.TarInfo(member)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return path

    return make


@pytest.fixture
def make_zip(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, members: Mapping[str, bytes]) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return path

    return make
