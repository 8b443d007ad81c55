"""Models as large as NLLB-200 on one GPU: training and search beside transformers, pairs and lines a second, and memory.

    PYTHONPATH=src python benchmarks/large_base.py --output $OUT/large-base.json                (some four minutes on an H200)
    PYTHONPATH=src python benchmarks/large_base.py --device cpu --tiny                          (to debug: a minute)
    PYTHONPATH=src python benchmarks/large_base.py --parts small-vocabulary --threads 2         (on a CPU: the softmax alone)

Random weights in the layout of NLLB-200-600M (12+12 layers, width 1024, 256,206 rows), lines of `--tokens` tokens on both
sides, bf16. `train`: transformers' full fine-tuning and training of its embeddings alone, each at the best of `--peer-lines`,
then our packs, at the best of `--lines`, as `graftmt add` trains them on a GPU (packed, compiled, recorded). `search`: beam 5
to exactly so many tokens, by `generate` and by ours, into the base's vocabulary and into a language with its own small one.
`3.3b`: packs alone at the size of NLLB-200-3.3B (24+24 layers, width 2048), the base held in bf16. `small-vocabulary`: what the
smaller softmax does for search, beside the same search into the base's vocabulary, without transformers.

Each measurement is written to `--output` when it is made; what does not fit in `--limit` seconds is left out and said to be.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from peers.hugging_face import their_shape
from torch import Tensor
from training import free, made_up_corpus, out_of_memory

from graftmt import __version__
from graftmt.adding.defaults import default_recipe
from graftmt.base import Base
from graftmt.data import Corpus, Direction, PackedBatch
from graftmt.data.packing import LONGEST
from graftmt.decoding import SearchOptions, search_all
from graftmt.devices import choose_device
from graftmt.model import ModelConfig, PackedTokens, Transformer
from graftmt.packs import Composition, Pack, Recipe, compose, create_pack
from graftmt.text import Tokenizer, train_subwords
from graftmt.training.capture import CapturedStep
from graftmt.training.optimization import compile_layers, packed_loss

SHAPES = {
    "600m": {"model_dim": 1024, "ffn_dim": 4096, "heads": 16, "encoder_layers": 12, "decoder_layers": 12},
    "3.3b": {"model_dim": 2048, "ffn_dim": 8192, "heads": 16, "encoder_layers": 24, "decoder_layers": 24},
    "tiny": {"model_dim": 64, "ffn_dim": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2},
}
PARTS = ("train", "search", "3.3b", "small-vocabulary")
NEW = "el"
PACKS: dict[str, tuple[str, str | None]] = {
    "target pack, default": ("target", None),
    "source pack, embed": ("source", "embed"),
    "source pack, default": ("source", None),
}
FULL, EMBEDDINGS = "Hugging Face, all parameters", "Hugging Face, embeddings alone"
GENERATE, BASE_ROWS, OWN_ROWS = (
    "Hugging Face, generate",
    "graftmt, into the base's vocabulary",
    "graftmt, into a pack's vocabulary",
)
AIMS = {
    "target pack, default": 6.0,
    "source pack, embed": 3.0,
    "source pack, default": 3.0,
    BASE_ROWS: 4.0,
    OWN_ROWS: 6.0,
}
"""× transformers, what is aimed at; a pack may take a third of the memory of full fine-tuning."""
BEGINNING, PADDING, END, FIRST_PIECE = 0, 1, 2, 4
SMOOTHING = 0.1


def main() -> None:
    arguments = parse_arguments()
    world = World(arguments)
    for part in arguments.parts:
        {"train": train_600m, "search": search_600m, "3.3b": packs_3b, "small-vocabulary": small_vocabulary}[part](world)
        world.write()
    print(table(world.report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS[:3], help="default: train search 3.3b")
    parser.add_argument("--rows", type=int, default=256_206, help="of the base's vocabulary (default: %(default)s)")
    parser.add_argument("--merges", type=int, default=4000, help="of a pack's vocabulary (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=32, help="of a line on either side (default: %(default)s)")
    parser.add_argument("--lines", type=int, nargs="+", default=[1024], help="in a batch of ours (default: 1024)")
    parser.add_argument("--large-lines", type=int, nargs="+", default=[512], help="the same at 3.3B (default: 512)")
    parser.add_argument("--peer-lines", type=int, nargs="+", default=[256, 512, 768], help="in one of theirs")
    parser.add_argument("--search-lines", type=int, nargs="+", default=[512, 1024], help="searched at a time by ours")
    parser.add_argument("--peer-search-lines", type=int, nargs="+", default=[128, 256, 512], help="and by theirs")
    parser.add_argument("--searched", type=int, default=2048, help="lines in all for ours (default: %(default)s)")
    parser.add_argument("--peer-searched", type=int, default=512, help="and for theirs (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=8, help="timed, after 3 others (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=560, help="seconds for all of it (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--dtype", choices=["bf16", "fp32"], help="of weights in search (default: bf16 on a GPU, else fp32)")
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--tiny", action="store_true", help="a small model and few lines: to debug on a CPU")
    parser.add_argument("-o", "--output", type=Path, help="a file for the JSON, written as it grows")
    arguments = parser.parse_args()
    if arguments.tiny:
        small = {
            "rows": 3000,
            "merges": 200,
            "lines": [8],
            "large_lines": [8],
            "peer_lines": [4, 8],
            "search_lines": [8],
            "updates": 1,
        }
        small |= {"peer_search_lines": [4], "searched": 8, "peer_searched": 4, "tokens": 8}
        vars(arguments).update(small)
    return arguments


class World:
    """What the parts share: text, device, the report and the time that is left."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.end = arguments, time.monotonic() + arguments.limit
        self.device = torch.device(choose_device(arguments.device))
        self.on_gpu = self.device.type == "cuda"
        self.half = arguments.dtype == "bf16" if arguments.dtype else self.on_gpu
        if arguments.threads:
            torch.set_num_threads(arguments.threads)
        torch.manual_seed(1)
        with tempfile.TemporaryDirectory() as folder:
            corpus = Corpus.open(made_up_corpus(Path(folder) / "corpus", 2000 if arguments.tiny else 20_000), "train")
            texts = {language: list(corpus.lines(language)) for language in corpus.languages}
        self.tokenizer = Tokenizer(train_subwords({"en": texts["en"]}, merges=200), ["en", "fr"], "decoder")
        self.own = train_subwords({NEW: texts[NEW]}, merges=arguments.merges)
        self.report: dict[str, Any] = {
            "benchmark": "large_base",
            "rows": arguments.rows,
            "tokens": arguments.tokens,
            "device": torch.cuda.get_device_name() if self.on_gpu else f"cpu, {torch.get_num_threads()} threads",
            "versions": {"graftmt": __version__, "torch": torch.__version__, "python": platform.python_version()},
            "parts": {},
        }

    def shape(self, name: str) -> dict[str, int]:
        return SHAPES["tiny" if self.arguments.tiny else name]

    def base(self, name: str, dtype: torch.dtype) -> Base:
        """Random weights, made where they will be."""
        with torch.device(self.device):
            model = Transformer.build(ModelConfig(norm="pre", **self.shape(name)), self.arguments.rows).to(self.device, dtype)
        return Base(model.eval(), self.tokenizer, fingerprint="benchmark")

    def pack(self, base: Base, side: str, recipe: str | None) -> Pack:
        chosen = default_recipe(side, base) if recipe is None else Recipe.parse(recipe)  # type: ignore[arg-type]
        chosen = Recipe.parse(str(chosen).replace(" + init:alignment", ""))  # there is no text to align
        return create_pack(base, side=side, languages=[NEW], recipe=chosen, subwords=self.own).to(self.device)  # type: ignore[arg-type]

    def measured(self, part: str, name: str, needs: float, make: Callable[[], dict[str, Any]]) -> None:
        """Stores what `make` finds under this name, unless there is too little time for it."""
        found: dict[str, Any]
        if self.end - time.monotonic() < needs:
            found = {"error": f"left out: {self.end - time.monotonic():.0f} s were left"}
        else:
            started = time.monotonic()
            found = make()
            found["wall_seconds"] = round(time.monotonic() - started, 1)
        self.report["parts"].setdefault(part, {})[name] = found
        shown = {key: value for key, value in found.items() if key != "kernels"}
        print(f"[{part}] {name}: {json.dumps(shown)}", flush=True)
        self.write()

    def write(self) -> None:
        if self.arguments.output:
            self.arguments.output.parent.mkdir(parents=True, exist_ok=True)
            self.arguments.output.write_text(json.dumps(self.report, indent=1) + "\n", encoding="utf-8")

    def best_of(self, sizes: list[int], run: Callable[[int], dict[str, Any]], rate: str) -> dict[str, Any]:
        """The fastest of these batch sizes; one that does not fit in memory is noted."""
        tried: list[dict[str, Any]] = []
        for lines in sizes:
            self.forget()
            try:
                entry = run(lines)
            except Exception as error:
                if not out_of_memory(error):
                    raise
                entry = {"lines": lines, "error": "out of memory"}
            tried.append(entry)
            if "error" in entry:
                break  # larger ones fit no better
        self.forget()
        best = max(tried, key=lambda entry: entry.get(rate, 0.0))
        return {**best, "tried": [{key: one.get(key) for key in ("lines", rate, "error")} for one in tried]}

    def forget(self) -> None:
        free(str(self.device))
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def peak(self) -> int | None:
        return torch.cuda.max_memory_allocated() if self.on_gpu else None

    def timed(self, update: Callable[[], None], lines: int) -> dict[str, Any]:
        """Three updates, or what they compile, are not timed."""
        started = time.monotonic()
        for _ in range(3 if self.on_gpu else 1):
            update()
        self.wait()
        warm_up = time.monotonic() - started
        started = time.monotonic()
        for _ in range(self.arguments.updates):
            update()
        self.wait()
        seconds = time.monotonic() - started
        return {
            "lines": lines,
            "pairs_per_second": round(lines * self.arguments.updates / seconds, 1),
            "milliseconds": round(1000 * seconds / self.arguments.updates, 1),
            "warm_up_seconds": round(warm_up, 1),
            "peak_memory": self.peak(),
        }


