"""An M2M100 trained from nothing with transformers' own model and tokenizer, arranged as NLLB-200 is, without graftmt.

The code of its language comes before a source sentence; the decoder starts from the end symbol and the target's code. Batches
hold pairs of like length, English on one side of half of them. The learning rate rises and falls with the time that is given.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

ENGLISH = "eng_Latn"
PADDING, END = 1, 2
IGNORED = -100
"""Labels that count for nothing."""
ROWS_MULTIPLE = 64
"""Matrix units like it; NLLB-200 too has rows without a token."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    seconds: float
    batch_tokens: int = 32_768
    """Padded tokens on a side at most."""
    learning_rate: float = 1.5e-3
    warm_up: float = 0.08
    """Of the time."""
    english: float = 0.5
    """The share of pairs with English."""
    longest: int = 128
    dropout: float = 0.1
    smoothing: float = 0.1
    seed: int = 1
    device: str = "cuda"


class Pairs:
    """The tokens of a multi-parallel corpus, and batches of pairs drawn from it."""

    def __init__(self, tokens: Mapping[str, Sequence[Sequence[int]]], codes: Mapping[str, int], longest: int) -> None:
        """`tokens`: for each language the pieces of each line, none where it has no translation."""
        self.languages = tuple(tokens)
        self.codes = np.array([codes[language] for language in self.languages])
        self.lengths = np.array([[len(line) for line in lines] for lines in tokens.values()])
        self.lengths[self.lengths > longest] = 0
        flat = [np.fromiter((row for line in lines for row in line), dtype=np.int32) for lines in tokens.values()]
        sizes = np.array([[len(line) for line in lines] for lines in tokens.values()])
        self.starts = (np.cumsum(sizes.ravel()) - sizes.ravel()).reshape(sizes.shape)
        self.flat = np.concatenate([*flat, np.zeros(longest + 1, dtype=np.int32)])
        self.english = self.languages.index(ENGLISH)

    def batches(self, options: TrainingOptions, pool: int = 50_000) -> Iterator[dict[str, torch.Tensor]]:
        """Without end."""
        chance = np.random.default_rng(options.seed)
        while True:
            lines, sources, targets = self._drawn(chance, pool, options.english)
            lengths = np.maximum(self.lengths[sources, lines], self.lengths[targets, lines]) + 2
            order = np.argsort(lengths + chance.random(len(lengths)), kind="stable")
            cuts, start = [], 0
            while start < len(order):
                end = start + 1
                while end < len(order) and (end + 1 - start) * lengths[order[end]] <= options.batch_tokens:
                    end += 1
                cuts.append(order[start:end])
                start = end
            for number in chance.permutation(len(cuts)):
                rows = cuts[number]
                yield self.batch(lines[rows], sources[rows], targets[rows])

    def _drawn(self, chance: np.random.Generator, count: int, english: float) -> tuple[NDArray[np.int64], ...]:
        """Lines with text in both languages."""
        lines = chance.integers(0, self.lengths.shape[1], count)
        sources, targets = chance.integers(0, len(self.languages), (2, count))
        with_english, into = chance.random(count) < english, chance.random(count) < 0.5
        targets[with_english & into] = self.english
        sources[with_english & ~into] = self.english
        sound = (sources != targets) & (self.lengths[sources, lines] > 0) & (self.lengths[targets, lines] > 0)
        return lines[sound], sources[sound], targets[sound]

    def batch(
        self, lines: NDArray[np.int64], sources: NDArray[np.int64], targets: NDArray[np.int64]
    ) -> dict[str, torch.Tensor]:
        source, target = self._matrix(lines, sources), self._matrix(lines, targets)
        start = np.full((len(lines), 1), END)
        return {
            "input_ids": torch.from_numpy(source),
            "decoder_input_ids": torch.from_numpy(np.concatenate([start, np.where(target == END, PADDING, target)[:, :-1]], 1)),
            "labels": torch.from_numpy(np.where(target == PADDING, IGNORED, target)),
        }

    def _matrix(self, lines: NDArray[np.int64], languages: NDArray[np.int64]) -> NDArray[np.int64]:
        """Code, pieces, end, padding."""
        lengths = self.lengths[languages, lines]
        places = np.arange(lengths.max())
        pieces = self.flat[self.starts[languages, lines][:, None] + places].astype(np.int64)
        rows = np.full((len(lines), lengths.max() + 2), PADDING)
        rows[:, 0] = self.codes[languages]
        rows[:, 1:-1] = np.where(places < lengths[:, None], pieces, PADDING)
        rows[np.arange(len(lines)), lengths + 1] = END
        return rows


def tokenize(tokenizer: Any, corpus: Mapping[str, Sequence[str]]) -> dict[str, list[list[int]]]:
    """Pieces alone. Many lines at once: the library's own threads do it."""
    library = tokenizer.backend_tokenizer
    return {
        language: [found.ids for found in library.encode_batch_fast(list(lines), add_special_tokens=False)]
        for language, lines in corpus.items()
    }


