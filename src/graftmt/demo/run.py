"""`graftmt demo`: makes the corpus, takes or trains the base, translates, scores, reports. Layer 5."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from graftmt.base import Base, choose_device
from graftmt.configuration import apply_overrides, from_mapping, load_yaml
from graftmt.data import Corpus, select_directions
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.demo.corpus import BASE_LANGUAGES, NEW_LANGUAGES, SPLITS, write_corpus
from graftmt.errors import DataError, GraftError
from graftmt.evaluation import averages, plot_matrix, score_table
from graftmt.files import atomic_folder, write_json, write_text
from graftmt.progress import progress
from graftmt.training import TrainConfig, train_base
from graftmt.translator import Evaluation, Translator

Say = Callable[[str], None]

SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What `graftmt demo` can be asked for."""

    folder: Path = Path("runs/demo")
    from_scratch: bool = False
    corpus: Path | None = None
    """Text made beforehand; made from CLDR unless given."""
    test_lines: int = 200
    beam: int = 5
    device: str = "auto"
    seed: int = 1
    quiet: bool = False


@dataclass(frozen=True)
class DemoResult:
    """What was found, and where it is."""

    report: dict[str, Any]
    evaluations: list[Evaluation]
    seconds: float


def run_demo(options: DemoOptions, say: Say) -> DemoResult:
    """The story so far: a corpus, a base for five languages, its translations and scores."""
    started = time.monotonic()
    options.folder.mkdir(parents=True, exist_ok=True)
    corpus = options.corpus or make_corpus(options.folder / "corpus", options.seed, say)
    base_folder = options.folder / "base"
    if options.from_scratch:
        train_demo_base(options, corpus, base_folder, say)
    else:
        copy_shipped_base(base_folder)
        say(f"2. Base: the one shipped with graftmt, now in {base_folder} (train it yourself: graftmt demo --from-scratch).")
    device = choose_device(options.device)
    translator = Translator(base_folder, device=device)
    evaluations = evaluate_base(translator, corpus, options, say)
    seconds = time.monotonic() - started
    report = write_report(translator.base, evaluations, options, seconds, say)
    return DemoResult(report, evaluations, seconds)


def make_corpus(folder: Path, seed: int, say: Say) -> Path:
    """Text for the base's languages and the two that are added later; made once, since it depends on nothing but the seed."""
    languages = (*BASE_LANGUAGES, *NEW_LANGUAGES)
    wanted = [folder / f"{split}.{language}.txt" for split in SPLITS for language in languages]
    if (folder / "corpus.json").is_file() and all(path.is_file() for path in wanted):
        say(f"1. Corpus: {folder} is there already.")
        return folder
    say(f"1. Corpus: making text in {len(languages)} languages from CLDR …")
    facts = write_corpus(folder, languages, seed=seed)
    say(f"   {sum(facts['lines'].values()):,} lines a language in {folder}")
    return folder


def copy_shipped_base(folder: Path) -> None:
    """The base inside the package becomes a folder like any other."""
    shipped = resources.files("graftmt.demo") / "base"
    if not (shipped / "base.json").is_file():
        raise DataError("this copy of graftmt has no demo base inside; train it: graftmt demo --from-scratch.")
    with resources.as_file(shipped) as source, atomic_folder(folder) as temporary:
        for path in source.iterdir():
            if path.is_file() and path.suffix != ".py":
                shutil.copyfile(path, temporary / path.name)


def train_demo_base(options: DemoOptions, corpus: Path, folder: Path, say: Say) -> None:
    """The configuration inside the package, on this machine; goes on where an earlier try stopped."""
    run = options.folder / "training"
    present = Corpus.open(corpus, "train").languages
    excluded = [language for language in present if language not in BASE_LANGUAGES]
    with resources.as_file(resources.files("graftmt.demo") / "base.yaml") as path:
        values = load_yaml(path)
    changes = [f"run={run}", f"data.corpus={corpus}", f"data.exclude={excluded}", f"device={options.device}"]
    config = from_mapping(TrainConfig, apply_overrides(values, [*changes, f"seed={options.seed}"]))
    say("2. Base: training it from scratch; ten to twenty minutes on two CPU cores.")
    trained = train_base(config, quiet=options.quiet, say=lambda text: say(f"   {text}"))
    with atomic_folder(folder) as temporary:
        shutil.copytree(trained, temporary, dirs_exist_ok=True)


def evaluate_base(translator: Translator, corpus: Path, options: DemoOptions, say: Say) -> list[Evaluation]:
    """Every direction between the base's languages, on lines whose combination of template and names is not in training."""
    directions = select_directions("multi-parallel", translator.languages)
    test = Corpus.open(corpus, "test", translator.languages)
    say(f"3. Test: {options.test_lines} held-out lines in {len(directions)} directions, beam {options.beam} …")
    tokens = batch_tokens_for(translator.base.model.device.type)
    search = SearchOptions(beam=options.beam, max_length=120, batch_tokens=tokens)
    total = options.test_lines * len(directions)
    with progress("translating", total, quiet=options.quiet) as report:
        return translator.evaluate(
            test, directions, lines=options.test_lines, options=search, on_batch=lambda done: report.update(done, "lines")
        )


def write_report(base: Base, evaluations: list[Evaluation], options: DemoOptions, seconds: float, say: Say) -> dict[str, Any]:
    """report.json, report.md and the heat-map."""
    scores = [evaluation.scores for evaluation in evaluations]
    groups = averages(scores)
    parameters = sum(parameter.numel() for parameter in base.model.parameters())
    report = {
        "seconds": round(seconds, 1),
        "base": {"fingerprint": base.fingerprint, "languages": list(base.languages), "parameters": parameters},
        "from_scratch": options.from_scratch,
        "directions": {
            score.direction: {"chrf": round(score.chrf, 2), "bleu": round(score.bleu, 2), "lines": score.lines}
            for score in scores
        },
        "averages": {name: asdict(average) for name, average in groups.items()},
        "signatures": sorted({signature for score in scores for signature in (score.bleu_signature, score.chrf_signature)}),
        "samples": samples(evaluations),
        "machine": {
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "device": str(base.model.device),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }
    write_json(options.folder / "report.json", report)
    table = score_table(scores, title="The demo base on held-out phrases")
    write_text(options.folder / "report.md", table.markdown() + "\n")
    values = {(score.source, score.target): score.chrf for score in scores}
    try:
        plot_matrix(options.folder / "chrf.png", values, title="chrF of the demo base")
    except GraftError as error:  # no matplotlib: the rest of the report is worth having
        say(f"no heat-map: {error}")
    return report


def samples(evaluations: list[Evaluation]) -> list[dict[str, str]]:
    """Ten translations a person can judge: one from each of ten directions, from different places of the test set."""
    chosen = evaluations[:: max(1, len(evaluations) // SAMPLES)][:SAMPLES]
    found = []
    for number, evaluation in enumerate(chosen):
        # Full sentences say more than labels: the longest of a stretch of the test set.
        stretch = range(number * 17 % len(evaluation.sources), min(len(evaluation.sources), number * 17 + 17))
        row = max(stretch, key=lambda index: len(evaluation.sources[index]), default=0)
        found.append(
            {
                "direction": evaluation.scores.direction,
                "source": evaluation.sources[row],
                "translation": evaluation.hypotheses[row],
                "reference": evaluation.references[row],
            }
        )
    return found
