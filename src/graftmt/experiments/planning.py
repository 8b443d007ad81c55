"""Which jobs fill which rows of the paper's tables and which points of its figures. Layer 7."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from graftmt.data import Direction
from graftmt.errors import ConfigError, LanguageError, nearest
from graftmt.experiments.definitions import PROXY, Curve, Panel, Row, Table, figures, models, tables
from graftmt.experiments.jobs import Job, Kind, in_order, name_proxy, no_oracle, oracle_of, trained, trains
from graftmt.experiments.profiles import Profile


class Unavailable(Exception):
    """Why a row is not run in a profile."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `graftmt experiment` is asked for."""

    tables: tuple[int, ...] = ()
    figures: tuple[int, ...] = ()
    rows: tuple[str, ...] = ()
    """Numbers of models, or 14+31 for a composition. Default: all."""
    languages: tuple[str, ...] | None = None
    """New languages, instead of those that a table's columns name."""
    seeds: tuple[int, ...] = (1,)
    bases: tuple[int, ...] = ()
    """Numbers of the bases whose folders were given."""


@dataclass(frozen=True, kw_only=True)
class PlannedRow:
    """One row of a table or curve of a figure, and the jobs that fill it."""

    where: str
    """Table 2, Figure 4 el-en."""
    number: str
    """The paper's, such as 7 or 14+31."""
    label: str
    jobs: tuple[Job, ...] = ()
    reason: str = ""
    """Why there are none."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    rows: tuple[PlannedRow, ...]
    jobs: tuple[Job, ...]
    """All that the rows need, each after what it needs itself."""


def make_plan(profile: Profile, request: Request) -> Plan:
    """The rows asked for and their jobs, in an order in which nothing comes before what it needs.

    Otherwise jobs of a kind come as --rows names them: where time is short, what matters most is done first.
    """
    check(profile, request)
    rows: list[PlannedRow] = []
    for number in request.tables:
        table = tables()[number]
        rows += [_row(profile, request, table, row) for row in table.rows if _asked(request, _numbers(row))]
    for number in request.figures:
        for panel in figures()[number].panels:
            rows += [
                _curve(profile, request, number, panel, curve) for curve in panel.curves if _asked(request, (str(curve.model),))
            ]
    by_request = sorted(rows, key=lambda row: _matching(request, (row.number,))[:1])
    return Plan(rows=tuple(rows), jobs=in_order([job for row in by_request for job in row.jobs], profile))


def check(profile: Profile, request: Request) -> None:
    """What is asked for exists, and is of the profile's part of the paper."""
    if not request.tables and not request.figures:
        raise ConfigError("nothing was asked for; name tables or figures, such as --tables 2,3 or --figures 3.")
    named: tuple[tuple[str, Sequence[int], dict[int, Any]], ...] = (
        ("table", request.tables, dict(tables())),
        ("figure", request.figures, dict(figures())),
    )
    for what, numbers, known in named:
        fitting = [str(number) for number, one in known.items() if one.corpus == profile.paper]
        for number in numbers:
            if number not in known or known[number].corpus != profile.paper:
                why = (
                    f"is of the {known[number].corpus} models"
                    if number in known
                    else "is not among those with scores of models"
                )
                raise ConfigError(
                    f"{what} {number} {why}; profile {profile.name!r} has the {profile.paper} models: {what}s "
                    f"{', '.join(fitting) or 'none'}."
                )
    for text in request.rows:
        if not re.fullmatch(r"\d+(\+\d+)?", text):
            raise ConfigError(f"--rows {text}: expected the number of a model, such as 7, or of two that are composed: 14+31.")
    known_rows = _all_numbers(request)
    singles = {part for number in known_rows for part in number.split("+")}
    for text in request.rows:
        if text not in known_rows and text not in singles:
            raise ConfigError(
                f"--rows {text}: no row of what was asked for is of this model; its rows are "
                f"{', '.join(dict.fromkeys(known_rows))}."
            )
    for language in request.languages or ():
        if language not in profile.new:
            raise LanguageError(
                f"--languages {language}: this is not a new language of profile {profile.name!r}"
                f"{nearest(language, profile.new) or ';'} those are {', '.join(profile.new)}."
            )


def _all_numbers(request: Request) -> list[str]:
    rows = [number for one in request.tables for row in tables()[one].rows for number in _numbers(row)]
    return rows + [str(c.model) for one in request.figures for panel in figures()[one].panels for c in panel.curves]


def _numbers(row: Row) -> tuple[str, ...]:
    system = row.system
    return (str(system.model),) if system.model is not None else (f"{system.source}+{system.target}",)


def _asked(request: Request, numbers: Sequence[str]) -> bool:
    return not request.rows or bool(_matching(request, numbers))


def _matching(request: Request, numbers: Sequence[str]) -> list[int]:
    """Positions in --rows of what a row's numbers fit."""
    fits = (any(text == number or text in number.split("+") for number in numbers) for text in request.rows)
    return [position for position, found in enumerate(fits) if found]


def _row(profile: Profile, request: Request, table: Table, row: Row) -> PlannedRow:
    planned = PlannedRow(where=f"Table {table.number}", number=_numbers(row)[0], label=row.label)
    try:
        jobs = [job for seed in request.seeds for job in _jobs_of_row(profile, request, table, row, seed)]
        _check_available(jobs, profile, request)
    except Unavailable as reason:
        return replace(planned, reason=str(reason))
    return replace(planned, jobs=tuple(dict.fromkeys(jobs)))


