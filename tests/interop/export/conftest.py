"""Packs on tiny bases, composed as they are for an export."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.data import Direction
from graftmt.interop.export.exporting import export
from graftmt.packs import Composition, compose
from graftmt.translator import Translator


@pytest.fixture
def composed(graft_base: Callable[..., Any], make_pack: Callable[..., Any]) -> Callable[..., Composition]:
    """`composed("embed", "embed + non-tied", norm="post")`: packs for el and uk on a base, "" for none on that side."""

    def build(source: str = "", target: str = "", **base_options: Any) -> Composition:
        base = Base.load(graft_base(**base_options))
        packs = {
            "source": make_pack(base, "source", source, "el") if source else None,
            "target": make_pack(base, "target", target, "uk") if target else None,
        }
        return compose(base, **packs, fold=True)

    return build


@pytest.fixture
def composed_translator(graft_base: Callable[..., Any], make_pack: Callable[..., Any]) -> Translator:
    """With packs for el and uk, whose text has inline casing."""
    base = Base.load(graft_base(placement="decoder"))
    recipes = {"source": ("embed + enc-adapters-all(4)", "el"), "target": ("embed", "uk")}
    return Translator(base, [make_pack(base, side, *given) for side, given in recipes.items()])


@pytest.fixture(scope="session")
def exported_once(
    graft_base: Callable[..., Path], make_pack: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """`exported_once("ctranslate2")`: a folder that is not to be changed, for el → uk, with inline casing."""
    base = Base.load(graft_base(placement="decoder", output_bias=True))
    packs = {"source": make_pack(base, "source", "embed", "el"), "target": make_pack(base, "target", "embed + non-tied", "uk")}
    packs["target"].parameters["output.bias"].data[packs["target"].tokenizer.end_id] -= 3  # or some translate as nothing
    place = tmp_path_factory.mktemp("exported")

    @cache
    def made(to: str) -> Path:
        export(Translator(base, list(packs.values())), [Direction("el", "uk")], place / to, to=to)
        return place / to

    return made


@pytest.fixture
def exported(exported_once: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """The same, a copy to do anything with."""
    return lambda to: Path(shutil.copytree(exported_once(to), tmp_path / to))
