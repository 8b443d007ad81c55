"""Engines by name, for commands that let a user choose: each kind is one file. Layer 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from graftmt.engines import Engine
from graftmt.errors import ConfigError, nearest
from graftmt.interop.ctranslate2_engine import CTranslate2Engine
from graftmt.packs import Pack
from graftmt.translator import Translator

EngineFactory = Callable[[str, str], Engine | None]

ENGINES: dict[str, EngineFactory] = {"native": lambda device, dtype: None, "ctranslate2": CTranslate2Engine.open}
"""By name: what makes one for a device and a precision. None is a translator's own."""


def open_engine(name: str, device: str, dtype: str) -> Engine | None:
    """The engine of this name; None for the one that a translator has anyway."""
    if name not in ENGINES:
        raise ConfigError(f"unknown engine {name!r}{nearest(name, ENGINES) or '.'} Known: {', '.join(ENGINES)}.")
    return ENGINES[name](device, dtype)


def open_translator(
    name: str,
    base: str | Path,
    packs: Mapping[str, Pack | str | Path] | Sequence[Pack | str | Path] = (),
    *,
    device: str = "cpu",
    dtype: str = "fp32",
) -> Translator:
    """A translator whose compositions are run by the engine of this name."""
    engine = open_engine(name, device, dtype)
    # Another engine has weights of its own; those of the base are only what it makes them from.
    return Translator(base, packs, device=device, dtype=dtype if engine is None else "fp32", engine=engine)
