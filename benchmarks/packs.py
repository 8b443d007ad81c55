"""What a language pack costs: until it translates a first line, to swap it for another, and while it translates.

    python benchmarks/packs.py [--runs 15] [--threads 2] [--size demo|base] [--clock wall|cpu] [--json]

The packs are made here, untrained, for the demo's base: training changes numbers, not how many there are.

First line: the base is resident; `load_pack` from disk with all its checks, composition, and one line with beam 5.
Swap: another pack composed with the resident base, parallel adapters folded.

Speed: a pack has another vocabulary than its base, and so other lengths, which would be compared instead of the models. Here
each pack has the base's own subwords, so that every side reads the same ids, and the end of a sentence is forbidden, so that
every side writes exactly `--tokens` tokens for each line. Sides take turns in every round, in an order that changes; a pack's
figure is the median over the rounds of its time divided by the base's in the same round. "base again" is the base measured
against itself: what it is off 1 by is noise. "unfolded" has its adapters beside the FFNs instead of in them. A source and a
target pack are also composed, and set against the two one after the other, as through English. On a machine with
other work on it, `--clock cpu --threads 1` counts the processor time of this process alone, and is far steadier.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import tempfile
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

import torch

from graftmt import __version__
from graftmt.base import Base
from graftmt.decoding import SearchOptions, batch_tokens_for, search_all
from graftmt.model import SIZES, named_size
from graftmt.packs import Composition, Pack, Recipe, compose, create_pack, load_pack, save_pack
from graftmt.translator import Translator

FIRST_LINE_MS, SLOWER = 100, 1.05
"""The aims: a first line within so many ms on a CPU with the demo's base; with a folded pack at most so many times the base's
time."""

LANGUAGE = "xx"
PACKS: dict[str, tuple[str, str]] = {
    "source: embed": ("source", "embed"),
    "target: embed": ("target", "embed + code:learned:fr"),
    "target: replaced layer": ("target", "embed + dec-last-layer + code:learned:fr"),
    "target: parallel adapters": ("target", "embed + parallel-adapters-all(64) + code:learned:fr"),
}
UNFOLDED = "target: parallel adapters"
BOTH = ("source: embed", "target: replaced layer")
"""Composed, they translate between two new languages in one pass; through English it takes one of each."""
COMPOSED, PIVOT = "source and target composed", "the same two through English"
BEAMS = (1, 5)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder, resources.as_file(resources.files("graftmt.demo") / "base") as demo:
        base = resident_base(demo, arguments.size, Path(folder) / "base")
        packs = make_packs(base, Path(folder))
        report: dict[str, Any] = {
            "benchmark": "packs",
            "size": arguments.size,
            "parameters": sum(parameter.numel() for parameter in base.model.parameters()),
            "vocabulary": len(base.tokenizer.vocabulary),
            "runs": arguments.runs,
            "threads": torch.get_num_threads(),
            "clock": arguments.clock,
            "versions": {"graftmt": __version__, "torch": torch.__version__, "python": platform.python_version()},
            "load_average": load_average(),
            "aims": {"first_line_ms": FIRST_LINE_MS, "slower": SLOWER},
            "first_line": {name: first_line(base, path, arguments) for name, path in packs.items()},
            "swap": swaps(base, packs, arguments.runs),
            "speed": [speed(base, packs, beam, arguments) for beam in BEAMS],
        }
        report["load_average_after"] = load_average()
    print(json.dumps(report, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="of each; medians count (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=64, help="translated in a timed run (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=24, help="written for each line (default: %(default)s)")
    parser.add_argument("--size", default="demo", choices=("demo", *SIZES), help="the demo's base, or random weights of a size")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads (default: %(default)s)")
    parser.add_argument("--clock", default="wall", choices=CLOCKS, help="cpu: this process's own time (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def load_average() -> float:
    """Of the last minute: above the number of threads, something else was running."""
    return float(Path("/proc/loadavg").read_text(encoding="ascii").split()[0]) if Path("/proc/loadavg").exists() else 0.0


def resident_base(demo: Path, size: str, folder: Path) -> Base:
    base = Base.load(demo)
    if size == "demo":
        return base
    torch.manual_seed(1)
    base = Base.create(named_size(size), base.tokenizer)
    base.save(folder)  # packs know their base by the fingerprint of what is stored
    return Base.load(folder)


def make_packs(base: Base, folder: Path) -> dict[str, Path]:
    paths = {}
    for number, (name, (side, recipe)) in enumerate(PACKS.items()):
        pack = create_pack(
            base,
            side=side,  # type: ignore[arg-type]
            languages=(LANGUAGE,),
            recipe=Recipe.parse(recipe),
            subwords=base.tokenizer.subwords,
        )
        paths[name] = folder / f"pack-{number}"
        save_pack(pack, paths[name], base.model.config)
    return paths


def direction(pack: Pack) -> tuple[str, str]:
    return (LANGUAGE, "fr") if pack.side == "source" else ("en", LANGUAGE)


def milliseconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return (time.perf_counter() - start) * 1000, result


def first_line(base: Base, path: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """From nothing but the base in memory and the pack on disk (in its cache) to the first translation."""
    rows = []
    for _ in range(arguments.runs + 1):
        translator = Translator(base)
        loading, name = milliseconds(lambda translator=translator: translator.add_pack(path))
        source, target = direction(translator.packs[name])
        composing, _ = milliseconds(
            lambda translator=translator, source=source, target=target: translator.composition(source, target)
        )
        translating, _ = milliseconds(
            lambda translator=translator, source=source, target=target: translator.translate(
                ["5 kilometers per hour"], source=source, target=target
            )
        )
        rows.append((loading + composing + translating, loading, composing, translating))
    total, loading, composing, translating = zip(*rows[1:], strict=True)  # the very first run of all allocates
    return {
        "ms": round(median(total), 1),
        "worst_ms": round(max(total), 1),
        "parts": {
            name: round(median(part), 1)
            for name, part in (("load", loading), ("compose", composing), ("translate", translating))
        },
        # Random weights do not end a sentence, and a larger base takes its time.
        **({"aim_met": median(total) <= FIRST_LINE_MS} if arguments.size == "demo" else {}),
    }


def swaps(base: Base, packs: dict[str, Path], runs: int) -> dict[str, Any]:
    """Packs by turns: each composition is made anew in place of another one."""
    loaded = {name: load_pack(path) for name, path in packs.items()}
    times: dict[str, list[float]] = {name: [] for name in loaded}
    for _ in range(runs + 1):
        for name, pack in loaded.items():
            took, _ = milliseconds(lambda pack=pack: composed(base, pack))
            times[name].append(took)
    return {name: {"ms": round(median(own[1:]), 2), "worst_ms": round(max(own[1:]), 2)} for name, own in times.items()}


def composed(base: Base, pack: Pack | None, *, fold: bool = True) -> Composition:
    if pack is None:
        return compose(base)
    return compose(base, source=pack, fold=fold) if pack.side == "source" else compose(base, target=pack, fold=fold)


def speed(base: Base, packs: dict[str, Path], beam: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Every side reads and writes as many tokens; see the top of this file."""
    loaded = {name: load_pack(path) for name, path in packs.items()}
    sides = {"base": composed(base, None), "base again": composed(base, None)}
    sides |= {name: composed(base, pack) for name, pack in loaded.items()}
    sides[f"{UNFOLDED}, unfolded"] = composed(base, loaded[UNFOLDED], fold=False)
    sides[COMPOSED] = compose(base, source=loaded[BOTH[0]], target=loaded[BOTH[1]])
    runners = {name: FixedLength(side, beam, arguments) for name, side in sides.items()}
    counts = {runner.source_tokens for runner in runners.values()}
    assert len(counts) == 1, "the sides do not read the same number of tokens"
    rounds: list[dict[str, float]] = []
    order, chance = list(runners), random.Random(1)
    for _ in range(arguments.runs + 1):
        rounds.append({name: runners[name]() for name in order})
        rounds[-1][PIVOT] = sum(rounds[-1][name] for name in BOTH)
        chance.shuffle(order)
    rounds = rounds[1:]
    written = arguments.lines * arguments.tokens
    return {
        "beam": beam,
        "lines": arguments.lines,
        "source_tokens": counts.pop(),
        "output_tokens": written,
        "sides": {
            name: {
                "tokens_per_second": round(written / median(own[name] for own in rounds), 1),
                "time_by_base": round(ratio := median(own[name] / own["base"] for own in rounds), 3),
                **({"aim_met": ratio <= SLOWER} if name in packs else {}),
            }
            for name in (*runners, PIVOT)
        },
    }


