"""What `graftmt experiment run` and `list` are asked for: profile, rows, corpus, bases and output folder from the options."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from graftmt.cli.declared import numbers
from graftmt.errors import ConfigError
from graftmt.options import items
from graftmt.progress import silence

if TYPE_CHECKING:
    from graftmt.experiments.addresses import Addresses
    from graftmt.experiments.planning import Plan, Request
    from graftmt.experiments.profiles import Profile

DEMO_BASE = 4
"""The model that the shipped base stands for: English-centric, then multi-parallel."""


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The options that choose rows, as they were given."""

    tables: str | None
    figures: str | None
    rows: str | None
    languages: str | None
    seeds: str

    def request(self, bases: tuple[int, ...]) -> Request:
        """`bases`: the numbers of those that are given."""
        from graftmt.experiments.planning import Request

        request = Request(
            tables=tuple(dict.fromkeys(numbers(self.tables or "", "--tables"))),
            figures=tuple(dict.fromkeys(numbers(self.figures or "", "--figures"))),
            rows=tuple(dict.fromkeys(items(self.rows or ""))),
            languages=None if self.languages is None else tuple(dict.fromkeys(items(self.languages))),
            seeds=tuple(dict.fromkeys(numbers(self.seeds, "--seeds"))),
            bases=bases,
        )
        if not request.seeds:
            raise ConfigError("--seeds is empty; give at least one, such as 1.")
        return request


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One call of `run` or `list`."""

    profile: Profile
    request: Request
    corpus: Path | None
    bases: dict[int, Path]
    output: Path

    @classmethod
    def of(
        cls,
        profile: str | None,
        overrides: list[str] | None,
        selected: Selected,
        corpus: Path | None,
        base: list[str] | None,
        output: Path | None,
    ) -> Asked:
        from graftmt.experiments.profiles import load_profile

        if profile is None:  # rather than an error about a missing argument, which would not say what there is
            raise ConfigError("say which profile: docs, ted, paracrawl, demo, or the path of a YAML file like them.")
        chosen, bases = load_profile(profile, overrides or ()), _bases(base)
        given = (*bases, *([DEMO_BASE] if chosen.corpus.provided == "demo" else []))
        folder = output or Path("runs/experiments") / chosen.name
        return cls(profile=chosen, request=selected.request(given), corpus=corpus, bases=bases, output=folder)

    @property
    def with_everything(self) -> Asked:
        """Where neither tables nor figures are named: all of the profile's part of the paper."""
        from graftmt.experiments import definitions

        if self.request.tables or self.request.figures:
            return self
        tables, figures = (
            tuple(number for number, one in known.items() if one.corpus == self.profile.paper)
            for known in (dict(definitions.tables()), dict(definitions.figures()))
        )
        return replace(self, request=replace(self.request, tables=tables, figures=figures))

    def plan(self) -> Plan:
        from graftmt.experiments.planning import make_plan

        if not self.request.tables and not self.request.figures:
            raise ConfigError(
                "say what to run: --tables 2,3,4, --figures 3, or both; `graftmt experiment list PROFILE` shows all."
            )
        return make_plan(self.profile, self.request)

    def found(self) -> Addresses:
        """For looking alone: what is not there is not made."""
        from graftmt.experiments.addresses import Addresses

        is_demo = self.profile.corpus.provided == "demo"
        folder = self.corpus or (self.output / "corpus" if is_demo else self.profile.corpus.folder)
        shipped = {DEMO_BASE: self._demo_place} if is_demo and (self._demo_place / "base.json").is_file() else {}
        corpus = folder if folder is not None and folder.is_dir() else None
        return Addresses(self.profile, self.output, corpus, {**shipped, **self.bases})

    def made(self) -> Addresses:
        """With the demo's text and base, where these are asked for and not there yet."""
        from graftmt.experiments.addresses import Addresses

        bases, corpus = self.bases, self.corpus
        if self.profile.corpus.provided == "demo":
            from graftmt.demo.story import copy_shipped_base, make_corpus
            from graftmt.experiments.job_locks import JobLocks

            with JobLocks(self.output / "locks").take("demo", wait=True), silence():
                corpus = corpus or make_corpus(self.output / "corpus", 1)
                if DEMO_BASE not in bases and not (self._demo_place / "base.json").is_file():
                    copy_shipped_base(self._demo_place)
            bases = {DEMO_BASE: self._demo_place, **bases}
        corpus = corpus or self.profile.corpus.folder
        if corpus is None or not corpus.is_dir():
            how = "".join(f"\n  {command}" for command in self.profile.corpus.made_by)
            raise ConfigError(
                f"there is no corpus folder {corpus}; give it with --corpus FOLDER." + (f" It is made by:{how}" if how else "")
            )
        return Addresses(self.profile, self.output, corpus, bases)

    @property
    def _demo_place(self) -> Path:
        return self.output / "bases" / "demo"


def _bases(values: list[str] | None) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for value in values or []:
        match = re.fullmatch(r"(\d+)=(.+)", value)
        if match is None:
            raise ConfigError(f"--base {value}: expected the number of a model and a folder, such as 4=runs/docs/base.")
        folder = Path(match[2])
        if not (folder / "base.json").is_file():
            raise ConfigError(f"--base {value}: there is no base in {folder}; make one with `graftmt train`.")
        found[int(match[1])] = folder
    return found
