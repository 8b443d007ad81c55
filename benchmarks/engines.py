"""How fast the same weights translate on a CPU: graftmt itself, CTranslate2 and Hugging Face, each from text to text.

    python benchmarks/engines.py [BASE --packs PACK,PACK -s el -t uk --input FILE] [--lines 200] [--threads 2] [--json]
    python benchmarks/engines.py --widened -s en -t fr           # at the size of Transformer Base

Without a base it is the demo's, with its two packs, from Greek to Ukrainian, on test lines of the demo's text.
`--widened` makes of it, without packs, a base of four times the width and three times the layers that translates the same.

The folders of the other programs are what `graftmt export` writes, run by the Python files in them, beam 5. Hugging Face gets
the lines sorted by length, 32 at a time, which is what its users do. CTranslate2 runs with one worker of several threads, and
with several workers of one thread. Each engine translates all lines once more than is timed. Both wall time and processor time
are shown: on a machine that does other work too, only the second says something. chrF is that of each engine's translations
against those of graftmt in fp32: 100 if all are the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from peers.widened import give_positions, widened
from sacrebleu.metrics import CHRF

import graftmt
from graftmt import Base, __version__
from graftmt.data import Direction
from graftmt.demo.phrase_corpus import build_corpus
from graftmt.interop.export.exporting import export
from graftmt.translator import Translator

REFERENCE = "Hugging Face fp32"
NATIVE = "graftmt fp32"
DEMO = Path(graftmt.__file__).parent / "demo"
BATCH = 32
"""Lines, for CTranslate2 and Hugging Face."""
Translate = Callable[[list[str]], list[str]]


def main() -> None:
    arguments = parse_arguments()
    if "GOMP_SPINCOUNT" not in os.environ:  # as graftmt's own commands: idle threads that spin would count as work
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "GOMP_SPINCOUNT": "1000"})
    torch.set_num_threads(arguments.threads)
    lines = lines_to_translate(arguments)
    with TemporaryDirectory(prefix="graftmt-engines-") as folder:
        report = make_report(arguments, lines, Path(folder))
    print(json.dumps(report, ensure_ascii=False, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", type=Path, nargs="?", help="a base folder (default: the demo's, with its packs)")
    parser.add_argument("--widened", action="store_true", help="the demo's base at the size of Transformer Base, without packs")
    parser.add_argument("--packs", default="", help="packs with commas between")
    parser.add_argument("--source", "-s", default="el", help="default: %(default)s")
    parser.add_argument("--target", "-t", default="uk", help="default: %(default)s")
    parser.add_argument("--input", "-i", type=Path, help="a text file, one line a segment (default: text of the demo)")
    parser.add_argument("--lines", type=int, default=200, help="so many of them (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="for every engine (default: all cores)")
    parser.add_argument("--only", default="", help="engines whose names have this in them")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    if arguments.widened:
        arguments.base, arguments.packs = DEMO / "base", ""
    elif arguments.base is None:
        arguments.base, arguments.packs = DEMO / "base", ",".join(map(str, sorted((DEMO / "packs").glob("*.graftpack"))))
    return arguments


def lines_to_translate(arguments: argparse.Namespace) -> list[str]:
    if arguments.input is not None:
        return arguments.input.read_text(encoding="utf-8").splitlines()[: arguments.lines]
    text = build_corpus(
        list(dict.fromkeys([arguments.source, "en"])), train_lines=4000, valid_lines=100, test_lines=arguments.lines
    )
    return text["test"][arguments.source]


def make_report(arguments: argparse.Namespace, lines: list[str], folder: Path) -> dict[str, Any]:
    packs = [path for path in arguments.packs.split(",") if path]
    small = Base.load(arguments.base) if arguments.widened else None
    translator = Translator(arguments.base if small is None else widened(small), packs)
    direction = Direction(arguments.source, arguments.target)
    engines = engines_of(translator, direction, folder, arguments.threads, small)
    runs: list[dict[str, Any]] = []
    expected: Sequence[str] = []
    for name, make in engines.items():
        if name not in (NATIVE, REFERENCE) and arguments.only not in name:
            continue
        run = timed(make(), lines)
        expected = expected or run["translations"]
        runs.append({"engine": name, **run})
    reference = next(run["processor_seconds"] for run in runs if run["engine"] == REFERENCE)
    for run in runs:
        found = run.pop("translations")
        run["same_lines"] = sum(one == other for one, other in zip(found, expected, strict=True))
        run["chrf_to_native"] = round(CHRF().corpus_score(list(found), [list(expected)]).score, 2)
        run["times_faster"] = round(reference / run["processor_seconds"], 2)
    return {
        "benchmark": "engines",
        "version": __version__,
        "direction": str(direction),
        "lines": len(lines),
        "parameters": sum(parameter.numel() for parameter in translator.base.model.parameters()),
        "threads": arguments.threads,
        "cores": os.cpu_count(),
        "load": [round(value, 1) for value in os.getloadavg()],
        "runs": runs,
    }


def timed(translate: Translate, lines: list[str]) -> dict[str, Any]:
    translate(lines)
    wall, processor = time.perf_counter(), time.process_time()
    found = translate(lines)
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    return {
        "translations": found,
        "processor_seconds": round(processor, 3),
        "wall_seconds": round(wall, 3),
        "lines_per_processor_second": round(len(lines) / processor, 1),
    }


def engines_of(
    translator: Translator, direction: Direction, folder: Path, threads: int, small: Base | None
) -> dict[str, Callable[[], Translate]]:
    """By name: what loads an engine. The first one is what the others are compared with. `small` is what was widened."""
    source, target = direction.source, direction.target

    def native() -> Translate:
        return lambda lines: translator.translate(lines, source=source, target=target)

    def ctranslate2(quantization: str, workers: int) -> Callable[[], Translate]:
        def load() -> Translate:
            place = folder / f"ctranslate2-{quantization}"
            if not place.exists():
                export(translator, [direction], place, to="ctranslate2", quantization=quantization)
            options = {"inter_threads": workers, "intra_threads": max(1, threads // workers), "compute_type": quantization}
            model = exported(place, **options)
            return lambda lines: list(model.translate(lines, source, target, max_batch_size=BATCH))

        return load

    def hugging_face() -> Translate:
        place = folder / "hugging-face"
        export(
            translator if small is None else Translator(widened(small, learned=False)), [direction], place, to="hugging-face"
        )
        model = exported(place)
        if small is not None:
            give_positions(model.model, small)

        def translate(lines: list[str]) -> list[str]:
            order = sorted(range(len(lines)), key=lambda number: len(lines[number]))
            found = [""] * len(lines)
            for start in range(0, len(order), BATCH):
                chosen = order[start : start + BATCH]
                for number, text in zip(chosen, model.translate([lines[number] for number in chosen]), strict=True):
                    found[number] = text
            return found

        return translate

    def native_int8() -> Translate:
        small = Translator(translator.base, translator.packs, dtype="int8")
        return lambda lines: small.translate(lines, source=source, target=target)

    engines: dict[str, Callable[[], Translate]] = {NATIVE: native, "graftmt int8": native_int8}
    for quantization in ("float32", "int8"):
        for workers in dict.fromkeys((1, threads)):
            name = f"CTranslate2 {quantization}, {workers} × {max(1, threads // workers)} threads"
            engines[name] = ctranslate2(quantization, workers)
    return {**engines, REFERENCE: hugging_face}


def exported(folder: Path, **options: Any) -> Any:
    """The `Translator` of an exported folder's own Python file."""
    spec = importlib.util.spec_from_file_location(f"translate_{abs(hash(folder))}", folder / "translate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Translator(folder, **options)


def table(report: dict[str, Any]) -> str:
    lines = [
        f"{report['direction']}, {report['lines']} lines, {report['parameters'] / 1e6:.1f}M parameters, "
        f"{report['threads']} threads on {report['cores']} cores, load {report['load'][0]}",
        "",
        "| engine | processor s | wall s | × Hugging Face, by processor time | same lines | chrF to graftmt fp32 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for run in report["runs"]:
        lines.append(
            f"| {run['engine']} | {run['processor_seconds']} | {run['wall_seconds']} | {run['times_faster']} | "
            f"{run['same_lines']} | {run['chrf_to_native']} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
