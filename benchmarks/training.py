"""Training against Hugging Face M2M-100: the same sizes, the same sentence pairs in the same batches, the same run.

    python benchmarks/training.py [--corpus FOLDER --language el] [--size base] [--device cuda] [--compile] [--output FILE]

Counted in sentence pairs a second, so that a smaller vocabulary does not inflate the figure. Each side is timed with every
batch size of `--batch-tokens` (or `--peer-batch-tokens`), and its best counts; a size that does not fit the memory is noted.
Batches are as varied in shape as those of real training: timing starts after `--warm-up` updates, which are other batches
than those that are timed. "Packed" is what `packed: true`, `compile: true` give on a GPU: no padding, compiled layers,
attention by tiles, the step replayed as a CUDA graph; "varlen" is the same with torch's kernel for packed attention.

Padded batches hold lines of like length, so that a few of them are far from the text's mean, and packed ones are not: pairs
that are merely counted favour whoever drew short ones. What is compared is therefore tokens a second, by the tokens that a pair
of the whole text has on average in the vocabulary of that side.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from peers.hugging_face import their_shape
from torch import Tensor, nn

from graftmt import __version__
from graftmt.base import Base
from graftmt.data import (
    Batch,
    BatchMaker,
    BatchPlan,
    Corpus,
    Direction,
    PackedBatch,
    PackedMaker,
    PackedPlan,
    PairSampler,
    tokenize_corpus,
)
from graftmt.devices import choose_device
from graftmt.model import SIZES, Transformer, named_size, packed_kernels
from graftmt.packs import Recipe, compose, create_pack
from graftmt.text import Codec, Subwords, Tokenizer, train_subwords
from graftmt.training.capture import CapturedStep
from graftmt.training.loop import aligned
from graftmt.training.optimization import compile_layers, packed_loss, smoothed_loss

RECIPES = ("embed", "embed + dec-last-layer + enc-adapters-last(1024)")
WAYS = ("eager", "compiled", "packed", "varlen")
PACKED = ("packed", "varlen")
RATE = "mean_pairs_per_second"
"""What sides are compared by: pairs of the text's mean length."""
PEERS = ("Hugging Face, eager", "Hugging Face, compiled")
PADDING = 1
SMOOTHING = 0.1


@dataclass
class Side:
    """One competitor: how a batch becomes a loss, and what its optimiser updates."""

    name: str
    loss: Callable[[Any], Tensor]
    """Of a `Batch` or, where it is packed, of a `PackedBatch`."""
    parameters: list[nn.Parameter]
    codec: Codec
    direction: Direction
    packed: bool = False
    peer: bool = False


