"""Many packs on one resident base from one file: train each, score it, compose them. Layer 7.

    python -m graftmt.experiments.packs configs/docs-packs.yaml base=runs/docs/base corpus=FOLDER output=runs/docs-packs

Resumable: a pack that is in `results.json` is not trained again, and one that was cut off goes on. Everything that a table
needs is in that file, written anew after each pack.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from graftmt.assessment.directions import Evaluation, evaluate_directions
from graftmt.base import Base, choose_device
from graftmt.configuration import apply_overrides, from_mapping, load_yaml
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.files import read_json, write_json
from graftmt.packs import Side, load_pack
from graftmt.text import train_subwords
from graftmt.training import PackConfig, PackDataConfig, StageConfig, SubwordConfig, ValidationConfig, train_pack
from graftmt.translator import Translator

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class PackEntry:
    """One pack of a batch."""

    language: str
    side: Side
    recipe: str
    name: str = ""
    """`el-source-embed`, by number where it is empty."""
    learning_rate: float | None = None
    """Where it differs from the stage's, as …"""
    steps: int | None = None


@dataclass(frozen=True, kw_only=True)
class PackBatch:
    """What to train on which base, for how long, and how to score it."""

    base: Path
    corpus: Path
    output: Path
    packs: tuple[PackEntry, ...]
    stage: StageConfig
    """For all packs, with a warm-up of at most a tenth of the steps."""
    validations: int = 4
    """Of each pack while it trains."""
    partners: tuple[str, ...] = ("en",)
    zero_shot: tuple[str, ...] = ()
    """The base's languages to score without training."""
    merges: int = 4000
    subwords: Path | None = None
    """A folder with LANG.model for each language, made where it is missing: the packs of a language share a vocabulary."""
    lines: int = 500
    beam: int = 1
    split: str = "test"
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    compose: bool = True
    """Also score each source pack with each target pack of another language, and through the first partner."""
    seed: int = 1
    device: str = "auto"
    base_dtype: Literal["fp32", "bf16"] = "fp32"
    """How the frozen base is held in training; scores are always those of fp32."""
    compile: bool = False
    minutes: float | None = None


def run_packs(config: PackBatch, say: Say = print) -> dict[str, Any]:
    """Trains and scores what is missing in results.json."""
    started = time.monotonic()
    device = choose_device(config.device)
    path = config.output / "results.json"
    results: dict[str, Any] = read_json(path, "the results") if path.is_file() else {"packs": {}, "compositions": {}}
    resident = Base.load(config.base, device=device, dtype=config.base_dtype)
    scorer = resident if config.base_dtype == "fp32" else Base.load(config.base, device=device)
    results |= {"base": resident.fingerprint, "beam": config.beam, "lines": config.lines, "split": config.split}
    results["machine"] = {"device": _device_name(device), "python": platform.python_version(), "torch": torch.__version__}
    for number, entry in enumerate(config.packs, 1):
        name = entry.name or f"{entry.language}-{entry.side}-{number}"
        if name in results["packs"]:
            continue
        if config.minutes is not None and (time.monotonic() - started) / 60 > config.minutes:
            say("the time given is over; the same command goes on from here")
            return results
        say(f"== {name}: {entry.recipe}")
        results["packs"][name] = {**_train(config, entry, name, resident, say), **_score(config, entry, name, scorer)}
        write_json(path, results)
        say(_line(results["packs"][name]["scores"]))
    if config.compose:
        _compositions(config, scorer, results, say)
        write_json(path, results)
    return results