class FixedLength:
    """Searches the same lines each time, to outputs of exactly so many tokens; a call returns the seconds it took."""

    def __init__(self, composition: Composition, beam: int, arguments: argparse.Namespace) -> None:
        lines, tokens = arguments.lines, arguments.tokens
        source = LANGUAGE if composition.source is not None else "en"
        target = LANGUAGE if composition.target is not None else "fr"
        codec = composition.codec
        self.model, self.codec, self.tokens = composition.model, codec, tokens
        self.clock = CLOCKS[arguments.clock]
        encode = codec.source_tokenizer(source).encode
        self.sources = [[*codec.source_prefix(source, target), *encode(line), codec.end_id] for line in sentences(lines)]
        self.prefixes = [codec.decoder_prefix(target)] * lines
        self.options = SearchOptions(
            beam=beam, max_length=tokens, length_ratio=tokens, batch_tokens=batch_tokens_for(self.model.device.type)
        )
        self.source_tokens = sum(map(len, self.sources))

    def __call__(self) -> float:
        forbidden = [*self.codec.forbidden, self.codec.end_id]
        start = self.clock()
        found = search_all(self.model, self.sources, self.prefixes, self.options, end=self.codec.end_id, forbidden=forbidden)
        seconds = self.clock() - start
        assert all(len(hypotheses[0].tokens) == self.tokens for hypotheses in found), "an output has another length"
        return seconds


