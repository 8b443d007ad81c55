"""Packs on tiny bases, composed as they are for an export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graftmt.base import Base
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