def main() -> None:
    arguments = parse_arguments()
    transformers.logging.set_verbosity_error()
    arguments.device = choose_device(arguments.device)
    arguments.precision = arguments.precision or ("bf16" if arguments.device.startswith("cuda") else "fp32")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = arguments.corpus or made_up_corpus(Path(folder) / "corpus", arguments.lines)
        world = World(Path(folder), Corpus.open(corpus, "train", [arguments.language, "en"]), arguments)
        report: dict[str, Any] = {
            "benchmark": "training",
            "size": arguments.size,
            "rows": arguments.vocabulary,
            "pairs": len(world.train),
            "batch_tokens": arguments.batch_tokens,
            "peer_batch_tokens": arguments.peer_batch_tokens,
            "warm_up": arguments.warm_up,
            "updates": arguments.steps,
            "precision": arguments.precision,
            "compiled": arguments.compile,
            "device": arguments.device if arguments.device == "cpu" else torch.cuda.get_device_name(),
            "versions": {
                "graftmt": __version__,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "python": platform.python_version(),
            },
            "sides": [],
        }
        for make in world.sides():
            report["sides"].append(measure(make(), world, arguments))
            torch.compiler.reset()
            free(arguments.device)
            if arguments.output:  # after each side: what there is stays, should a later one not come to an end
                arguments.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="folder with train.LANG and train.en; made-up text otherwise")
    parser.add_argument("--language", default="el", help="the new language of the corpus (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=20_000, help="of made-up text (default: %(default)s)")
    parser.add_argument("--size", default="base", choices=SIZES, help="architecture (default: %(default)s)")
    parser.add_argument("--vocabulary", type=int, default=64_000, help="rows of the base (default: %(default)s)")
    parser.add_argument("--subwords", type=Path, help="subwords.model of the base; trained on the corpus otherwise")
    parser.add_argument("--merges", type=int, default=8_000, help="where it is trained (default: %(default)s)")
    parser.add_argument("--recipes", nargs="*", default=RECIPES, help="packs to train (default: embed and a target layer)")
    parser.add_argument("--batch-tokens", type=int, nargs="+", default=[4096], help="sizes to try (default: 4096)")
    parser.add_argument("--peer-batch-tokens", type=int, nargs="+", help="for Hugging Face (default: --batch-tokens)")
    parser.add_argument("--steps", type=int, default=5, help="timed updates (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=5, help="updates before, compiling included (default: %(default)s)")
    parser.add_argument(
        "--precision", choices=["fp32", "bf16"], help="of the arithmetic (default: bf16 on a GPU, fp32 on a CPU)"
    )
    parser.add_argument("--compile", action="store_true", help="also measure both sides under torch.compile")
    parser.add_argument(
        "--ways", nargs="*", choices=WAYS, help="ours only in these ways (default: eager, and with --compile all)"
    )
    parser.add_argument("--no-peer", action="store_true", help="leave Hugging Face out")
    parser.add_argument("--profile", action="store_true", help="print which kernels take the time of an update")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("-o", "--output", type=Path, help="a file for the JSON, whatever is printed")
    arguments = parser.parse_args()
    arguments.peer_batch_tokens = arguments.peer_batch_tokens or arguments.batch_tokens
    return arguments


def made_up_corpus(folder: Path, lines: int) -> Path:
    """Word-for-word translations of sentences whose words follow Zipf's law and whose lengths are log-normal."""
    chance = random.Random(1)
    folder.mkdir(parents=True)
    words = {
        "en": ["".join(chance.choices("abcdefghiklmnoprstuvw", k=chance.randint(2, 9))) for _ in range(5000)],
        "el": ["".join(chance.choices("αβγδεζηθικλμνξοπρστυφχψω", k=chance.randint(2, 9))) for _ in range(5000)],
    }
    weights = [1 / (rank + 3) for rank in range(5000)]
    sentences = [
        chance.choices(range(5000), weights, k=max(1, min(80, round(chance.lognormvariate(2.8, 0.6))))) for _ in range(lines)
    ]
    for language, forms in words.items():
        text = "".join(" ".join(forms[word] for word in sentence) + "\n" for sentence in sentences)
        (folder / f"train.{language}.txt").write_text(text, encoding="utf-8")
    return folder


class World:
    """The text under both vocabularies, and the models that train on it."""

    def __init__(self, folder: Path, corpus: Corpus, arguments: argparse.Namespace) -> None:
        self.arguments, self.new = arguments, arguments.language
        texts = {language: corpus.lines(language) for language in corpus.languages}
        shared = Subwords.load(arguments.subwords) if arguments.subwords else train_subwords(texts, merges=arguments.merges)
        # The new language has no code in a base, so another lends its own: to all that reads it with the shared vocabulary.
        self.lender = "de" if self.new == "fr" else "fr"
        self.tokenizer = Tokenizer(shared, ["en", self.lender])
        if len(self.tokenizer) > arguments.vocabulary:
            raise SystemExit(
                f"the subwords and two language codes take {len(self.tokenizer):,} rows, and --vocabulary gives "
                f"{arguments.vocabulary:,}; give at least as many, or subwords with fewer merges."
            )
        self.own = train_subwords({self.new: corpus.lines(self.new)}, merges=min(4000, arguments.merges))
        self.corpus, self.folder = corpus, folder
        # As a base reads it: both languages under the shared vocabulary.
        self.train = tokenize_corpus(corpus, self.tokenizer, folder / "cache")
        self.shape = named_size(arguments.size)

    def sides(self) -> list[Callable[[], Side]]:
        """How to make each: one model at a time is in memory."""
        arguments = self.arguments
        peers = () if arguments.no_peer else (False, True) if arguments.compile else (False,)
        ways = arguments.ways or (WAYS[:3] if arguments.compile else WAYS[:1])
        sides: list[Callable[[], Side]] = [partial(self.hugging_face, compiled) for compiled in peers]
        sides += [partial(self.full, way) for way in ways]
        return sides + [partial(self.pack, recipe, way) for recipe in arguments.recipes for way in ways]

    def hugging_face(self, compiled: bool) -> Side:
        config = transformers.M2M100Config(
            **their_shape(self.shape),
            vocab_size=self.arguments.vocabulary,
            dropout=0.1,
            attention_dropout=0.0,
            encoder_layerdrop=0.0,
            decoder_layerdrop=0.0,
            pad_token_id=PADDING,
            attn_implementation="sdpa",
        )
        model = transformers.M2M100ForConditionalGeneration(config).to(self.arguments.device).train()
        forward = torch.compile(model, dynamic=True) if compiled else model

        def loss(batch: Batch) -> Tensor:
            source, target = batch.source, batch.decoder_input
            mask = (source != PADDING).long()
            logits = forward(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits
            scores, wanted = logits.float().flatten(0, 1), batch.labels.flatten()
            return F.cross_entropy(scores, wanted, ignore_index=PADDING, label_smoothing=SMOOTHING, reduction="sum")

        direction = Direction(self.lender, "en")
        return Side(PEERS[compiled], loss, list(model.parameters()), self.tokenizer, direction, peer=True)

    def full(self, way: str) -> Side:
        model = Transformer.build(self.shape, self.arguments.vocabulary).to(self.arguments.device)
        loss, direction = self._loss(model, way), Direction(self.lender, "en")
        name = f"graftmt, all parameters, {way}"
        return Side(name, loss, list(model.parameters()), self.tokenizer, direction, way in PACKED)

    def pack(self, recipe: str, way: str) -> Side:
        """On a base of the same size; on a GPU held in bf16 where the arithmetic is."""
        base = Base(Transformer.build(self.shape, self.arguments.vocabulary), self.tokenizer, fingerprint="benchmark")
        half = self.arguments.precision == "bf16" and self.arguments.device.startswith("cuda")
        precision = torch.bfloat16 if half else torch.float32
        base.model.to(self.arguments.device, precision)
        side = "target" if "dec-" in recipe else "source"
        pack = create_pack(base, side=side, languages=[self.new], recipe=Recipe.parse(recipe), subwords=self.own)  # type: ignore[arg-type]
        pack = pack.to(self.arguments.device)
        model = compose(base, source=pack) if side == "source" else compose(base, target=pack)
        direction = Direction(self.new, "en") if side == "source" else Direction("en", self.new)
        name = f"graftmt, {side} pack {recipe}, {way}"
        loss = self._loss(model.model, way)
        return Side(name, loss, list(pack.parameters.values()), model.codec, direction, way in PACKED)

    def _loss(self, model: Transformer, way: str) -> Callable[[Any], Tensor]:
        model.set_dropout(0.1)
        model.train()
        compiled = way != "eager"
        if compiled:
            compile_layers(model, one_shape=way in PACKED)

        def loss(batch: Batch) -> Tensor:
            source = aligned(batch.source, PADDING) if compiled else batch.source
            return smoothed_loss(model, source, batch.decoder_input, batch.labels, SMOOTHING, compiled)

        packed_kernels.BY_TILES = way == "packed"  # one side at a time is made and measured
        return partial(packed_loss, model, smoothing=SMOOTHING, compiled=True) if way in PACKED else loss

    def batches(self, side: Side, batch_tokens: int, count: int) -> tuple[list[Batch | PackedBatch], float]:
        """The first so many batches, on the device, and the tokens of a pair of the whole text on average.

        All sides of one vocabulary draw the same pairs.
        """
        files = self.corpus.files
        if side.codec is self.tokenizer:
            renamed = Corpus(self.corpus.folder, "train", {self.lender: files[self.new], "en": files["en"]})
            tokenized = tokenize_corpus(renamed, self.tokenizer, self.folder / "cache")
        else:
            own = side.codec.source_tokenizer if side.direction.source == self.new else side.codec.target_tokenizer
            tokenizers = {self.new: own(self.new), "en": self.tokenizer}
            tokenized = tokenize_corpus(self.corpus, tokenizers, self.folder / "cache")
        sampler = PairSampler(tokenized, [side.direction], temperature=1.0, max_length=200, seed=1)
        lines = sampler.lines[side.direction]
        added = 2 + len(side.codec.source_prefix(*side.direction))  # two ends, and what precedes a source
        mean = sum(float(tokenized.texts[language].lengths[lines].mean()) for language in side.direction) + added
        device = torch.device(self.arguments.device)
        if side.packed:
            packed = PackedPlan(sampler, tokenized, max_tokens=batch_tokens)
            rows = PackedMaker(tokenized, side.codec, packed.shape)
            return [rows.make(*packed.pairs(step)).to(device) for step in range(count)], mean
        plan, maker = BatchPlan(sampler, tokenized, max_tokens=batch_tokens), BatchMaker(tokenized, side.codec)
        return [maker.make(*plan.pairs(step)).to(device) for step in range(count)], mean


def measure(side: Side, world: World, arguments: argparse.Namespace) -> dict[str, Any]:
    """The best of the batch sizes, and all that were tried."""
    sizes = arguments.peer_batch_tokens if side.peer else arguments.batch_tokens
    tried = [run_if_it_fits(side, world, tokens, arguments) for tokens in sizes]
    rates = [entry.get(RATE, 0.0) for entry in tried]
    best = tried[rates.index(max(rates))]
    for entry in tried:
        entry["best"] = entry is best and RATE in entry
    chosen = {name: value for name, value in best.items() if name != "best"}
    return {
        "side": side.name,
        "trained_parameters": sum(parameter.numel() for parameter in side.parameters),
        **chosen,
        # What is compiled for the first size can serve the others, so the best one's own says nothing.
        "seconds_to_warm_up": sum(entry.get("seconds_to_warm_up", 0.0) for entry in tried),
        "tried": tried,
    }


def run_if_it_fits(side: Side, world: World, batch_tokens: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """What `run` measured, or that there was not enough memory for it."""
    free(arguments.device)
    try:
        entry = run(side, world, batch_tokens, arguments)
    except Exception as error:
        if not out_of_memory(error):
            raise
        entry = {"batch_tokens": batch_tokens, "error": "out of memory"}
    # Here and not above: as long as an error is handled, its trace holds on to what filled the memory.
    for parameter in side.parameters:
        parameter.grad = None
    free(arguments.device)
    note = entry.get("error") or f"{entry[RATE]:,.0f} pairs/s after {entry['seconds_to_warm_up']:.1f} s of warm-up"
    if entry.get("compiled_while_timed"):
        note += f"; {entry['compiled_while_timed']} graphs were compiled while timed, give a longer --warm-up"
    print(f"{side.name}, {batch_tokens:,} tokens: {note}", file=sys.stderr, flush=True)
    return entry


def out_of_memory(error: BaseException | None) -> bool:
    """Also where it led to another error, such as that of a recording cut short."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def free(device: str) -> None:
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def run(side: Side, world: World, batch_tokens: int, arguments: argparse.Namespace) -> dict[str, Any]:
    on_gpu = arguments.device.startswith("cuda")
    batches, mean = world.batches(side, batch_tokens, arguments.warm_up + arguments.steps)
    optimizer = torch.optim.Adam(side.parameters, lr=1e-5, fused=True)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()

    device = torch.device(arguments.device)
    captured: list[CapturedStep] = []

    def loss(batch: Any) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=arguments.precision == "bf16"):
            return side.loss(batch)

    def update(batch: Any) -> None:
        if side.packed and on_gpu:
            if not captured:
                captured.append(CapturedStep(loss, side.parameters, batch, device))
            captured[0](batch, batch.target_tokens)
        else:
            (loss(batch) / batch.target_tokens).backward()
        optimizer.step()
        if not captured:
            optimizer.zero_grad(set_to_none=True)

    def timed(part: Sequence[Batch | PackedBatch]) -> float:
        started = time.monotonic()
        for batch in part:
            update(batch)
        if on_gpu:
            torch.cuda.synchronize()
        return time.monotonic() - started

    first = timed(batches[: arguments.warm_up])
    graphs = compiled_graphs()
    rest = batches[arguments.warm_up :]
    seconds = timed(rest)
    graphs = compiled_graphs() - graphs
    peak = torch.cuda.max_memory_allocated() if on_gpu else None
    pairs = sum(len(batch.lines) for batch in rest)
    sources, targets = sum(batch.source_tokens for batch in rest), sum(batch.target_tokens for batch in rest)
    if arguments.profile:
        with torch.profiler.profile() as profiler:
            timed(rest[:1])
        order = "cuda_time_total" if on_gpu else "cpu_time_total"
        print(profiler.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=70), file=sys.stderr)
    return {
        "batch_tokens": batch_tokens,
        RATE: (sources + targets) / mean / seconds,
        "pairs_per_second": pairs / seconds,
        "tokens_per_pair": (sources + targets) / pairs,
        "tokens_per_mean_pair": mean,
        "source_tokens_per_second": sources / seconds,
        "target_tokens_per_second": targets / seconds,
        "seconds_to_warm_up": first,
        "compiled_while_timed": graphs,
        "peak_memory": peak,
    }


def compiled_graphs() -> int:
    """So far in this process."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def table(report: dict[str, Any]) -> str:
    """Rates as multiples of each peer's, memory as a share of the first peer's; without peers, of the first side's."""
    sides = report["sides"]
    references = [side for side in sides if side["side"] in PEERS] or sides[:1]
    ratios, first = "".join(f" × {side['side']} |" for side in references), references[0]["side"]
    lines = [
        f"Training, {report['size']}, {report['rows']:,} rows, {report['precision']}, {report['device']}, "
        f"torch {report['versions']['torch']}",
        "",
        f"| | batch tokens | pairs/s |{ratios} target tokens/s | warm-up, all sizes | peak memory | of {first} |",
        "|---" * (7 + len(references)) + "|",
    ]
    for side in sides:
        if "error" in side:
            lines.append(f"| {side['side']} | | {side['error']} |" + " |" * (4 + len(references)))
            continue
        rate, peak = side[RATE], side["peak_memory"]
        ratios = "".join(f" {ratio(rate, other, RATE):.2f}× |" for other in references)
        memory = f"{peak / 1e9:.1f} GB | {ratio(peak, references[0], 'peak_memory'):.0%}" if peak else " | "
        lines.append(
            f"| {side['side']} | {side['batch_tokens']:,} | {rate:,.0f} |{ratios} {side['target_tokens_per_second']:,.0f} | "
            f"{side['seconds_to_warm_up']:.1f} s | {memory} |"
        )
    return "\n".join(lines)


def ratio(value: float, reference: dict[str, Any], name: str) -> float:
    """Not a number where the reference did not fit the memory."""
    return float(value / reference.get(name, float("nan")))


if __name__ == "__main__":
    main()