def _jobs_of_row(profile: Profile, request: Request, table: Table, row: Row, seed: int) -> Iterator[Job]:
    filled = [column for column, score in zip(table.columns, row.scores, strict=True) if score is not None or table.ours]
    named = dict.fromkeys(language for column in filled for language in column.languages)
    new = request.languages or tuple(language for language in profile.new if language in named)
    if named and not new:
        raise Unavailable(f"of {', '.join(named)}, which this profile does not add")
    system = row.system
    common: dict[str, Any] = {"seed": seed, "initial": system.initial, "plus": system.plus}
    if system.model is None:
        kind: Kind = "pivot" if system.pivot else "composition"
        if len(new) < 2:
            raise Unavailable("takes two new languages")
        for pair in permutations(new, 2):
            yield Job(kind=kind, source=system.source, target=system.target, languages=pair, **common)
        return
    job = Job(kind="pivot" if system.pivot else "model", model=system.model, **common)
    kinds = trains(job)
    if kinds == "none":
        raise Unavailable("figures of others, which nothing here trains")
    if kinds == "base":
        yield replace(job, seed=1)
    elif kinds == "bilingual":
        directions = [d for column in filled for d in _bilingual(column.name, new, profile, pivot=system.pivot)]
        if not directions:
            raise Unavailable("needs bilingual models that this profile does not train (bilingual.partners, bilingual.initial)")
        for direction in dict.fromkeys(directions):
            yield replace(job, languages=tuple(direction))
    else:
        model = trained(job)
        own = model.languages or (models()[model.initial].languages if model.initial else ())
        if len(own) > 1:
            together = tuple(language for language in profile.new if language in own)
            if new and not set(new) & set(together):
                raise Unavailable(f"of {', '.join(own)}, not of {', '.join(new)}")
            yield replace(job, languages=together)
        else:
            for language in new or tuple(language for language in profile.new if language in own):
                yield replace(job, languages=(language,))


def _bilingual(column: str, new: Sequence[str], profile: Profile, *, pivot: bool) -> Iterator[Direction]:
    """The directions of a column for which a bilingual model is to be trained, or by pivot two."""
    english = profile.pivot
    if column in ("→EN", "←EN", "/EN"):
        if profile.bilingual.initial:
            old = profile.others
            if column == "/EN":
                yield from (Direction(a, b) for a, b in permutations(old, 2) if pivot)
            else:
                yield from (Direction(a, english) if column == "→EN" else Direction(english, a) for a in old)
        return
    if column == "X→X":
        yield from (Direction(a, b) for a, b in permutations(new, 2))
        return
    # By pivot the second hop is a bilingual model of initial languages; directly, each is one more model.
    others = profile.others if pivot and profile.bilingual.initial else () if pivot else profile.bilingual.partners
    old = (english,) if "/EN" not in column else tuple(others)
    for language in new:
        yield from (Direction(language, a) if column.startswith("X") else Direction(a, language) for a in old)


def _curve(profile: Profile, request: Request, number: int, panel: Panel, curve: Curve) -> PlannedRow:
    planned = PlannedRow(where=f"Figure {number} {panel.direction}", number=str(curve.model), label=curve.label)
    try:
        jobs = [job for seed in request.seeds for job in _jobs_of_curve(profile, request, panel, curve, seed)]
        _check_available(jobs, profile, request)
    except Unavailable as reason:
        return replace(planned, reason=str(reason))
    return replace(planned, jobs=tuple(jobs))


def _jobs_of_curve(profile: Profile, request: Request, panel: Panel, curve: Curve, seed: int) -> Iterator[Job]:
    new = request.languages or tuple(language for language in curve.languages if language in profile.new)
    if not new:
        raise Unavailable(f"of {', '.join(curve.languages)}, which this profile does not add")
    whole = Job(kind="model", model=curve.model, seed=seed, plus=curve.plus)
    bilingual = trains(whole) == "bilingual"
    for language in new:
        languages: tuple[str, ...] = (language,)
        if bilingual:  # the panel's direction, for the language asked for
            source, target = panel.direction.split("-", 1)
            languages = tuple(language if side in curve.languages else side for side in (source, target))
        if panel.by == "lines":
            for size in profile.sizes or panel.sizes:
                yield replace(whole, kind="size", languages=languages, lines=size)
        yield replace(whole, languages=languages)


def _check_available(jobs: Sequence[Job], profile: Profile, request: Request) -> None:
    """Whether the profile can train all that the jobs need."""
    for job in jobs:
        _check_proxy(job, profile)
    for job in in_order(jobs, profile):
        model = None if job.model is None else trained(job)
        if model is None:
            continue
        reason = profile.left_out.get(str(model.id))
        if reason is not None and model.id not in request.bases:
            raise Unavailable(reason)
        if not model.data.filtered and profile.corpus.unfiltered is None:
            raise Unavailable("needs text without language ID (corpus.unfiltered)")


def _check_proxy(job: Job, profile: Profile) -> None:
    """Whether it can be known which language's code `code:proxy` is."""
    if job.plus != PROXY or job.languages[0] in profile.proxies:
        return
    oracle = oracle_of(job, profile)
    if oracle is None:
        raise Unavailable(f"{no_oracle(job)}. {name_proxy(job)}")
    if (reason := profile.left_out.get(str(oracle.model))) is not None:
        raise Unavailable(f"the nearest code is that of ({oracle.model}), which is left out: {reason}. {name_proxy(job)}")