def sentences(count: int) -> list[str]:
    """What the demo's base knows, of several lengths."""
    forms = ("in {} days", "{} kilometers per hour", "{} days ago, {} weeks ago", "in {} months and {} weeks, {} years")
    return [forms[number % len(forms)].format(*(number % 50 + 2 + step for step in range(3))) for number in range(count)]


def table(report: dict[str, Any]) -> str:
    lines = [
        f"{report['size']}: {report['parameters'] / 1e6:.2f}M parameters, vocabulary {report['vocabulary']:,}; "
        f"{report['threads']} threads, {report['clock']} clock for speed; medians of {report['runs']}; load average "
        f"{report['load_average']} to {report['load_average_after']}",
        ", ".join(f"{name} {version}" for name, version in report["versions"].items()),
        "",
        f"{'first line on a resident base':<38} {'ms':>7} {'worst':>7}   load + compose + translate; aim {FIRST_LINE_MS} ms",
    ]
    for name, row in report["first_line"].items():
        parts = " + ".join(f"{part:.1f}" for part in row["parts"].values())
        lines.append(f"{name:<38} {row['ms']:>7.1f} {row['worst_ms']:>7.1f}   {parts}  {verdict(row)}")
    lines += ["", f"{'swap: composing another pack':<38} {'ms':>7} {'worst':>7}"]
    lines += [f"{name:<38} {row['ms']:>7.2f} {row['worst_ms']:>7.2f}" for name, row in report["swap"].items()]
    for search in report["speed"]:
        read, written = (search[key] / search["lines"] for key in ("source_tokens", "output_tokens"))
        title = f"beam {search['beam']}: {search['lines']} lines, {read:.1f} tokens in, {written:.0f} out"
        lines += ["", f"{title:<38} {'tokens/s':>9} {'time / base':>12}   aim {SLOWER}"]
        for name, row in search["sides"].items():
            lines.append(f"{name:<38} {row['tokens_per_second']:>9,.0f} {row['time_by_base']:>12.3f}   {verdict(row)}")
    return "\n".join(line.rstrip() for line in lines)


def verdict(row: dict[str, Any]) -> str:
    return "" if "aim_met" not in row else "met" if row["aim_met"] else "NOT MET"


if __name__ == "__main__":
    main()
