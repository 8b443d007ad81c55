"""Greedy and beam search against Hugging Face `generate`: the same weights, the same sentences, the same run.

    python benchmarks/decoding.py [--size base] [--sentences 64] [--threads 2] [--device cpu] [--json]
    python benchmarks/decoding.py --base FOLDER --corpus FOLDER --direction fr-en --sentences 3000 --device cuda --dtype bf16 \
        --batch 1500 3000 --peer-batch 64 128 256 512

Both sides get length-sorted batches, caches and SDPA; each is timed with every batch size it is given, and its best counts.
Weights and sentences are made up unless a base and a corpus are given. "Simple" is our own search without what it does on
GPUs only: steps launched one by one, caches that are reordered, torch's plain `topk`. How far two runs of one and the same
search differ by rounding alone is shown by the simple one with batches of a third of the size.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import torch
import transformers
from peers.hugging_face import our_name, their_shape
from torch import Tensor

from graftmt import __version__
from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.decoding import SearchOptions, search, search_all
from graftmt.devices import choose_device
from graftmt.model import SIZES, Transformer, named_size
from graftmt.model.embeddings import sinusoidal_positions

BEGINNING, PADDING, END = 0, 1, 2
FIRST_WORD = 4
MAX_LENGTH = 256
SEARCHES = {"greedy": 1, "beam 5": 5}

Outputs = list[list[int]]
"""The best hypothesis of each sentence, in the input's order, without its end."""


def main() -> None:
    arguments = parse_arguments()
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    if arguments.base is None:
        ours = random_model(arguments.size, arguments.vocabulary)
        sources = random_sources(arguments.sentences, arguments.vocabulary, arguments.length)
        end_like_the_source(ours, sources[:32])
    else:
        base = Base.load(arguments.base)
        ours, sources = base.model, real_sources(base, arguments)
    ours = ours.to(choose_device(arguments.device), torch.bfloat16 if arguments.dtype == "bf16" else torch.float32).eval()
    theirs = to_hugging_face(ours)
    batches = {"graftmt": arguments.batch, "hugging_face": arguments.peer_batch or arguments.batch}
    report = {
        "benchmark": "decoding",
        "size": arguments.size if arguments.base is None else "base and corpus as given",
        "dtype": arguments.dtype,
        "parameters": sum(parameter.numel() for parameter in ours.parameters()),
        "vocabulary": len(ours.source_embedding.weight),
        "sentences": len(sources),
        "source_tokens": sum(map(len, sources)),
        "device": arguments.device if arguments.device == "cpu" else torch.cuda.get_device_name(),
        "threads": torch.get_num_threads(),
        "seed": arguments.seed,
        "versions": {
            "graftmt": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
        "searches": {
            name: compare(ours, theirs, sources, SEARCHES[name], batches, arguments.repeats) for name in arguments.searches
        },
    }
    if arguments.profile:
        profile(ours, sources, max(SEARCHES[name] for name in arguments.searches), arguments.batch[-1])
    print(json.dumps(report, indent=2) if arguments.json else table(report))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="base", choices=SIZES, help="architecture (default: %(default)s)")
    parser.add_argument("--vocabulary", type=int, default=16_000, help="rows of the vocabulary (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=64, help="how many to translate (default: %(default)s)")
    parser.add_argument("--length", type=int, default=24, help="median tokens of a source (default: %(default)s)")
    parser.add_argument("--base", type=Path, help="a real base, pre-norm, instead of random weights")
    parser.add_argument("--corpus", type=Path, help="its sentences: the folder of a corpus")
    parser.add_argument("--direction", default="fr-en", help="of the real sentences (default: %(default)s)")
    parser.add_argument("--split", nargs="+", default=["test"], help="of the corpus, one after the other (default: test)")
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES), help="default: all")
    parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"], help="of the weights (default: %(default)s)")
    parser.add_argument("--batch", type=int, nargs="+", default=[16, 32], help="sizes to try (default: 16 32)")
    parser.add_argument("--peer-batch", type=int, nargs="+", help="sizes to try with Hugging Face, where they are others")
    parser.add_argument("--repeats", type=int, default=1, help="timed runs of each; the fastest counts (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and sentences (default: %(default)s)")
    parser.add_argument("--profile", action="store_true", help="print which kernels take the time of our search")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def real_sources(base: Base, arguments: argparse.Namespace) -> list[list[int]]:
    """The first lines of a corpus as the base's encoder reads them; those that are too long for a clear comparison left out."""
    source, target = arguments.direction.split("-")
    prefix, encode = base.tokenizer.source_prefix(source, target), base.tokenizer.encode
    corpora = (Corpus.open(arguments.corpus, split, [source]) for split in arguments.split)
    lines = (line for corpus in corpora for line in corpus.lines(source) if line.strip())
    found = ([*prefix, *encode(line), END] for line in lines)
    return list(islice((tokens for tokens in found if len(tokens) <= MAX_LENGTH), arguments.sentences))