# Training


def train_600m(world: World) -> None:
    arguments = world.arguments
    for name, embeddings in ((FULL, False), (EMBEDDINGS, True)):
        run = lambda lines, embeddings=embeddings: train_theirs(world, lines, embeddings)  # noqa: E731
        world.measured("train", name, 30, lambda run=run: world.best_of(arguments.peer_lines, run, "pairs_per_second"))
    train_packs(world, "600m", "train", PACKS, arguments.lines)
    reference = world.report["parts"]["train"][FULL]
    for name in PACKS:
        compare(world.report["parts"]["train"][name], reference, "pairs_per_second", AIMS[name])


def train_packs(world: World, size: str, part: str, packs: dict[str, tuple[str, str | None]], batches: list[int]) -> None:
    dtype = torch.bfloat16 if world.on_gpu else torch.float32
    base = world.base(size, dtype)
    for name, (side, recipe) in packs.items():
        run = lambda lines, side=side, recipe=recipe: train_ours(world, base, side, recipe, lines)  # noqa: E731
        world.measured(part, name, 45, lambda run=run: world.best_of(batches, run, "pairs_per_second"))


def their_model(world: World) -> Any:
    import transformers

    config = transformers.M2M100Config(
        **their_shape(ModelConfig(norm="pre", **world.shape("600m"))),
        vocab_size=world.arguments.rows,
        dropout=0.1,
        attention_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        pad_token_id=PADDING,
        attn_implementation="sdpa",
    )
    with torch.device(world.device):
        model = transformers.M2M100ForConditionalGeneration(config)
    return model.to(world.device)


