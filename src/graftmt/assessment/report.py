"""What an evaluation found: report.json, report.md and heat-maps. Layer 5."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from graftmt.assessment.run import Assessment
from graftmt.data import Direction
from graftmt.errors import DataError
from graftmt.evaluation import Table, averages, groups, plot_matrix, score_table
from graftmt.files import write_json, write_text


def document(found: Assessment) -> dict[str, Any]:
    """The report for programs."""
    options, new = found.options, found.new
    directions = {}
    for direction, scored in found.scored.items():
        source_text, reference_text = found.texts[direction]
        entry = {**asdict(scored.scores), "source_text": source_text, "reference_text": reference_text}
        directions[str(direction)] = entry
        if scored.off_target is not None:
            entry["off_target"] = asdict(scored.off_target)
    facts = {key: value for key, value in found.facts.items() if key not in ("directions", "text")}
    report = {
        **facts,
        "tokenize": options.tokenize,
        "pivot": options.pivot,
        "new": list(new),
        "directions": directions,
        "averages": _averages(found, list(found.scored), new),
    }
    if len(new) > 1:  # the paper's tables have one new language each
        report["averages_by_language"] = {
            name: _averages(found, members, (name,)) for name in new if (members := _with_one(found, name))
        }
    if found.judge is not None:
        targets = sorted({target for _, target in found.scored})
        report["off_target"] = {name: {"floor": found.floors[name], "how": found.judge.how[name]} for name in targets}
    return report


def _with_one(found: Assessment, name: str) -> list[Direction]:
    """The directions of one new language, without the other new ones."""
    others = set(found.new) - {name}
    return [direction for direction in found.scored if name in direction and not others & set(direction)]


def _averages(found: Assessment, directions: Sequence[Direction], new: Sequence[str]) -> dict[str, Any]:
    pivot = found.options.pivot
    members = groups(directions, pivot, new)
    result = {}
    for name, average in averages([found.scored[direction].scores for direction in directions], pivot, new).items():
        result[name] = asdict(average)
        if found.judge is not None:
            rates = [_rate(found, Direction(*member)) for member in members[name]]
            known = [rate for rate in rates if rate is not None]
            result[name]["off_target"] = fmean(known) if known else None
    return result


def _rate(found: Assessment, direction: Direction) -> float | None:
    off_target = found.scored[direction].off_target
    return None if off_target is None else off_target.rate


def table(found: Assessment) -> Table:
    """The report for people."""
    options, facts = found.options, found.facts
    route = f", through {options.through}" if options.through else ""
    rates = None if found.judge is None else {str(direction): _rate(found, direction) for direction in found.scored}
    return score_table(
        [scored.scores for scored in found.scored.values()],
        title=f"{facts['split']}, beam {options.search.beam}{route}",
        pivot=options.pivot,
        new=found.new,
        off_target=rates,
    )


def off_target_notes(found: Assessment) -> list[str]:
    """What a rate has to be read against: the floors, and the languages that cannot be told."""
    if found.judge is None:
        return []
    floor = {name: share for name, share in found.floors.items() if share is not None}
    notes = []
    if floor:
        highest = sorted(floor.items(), key=lambda item: -item[1])
        some = ", ".join(f"{name} {100 * share:.1f} %" for name, share in highest if share > 0) or "0 % in every language"
        notes.append(f"off-target rate of the references themselves, the judge's own error: {some}")
    untold = [name for name in found.floors if not found.judge.judges(name)]
    if untold:
        notes.append(f"off-target rate of {', '.join(untold)} {found.judge.how[untold[0]]}")
    return notes


def write_report(folder: Path, found: Assessment, report: dict[str, Any]) -> list[Path]:
    """report.json and report.md; where matplotlib is installed, chrf.png, bleu.png and off-target.png too."""
    if folder == found.options.output and not (folder / "evaluation.json").is_file():
        raise DataError(
            f"{folder} was removed or replaced before the report could be written there; run the same command again."
        )
    written = [folder / "report.json", folder / "report.md"]
    write_json(written[0], report)
    notes = "".join(f"- {note}\n" for note in off_target_notes(found))
    write_text(written[1], f"{table(found).markdown()}{notes}\n")
    if importlib.util.find_spec("matplotlib") is None:
        return written
    route = f", through {found.options.through}" if found.options.through else ""
    chrf = {(d.source, d.target): scored.scores.chrf for d, scored in found.scored.items()}
    bleu = {(d.source, d.target): scored.scores.bleu for d, scored in found.scored.items()}
    rates = {(d.source, d.target): 100 * rate for d in found.scored if (rate := _rate(found, d)) is not None}
    for name, title, values in (("chrf", "chrF", chrf), ("bleu", "BLEU", bleu), ("off-target", "off-target, %", rates)):
        if values:
            path = folder / f"{name}.png"
            title = f"{title} ({found.facts['split']}, beam {found.options.search.beam}{route})"
            scale = (0.0, 100.0) if values is rates else None  # a rate of 2 % should not look like a collapse
            plot_matrix(path, values, title=title, order=found.languages, margins=True, scale=scale)
            written.append(path)
    return written