def new_model(tokenizer: Any, shape: Mapping[str, Any], options: TrainingOptions) -> Any:
    """`shape`: arguments of an M2M100Config."""
    import transformers

    torch.manual_seed(options.seed)
    config = transformers.M2M100Config(
        **shape,
        vocab_size=len(tokenizer) + -len(tokenizer) % ROWS_MULTIPLE,
        max_position_embeddings=1024,
        dropout=options.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        pad_token_id=PADDING,
        bos_token_id=0,
        eos_token_id=END,
        decoder_start_token_id=END,
        tie_word_embeddings=True,
    )
    return transformers.M2M100ForConditionalGeneration(config).to(options.device)


def train(model: Any, pairs: Pairs, options: TrainingOptions, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Trains for the time that is given, in bf16 where the device has it; returns what was done."""
    device = torch.device(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    model.train()
    started, told = time.monotonic(), 0.0
    updates = seen = tokens = 0
    curve: list[tuple[float, float]] = []
    recent: list[torch.Tensor] = []
    for batch in _prefetched(pairs.batches(options), device):
        passed = time.monotonic() - started
        if passed > options.seconds:
            break
        share = passed / options.seconds
        rate = options.learning_rate * min(1.0, share / options.warm_up + 1e-3, (1 - share) / (1 - options.warm_up))
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            source = batch["input_ids"]
            logits = model(
                input_ids=source,
                attention_mask=(source != PADDING).long(),
                decoder_input_ids=batch["decoder_input_ids"],
                use_cache=False,
            ).logits
            loss = F.cross_entropy(
                logits.flatten(0, 1).float(), batch["labels"].flatten(), ignore_index=IGNORED, label_smoothing=options.smoothing
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        updates, seen = updates + 1, seen + len(source)
        tokens += batch["labels"].numel()
        recent.append(loss.detach())
        if len(recent) == 50:  # reading a loss waits for the device, so that this also keeps the clock honest
            curve.append((round(time.monotonic() - started, 1), round(float(torch.stack(recent).mean()), 3)))
            recent.clear()
            if curve[-1][0] - told > 10:
                told = curve[-1][0]
                say(f"  {told:.0f} s, {updates:,} updates, {seen / told:,.0f} pairs/s, loss {curve[-1][1]:.3f}")
    seconds = time.monotonic() - started
    model.eval()
    return {
        "seconds": round(seconds, 1),
        "updates": updates,
        "pairs": seen,
        "pairs_per_second": round(seen / seconds),
        "padded_target_tokens": tokens,
        "curve": curve,
        "peak_memory": torch.cuda.max_memory_allocated() if device.type == "cuda" else None,
    }


def _prefetched(batches: Iterator[dict[str, torch.Tensor]], device: torch.device) -> Iterator[dict[str, torch.Tensor]]:
    """Batches are made by another thread while the device works."""
    waiting: queue.Queue[dict[str, torch.Tensor]] = queue.Queue(maxsize=8)
    stopped = threading.Event()

    def make() -> None:
        for batch in batches:
            while not stopped.is_set():
                try:
                    waiting.put(batch, timeout=0.2)
                    break
                except queue.Full:
                    continue
            if stopped.is_set():
                return

    maker = threading.Thread(target=make, daemon=True)
    maker.start()
    try:
        while True:
            batch = waiting.get()
            yield {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
    finally:
        stopped.set()


def generate(
    model: Any, tokenizer: Any, lines: Sequence[str], source: str, target: str, *, beam: int, batch: int, longest: int
) -> list[str]:
    """As a careful user of transformers writes it: sorted batches, the target's code after the start, no gradients."""
    tokenizer.src_lang = source
    order = sorted(range(len(lines)), key=lambda row: -len(lines[row]))
    code = tokenizer.convert_tokens_to_ids(target)
    results = [""] * len(lines)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        inputs = tokenizer([lines[row] for row in rows], return_tensors="pt", padding=True).to(model.device)
        prefix = torch.tensor([[END, code]], device=model.device).expand(len(rows), 2)
        with torch.inference_mode():
            found = model.generate(
                **inputs,
                decoder_input_ids=prefix,
                do_sample=False,
                num_beams=beam,
                max_new_tokens=longest,
                **({"early_stopping": True, "length_penalty": 1.0} if beam > 1 else {}),
            )
        for row, text in zip(rows, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True):
            results[row] = text
    return results


def read_lines(corpus: Path, split: str, languages: Sequence[str], most: int | None = None) -> dict[str, list[str]]:
    """Plain or .xz files named split.LANG.txt, without any library."""
    import lzma

    found = {}
    for language in languages:
        path = next(path for path in sorted(corpus.glob(f"{split}.{language}.txt*")))
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        lines = content.decode("utf-8").removesuffix("\n").split("\n")
        found[language] = lines if most is None else lines[:most]
    return found
