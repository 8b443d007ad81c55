"""What can be asked of `graftmt train` and `graftmt retrain`, declared once. Layer 1.

Light to import: their `--help` waits for no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graftmt.configuration import apply_overrides, load_yaml
from graftmt.errors import ConfigError
from graftmt.options import argument, option


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """A run that a YAML file describes."""

    config: Path = argument(metavar="CONFIG")
    """YAML file of the run, such as those in configs/"""
    overrides: tuple[str, ...] = argument(default=(), metavar="KEY=VALUE...")
    """Changes to it: run=runs/x seed=2 stages.0.steps=500"""
    minutes: float | None = option("--minutes", default=None, least=0, metavar="N")
    """Stop cleanly after N minutes; rerun to resume"""
    fresh: bool = option("--fresh", default=False)
    """Start over; an earlier run is moved aside"""
    dry_run: bool = option("--dry-run", default=False)
    """Check and print the configuration; train nothing"""

    def mapping(self) -> dict[str, Any]:
        """The file's keys with all changes."""
        return apply_overrides(load_yaml(self.config), self.overrides)


@dataclass(frozen=True, kw_only=True)
class RetrainOptions(RunOptions):
    """… and what a re-training starts from; each is short for a key of the file."""

    base: Path | None = option("--base", "-b", default=None, group="Run")
    """Base to start from, which does not change (base=…)"""
    corpus: Path | None = option("--corpus", "-c", default=None, group="Run", metavar="FOLDER")
    """Text in all its languages and the new ones (data.corpus=…)"""
    new: tuple[str, ...] | None = option("--new", default=None, group="Run", commas=True, metavar="LANGS")
    """Languages to add, such as el,uk (new=[…])"""
    method: Literal["retrain", "substitute"] | None = option("--method", default=None, group="Run", metavar="NAME")
    """retrain or substitute; see above (method=…)"""

    def mapping(self) -> dict[str, Any]:
        return apply_overrides(with_shorthands(load_yaml(self.config), vars(self)), self.overrides)


def with_shorthands(mapping: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with `base`, `corpus`, `new` and `method` where they are given."""
    changed = dict(mapping)
    if given.get("corpus") is not None:
        data = changed.get("data", {})
        if not isinstance(data, dict):
            raise ConfigError(f"data is {data!r}; expected a mapping of keys to values.")
        changed["data"] = {**data, "corpus": str(given["corpus"])}
    if given.get("base") is not None:
        changed["base"] = str(given["base"])
    if given.get("new") is not None:
        changed["new"] = list(given["new"])
    if given.get("method") is not None:
        changed["method"] = given["method"]
    return changed
