"""`graftmt train`: a base from a configuration."""

from __future__ import annotations

import json

from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import hand_over, stoppable
from graftmt.run_options import RunOptions


@takes(RunOptions)
def train(options: RunOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Train a base, a multilingual Transformer and its vocabulary, from a
    folder of line-aligned text. The run's folder gets its configuration,
    log, TensorBoard curves, checkpoints and, at the end, base/. Rerun the
    command to resume.

    Examples:
      graftmt train configs/docs-base.yaml data.corpus=corpus run=runs/docs
      graftmt train configs/docs-base.yaml model.size=tiny --dry-run

    More: docs/training.md
    """
    from graftmt.configuration import from_mapping, to_yaml
    from graftmt.training import TrainConfig, train_base
    from graftmt.training.bases import check_files
    from graftmt.training.distribution import is_first_process

    config = from_mapping(TrainConfig, options.mapping())
    if options.dry_run:
        check_files(config)
        hand_over(to_yaml(config).rstrip("\n"))
        return

    with stoppable(as_json=as_json, made="base"):
        folder = train_base(config, minutes=options.minutes, fresh=options.fresh)
    if is_first_process():
        print(json.dumps({"base": str(folder)})) if as_json else hand_over(folder)
