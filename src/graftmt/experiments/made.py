"""What a run notes of the model that it made: how, and of a re-trained one how near its language codes are. Layer 7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.base import Base
from graftmt.configuration import from_mapping
from graftmt.documents import read_json
from graftmt.errors import ConfigError, DataError
from graftmt.packs.codes import code_distances

MADE = "made.json"
"""In a run whose model is finished: what its result says of that."""

Codes = Mapping[str, Mapping[str, float]]
"""New language → initial languages and how far their codes are from its own, the nearest first."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the result of a model says of how it was made."""

    parameters: int | None = None
    steps: int | None = None
    recipe: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    curve: list[dict[str, Any]]
    verified: dict[str, bool] = field(default_factory=dict)
    codes: dict[str, dict[str, float]] | None = None
    """Of a re-trained model; none of others, nor of one made before they were noted."""


@dataclass(frozen=True, kw_only=True)
class Made(Facts):
    """A model that was trained or found."""

    folder: Path
    fingerprint: str


def made_facts(note: Path) -> dict[str, Any]:
    """What is noted of a model that is finished."""
    found = read_json(note, "the note of a model")
    try:
        from_mapping(Facts, found)
    except ConfigError as error:
        raise DataError(
            f"{note} is damaged ({str(error).rstrip('.')}). Restore it from a copy, or delete its folder to have the model "
            "made again."
        ) from None
    return found


def codes_of(model: Base, new: tuple[str, ...], initial: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """How far the initial languages' codes are from those that a re-trained model learned for new ones.

    Empty where it writes no codes that name the target language.
    """
    known = model.target_languages
    if model.tokenizer.layout.code_matrix("target") is None:
        return {}
    among = [language for language in initial if language in known]
    found = {language: code_distances(language, model, among) for language in new if language in known}
    return {language: {other: round(far, 6) for other, far in one.items()} for language, one in found.items()}


def noted_codes(path: Path) -> Codes | None:
    """Those that a note or a result has, if it is there and has them."""
    if not path.is_file():
        return None
    found = read_json(path, "the codes of a re-trained model").get("codes")
    if not found:
        return None
    try:
        return {language: {other: float(far) for other, far in one.items()} for language, one in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise DataError(
            f"{path} is damaged (its codes are not distances by language). Restore it from a copy, or delete it to have it "
            "made again."
        ) from None
