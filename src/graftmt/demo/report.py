"""What the demo found: report.json, report.md with the final table, and two figures. Layer 7."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import torch

from graftmt.adding.verdict import sample_translations
from graftmt.adding.verification import Verification
from graftmt.assessment.direction_lines import Evaluation
from graftmt.base import Base
from graftmt.documents import write_json
from graftmt.evaluation import METRICS, grouped, joined, plot_curves, plot_matrix, score_table
from graftmt.evaluation.tables import Column, Table
from graftmt.files import write_text
from graftmt.packs import Pack
from graftmt.packs.storage import read_pack_document
from graftmt.training.journal import read_log

Route = Literal["base", "source pack", "target pack", "composition", "pivot"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """One direction's translations, and how they came about."""

    evaluation: Evaluation
    route: Route
    zero_shot: bool = False
    name: str = ""
    """What a comparison compares; empty for the others."""

    @property
    def direction(self) -> str:
        return str(self.evaluation.direction)

    def to_dict(self) -> dict[str, Any]:
        figures = self.evaluation.scores.figures({"bleu": 2, "chrf": 2})
        return {**self.evaluation.direction._asdict(), **figures, "zero_shot": self.zero_shot, "route": self.route}


@dataclass(kw_only=True)
class Findings:
    """Everything the story has come upon so far."""

    base: Base
    results: list[Result] = field(default_factory=list)
    comparisons: list[Result] = field(default_factory=list)
    packs: dict[str, tuple[Pack, Path]] = field(default_factory=dict)
    verification: Verification | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """What each step took."""

    def of(self, route: Route) -> list[Evaluation]:
        return [result.evaluation for result in self.results if result.route == route]