def _train(config: PackBatch, entry: PackEntry, name: str, base: Base, say: Say) -> dict[str, Any]:
    stage = config.stage if entry.learning_rate is None else replace(config.stage, learning_rate=entry.learning_rate)
    steps = entry.steps or stage.steps
    stage = replace(stage, name=name, directions=(), steps=steps, warmup=min(stage.warmup, steps // 10))
    train, valid = Corpus.open(config.corpus, "train"), Corpus.open(config.corpus, "valid")
    pack_config = PackConfig(
        run=config.output / name,
        languages=(entry.language,),
        side=entry.side,
        recipe=entry.recipe,
        data=PackDataConfig(partners=config.partners, max_length=200),
        subwords=SubwordConfig(merges=config.merges, model=_subwords(config, entry.language, train)),
        stages=(stage,),
        validation=replace(config.validation, every=max(1, steps // config.validations)),
        checkpoint_every=max(1, steps // 2),
        seed=config.seed,
        device=config.device,
        precision="bf16" if config.base_dtype == "bf16" else "fp32",
        compile=config.compile,
        tensorboard=False,
    )
    pack = train_pack(pack_config, base, train, valid, say=say)
    return {
        "recipe": str(pack.recipe),
        "language": entry.language,
        "side": entry.side,
        "parameters": pack.size,
        "seconds": pack.card["training_seconds"],
        "steps": steps,
        "target_tokens": pack.card["target_tokens"],
        "initialisation": pack.card["initialisation"],
        "validation": pack.card["validation"],
    }


def _subwords(config: PackBatch, language: str, train: Corpus) -> Path:
    path = (config.subwords or config.output) / f"{language}.model"
    if not path.is_file():
        train_subwords({language: train.lines(language)}, merges=config.merges).save(path)
    return path


def _score(config: PackBatch, entry: PackEntry, name: str, base: Base) -> dict[str, Any]:
    """The trained directions, then the zero-shot ones."""
    pairs = [(entry.language, other) for other in (*config.partners, *config.zero_shot)]
    directions = [Direction(*(pair if entry.side == "source" else pair[::-1])) for pair in pairs]
    translator = Translator(base, [load_pack(config.output / name / "pack")])
    scores = _figures(_evaluate(config, translator, directions))
    for direction, figures in scores.items():
        figures["zero_shot"] = not set(direction.split("-")) & set(config.partners)
    return {"scores": scores}


def _compositions(config: PackBatch, base: Base, results: dict[str, Any], say: Say) -> None:
    """Every source pack with every target pack of another language: composed, and in two hops."""
    for first, source in results["packs"].items():
        for second, target in results["packs"].items():
            key = f"{first} → {second}"
            pair = (source["side"], target["side"])
            if pair != ("source", "target") or source["language"] == target["language"] or key in results["compositions"]:
                continue
            packs = [load_pack(config.output / name / "pack") for name in (first, second)]
            translator = Translator(base, packs)
            direction = [Direction(source["language"], target["language"])]
            composed = _figures(_evaluate(config, translator, direction))
            pivot = _figures(_evaluate(config, translator, direction, pivot=config.partners[0]))
            results["compositions"][key] = {"composed": composed, "pivot": pivot}
            say(f"{key}: composed {_line(composed)}; through {config.partners[0]} {_line(pivot)}")
            write_json(config.output / "results.json", results)


def _evaluate(
    config: PackBatch, translator: Translator, directions: Sequence[Direction], pivot: str | None = None
) -> list[Evaluation]:
    corpus = Corpus.open(config.corpus, config.split)
    options = SearchOptions(beam=config.beam, batch_tokens=batch_tokens_for(translator.base.model.device.type))
    return evaluate_directions(translator, corpus, directions, lines=config.lines, options=options, pivot=pivot)


def _figures(evaluations: Sequence[Evaluation]) -> dict[str, dict[str, Any]]:
    return {
        e.scores.direction: {"bleu": round(e.scores.bleu, 2), "chrf": round(e.scores.chrf, 2), "lines": e.scores.lines}
        for e in evaluations
    }


def _line(scores: dict[str, dict[str, Any]]) -> str:
    return ", ".join(f"{direction} {entry['bleu']:.1f}/{entry['chrf']:.1f}" for direction, entry in scores.items())


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device.startswith("cuda") else f"CPU, {torch.get_num_threads()} threads"


def main(arguments: Sequence[str]) -> None:
    """CONFIG [KEY=VALUE …]"""
    run_packs(from_mapping(PackBatch, apply_overrides(load_yaml(Path(arguments[0])), arguments[1:])))


if __name__ == "__main__":
    main(sys.argv[1:])
