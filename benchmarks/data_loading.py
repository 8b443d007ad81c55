"""What the data loader gives: real target tokens a second from a warm cache, beside a plain torch DataLoader on the same pairs.

    python benchmarks/data_loading.py [--corpus FOLDER] [--batch-tokens 4096 32768] [--seconds 3] [--json]

Without --corpus it writes a multi-parallel corpus of its own: words by Zipf's law, sentence lengths as in talks, lines that are
missing in some languages. Each loader runs in a process of its own; padding is never counted as tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from graftmt import __version__
from graftmt.data import (
    Batch,
    BatchMaker,
    BatchPlan,
    BatchStream,
    Corpus,
    Direction,
    PairSampler,
    TokenizedCorpus,
    select_directions,
    tokenize_corpus,
)
from graftmt.data.batching import Pairs
from graftmt.text import Tokenizer, train_subwords

VIEWS = ("english-centric", "multi-parallel")
LOADERS = ("graftmt, one thread", "graftmt, stream", "DataLoader, 0 workers", "DataLoader, 2 workers")
MAX_LENGTH = 200
TEMPERATURE = 5.0
CHARACTERS = "etaoinshrdlucmfwypvbgkqjxz"


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="graftmt-data-loading-") as folder:
        temporary = Path(folder)
        source = arguments.corpus or write_corpus(temporary / "corpus", arguments.languages, arguments.lines)
        corpus = Corpus.open(source, "train")
        tokenizer = make_tokenizer(corpus, arguments.merges)
        report = {
            "benchmark": "data_loading",
            "corpus": str(arguments.corpus or "synthetic"),
            "languages": len(corpus.languages),
            "vocabulary": len(tokenizer),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "versions": {"graftmt": __version__, "torch": torch.__version__, "numpy": np.__version__},
            "tokenising": time_tokenising(corpus, tokenizer, temporary / "cache"),
            "loading": [],
        }
        for view in arguments.views:
            for batch_tokens in arguments.batch_tokens:
                for loader in LOADERS:
                    case = Case(loader, view, batch_tokens, arguments.seconds, source, temporary / "cache")
                    report["loading"].append(in_process_of_its_own(case, tokenizer))
    print(json.dumps(report, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="a line-aligned folder with a train split (default: a synthetic one)")
    parser.add_argument("--languages", type=int, default=8, help="of the synthetic corpus (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=50_000, help="of the synthetic corpus (default: %(default)s)")
    parser.add_argument("--merges", type=int, default=16_000, help="of the subword model (default: %(default)s)")
    parser.add_argument("--views", nargs="+", default=VIEWS, help=f"directions to load (default: {' '.join(VIEWS)})")
    parser.add_argument(
        "--batch-tokens", type=int, nargs="+", default=[4096, 32768], help="padded tokens of a batch (default: 4096 32768)"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="to time each loader for (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def write_corpus(folder: Path, languages: int, lines: int) -> Path:
    """A synthetic corpus: English and others, where a line is about as long in all languages, and some lack lines."""
    folder.mkdir()
    random = np.random.default_rng(1)
    words_of_line = np.exp(random.normal(2.7, 0.6, lines))
    for number in range(languages):
        language = "en" if number == 0 else f"x{number}"
        lexicon = make_lexicon(random, 30_000)
        chances = 1 / np.arange(1, len(lexicon) + 1)
        counts = np.maximum(1, words_of_line * np.exp(random.normal(random.normal(0, 0.1), 0.15, lines))).astype(np.int64)
        counts[random.random(lines) < 0.1 * number / languages] = 0
        words = iter(random.choice(len(lexicon), counts.sum(), p=chances / chances.sum()).tolist())
        with (folder / f"train.{language}.txt").open("w", encoding="utf-8") as file:
            for count in counts.tolist():
                file.write(" ".join(lexicon[next(words)] for _ in range(count)) + "\n")
    return folder


def make_lexicon(random: np.random.Generator, size: int) -> list[str]:
    """Words of random letters, the frequent ones short."""
    chances = random.permutation(1 / np.arange(1, len(CHARACTERS) + 1))
    lengths = np.minimum(14, 2 + random.poisson(np.log1p(np.arange(size)) / 2)).tolist()
    letters = iter(random.choice(list(CHARACTERS), sum(lengths), p=chances / chances.sum()).tolist())
    return ["".join(next(letters) for _ in range(length)) for length in lengths]


def make_tokenizer(corpus: Corpus, merges: int) -> Tokenizer:
    texts = {language: corpus.texts([language], limit=10_000)[language] for language in corpus.languages}
    return Tokenizer(train_subwords(texts, merges=merges, min_character_count=1), corpus.languages)


def time_tokenising(corpus: Corpus, tokenizer: Tokenizer, cache: Path) -> dict[str, float]:
    """One process, nothing cached: neither lines in the folder nor words in the tokenizer."""
    started = time.perf_counter()
    tokenized = tokenize_corpus(corpus, tokenizer, cache, processes=1)
    seconds = time.perf_counter() - started
    lines = int((tokenized.lengths > 0).sum())
    tokens = int(tokenized.lengths.sum())
    return {
        "lines": lines,
        "tokens": tokens,
        "seconds": seconds,
        "lines_per_second": lines / seconds,
        "tokens_per_second": tokens / seconds,
    }


@dataclass(frozen=True)
class Case:
    """One loader on one kind of batches."""

    loader: str
    view: str
    batch_tokens: int
    seconds: float
    corpus: Path
    cache: Path


@dataclass
class Measured:
    """What a loader gave: counts of what was read in `seconds`, planning included."""

    seconds: float = 0.0
    batches: int = 0
    target_tokens: int = 0
    real_tokens: int = 0
    padded_tokens: int = 0
    planning_seconds: float = 0.0
    """For as many pairs as a pool has: drawing, sorting and cutting them."""

    def count(self, source: Tensor, labels: Tensor, source_tokens: int, target_tokens: int) -> None:
        self.batches += 1
        self.target_tokens += target_tokens
        self.real_tokens += source_tokens + target_tokens
        self.padded_tokens += source.numel() + labels.numel()


def in_process_of_its_own(case: Case, tokenizer: Tokenizer) -> dict[str, Any]:
    print(f"{case.loader}: {case.view}, {case.batch_tokens:,} tokens", file=sys.stderr, flush=True)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measure, case, tokenizer).result()


def measure(case: Case, tokenizer: Tokenizer) -> dict[str, Any]:
    torch.set_num_threads(1)
    before = peak_memory()
    corpus = tokenize_corpus(Corpus.open(case.corpus, "train"), tokenizer, case.cache, processes=1)
    directions = select_directions(case.view, corpus.languages)
    sampler = PairSampler(corpus, directions, temperature=TEMPERATURE, max_length=MAX_LENGTH, seed=1)
    plan = BatchPlan(sampler, corpus, max_tokens=case.batch_tokens)
    maker = BatchMaker(corpus, tokenizer)
    if case.loader.startswith("graftmt"):
        measured = measure_graftmt(case, plan, maker)
    else:
        measured = measure_data_loader(case, plan, maker, corpus)
    return {
        "loader": case.loader,
        "view": case.view,
        "batch_tokens": case.batch_tokens,
        "target_tokens_per_second": measured.target_tokens / measured.seconds,
        "batches_per_second": measured.batches / measured.seconds,
        "target_tokens_per_batch": measured.target_tokens / measured.batches,
        "padding_share": 1 - measured.real_tokens / measured.padded_tokens,
        "pool_batches": plan.pool_batches,
        "planning_seconds": measured.planning_seconds,
        "peak_memory_mb": peak_memory() - before,
        "measured": asdict(measured),
    }


def peak_memory() -> float:
    """Of this process, in megabytes; pages of the mapped cache that were read count too."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would give the parent's peak where that is higher
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))[1]) / 1024  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def measure_graftmt(case: Case, plan: BatchPlan, maker: BatchMaker) -> Measured:
    """Whole pools after a first one, until the time is up; the planning of each is part of it."""
    measured = Measured()
    started = time.perf_counter()
    plan.pairs(0)
    measured.planning_seconds = time.perf_counter() - started
    maker.make(*plan.pairs(0))
    first, last = plan.pool_batches, 1 << 40
    if case.loader.endswith("stream"):
        batches: Iterable[Batch] = BatchStream(plan, maker, first, last)
    else:
        batches = (maker.make(*plan.pairs(step)) for step in range(first, last))
    started = time.perf_counter()
    for batch in batches:
        measured.count(batch.source, batch.labels, batch.source_tokens, batch.target_tokens)
        measured.seconds = time.perf_counter() - started
        if measured.seconds > case.seconds and measured.batches % plan.pool_batches == 0:
            break
    return measured


