"""A base with packs for the commands that take some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Grafted(NamedTuple):
    """Folders: a base, and packs that were trained on it for two steps."""

    base: Path
    el: Path
    """As source; so is `other`, with adapters."""
    other: Path
    uk: Path
    """As target."""


@pytest.fixture(scope="session")
def grafted(
    tmp_path_factory: pytest.TempPathFactory, graft_base: Callable[..., Path], train_graft: Callable[..., Any]
) -> Grafted:
    """Read only."""
    from graftmt.base import Base

    folder, base = tmp_path_factory.mktemp("grafted"), Base.load(graft_base())
    train_graft(folder / "el", base, "source", "embed", steps=2)
    train_graft(folder / "other", base, "source", "embed + enc-adapters-all(4)", steps=2)
    train_graft(folder / "uk", base, "target", "embed", languages=("uk",), steps=2)
    return Grafted(graft_base(), *(folder / name / "pack" for name in ("el", "other", "uk")))