def make_report(findings: Findings, *, from_scratch: bool) -> dict[str, Any]:
    """The content of report.json."""
    base, verification = findings.base, findings.verification
    assert verification is not None
    everything = joined(result.evaluation.scores for result in (*findings.results, *findings.comparisons))
    base_scores = joined(evaluation.scores for evaluation in findings.of("base"))
    return {
        "seconds": round(sum(findings.seconds.values()), 1),
        "seconds_by_step": {step: round(seconds, 1) for step, seconds in findings.seconds.items()},
        "base_unchanged": verification.base_unchanged and verification.fingerprint == base.fingerprint,
        "base": {
            "fingerprint": base.fingerprint,
            "languages": list(base.languages),
            "parameters": sum(parameter.numel() for parameter in base.model.parameters()),
        },
        "from_scratch": from_scratch,
        "directions": {result.direction: result.to_dict() for result in findings.results},
        "averages": {name: some.averages() for name, some in grouped(base_scores).items()},
        "comparisons": [
            {"name": result.name, "direction": result.direction, **result.to_dict()} for result in findings.comparisons
        ],
        "adapters_zero_shot": zero_shot_comparison(findings),
        "packs": {name: _pack_facts(pack, path) for name, (pack, path) in findings.packs.items()},
        "verification": verification.to_dict(),
        "signatures": sorted(mark for metric in METRICS for mark in everything.signatures(metric)),
        "samples": samples(findings),
        "machine": {
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "device": str(base.model.device),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }


def _pack_facts(pack: Pack, path: Path) -> dict[str, Any]:
    return {
        "languages": list(pack.languages),
        "side": pack.side,
        "recipe": str(pack.recipe),
        "parameters": pack.size,
        "bytes": read_pack_document(path)["bytes"],
        "seconds": pack.card["training_seconds"],
        "fingerprint": pack.fingerprint,
        "path": str(path),
    }


def zero_shot_mean(results: Sequence[Result]) -> float:
    return fmean(result.evaluation.scores.chrf for result in results if result.zero_shot)


def zero_shot_comparison(findings: Findings) -> dict[str, float]:
    """Mean chrF of the zero-shot directions of both Greek packs, and what the adapters lose."""
    alone = [result for result in findings.results if result.route == "source pack"]
    adapted = [result for result in findings.comparisons if result.route == "source pack"]
    embed, adapters = round(zero_shot_mean(alone), 2), round(zero_shot_mean(adapted), 2)
    return {"embed_chrf": embed, "adapters_chrf": adapters, "loss": round(embed - adapters, 2)}


def samples(findings: Findings) -> list[dict[str, str]]:
    """Ten translations a person can judge, each from another direction: three of the base, six of packs, one composed."""
    base, source, target = findings.of("base"), findings.of("source pack"), findings.of("target pack")
    chosen = [*base[:: max(1, len(base) // 3)][:3], *source[:3], *target[:3], *findings.of("composition")]
    return sample_translations(chosen, len(chosen))


def final_table(report: dict[str, Any]) -> Table:
    """The base in one row, each direction of the packs, then what they are compared with."""
    mean = report["averages"]["all"]
    rows = [(f"{mean['directions']} directions, mean", "base", "trained", f"{mean['chrf']:.1f}", f"{mean['bleu']:.1f}")]
    added = [
        {"direction": name, "name": "", **entry} for name, entry in report["directions"].items() if entry["route"] != "base"
    ]
    for entry in (*added, *report["comparisons"]):
        seen = "zero-shot" if entry["zero_shot"] else "both hops" if entry["route"] == "pivot" else "trained"
        label = ("to compare: " if entry["name"] else "") + entry["direction"].replace("-", " → ")
        rows.append((label, entry["name"] or entry["route"], seen, f"{entry['chrf']:.1f}", f"{entry['bleu']:.1f}"))
    return Table(
        title="Held-out phrases",
        columns=(
            Column(name="direction"),
            Column(name="by"),
            Column(name="in training"),
            Column(name="chrF", alignment="right"),
            Column(name="BLEU", alignment="right"),
        ),
        rows=tuple(rows),
    )


def pack_table(report: dict[str, Any]) -> Table:
    rows = [
        (name, pack["recipe"], f"{pack['parameters']:,}", f"{pack['bytes'] / 1e6:.1f} MB", f"{pack['seconds']:.0f} s")
        for name, pack in report["packs"].items()
    ]
    names = (("pack", "left"), ("recipe", "left"), ("parameters", "right"), ("size", "right"), ("training", "right"))
    columns = tuple(Column(name=name, alignment=alignment) for name, alignment in names)  # type: ignore[arg-type]
    return Table(title="Language packs", columns=columns, rows=tuple(rows))


NOTICEABLE = 1.0
"""chrF. A smaller difference of means on a hundred lines may be chance."""


def forgetting_words(comparison: dict[str, float]) -> str:
    """What the comparison with adapters says, as measured."""
    embed, adapters, loss = (comparison[name] for name in ("embed_chrf", "adapters_chrf", "loss"))
    outcome = f"a loss of {loss:.1f}" if loss >= NOTICEABLE else "no loss to speak of on this small task"
    return f"zero-shot chrF with adapters in the encoder is {adapters:.1f}, with embeddings alone {embed:.1f}: {outcome}"


def write_report(folder: Path, report: dict[str, Any], findings: Findings) -> None:
    """report.json and report.md."""
    base_scores = score_table(
        joined(evaluation.scores for evaluation in findings.of("base")), title="The base's own directions"
    )
    unchanged = "unchanged, bit for bit" if report["base_unchanged"] else "CHANGED"
    parts = [
        final_table(report).markdown(),
        f"The base is {unchanged}. The {forgetting_words(report['adapters_zero_shot'])}.\n",
        pack_table(report).markdown(),
        base_scores.markdown(),
    ]
    write_text(folder / "report.md", "\n".join(parts))
    write_json(folder / "report.json", report)


def draw_figures(folder: Path, runs: dict[str, Path], report: dict[str, Any]) -> None:
    """curves.png: validation chrF by step; chrf.png: every direction. Needs matplotlib."""
    series: dict[str, list[tuple[float, float]]] = {}
    for name, run in runs.items():
        events = [event for event in read_log(run / "log.jsonl") if event["event"] == "validation"]
        series[f"{name}: el-en, trained"] = [(event["step"], event["el-en/chrf"]) for event in events]
        zero_shot = sorted({key for event in events for key in event if key.endswith("/chrf")} - {"el-en/chrf"})
        others = ", ".join(key.removeprefix("el-").removesuffix("/chrf") for key in zero_shot)
        series[f"{name}: zero-shot to {others}, mean"] = [
            (event["step"], fmean(event[key] for key in zero_shot)) for event in events
        ]
    title = "Greek source packs trained on Greek–English only"
    plot_curves(folder / "curves.png", series, title=title, x_label="training step", y_label="validation chrF")
    values = {(entry["source"], entry["target"]): entry["chrf"] for entry in report["directions"].values()}
    plot_matrix(folder / "chrf.png", values, title="chrF of base and packs")
