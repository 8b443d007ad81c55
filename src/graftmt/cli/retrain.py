"""`graftmt retrain`: the costly baselines, a base trained further with new languages."""

from __future__ import annotations

from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import hand_over, json_text, stoppable
from graftmt.run_options import RetrainOptions


@takes(RetrainOptions)
def retrain(options: RetrainOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Train all weights of a base with new languages, as the paper's baselines
    do. It needs the text of the old languages too, and takes far longer than
    `graftmt add`. The result is another base, so old directions change.
    retrain makes a new vocabulary; substitute makes one of the same size and
    shows new text 5 times as often. Rerun the command to resume.

    Examples:
      graftmt retrain configs/retrain.yaml -b BASE -c corpus --new el
      graftmt retrain configs/substitute.yaml -b BASE -c corpus --new el,uk
      graftmt retrain configs/retrain.yaml -b BASE run=runs/x --dry-run

    More: docs/training.md
    """
    from graftmt.base import read_base_document
    from graftmt.configuration import to_yaml
    from graftmt.data import Corpus
    from graftmt.training import retrain_base
    from graftmt.training.distribution import is_first_process
    from graftmt.training.retrain_request import check, retrain_config

    config = retrain_config(options.mapping())
    if options.dry_run:
        check(config, read_base_document(config.base))
        if config.validation.lines:
            Corpus.open(config.data.corpus, config.validation.split)
        hand_over(to_yaml(config).rstrip("\n"))
        return
    with stoppable(as_json=as_json, made="base"):
        result = retrain_base(config, minutes=options.minutes, fresh=options.fresh)
    if is_first_process():
        print(json_text(result.to_dict())) if as_json else hand_over(result.folder)
