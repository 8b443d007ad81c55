"""What an evaluation found: report.json, report.md and heat-maps. Layer 5."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graftmt.assessment.assess import Assessment
from graftmt.data import Direction
from graftmt.documents import write_json
from graftmt.errors import DataError
from graftmt.evaluation import METRIC_NAMES, METRICS, Scores, Table, grouped, joined, plot_matrix, score_table
from graftmt.files import write_text


def document(found: Assessment) -> dict[str, Any]:
    """The report for programs."""
    options, new = found.options, found.new
    directions: dict[str, dict[str, Any]] = {}
    for pair, scores in found.scores.by_pair().items():
        direction = Direction(*pair)
        source_text, reference_text = found.texts[direction]
        directions[str(direction)] = {
            **direction._asdict(),
            **scores.figures(),
            **{f"{metric}_signature": scores.signatures(metric)[0] for metric in METRICS},
            "source_text": source_text,
            "reference_text": reference_text,
        }
        if direction in found.off_target:
            directions[str(direction)]["off_target"] = asdict(found.off_target[direction])
    facts = {key: value for key, value in found.facts.items() if key not in ("directions", "text")}
    report = {
        **facts,
        "tokenize": options.tokenize,
        "pivot": options.pivot,
        "new": list(new),
        "directions": directions,
        "averages": _averages(found.scores, options.pivot, new),
    }
    if len(new) > 1:  # the paper's tables have one new language each
        report["averages_by_language"] = {
            name: _averages(some, options.pivot, (name,)) for name in new if (some := _with_one(found, name))
        }
    if found.judge is not None:
        targets = sorted({target for _, target in found.scores.pairs})
        report["off_target"] = {name: {"floor": found.floors[name], "how": found.judge.how[name]} for name in targets}
    return report


def _with_one(found: Assessment, name: str) -> Scores:
    """The directions of one new language, without the other new ones."""
    others = set(found.new) - {name}
    return joined(rows for pair, rows in found.scores.by_pair().items() if name in pair and not others & set(pair))


def _averages(scores: Scores, pivot: str, new: Sequence[str]) -> dict[str, Any]:
    return {name: some.averages() for name, some in grouped(scores, pivot, new).items()}


def table(found: Assessment) -> Table:
    """The report for people."""
    options, facts = found.options, found.facts
    route = f", through {options.through}" if options.through else ""
    title = f"{facts['split']}, beam {options.search.beam}{route}"
    return score_table(found.scores, title=title, pivot=options.pivot, new=found.new)


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
    names = {**METRIC_NAMES, "off_target": "off-target, %"}
    for metric, name in names.items():
        factor = 100 if metric == "off_target" else 1
        values = {
            (row.source, row.target): factor * row.value
            for row in found.scores
            if row.metric == metric and row.value is not None
        }
        if values:
            path = folder / f"{metric.replace('_', '-')}.png"
            title = f"{name} ({found.facts['split']}, beam {found.options.search.beam}{route})"
            scale = (0.0, 100.0) if metric == "off_target" else None  # a rate of 2 % should not look like a collapse
            plot_matrix(path, values, title=title, order=found.languages, margins=True, scale=scale)
            written.append(path)
    return written
