"""A small OPUS-MT trained from nothing with transformers' own Marian classes, without graftmt.

It reads several languages and writes several: `>>fra<<` before a source sentence says which. The decoder starts from padding.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from peers.foreign_tokenizers import marian_of_models

SHAPE: dict[str, Any] = {
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 512,
    "decoder_ffn_dim": 512,
    "init_std": 128**-0.5,
}
END, IGNORED = 0, -100
Pair = tuple[list[int], list[int]]


def learn_pieces(lines: Sequence[str], size: int) -> bytes:
    """A unigram model of SentencePiece, as OPUS-MT has them."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0,  # a letter less is <unk>, which generate writes and graftmt never does
        minloglevel=2,
        num_threads=1,
    )
    return written.getvalue()


def new_tokenizer(folder: Path, sources: Sequence[str], targets: Sequence[str], codes: Sequence[str], size: int) -> Any:
    """One vocabulary over a model of the source lines and one of the target lines."""
    return marian_of_models(folder, {"source": learn_pieces(sources, size), "target": learn_pieces(targets, size)}, codes=codes)


def new_model(tokenizer: Any, seed: int = 1) -> Any:
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(seed)
    rows = len(tokenizer.encoder)
    config = MarianConfig(
        **SHAPE,
        vocab_size=rows,
        pad_token_id=rows - 1,
        decoder_start_token_id=rows - 1,
        eos_token_id=END,
        forced_eos_token_id=None,
        activation_function="swish",
        scale_embedding=True,
        dropout=0.0,
    )
    return MarianMTModel(config)


def tokenize(tokenizer: Any, corpus: Mapping[str, Sequence[str]], directions: Mapping[tuple[str, str], str]) -> list[Pair]:
    """`directions`: (source, target) → the code of the target."""
    pairs: list[Pair] = []
    for (source, target), code in directions.items():
        read = tokenizer([f">>{code}<< {line}" for line in corpus[source]])["input_ids"]
        written = tokenizer(text_target=list(corpus[target]))["input_ids"]
        pairs += zip(read, written, strict=True)
    return pairs


def train(model: Any, pairs: Sequence[Pair], *, updates: int, tokens: int = 2048, rate: float = 1e-3, seed: int = 1) -> float:
    """Adam with a rate that rises and falls; returns the mean loss of the last fifty updates."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.0)
    padding, losses = model.config.pad_token_id, []
    model.train()
    for update, (source, target) in zip(range(updates), _batches(pairs, tokens, padding, seed), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (update + 1) / (0.1 * updates), (updates - update) / (0.5 * updates))
        start = torch.full((len(target), 1), padding)
        logits = model(
            input_ids=source,
            attention_mask=(source != padding).long(),
            decoder_input_ids=torch.cat([start, target[:, :-1]], 1),
            use_cache=False,
        ).logits
        loss = F.cross_entropy(logits.flatten(0, 1), target.masked_fill(target == padding, IGNORED).flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
    model.eval()
    return sum(losses[-50:]) / len(losses[-50:])


def _batches(pairs: Sequence[Pair], tokens: int, padding: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Without end: pairs of like length, in a random order."""
    chance = np.random.default_rng(seed)
    longest = np.array([max(len(source), len(target)) for source, target in pairs])
    while True:
        order = np.argsort(longest + chance.random(len(pairs)), kind="stable")
        places = np.searchsorted(np.cumsum(longest[order]), np.arange(tokens, longest.sum(), tokens))
        cuts = np.split(order, places)
        for number in chance.permutation(len(cuts)):
            if len(rows := cuts[number]):
                yield _padded([pairs[row][0] for row in rows], padding), _padded([pairs[row][1] for row in rows], padding)


def _padded(rows: Sequence[Sequence[int]], padding: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[padding] * (width - len(row))] for row in rows])


def generate(model: Any, tokenizer: Any, lines: Sequence[str], code: str, *, beam: int, longest: int) -> list[str]:
    """As a user of transformers writes it."""
    inputs = tokenizer([f">>{code}<< {line}" for line in lines], return_tensors="pt", padding=True)
    with torch.inference_mode():
        found = model.generate(
            **inputs, num_beams=beam, max_new_tokens=longest, early_stopping=True, length_penalty=1.0, do_sample=False
        )
    return list(tokenizer.batch_decode(found, skip_special_tokens=True))
