"""Chunks that are done: read back as they were stored; whatever is damaged is named and made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.augmentation.chunks import Translated, Work
from graftmt.errors import GraftError
from graftmt.folders import exclusive
from graftmt.progress import heard_by

DONE = Translated("fr", 3, (4, 9, 11), ("un", "deux", ""), unfinished=(11,), copies=(4,))


def unsigned(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """A change of the document of a chunk, which has no checksum, as in earlier versions."""

    def harm(path: Path) -> None:
        document = json.loads(path.read_text(encoding="utf-8"))
        del document["checksum"]
        change(document)
        path.write_text(json.dumps(document), encoding="utf-8")

    return harm


DAMAGE: dict[str, Callable[[Path], object]] = {
    "same length": lambda path: path.write_text(path.read_text(encoding="utf-8").replace("deux", "Deux"), encoding="utf-8"),
    "half": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "no object": lambda path: path.write_text("[]"),
    "no lines": unsigned(lambda document: document.pop("lines")),
    "text is a number": unsigned(lambda document: document["texts"].append(7)),
    "line is a text": unsigned(lambda document: document.update(lines=["4", 9, 11])),
    "another line": unsigned(lambda document: document.update(copies=[5])),
    "too few": unsigned(lambda document: document["texts"].pop()),
    "nested": unsigned(lambda document: document.update(unfinished=[[11]])),
}


def test_a_chunk_is_read_as_it_was_stored(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.store(DONE)
    assert work.read("fr", 3) == DONE
    assert work.has("fr", 3, DONE.lines)
    assert not work.has("fr", 3, (4, 9)) and not work.has("fr", 4, DONE.lines)
    unsigned(lambda document: None)(work.path("fr", 3))  # of an earlier version
    assert work.read("fr", 3) == DONE


@pytest.mark.parametrize("harm", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_chunk_is_named_and_is_not_there(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    said: list[str] = []
    work = Work(tmp_path)
    work.store(DONE)
    harm(work.path("fr", 3))
    with heard_by(said.append):
        assert not work.has("fr", 3, DONE.lines)
    assert len(said) == 1 and "fr-000003.json" in said[0]
    with pytest.raises(GraftError, match=r"fr-000003\.json"):
        work.read("fr", 3)


@pytest.mark.parametrize("content", ["{", "[]", '{"new": ["el"], "checksum": "00000000"}'])
def test_damage_to_the_description_is_named_with_the_way_out(tmp_path: Path, content: str) -> None:
    Work(tmp_path).begin({"new": ["el"]})
    (tmp_path / "work.json").write_text(content, encoding="utf-8")
    with pytest.raises(GraftError, match=r"work\.json.*--fresh"):
        Work(tmp_path).begin({"new": ["el"]})


def test_a_work_folder_that_is_removed_in_mid_work_is_not_made_anew(tmp_path: Path) -> None:
    work = Work(tmp_path / "work")
    with pytest.raises(GraftError, match="work was removed"), exclusive(work.folder, "it"):
        work.begin({"new": ["el"]})
        shutil.rmtree(work.folder)
        work.store(DONE)
    assert not work.folder.exists()
