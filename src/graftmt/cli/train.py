"""`graftmt train`: a base from a configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import AsJson, FreshRun, Minutes, PrintConfig, Quiet, stoppable, tell


def train(
    config: Annotated[Path, typer.Argument(help="YAML file of the run; see docs/training.md and configs/.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes to it: run=runs/x seed=2 stages.0.steps=500 model.size=tiny")
    ] = None,
    minutes: Minutes = None,
    fresh: FreshRun = False,
    dry_run: PrintConfig = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a base: a multilingual Transformer and its vocabulary, from a folder of line-aligned text.

    The run's folder gets config.yaml, log.jsonl, TensorBoard curves, checkpoints and, at the end, base/. A run that was stopped
    or killed at any point goes on exactly where its last checkpoint was when the same command is given again.

    Example: graftmt train configs/docs-base.yaml data.corpus=corpus run=runs/docs --minutes 8
    """
    from graftmt.configuration import apply_overrides, from_mapping, load_yaml, to_yaml
    from graftmt.training import TrainConfig, train_base
    from graftmt.training.bases import check_files
    from graftmt.training.distribution import is_first_process

    resolved = from_mapping(TrainConfig, apply_overrides(load_yaml(config), overrides or []))
    if dry_run:
        check_files(resolved)
        tell(to_yaml(resolved).rstrip("\n"))
        return

    with stoppable(as_json=as_json, made="base"):
        folder = train_base(resolved, minutes=minutes, fresh=fresh)
    if is_first_process():
        print(json.dumps({"base": str(folder)})) if as_json else tell(folder)
