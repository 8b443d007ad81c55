"""What aligning through English costs: pairs a second, peak memory and disk, and what that means for ParaCrawl's 450M pairs.

    python benchmarks/alignment.py [--pairs 2000000 20000000] [--memory 1GB] [--threads 2] [--folder FOLDER] [--json]

It writes bilingual corpora of its own: five languages in the proportions of ParaCrawl's five largest, each English line in 1.66
of them as there, words by Zipf's law, lengths as on the web, some English lines twice. Each alignment runs in a process of its
own; before that, one of 100,000 pairs is compared with a plain program that holds everything in memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZES = {"fr": 95.43, "de": 76.49, "es": 72.97, "it": 38.05, "pt": 29.18}
"""Millions of lines with English (the paper's Table 21)."""
PAIRS_A_LINE = 450.30 / 271.85
"""Line pairs of ParaCrawl for each of its different English lines (the same table)."""
PARACRAWL_PAIRS = 450_300_000
REPEATED = 0.03
"""Share of the pairs whose English line the same corpus has already."""
COMPARED_PAIRS = 100_000
BLOCK_LINES = 50_000
LETTERS = "etaoinshrdlucmfwypvbgkqjxz"
ACCENTED = LETTERS + "éèàçüößñáíóúãõ"


def main() -> None:
    arguments = parse_arguments()
    report: dict[str, Any] = {
        "benchmark": "alignment",
        "languages": list(SIZES),
        "memory": arguments.memory,
        "threads": arguments.threads,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "versions": versions(),
    }
    with tempfile.TemporaryDirectory(prefix="graftmt-alignment-", dir=arguments.folder) as folder:
        report["compared_pairs"] = compare(Path(folder), arguments.compared, arguments)
        report["runs"] = [run(Path(folder), pairs, arguments) for pairs in sorted(arguments.pairs)]
    report["extrapolation"] = extrapolate(report["runs"])
    print(json.dumps(report, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--pairs", type=int, nargs="+", default=[2_000_000, 20_000_000], help="in total, a run each (default: 2000000 20000000)"
    )
    parser.add_argument("--compared", type=int, default=COMPARED_PAIRS, help="pairs to compare (default: %(default)s)")
    parser.add_argument("--memory", default="1GB", help="for DuckDB (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of DuckDB, and cores to run on (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="for text and temporary files: about 0.5 GB for a million pairs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def versions() -> dict[str, str]:
    import duckdb
    import pyarrow

    from graftmt import __version__

    return {"graftmt": __version__, "duckdb": duckdb.__version__, "pyarrow": pyarrow.__version__}


class Words:
    """A lexicon as bytes, from which many lines are put together at once."""

    def __init__(self, random: np.random.Generator, letters: str, size: int = 30_000, longest: int = 14) -> None:
        chances = random.permutation(1 / np.arange(1, len(letters) + 1))
        lengths = np.minimum(longest, 2 + random.poisson(np.log1p(np.arange(size)) / 2))
        drawn = random.choice(list(letters), (size, longest), p=chances / chances.sum())
        words = ["".join(row[:length]).encode() + b" " for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True)]
        self.lengths = np.array([len(word) for word in words])
        self.bytes = np.zeros((size, self.lengths.max()), dtype=np.uint8)
        for row, word in zip(self.bytes, words, strict=True):
            row[: len(word)] = np.frombuffer(word, dtype=np.uint8)
        self.filled = np.arange(self.bytes.shape[1]) < self.lengths[:, None]
        self.limits = np.cumsum(1 / np.arange(1, size + 1))

    def lines(self, random: np.random.Generator, words: NDArray[np.int64]) -> NDArray[np.object_]:
        """One line of so many words each."""
        ids = np.searchsorted(self.limits, random.random(words.sum()) * self.limits[-1])
        text = self.bytes[ids][self.filled[ids]]
        ends = np.cumsum(self.lengths[ids])[np.cumsum(words) - 1]
        text[ends - 1] = ord("\n")
        content, starts = text.tobytes(), np.append(0, ends)
        return np.array(
            [content[start:end] for start, end in zip(starts[:-1].tolist(), ends.tolist(), strict=True)], dtype=object
        )


def write_corpora(folder: Path, pairs: int) -> int:
    """SIZES' languages, each as LANG.en and LANG.LANG; returns the bytes written."""
    random = np.random.default_rng(1)
    english, lexicons = Words(random, LETTERS), {language: Words(random, ACCENTED) for language in SIZES}
    # The chance that a language has a line, so that a line is in PAIRS_A_LINE languages among those that are in any.
    shares = np.array(list(SIZES.values()))
    low, high = 0.0, 1 / shares.max()
    for _ in range(60):
        middle = (low + high) / 2
        chances = shares * middle
        low, high = (middle, high) if chances.sum() / (1 - np.prod(1 - chances)) < PAIRS_A_LINE else (low, middle)
    block = min(BLOCK_LINES, pairs)
    left = {language: round(pairs * share / shares.sum()) for language, share in SIZES.items()}
    left["fr"] += pairs - sum(left.values())
    with ExitStack() as stack:
        files = {
            language: [stack.enter_context((folder / f"{language}.{side}").open("wb")) for side in ("en", language)]
            for language in SIZES
        }
        while any(left.values()):
            words = np.clip(np.exp(random.normal(2.6, 0.65, block)), 1, 150)
            lines = english.lines(random, words.astype(np.int64))
            for language, chance in zip(SIZES, chances, strict=True):
                rows = np.flatnonzero(random.random(block) < chance * (1 - REPEATED))
                rows = np.append(rows, random.choice(rows, int(len(rows) * REPEATED)))
                rows = random.permutation(rows)[: left[language]]
                left[language] -= len(rows)
                if len(rows):
                    lengths = np.maximum(1, words[rows] * np.exp(random.normal(0.05, 0.15, len(rows)))).astype(np.int64)
                    files[language][0].write(b"".join(lines[rows]))
                    files[language][1].write(b"".join(lexicons[language].lines(random, lengths)))
    return folder_bytes(folder)


def run(folder: Path, pairs: int, arguments: argparse.Namespace) -> dict[str, Any]:
    source, output = folder / "source", folder / "output"
    source.mkdir()
    print(f"writing {pairs:,} pairs", file=sys.stderr, flush=True)
    text_bytes = write_corpora(source, pairs)
    print(f"aligning them, {text_bytes / 1e9:.2f} GB", file=sys.stderr, flush=True)
    with watched_disk(folder, text_bytes) as disk:
        measured = in_process_of_its_own(source, output, arguments)
    result = {"pairs": pairs, "text_gb": text_bytes / 1e9, **measured, "pairs_per_second": pairs / measured["seconds"]}
    result |= {"output_gb": folder_bytes(output) / 1e9, "peak_temporary_gb": max(disk) / 1e9}
    shutil.rmtree(source)
    shutil.rmtree(output)
    result["left_over_bytes"] = folder_bytes(folder)
    return result


@contextmanager
def watched_disk(folder: Path, before: int) -> Iterator[list[int]]:
    """Bytes above those that were there, the output included, four times a second."""
    seen, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.25):
            seen.append(folder_bytes(folder) - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def folder_bytes(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # it may go while we look
                total += os.stat(os.path.join(root, name)).st_size
    return total


def in_process_of_its_own(source: Path, output: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measure, source, output, arguments.memory, arguments.threads).result()


def measure(source: Path, output: Path, memory: str, threads: int) -> dict[str, Any]:
    from graftmt.prepare.bilingual import find_corpora
    from graftmt.prepare.duckdb_work import AlignOptions
    from graftmt.prepare.through_english import align

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    corpora = find_corpora([f"{language}={source / language}" for language in SIZES])
    before = peak_memory()
    started, processor = time.perf_counter(), time.process_time()
    alignment = align(corpora, output, AlignOptions(memory=memory, threads=threads))
    return {
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - processor,
        "reading_seconds": alignment.seconds["reading"],
        "joining_seconds": alignment.seconds["joining"],
        "lines": alignment.lines,
        "repeated": sum(read.repeated for read in alignment.corpora.values()),
        "memory_before_mb": before,
        "peak_memory_mb": peak_memory(),
    }


def peak_memory() -> float:
    """Resident, of this process, in megabytes of 10^6 bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024 / 1e6  # type: ignore[index]


def compare(folder: Path, pairs: int, arguments: argparse.Namespace) -> int:
    """The alignment of so many pairs is, byte for byte, that of a plain program that holds everything in memory."""
    source, output = folder / "source", folder / "output"
    source.mkdir()
    write_corpora(source, pairs)
    in_process_of_its_own(source, output, arguments)
    for language, content in reference(source).items():
        assert (output / f"train.{language}.txt").read_bytes() == content, f"{language} differs from the reference"
    shutil.rmtree(source)
    shutil.rmtree(output)
    return pairs


def reference(source: Path) -> dict[str, bytes]:
    lines: dict[bytes, dict[str, bytes]] = {}
    for language in SIZES:
        sides = [(source / f"{language}.{side}").read_bytes().splitlines() for side in ("en", language)]
        for english, text in zip(*sides, strict=True):
            lines.setdefault(english, {"en": english}).setdefault(language, text)
    order = sorted(lines, key=lambda english: (int.from_bytes(hashlib.md5(english).digest()[:8], "little"), english))
    return {language: b"".join(lines[english].get(language, b"") + b"\n" for english in order) for language in ("en", *SIZES)}


def extrapolate(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Time grows as the processor's did between the two largest runs, at least in proportion, disk in proportion, memory not.

    The processor's time tells the growth, for it hardly depends on what else the machine does."""
    largest = runs[-1]
    factor = PARACRAWL_PAIRS / largest["pairs"]
    exponent = 1.0
    if len(runs) > 1:
        before = runs[-2]
        exponent = math.log(largest["processor_seconds"] / before["processor_seconds"]) / math.log(
            largest["pairs"] / before["pairs"]
        )
    exponent = max(1.0, exponent)
    return {
        "pairs": PARACRAWL_PAIRS,
        "exponent": exponent,
        "hours": largest["seconds"] * factor**exponent / 3600,
        "text_gb": largest["text_gb"] * factor,
        "peak_temporary_gb": largest["peak_temporary_gb"] * factor,
        "output_gb": largest["output_gb"] * factor,
    }


def table(report: dict[str, Any]) -> str:
    lines = [
        f"{len(report['languages'])} languages with English, DuckDB {report['versions']['duckdb']} with {report['memory']} and "
        f"{report['threads']} threads, {report['cores']} cores; {report['compared_pairs']:,} pairs are as in memory",
        "",
        f"{'pairs':>12} {'text':>9} {'pairs/s':>9} {'reading':>9} {'joining':>9} {'CPU':>9} {'peak memory':>12} "
        f"{'peak disk':>10} {'output':>9} {'lines':>12}",
    ]
    for row in report["runs"]:
        lines.append(
            f"{row['pairs']:>12,} {row['text_gb']:>6.2f} GB {row['pairs_per_second']:>9,.0f} {row['reading_seconds']:>7,.0f} s "
            f"{row['joining_seconds']:>7,.0f} s {row['processor_seconds']:>7,.0f} s {row['peak_memory_mb']:>9,.0f} MB "
            f"{row['peak_temporary_gb']:>7.2f} GB {row['output_gb']:>6.2f} GB {row['lines']:>12,}"
        )
    more = report["extrapolation"]
    lines += [
        "",
        f"extrapolated to {more['pairs']:,} pairs: {more['hours']:.1f} hours (time ∝ pairs^{more['exponent']:.2f}), text "
        f"{more['text_gb']:,.0f} GB, peak disk {more['peak_temporary_gb']:,.0f} GB, output of it {more['output_gb']:,.0f} GB",
        "peak disk: above the text that is read, the output included; peak memory: resident, of the whole process",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