def train_theirs(world: World, lines: int, embeddings: bool) -> dict[str, Any]:
    model = their_model(world).train()
    if embeddings:
        model.requires_grad_(False)
        model.get_input_embeddings().weight.requires_grad_(True)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-5, fused=True)
    source, target, labels = (ids_of(world, lines, world.arguments.rows) for _ in range(3))
    mask = torch.ones_like(source)

    def update() -> None:
        with torch.autocast(world.device.type, torch.bfloat16, enabled=world.on_gpu):
            logits = model(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits
            loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), label_smoothing=SMOOTHING)
        del logits
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return world.timed(update, lines)


def ids_of(world: World, lines: int, rows: int) -> Tensor:
    return torch.randint(FIRST_PIECE, rows, (lines, world.arguments.tokens), device=world.device)


def train_ours(world: World, base: Base, side: str, recipe: str | None, lines: int) -> dict[str, Any]:
    pack = world.pack(base, side, recipe)
    model = composed(base, pack).model
    model.set_dropout(0.1)
    model.train()
    if world.on_gpu:
        compile_layers(model, one_shape=True)
    optimizer = torch.optim.Adam(list(pack.parameters.values()), lr=1e-5, fused=True)
    rows = (len(pack.tokenizer), world.arguments.rows) if side == "source" else (world.arguments.rows, len(pack.tokenizer))
    batch = packed_batch(world, lines, *rows)
    captured: list[CapturedStep] = []

    def loss(each: PackedBatch) -> Tensor:
        with torch.autocast(world.device.type, torch.bfloat16, enabled=world.on_gpu):
            return packed_loss(model, each, SMOOTHING, compiled=world.on_gpu)

    def update() -> None:
        if world.on_gpu:
            if not captured:
                captured.append(CapturedStep(loss, pack.parameters.values(), batch, world.device))
            captured[0](batch, batch.target_tokens)
        else:
            (loss(batch) / batch.target_tokens).backward()
        optimizer.step()
        if not captured:
            optimizer.zero_grad(set_to_none=True)

    found = world.timed(update, lines)
    return {
        **found,
        "recipe": str(pack.recipe),
        "trained_parameters": pack.size,
        "rows": len(pack.tokenizer),
        "kernels": kernels(world, update),
    }


