"""`graftmt retrain`: the costly baselines, a base trained on with new languages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from graftmt.cli.common import AsJson, FreshRun, Minutes, PrintConfig, Quiet, items, json_text, stoppable, tell


def retrain(
    config: Annotated[
        Path, typer.Argument(help="YAML file of the run: configs/retrain.yaml, configs/substitute.yaml, or yours.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes to it: run=runs/x seed=2 stages.0.steps=500 new_directions.upsample=5")
    ] = None,
    *,
    base: Annotated[
        Path | None, typer.Option("--base", "-b", help="Folder of the base to start from, which stays as it is (base=…).")
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", "-c", help="Line-aligned text in all its languages and the new ones (data.corpus=…)."),
    ] = None,
    new: Annotated[
        str | None, typer.Option("--new", help="The languages to add, such as el; several with commas: el,uk,id,sv (new=[…]).")
    ] = None,
    method: Annotated[
        Literal["retrain", "substitute"] | None,
        typer.Option(
            "--method",
            help="retrain: a new vocabulary, new rows random. substitute: one of the same size, new rows take outdated ones, "
            "new data comes 5 times as often (method=…).",
        ),
    ] = None,
    minutes: Minutes = None,
    fresh: FreshRun = False,
    dry_run: PrintConfig = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Re-train a base with new languages, as the paper's baselines do: a new shared vocabulary, then all weights on all text.

    What `graftmt add` is compared with: it takes the whole corpus, in the old languages too, and far longer; and the result is
    another base, so old directions drift. Tokens that both vocabularies have keep their rows (rows.tsv lists each row). Scores
    of old and new directions before and after show the drift. The result, base/ in the run's folder, records its parent and
    works with translate and evaluate like any base. A run that was stopped or killed goes on exactly where it was.

    Examples:

    graftmt retrain configs/retrain.yaml --base runs/docs/base --corpus corpus --new el run=runs/retrain-el --minutes 30

    graftmt retrain configs/retrain.yaml -b BASE -c corpus --new el,uk,id,sv run=runs/retrain-four stages.0.steps=20000

    graftmt retrain configs/substitute.yaml -b BASE -c corpus --new el --json
    """
    from graftmt.base import read_base_document
    from graftmt.configuration import apply_overrides, load_yaml, to_yaml
    from graftmt.data import Corpus
    from graftmt.errors import ConfigError
    from graftmt.training import retrain_base
    from graftmt.training.distribution import is_first_process
    from graftmt.training.retrain_request import check, retrain_config

    mapping = load_yaml(config)
    if corpus is not None:
        data = mapping.setdefault("data", {})
        if not isinstance(data, dict):
            raise ConfigError(f"data is {data!r}; expected a mapping of keys to values.")
        data["corpus"] = str(corpus)
    given = {
        "base": None if base is None else str(base),
        "new": None if new is None else items(new),
        "method": method,
    }
    mapping |= {key: value for key, value in given.items() if value is not None}
    resolved = retrain_config(apply_overrides(mapping, overrides or []))
    if dry_run:
        check(resolved, read_base_document(resolved.base))
        if resolved.validation.lines:
            Corpus.open(resolved.data.corpus, resolved.validation.split)
        tell(to_yaml(resolved).rstrip("\n"))
        return
    with stoppable(as_json=as_json, made="base"):
        result = retrain_base(resolved, minutes=minutes, fresh=fresh)
    if is_first_process():
        print(json_text(result.to_dict())) if as_json else tell(result.folder)
