"""A foreign model's configuration, which anyone may have made: values with their kinds checked. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from graftmt.errors import CheckpointError

Activation = Literal["relu", "gelu", "silu"]

ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}


class Settings:
    """The keys of one configuration file; `where` is what errors call it."""

    def __init__(self, values: Mapping[str, Any], where: Path | str) -> None:
        self.values, self.where = values, where

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number from 0; without a default it has to be there."""
        value = self.values.get(key, default)
        if type(value) is not int or value < 0:
            raise self.error(f"{key} is {value!r:.60}; expected a whole number")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{key} is {value!r:.60}; expected true or false")
        return value

    def word(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} is {value!r:.60}; expected a text")
        return value

    def activation(self, key: str, default: str) -> Activation:
        """The feed-forward's activation in our words; one that we do not have is an error."""
        name = self.word(key, default)
        if name not in ACTIVATIONS:
            raise self.error(f"{key} is {name!r:.60}; only models with {', '.join(ACTIVATIONS)} can be imported")
        return ACTIVATIONS[name]

    def error(self, problem: str) -> CheckpointError:
        return CheckpointError(f"{self.where}: {problem}.")