class LikeLengths(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """The peer: one pair an item, and batches of like lengths the usual way, sorted by source, then target."""

    def __init__(self, corpus: TokenizedCorpus, tokenizer: Tokenizer, directions: list[Direction], pairs: Pairs) -> None:
        self.corpus, self.tokenizer, self.all_directions = corpus, tokenizer, directions
        self.directions, self.lines = pairs
        self.end, self.padding = tokenizer.vocabulary.end_id, tokenizer.vocabulary.padding_id

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        source, target = self.all_directions[self.directions[index]]
        source_ids, target_ids = self._ids(source, index), self._ids(target, index)
        start = self.tokenizer.decoder_prefix(target)
        return (
            torch.from_numpy(np.concatenate([self.tokenizer.source_prefix(source, target), source_ids, [self.end]])),
            torch.from_numpy(np.concatenate([start, target_ids])),
            torch.from_numpy(np.concatenate([[self.padding] * (len(start) - 1), target_ids, [self.end]])),
        )

    def _ids(self, language: str, index: int) -> NDArray[np.int64]:
        text, line = self.corpus.texts[language], self.lines[index]
        return text.ids[text.starts[line] : text.starts[line + 1]].astype(np.int64)

    def batches(self, max_tokens: int) -> list[list[int]]:
        numbers = {language: number for number, language in enumerate(self.corpus.texts)}
        sides = np.array([[numbers[language] for language in direction] for direction in self.all_directions])
        source, target = self.corpus.lengths[sides[self.directions].T, self.lines] + 2
        batches: list[list[int]] = [[]]
        widest = 0
        order = np.lexsort((target, source))
        for index, width in zip(order.tolist(), np.maximum(source, target)[order].tolist(), strict=True):
            widest = max(widest, width)
            if widest * (len(batches[-1]) + 1) > max_tokens:
                batches.append([])
                widest = width
            batches[-1].append(index)
        np.random.default_rng(1).shuffle(batches)
        return batches

    def collate(self, items: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor, int, int]:
        source, decoder_input, labels = (
            pad_sequence(list(part), batch_first=True, padding_value=self.padding) for part in zip(*items, strict=True)
        )
        return source, decoder_input, labels, int((source != self.padding).sum()), int((labels != self.padding).sum())


def measure_data_loader(case: Case, plan: BatchPlan, maker: BatchMaker, corpus: TokenizedCorpus) -> Measured:
    """The pairs of one pool, until the time is up; of the planning as much counts as of the batches was read."""
    measured = Measured()
    started = time.perf_counter()
    sampler = plan.sampler
    data = LikeLengths(corpus, maker.codec, sampler.directions, sampler.block(1, plan.block_size))
    batches = data.batches(case.batch_tokens)
    measured.planning_seconds = time.perf_counter() - started
    check_equal(data, maker, batches[0])
    workers = int(case.loader.split()[1])
    loader = DataLoader(data, batch_sampler=batches, collate_fn=data.collate, num_workers=workers)  # type: ignore[arg-type]
    loaded = iter(loader)
    next(loaded)  # not counted: workers take their time to start
    started = time.perf_counter()
    for source, _, labels, source_tokens, target_tokens in loaded:
        measured.count(source, labels, source_tokens, target_tokens)
        measured.seconds = time.perf_counter() - started
        if measured.seconds > case.seconds:
            break
    measured.seconds += measured.planning_seconds * measured.batches / len(batches)
    return measured


def check_equal(data: LikeLengths, maker: BatchMaker, batch: list[int]) -> None:
    """Both sides make the same tensors of the same pairs, or the comparison is worth nothing."""
    ours = maker.make([data.all_directions[k] for k in data.directions[batch]], data.lines[batch])
    theirs = data.collate([data[index] for index in batch])
    for one, other in zip((ours.source, ours.decoder_input, ours.labels), theirs[:3], strict=True):
        assert torch.equal(one, other), "the two loaders disagree"
    assert (ours.source_tokens, ours.target_tokens) == theirs[3:], "the two loaders count differently"


def table(report: dict[str, Any]) -> str:
    tokenising = report["tokenising"]
    lines = [
        f"{report['corpus']}: {report['languages']} languages, vocabulary {report['vocabulary']:,}, {report['cores']} cores",
        f"tokenising, cold, one process: {tokenising['lines_per_second']:,.0f} lines/s, "
        f"{tokenising['tokens_per_second']:,.0f} tokens/s ({tokenising['lines']:,} lines in {tokenising['seconds']:.1f} s)",
        "",
        f"{'view':<16} {'batch':>6}  {'loader':<22} {'target tokens/s':>15} {'padding':>8} {'target/batch':>12} "
        f"{'planning':>9} {'MB':>6}",
    ]
    for row in report["loading"]:
        lines.append(
            f"{row['view']:<16} {row['batch_tokens']:>6}  {row['loader']:<22} {row['target_tokens_per_second']:>15,.0f} "
            f"{row['padding_share']:>8.1%} {row['target_tokens_per_batch']:>12,.0f} {row['planning_seconds']:>7.2f} s "
            f"{row['peak_memory_mb']:>6,.0f}"
        )
    pool = report["loading"][0]["pool_batches"]
    lines += [
        "",
        f"planning: drawing, sorting and cutting the pairs of a pool, which is {pool} batches of graftmt",
        "MB: peak memory of the loading process above an idle one; a DataLoader's workers come on top",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