def random_model(size: str, vocabulary: int) -> Transformer:
    """Pre-norm like M2M-100, with an output matrix of its own so that `end_like_the_source` can shape it."""
    model = Transformer.build(named_size(size, norm="pre", embeddings="separate"), vocabulary)
    with torch.no_grad():
        model.projection.weight.mul_(5)  # as sure of its best tokens as a trained model
    return model


def random_sources(count: int, vocabulary: int, median: int) -> list[list[int]]:
    """Sentences of random words; lengths are log-normal, as those of real text."""
    lengths = (torch.randn(count) * 0.5 + math.log(median)).exp().long().clamp(4, 4 * median).tolist()
    return [[*torch.randint(FIRST_WORD, vocabulary, (length - 1,)).tolist(), END] for length in lengths]


@torch.no_grad()
def end_like_the_source(model: Transformer, sources: Sequence[Sequence[int]]) -> None:
    """Shapes random weights so that an output ends when it is about as long as its source, as a translation does.

    Of the positions' sines one rises slowly over a sentence; that channel is kept free of all else and so is a clock. The
    mean of the encoder's clock tells the source's length: the last cross-attention writes it to a second channel, and the
    score of the end is the difference between the decoder's clock and that.
    """
    dim = model.config.model_dim
    # The sine nearest to sin(position / 200); the slowest sine, always near 0; the slowest cosine, always near 1.
    clock, zero, length = round((dim // 2 - 1) * math.log(200) / math.log(10_000)), dim // 2 - 1, dim - 1
    free = [clock, zero, length]
    for embedding in (model.source_embedding, model.target_embedding):
        embedding.weight[:, free] = 0
    for name, module in (*model.encoder.named_modules(), *model.decoder.named_modules()):
        if name.endswith(("attention.output", "ffn.down")):
            module.weight[free] = 0
    cross = model.decoder.layers[-1].cross_attention
    cross.query.weight[: dim // cross.heads] = 0  # the first head looks everywhere alike
    cross.value.weight[0] = 0
    cross.value.weight[0, [clock, zero]] = torch.tensor([1.0, -1.0])
    cross.output.weight[:, 0] = 0
    cross.output.bias[length] = -1

    clocks = sinusoidal_positions(4096, dim, model.config.position_offset)[:, clock]
    states = [model.encode(torch.tensor([list(source)]))[0][0] for source in sources]
    seen = torch.stack([(state[:, clock] - state[:, zero]).mean() for state in states])
    wanted = clocks[torch.tensor([len(source) for source in sources])]
    cross.output.weight[length, 0] = (seen * wanted).sum() / (seen * seen).sum()  # least squares
    model.projection.weight[END] = 0
    model.projection.weight[END, [clock, length]] = torch.tensor([10_000.0, -10_000.0])


def to_hugging_face(model: Transformer) -> transformers.M2M100ForConditionalGeneration:
    """An M2M-100 with the same weights."""
    config = transformers.M2M100Config(
        **their_shape(model.config),
        vocab_size=model.source_embedding.weight.shape[0],
        tie_word_embeddings=False,
        pad_token_id=PADDING,
        attn_implementation="sdpa",
    )
    theirs = transformers.M2M100ForConditionalGeneration(config).to(model.device, model.source_embedding.weight.dtype).eval()
    own = dict(model.named_parameters())
    own["model.encoder.embed_tokens.weight"] = model.source_embedding.weight
    own["model.decoder.embed_tokens.weight"] = model.target_embedding.weight
    own["lm_head.weight"] = model.projection.weight
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.copy_(own[name] if name in own else own[our_name(name)])
    return theirs


def compare(
    ours: Transformer,
    theirs: transformers.M2M100ForConditionalGeneration,
    sources: list[list[int]],
    beam: int,
    batches: dict[str, list[int]],
    repeats: int,
) -> dict[str, Any]:
    """Both sides with each of their batch sizes, by turns; the best time of each counts."""
    sides: dict[str, Callable[[int], Outputs]] = {
        "graftmt": lambda batch: search_ours(ours, sources, beam, batch),
        "hugging_face": lambda batch: search_theirs(theirs, sources, beam, batch),
    }
    outputs: dict[str, Outputs] = {}
    results: dict[str, Any] = {}
    tried: dict[str, list[dict[str, Any]]] = {}
    for side, run in sides.items():
        run(batches[side][0])  # the first run of each is slower: allocations, kernel choices
    for turn in zip_longest(*(batches[side] * repeats for side in sides)):
        for (side, run), batch in zip(sides.items(), turn, strict=True):
            if batch is None:
                continue
            seconds, memory, found = timed(lambda run=run, batch=batch: run(batch), ours.device)
            tried.setdefault(side, []).append({"batch": batch, "seconds": round(seconds, 3)})
            if side not in results or seconds < results[side]["seconds"]:
                outputs[side] = found
                tokens = sum(len(tokens) + 1 for tokens in found)
                results[side] = {
                    "seconds": round(seconds, 3),
                    "sentences_per_second": round(len(sources) / seconds, 2),
                    "tokens_per_second": round(tokens / seconds, 1),
                    "batch": batch,
                    "peak_memory_mb": memory,
                    "output_tokens": tokens,
                }
    with plain_top_k():
        simple, smaller = (
            search_ours(ours, sources, beam, batch, record=False)
            for batch in (results["graftmt"]["batch"], -(-results["graftmt"]["batch"] // 3))
        )
    return {
        **results,
        "tried": tried,
        "ratio": round(results["graftmt"]["tokens_per_second"] / results["hugging_face"]["tokens_per_second"], 2),
        "sentence_ratio": round(
            results["graftmt"]["sentences_per_second"] / results["hugging_face"]["sentences_per_second"], 2
        ),
        "identical_to_simple": share_alike(outputs["graftmt"], simple),
        "simple_identical_to_itself": share_alike(simple, smaller),
        "identical": share_alike(outputs["graftmt"], outputs["hugging_face"]),
        "ended": round(sum(len(tokens) < MAX_LENGTH for tokens in outputs["graftmt"]) / len(sources), 4),
    }


def share_alike(some: Outputs, others: Outputs) -> float:
    return round(sum(one == other for one, other in zip(some, others, strict=True)) / len(some), 4)


def profile(model: Transformer, sources: list[list[int]], beam: int, batch: int) -> None:
    with torch.profiler.profile() as profiler:
        search_ours(model, sources, beam, batch)
    order = "cuda_time_total" if model.device.type == "cuda" else "cpu_time_total"
    print(profiler.key_averages().table(sort_by=order, row_limit=30, max_name_column_width=80), file=sys.stderr)


@contextmanager
def plain_top_k() -> Iterator[None]:
    """Our search without its shortcut for GPUs."""
    shortcut, search.can_take_maxima = search.can_take_maxima, lambda scores: False
    try:
        yield
    finally:
        search.can_take_maxima = shortcut


def search_ours(model: Transformer, sources: list[list[int]], beam: int, batch: int, record: bool = True) -> Outputs:
    longest = max(map(len, sources))
    options = SearchOptions(beam=beam, max_length=MAX_LENGTH, length_ratio=MAX_LENGTH, batch_tokens=batch * longest * beam)
    found = search_all(model, sources, [[END]] * len(sources), options, end=END, record=record)
    return [hypotheses[0].tokens for hypotheses in found]


def search_theirs(
    model: transformers.M2M100ForConditionalGeneration, sources: list[list[int]], beam: int, batch: int
) -> Outputs:
    """What a careful user writes: sorted batches, no gradients, outputs put back in order."""
    order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
    results: Outputs = [[] for _ in sources]
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        source = padded([sources[row] for row in rows]).to(model.device)
        with torch.inference_mode():
            found = model.generate(
                input_ids=source,
                attention_mask=source != PADDING,
                do_sample=False,
                num_beams=beam,
                max_new_tokens=MAX_LENGTH,
                use_cache=True,
                **({"early_stopping": True, "length_penalty": 1.0} if beam > 1 else {}),
            )
        for row, tokens in zip(rows, found[:, 1:].tolist(), strict=True):
            results[row] = tokens[: tokens.index(END)] if END in tokens else tokens
    return results


def padded(sources: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, sources))
    return torch.tensor([[*source, *[PADDING] * (longest - len(source))] for source in sources])


def timed(run: Callable[[], Outputs], device: torch.device) -> tuple[float, int | None, Outputs]:
    """Seconds, peak memory in MB (the process's on CPU, torch's on CUDA) and what came out."""
    reset_peak(device)
    start = time.perf_counter()
    found = run()  # ends with the tokens on the CPU, so nothing is still running
    return time.perf_counter() - start, peak_memory(device), found


def reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # 5: forget the peak so far


def peak_memory(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) // 2**20
    if sys.platform != "linux":
        return None
    match = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(match[1]) // 1024 if match else None


def table(report: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    lines = [
        f"{report['size']}: {report['parameters'] / 1e6:.1f}M parameters, vocabulary {report['vocabulary']:,}, "
        f"{report['sentences']} sentences of {report['source_tokens'] / report['sentences']:.1f} tokens, "
        f"{report['device']}, {report['threads']} threads, seed {report['seed']}",
        versions,
        "",
        f"{'search':<8} {'':<13} {'sentences/s':>12} {'tokens/s':>10} {'batch':>6} {'peak MB':>8}",
    ]
    for name, found in report["searches"].items():
        for side, label in (("graftmt", "graftmt"), ("hugging_face", "Hugging Face")):
            row = found[side]
            lines.append(
                f"{name:<8} {label:<13} {row['sentences_per_second']:>12.2f} {row['tokens_per_second']:>10.1f} "
                f"{row['batch']:>6} {row['peak_memory_mb'] or '?':>8}"
            )
        lines.append(
            f"{'':<8} {found['ratio']:.2f}× the tokens/s; {found['sentence_ratio']:.2f}× the sentences/s; "
            f"{found['identical']:.1%} of the outputs identical, {found['identical_to_simple']:.1%} to the simple search "
            f"(itself in smaller batches: {found['simple_identical_to_itself']:.1%}); "
            f"{row['output_tokens'] / report['sentences']:.1f} tokens an output"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