def packed_batch(world: World, lines: int, source_rows: int, target_rows: int) -> PackedBatch:
    """Sentences one after the other, as the training has them."""
    tokens = world.arguments.tokens
    total = lines * tokens
    starts = torch.arange(0, total + 1, tokens, dtype=torch.int32, device=world.device)
    positions = torch.arange(tokens, device=world.device).repeat(lines)

    def side(rows: int) -> PackedTokens:
        ids = torch.randint(FIRST_PIECE, rows, (total,), device=world.device)
        return PackedTokens(ids, positions, starts, LONGEST)

    labels = torch.randint(FIRST_PIECE, target_rows, (total,), device=world.device)
    directions = [Direction(NEW, "en")] * lines
    return PackedBatch(side(source_rows), side(target_rows), labels, directions, list(range(lines)), total, total)


def composed(base: Base, pack: Pack, *, fold: bool = False) -> Composition:
    return compose(base, source=pack, fold=fold) if pack.side == "source" else compose(base, target=pack, fold=fold)


def kernels(world: World, update: Callable[[], None], most: int = 14) -> list[dict[str, Any]]:
    """What takes the time of an update on a GPU."""
    if not world.on_gpu:
        return []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        update()
        world.wait()
    found = sorted(profiler.key_averages(), key=lambda one: -one.self_device_time_total)[:most]
    return [{"kernel": one.key[:90], "ms": round(one.self_device_time_total / 1000, 2), "calls": one.count} for one in found]


def compare(entry: dict[str, Any], reference: dict[str, Any], rate: str, aim: float | None) -> None:
    """How many times the reference's rate, and which share of its memory."""
    if rate not in entry or rate not in reference:
        return
    entry["ratio"] = round(entry[rate] / reference[rate], 2)
    if aim is not None:
        entry["aim"], entry["met"] = aim, entry["ratio"] >= aim
    if entry.get("peak_memory") and reference.get("peak_memory"):
        entry["memory_share"] = round(entry["peak_memory"] / reference["peak_memory"], 3)


# Search


def search_600m(world: World) -> None:
    arguments = world.arguments
    world.measured(
        "search",
        GENERATE,
        40,
        lambda: world.best_of(arguments.peer_search_lines, lambda lines: search_theirs(world, lines), "lines_per_second"),
    )
    search_both(world, "search")
    for name in (BASE_ROWS, OWN_ROWS):
        compare(
            world.report["parts"]["search"][name], world.report["parts"]["search"][GENERATE], "lines_per_second", AIMS[name]
        )


