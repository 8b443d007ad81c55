"""How often shifted, shuffled and exchanged text is found, and how often clean text is taken for it.

    python benchmarks/misalignment.py [CORPUS] [--languages ar,he,…] [--sizes 1000,10000,70000] [--tries 100] [--json]

CORPUS is a line-aligned folder with English; without one it makes the demo's own, in all its languages. Each try takes as many
consecutive pairs as its size says, from a random place, so that neighbours are from the same document, in one of the languages,
these in turn. Then nothing is done to them (clean); or one line is taken out of one side, in the first half (shifted); or one
side is shuffled; or both sides change places (exchanged). A try counts as found if `check_alignment` gives that very cause and
would stop the work, for a shift with the right direction and the right line within fifty. Of each size the tries are in the
first twelve of the languages that have more pairs than that.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graftmt import __version__
from graftmt.data import Corpus
from graftmt.demo.phrase_corpus import BASE_LANGUAGES, NEW_LANGUAGES, write_corpus
from graftmt.prepare.misalignment import Alignment, check_alignment

LANGUAGES = "ar,de,el,fa,he,ja,ko,ru,tr,uk,vi,zh_cn,bg,es,hu,pl"
AT_ONCE = 12
"""Languages of each size, at most."""
KINDS = ("clean", "shifted", "shuffled", "exchanged")
EXPECTED = {"clean": "in step", "shifted": "shifted", "shuffled": "unrelated", "exchanged": "exchanged"}
NEAR = 50
Pairs = list[tuple[str, str]]


def main() -> None:
    arguments = parse_arguments()
    with TemporaryDirectory(prefix="graftmt-misalignment-") as temporary:
        folder = arguments.corpus or write_demo_corpus(Path(temporary), arguments)
        report = make_report(arguments, folder)
    print(json.dumps(report, ensure_ascii=False, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "corpus", type=Path, nargs="?", help="a line-aligned folder with English (default: the demo's, made here)"
    )
    parser.add_argument("--split", default="train", help="whose lines (default: %(default)s)")
    parser.add_argument("--languages", default=LANGUAGES, help="each with English (default: %(default)s)")
    parser.add_argument("--sizes", default="1000,10000,70000", help="pairs in a try (default: %(default)s)")
    parser.add_argument("--tries", type=int, default=100, help="of each kind and size (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of places and lines (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def write_demo_corpus(folder: Path, arguments: argparse.Namespace) -> Path:
    languages = (*BASE_LANGUAGES, *NEW_LANGUAGES)
    write_corpus(folder, languages, train_lines=max(map(int, arguments.sizes.split(","))) + 1, seed=arguments.seed)
    arguments.languages = ",".join(name for name in languages if name != "en")
    return folder


def make_report(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    languages = arguments.languages.split(",")
    corpus = Corpus.open(folder, arguments.split, [*languages, "en"])
    english = list(corpus.lines("en"))
    texts = {name: [pair for pair in zip(corpus.lines(name), english, strict=True) if all(pair)] for name in languages}
    rows = []
    for size in map(int, arguments.sizes.split(",")):
        enough = [name for name, pairs in texts.items() if len(pairs) > size][:AT_ONCE]
        if not enough:
            raise SystemExit(f"no language has more than {size:,} pairs; the most is {max(map(len, texts.values())):,}")
        some = {name: texts[name] for name in enough}
        rows += [measure(some, kind, size, arguments.tries, arguments.seed) for kind in KINDS]
    return {
        "benchmark": "misalignment",
        "corpus": arguments.corpus.name if arguments.corpus else "the demo's",
        "split": arguments.split,
        "pairs": {name: len(pairs) for name, pairs in texts.items()},
        "tries": arguments.tries,
        "seed": arguments.seed,
        "versions": {"graftmt": __version__},
        "rows": rows,
    }


def measure(texts: dict[str, Pairs], kind: str, size: int, tries: int, seed: int) -> dict[str, Any]:
    right, seconds, missed = 0, [], Counter[str]()
    distances = []
    for language, pairs, change in drawn(texts, kind, size, tries, seed):
        started = time.process_time()
        found = check_alignment(pairs, (language, "en"))
        seconds.append(time.process_time() - started)
        if is_right(found, kind, change):
            right += 1
            distances += [abs(found.stretches[0].first - change[1])] if kind == "shifted" else []
        else:
            missed[f"{language}: {found.kind}"] += 1
    row = {
        "size": size,
        "kind": kind,
        "languages": list(texts),
        "tries": tries,
        "right": right,
        "missed": dict(missed),
        "median_lines_from_the_place": statistics.median(distances) if distances else None,
        "most_lines_from_the_place": max(distances, default=None),
        "median_processor_seconds": round(statistics.median(seconds), 2),
    }
    print(row, file=sys.stderr, flush=True)
    return row


def drawn(texts: dict[str, Pairs], kind: str, size: int, tries: int, seed: int) -> Iterator[tuple[str, Pairs, tuple[int, int]]]:
    """Language, pairs, and for a shift its offset and the first line that is out of step, counted from 1."""
    names = list(texts)
    for number in range(tries):
        language = names[number % len(names)]
        chance = random.Random(f"{seed} {kind} {size} {number}")
        every = texts[language]
        start = chance.randrange(len(every) - size)
        pairs = every[start : start + size + 1]
        first, second = [one for one, _ in pairs], [other for _, other in pairs]
        offset = place = 0
        if kind == "shifted":
            place, offset = chance.randrange(size // 2), chance.choice((1, -1))
            del (first if offset > 0 else second)[place]
            (second if offset > 0 else first).pop()
        elif kind == "shuffled":
            chance.shuffle(second)
        elif kind == "exchanged":
            first, second = second, first
        yield language, list(zip(first, second, strict=True)), (offset, place + 1)


def is_right(found: Alignment, kind: str, change: tuple[int, int]) -> bool:
    if found.kind != EXPECTED[kind] or found.is_bad != (kind != "clean"):
        return False
    if kind != "shifted":
        return True
    offset, place = change
    return found.stretches[0].offset == offset and abs(found.stretches[0].first - place) <= NEAR


def table(report: dict[str, Any]) -> str:
    lines = [f"{report['corpus']}, {report['split']}; each language with en; {report['tries']} tries of each kind and size", ""]
    by_size = {row["size"]: ", ".join(row["languages"]) for row in report["rows"]}
    lines += [
        *(f"{size:,} pairs: {languages}" for size, languages in by_size.items()),
        "",
        "| pairs | text | judged rightly | line off by: median (most) | seconds (median) |",
        "|---|---|---|---|---|",
    ]
    for row in report["rows"]:
        off = row["median_lines_from_the_place"]
        distance = "" if off is None else f"{off:g} ({row['most_lines_from_the_place']})"
        cells = [f"{row['size']:,}", row["kind"], f"{row['right']} of {row['tries']}", distance]
        lines.append(f"| {' | '.join(cells)} | {row['median_processor_seconds']:.2f} |")
    missed = [f"{row['size']:,} {row['kind']}: {row['missed']}" for row in report["rows"] if row["missed"]]
    return "\n".join([*lines, *(["", "misjudged", *missed] if missed else [])])


if __name__ == "__main__":
    main()
