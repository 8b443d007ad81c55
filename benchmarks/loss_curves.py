"""What each optimisation does to learning: the same model, text, seed and schedule, trained in every way.

    python benchmarks/loss_curves.py [--corpus FOLDER --languages en fr de] [--json] [--plot FILE]
    python benchmarks/loss_curves.py --base FOLDER --new el --corpus FOLDER [--recipe "embed + enc-first-layer"]

Of a whole model, or of a pack on a base that is held in bf16 or not. All ways but two see the same sentence pairs in the same
batches, those of packed ones. (Padded training itself has batches of like lengths, which are less mixed: the ways named so show
what that does.) The validation loss is that of the same lines for all, and dropout's random numbers differ from way to way.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from training import made_up_corpus  # the neighbour's corpus

from graftmt import __version__
from graftmt.base import Base
from graftmt.configuration import from_mapping
from graftmt.data import BatchMaker, Corpus
from graftmt.devices import choose_device
from graftmt.evaluation import plot_curves
from graftmt.model import layers, packed_kernels, transformer
from graftmt.training import PackConfig, TrainConfig, fused_loss, stages, train_base, train_pack
from graftmt.training.journal import read_log
from graftmt.training.training_job import Prepared

LARGE = {"size": "base", "steps": 300, "batch_tokens": 16_384}
SMALL = {"size": "tiny", "steps": 12, "batch_tokens": 2048}

WAYS: dict[str, dict[str, Any]] = {
    "padded, fp32": {"precision": "fp32", "capture": False, "padded": True, "kernel": False},
    "padded, bf16": {"capture": False, "padded": True, "kernel": False},
    "packed": {"capture": False, "tiles": False, "half": False, "kernel": False},
    "packed, recorded": {"tiles": False, "half": False, "kernel": False},
    "… compiled": {"compile": True, "tiles": False, "half": False, "kernel": False, "hash": False},
    "… by tiles": {"compile": True, "half": False, "kernel": False, "hash": False},
    "… residuals in bf16": {"compile": True, "kernel": False, "hash": False},
    "… loss in one kernel": {"compile": True, "hash": False},
    "… dropout by a hash": {"compile": True},
    "padded, bf16, batches of like lengths": {"packed": False},
    "padded, bf16, batches of like lengths, compiled": {"packed": False, "compile": True},
}
"""Each with "…" adds to the one before; the last of these is what `packed: true`, `compile: true` give on a GPU. `padded` (the
same pairs with padding), `tiles`, `half`, `kernel` and `hash` are no options of training: they are switched here."""
PACK_WAYS: dict[str, dict[str, Any]] = {
    "padded, fp32": {"precision": "fp32", "capture": False, "padded": True, "kernel": False},
    "padded, bf16": {"capture": False, "padded": True, "kernel": False},
    "padded, base in bf16": {"capture": False, "padded": True, "kernel": False, "base": "bf16"},
    "packed, recorded, compiled": {"compile": True},
    "… base in bf16": {"compile": True, "base": "bf16"},
}
"""The last is what `graftmt add --base-dtype bf16` does on a GPU. `base` is how the frozen weights are held."""


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        corpus = arguments.corpus or made_up_corpus(Path(folder) / "corpus", arguments.lines)
        if arguments.corpus is None:
            for path in list(corpus.iterdir()):  # the first lines again, to validate on
                lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
                path.with_name(path.name.replace("train", "valid")).write_text("".join(lines[:200]), encoding="utf-8")
        runs = {}
        for name in arguments.ways:
            runs[name] = train(name, corpus, Path(folder), arguments)
            print(f"{name}: {runs[name]['seconds']:.0f} s", file=sys.stderr, flush=True)
            if arguments.output:  # what there is, should a later one not come to an end
                arguments.output.write_text(json.dumps(runs), encoding="utf-8")
    report = {
        "benchmark": "loss curves",
        "size": arguments.size if arguments.base is None else None,
        "pack": {"language": arguments.new, "recipe": arguments.recipe} if arguments.base else None,
        "steps": arguments.steps,
        "batch_tokens": arguments.batch_tokens,
        "device": arguments.device if arguments.device == "cpu" else torch.cuda.get_device_name(),
        "versions": {"graftmt": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "runs": runs,
    }
    if arguments.plot:
        curves = {name: [(step, loss) for step, loss in one["validation"]] for name, one in runs.items()}
        plot_curves(arguments.plot, curves, title="Validation loss", x_label="update", y_label="label-smoothed loss")
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="folder with train.LANG and valid.LANG; made-up text otherwise")
    parser.add_argument("--languages", nargs="+", help="of the corpus (default: all)")
    parser.add_argument("--lines", type=int, default=5000, help="of made-up text (default: %(default)s)")
    parser.add_argument("--subwords", type=Path, help="a subwords.model; made from the corpus otherwise")
    parser.add_argument("--merges", type=int, default=8000, help="where it is made (default: %(default)s)")
    parser.add_argument("--size", help="architecture (default: base on a GPU, tiny on a CPU)")
    parser.add_argument("--steps", type=int, help="updates (default: 300 on a GPU, 12 on a CPU)")
    parser.add_argument("--batch-tokens", type=int, help="(default: 16384 on a GPU, 2048 on a CPU)")
    parser.add_argument(
        "--dropout", type=float, default=0.1, help="random numbers differ from way to way (default: %(default)s)"
    )
    parser.add_argument("--base", type=Path, help="a base's folder: train packs on it, instead of whole models")
    parser.add_argument("--new", default="el", help="the pack's language, as source with English (default: %(default)s)")
    parser.add_argument("--recipe", default="embed + enc-first-layer", help="the pack's (default: %(default)s)")
    parser.add_argument("--ways", nargs="*", help="some of those printed, by name (default: all that the device can do)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--plot", type=Path, help="a PNG of the curves")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("-o", "--output", type=Path, help="a file for the JSON, whatever is printed")
    arguments = parser.parse_args()
    arguments.device = choose_device(arguments.device)
    for name, value in (SMALL if arguments.device == "cpu" else LARGE).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    known = WAYS if arguments.base is None else PACK_WAYS
    if arguments.device == "cpu":  # whose norms take no mixture of precisions
        known = {name: way for name, way in known.items() if "base" not in way}
    if unknown := [name for name in arguments.ways or () if name not in known]:
        parser.error(f"no such way here: {'; '.join(unknown)}. There are: {'; '.join(known)}")
    arguments.ways = arguments.ways or list(known)
    return arguments


BATCH_MAKER = stages.batch_maker


def padded_maker(config: Any, prepared: Prepared, *others: Any) -> BatchMaker:
    """For the pairs of packed batches, with padding."""
    return BatchMaker(prepared.train, prepared.codec)


def train(name: str, corpus: Path, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    way = {"precision": "bf16", **(WAYS if arguments.base is None else PACK_WAYS)[name]}
    packed_kernels.BY_TILES, transformer.HALF_RESIDUALS = way.pop("tiles", True), way.pop("half", True)
    fused_loss.KERNEL, layers.CHEAP_DROPOUT = way.pop("kernel", True), way.pop("hash", True)
    stages.batch_maker = padded_maker if way.pop("padded", False) else BATCH_MAKER
    held = way.pop("base", "fp32")
    steps, own = arguments.steps, folder / name.replace("… ", "").replace(", ", "-")
    stage = {
        "steps": steps,
        "batch_tokens": arguments.batch_tokens,
        "learning_rate": 1e-3,
        "warmup": max(1, steps // 5),
        "dropout": arguments.dropout,
        "clip_norm": 1.0,
        "packed": way.pop("packed", True),
    }
    values = {
        "run": str(own),
        "data": {"max_length": 200, "cache": str(folder / "cache")},
        "stages": [stage],
        "validation": {"lines": 200, "every": max(1, steps // 6), "translate": False},
        "checkpoint_every": steps,
        "log_every": max(1, steps // 6),
        "device": arguments.device,
        "tensorboard": False,
        **way,
    }
    started = time.monotonic()
    if arguments.base is None:
        values["data"] |= {"corpus": str(corpus), "languages": arguments.languages}
        values |= {
            "subwords": {"merges": arguments.merges, "model": str(arguments.subwords) if arguments.subwords else None},
            "model": {"size": arguments.size},
        }
        train_base(from_mapping(TrainConfig, values))
    else:
        stage["directions"] = []
        values |= {"languages": [arguments.new], "side": "source", "recipe": arguments.recipe}
        base = Base.load(arguments.base, device=arguments.device, dtype=held)
        texts = [Corpus.open(corpus, split) for split in ("train", "valid")]
        train_pack(from_mapping(PackConfig, values), base, *texts)
    events = read_log(own / "log.jsonl")
    return {
        "seconds": time.monotonic() - started,
        "training": [(event["step"], event["loss"]) for event in events if event["event"] == "train"],
        "validation": [(event["step"], event["loss"]) for event in events if event["event"] == "validation"],
    }


def table(report: dict[str, Any]) -> str:
    runs = report["runs"]
    first = next(iter(runs.values()))["validation"]
    what = report["size"] or f"{report['pack']['language']} as source, {report['pack']['recipe']}"
    lines = [
        f"Validation loss, {what}, {report['batch_tokens']:,} tokens a batch, {report['device']}, "
        f"torch {report['versions']['torch']}",
        "",
        "| after updates | " + " | ".join(str(step) for step, _ in first) + " | largest difference to the first row |",
        "|---" * (len(first) + 2) + "|",
    ]
    for name, one in runs.items():
        apart = max(abs(loss - other) for (_, loss), (_, other) in zip(one["validation"], first, strict=True))
        lines.append(f"| {name} | " + " | ".join(f"{loss:.4f}" for _, loss in one["validation"]) + f" | {apart:.4f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