def search_both(world: World, part: str) -> None:
    """The same search into both vocabularies."""
    base = world.base("600m", torch.bfloat16 if world.half else torch.float32)
    pack = world.pack(base, "target", None).to(world.device, base.model.source_embedding.weight.dtype)
    models = {BASE_ROWS: compose(base), OWN_ROWS: composed(base, pack, fold=True)}
    for name, composition in models.items():
        run = lambda lines, composition=composition: search_ours(world, composition, lines)  # noqa: E731
        world.measured(part, name, 20, lambda run=run: world.best_of(world.arguments.search_lines, run, "lines_per_second"))


def small_vocabulary(world: World) -> None:
    """What a pack's own vocabulary saves in search: the ratio of two searches in one run."""
    search_both(world, "small-vocabulary")
    found = world.report["parts"]["small-vocabulary"]
    compare(found[OWN_ROWS], found[BASE_ROWS], "lines_per_second", None)


def search_theirs(world: World, batch: int) -> dict[str, Any]:
    arguments = world.arguments
    model = their_model(world).to(torch.bfloat16 if world.half else torch.float32).eval()
    tokens = arguments.tokens

    def run(count: int) -> None:
        for start in range(0, count, batch):
            lines = min(batch, count - start)
            source = ids_of(world, lines, arguments.rows)
            prefix = torch.tensor([[END, FIRST_PIECE]], device=world.device).expand(lines, 2)
            with torch.inference_mode():
                found = model.generate(
                    input_ids=source,
                    attention_mask=torch.ones_like(source),
                    decoder_input_ids=prefix,
                    do_sample=False,
                    num_beams=5,
                    early_stopping=True,
                    length_penalty=1.0,
                    min_new_tokens=tokens,
                    max_new_tokens=tokens,
                )
            assert found.shape[1] == tokens + 2, "an output has another length"

    return timed_search(world, run, batch, arguments.peer_searched)


def search_ours(world: World, composition: Composition, batch: int) -> dict[str, Any]:
    arguments, codec, tokens = world.arguments, composition.codec, world.arguments.tokens
    target = "fr" if composition.target is None else NEW
    options = SearchOptions(beam=5, max_length=tokens, length_ratio=tokens, batch_tokens=5 * tokens * batch)
    forbidden = [*codec.forbidden, codec.end_id]

    def run(count: int) -> None:
        sources = ids_of(world, count, len(world.tokenizer)).tolist()
        prefixes = [codec.decoder_prefix(target)] * count
        found = search_all(composition.model, sources, prefixes, options, end=codec.end_id, forbidden=forbidden)
        assert all(len(one[0].tokens) == tokens for one in found), "an output has another length"

    return timed_search(world, run, batch, arguments.searched)


def timed_search(world: World, run: Callable[[int], None], batch: int, count: int) -> dict[str, Any]:
    run(min(batch, count))  # allocations, kernel choices
    world.wait()
    started = time.monotonic()
    run(count)
    world.wait()
    seconds = time.monotonic() - started
    return {
        "lines": batch,
        "lines_per_second": round(count / seconds, 2),
        "searched": count,
        "seconds": round(seconds, 2),
        "peak_memory": world.peak(),
    }


def packs_3b(world: World) -> None:
    """Training of packs on a base of 3.3B parameters, and nothing else."""
    world.forget()
    train_packs(world, "3.3b", "3.3b", {name: PACKS[name] for name in list(PACKS)[:2]}, world.arguments.large_lines)


def table(report: dict[str, Any]) -> str:
    lines = [
        f"{report['device']}, {report['rows']:,} rows, {report['tokens']} tokens a line, {json.dumps(report['versions'])}",
        "",
    ]
    for part, sides in report["parts"].items():
        lines += [f"| {part} | lines a batch | a second | × | aim | peak memory | share |", "|---|---|---|---|---|---|---|"]
        for name, found in sides.items():
            rate = found.get("pairs_per_second", found.get("lines_per_second"))
            peak = f"{found['peak_memory'] / 1e9:.1f} GB" if found.get("peak_memory") else ""
            shown = f"{rate:,.1f}" if rate is not None else found.get("error", "?")
            share = f"{found['memory_share']:.0%}" if "memory_share" in found else ""
            cells = (name, found.get("lines", ""), shown, found.get("ratio", ""), found.get("aim", ""), peak, share)
            lines.append("| " + " | ".join(map(str, cells)) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
