"""One random model of each family, saved by transformers and imported once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from peers.foreign_models import MODELS, ForeignModel

from graftmt import Base, import_model


class Imported(NamedTuple):
    theirs: ForeignModel
    ours: Base
    folder: Path


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Imported]:
    """`imported("nllb")`: a model, the base that it became, and the base's folder."""
    pytest.importorskip("transformers")
    pytest.importorskip("babel")
    known: dict[str, Imported] = {}

    def find(name: str) -> Imported:
        if name not in known:
            root = tmp_path_factory.mktemp(name)
            theirs = MODELS[name](root / "theirs")
            import_model(theirs.folder, root / "base")
            known[name] = Imported(theirs, Base.load(root / "base"), root / "base")
        return known[name]

    return find
