"""A teacher that can translate, the demo's base, and a little of the text that it can translate."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

LINES, REPEATED = 240, 10


@pytest.fixture(scope="session")
def demo_base() -> Iterator[Path]:
    with resources.as_file(resources.files("graftmt.demo") / "base") as folder:
        yield folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text in en, fr, ru and el, the last lines of which have been there before; read only."""
    pytest.importorskip("babel")
    from graftmt.demo.phrase_corpus import write_corpus

    folder = tmp_path_factory.mktemp("augmentation") / "corpus"
    write_corpus(folder, ("en", "fr", "ru", "el"), train_lines=LINES - REPEATED, valid_lines=20, test_lines=20)
    (folder / "corpus.json").unlink()
    for path in folder.glob("train.*"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join([*lines, *lines[:REPEATED]]), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def other_teacher(demo_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's base with two language codes confused: asked for French it writes Russian."""
    import torch

    from graftmt.base import Base

    base = Base.load(demo_base)
    french, russian = (base.tokenizer.vocabulary.code(language) for language in ("fr", "ru"))
    with torch.no_grad():
        weight = base.model.source_embedding.weight
        weight[[french, russian]] = weight[[russian, french]]
    folder = tmp_path_factory.mktemp("augmentation") / "teacher"
    base.save(folder)
    return folder
