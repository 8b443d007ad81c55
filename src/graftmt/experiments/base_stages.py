"""The bases of a run with several stages, each as a folder of its own; and what a run's log says of its scores. Layer 7."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from graftmt.base import Base
from graftmt.configuration import to_mapping
from graftmt.documents import read_json, write_json
from graftmt.files import atomic_folder
from graftmt.training import TrainConfig
from graftmt.training.checkpoints import Checkpoints
from graftmt.training.journal import read_log


def store_stage(config: TrainConfig, made: Path, stage: int, folder: Path) -> None:
    """The base after a stage of a finished run, as a folder of its own; after the last one it is the run's base."""
    base = Base.load(made)
    steps = [one.steps for one in config.stages]
    card = {
        **base.card,
        "steps": sum(steps[: stage + 1]),
        "curve": curve_of(config.run, stages=stage + 1),
        "training_seconds": round(base.card["training_seconds"] * sum(steps[: stage + 1]) / sum(steps), 1),
    }
    if stage + 1 == len(steps):
        with atomic_folder(folder) as temporary:
            shutil.copytree(made, temporary, dirs_exist_ok=True)
            write_json(temporary / "base.json", {**read_json(made / "base.json", "the base"), "card": card})
        return
    base = Base.create(base.model.config, base.tokenizer)
    checkpoints = Checkpoints(config.run / "checkpoints", 1, TrainConfig)
    checkpoints.load_parameters(checkpoints.best(stage), dict(base.model.named_parameters()))
    card |= {
        "stages": card["stages"][: stage + 1],
        "validation": read_json(checkpoints.best(stage) / "best.json", "the best checkpoint"),
        "config": to_mapping(replace(config, stages=config.stages[: stage + 1])),
    }
    base.save(folder, dtype=config.store_dtype, card=card)


def curve_of(run: Path, stages: int | None = None) -> list[dict[str, Any]]:
    """chrF of each validated direction by update, over all stages in a row; BLEU next to it."""
    if not (run / "log.jsonl").is_file():
        return []
    points: list[dict[str, Any]] = []
    before = last = stage = 0
    for event in read_log(run / "log.jsonl"):
        if event["stage"] != stage:
            before, stage = before + last, event["stage"]
        last = event["step"]
        if event["event"] == "validation" and (stages is None or stage < stages):
            chrf, bleu = (
                {key.removesuffix(f"/{metric}"): round(value, 2) for key, value in event.items() if key.endswith(f"/{metric}")}
                for metric in ("chrf", "bleu")
            )
            points.append({"step": before + event["step"], **chrf, "bleu": bleu})
    return points
