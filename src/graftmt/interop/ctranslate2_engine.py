"""CTranslate2 as an engine: each composition is exported once into graftmt's cache, known by what it was made from. Layer 5.

It pays where much is translated on a CPU. The search is CTranslate2's own: of two translations that are about equally good it
may find the other one. Its scores leave out what can never come out, such as codes, and are a little higher for that.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from graftmt.decoding import Hypothesis, SearchOptions, length_batches
from graftmt.engines import OnBatch
from graftmt.errors import ConfigError, ExportError
from graftmt.interop.export.plain_model import plain_model
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.targets.ctranslate2 import write_model
from graftmt.interop.model_cache import ModelCache, cache_limit
from graftmt.packs import Composition, Pack
from graftmt.places import default_cache_folder
from graftmt.tensor_files import hash_tensors

QUANTIZATIONS = {"fp32": "float32", "int8": "int8_float32"}
"""What a precision of graftmt is called there."""
MODEL = "model.bin"
"""The weights, which are read into memory once, for all workers."""
FORMAT = 1
"""Raised when what is written for one and the same composition changes."""


class CTranslate2Engine:
    """Models in graftmt's cache, run by CTranslate2 on a CPU with as many workers as torch may have threads."""

    def __init__(self, dtype: str = "fp32", folder: Path | None = None) -> None:
        if dtype not in QUANTIZATIONS:
            raise ConfigError(f"the engine ctranslate2 runs in {' or '.join(QUANTIZATIONS)} here, not in {dtype}.")
        _library()
        self.quantization = QUANTIZATIONS[dtype]
        self.cache = ModelCache(folder or default_cache_folder() / "ctranslate2", cache_limit())

    @classmethod
    def open(cls, device: str, dtype: str) -> CTranslate2Engine:
        if not device.startswith("cpu"):
            raise ConfigError(f"the engine ctranslate2 is for CPUs here; add --device cpu, or leave --engine out on {device}.")
        return cls(dtype)

    @property
    def how(self) -> str:
        return f"ctranslate2 {self.quantization}"

    def searcher(self, composition: Composition, base: str) -> CTranslate2Searcher:
        def write(place: Path) -> None:
            write_model(composition, place, self.quantization)

        with self.cache.model(self._key(composition, base), write) as folder:
            workers = max(1, torch.get_num_threads())
            # One thread each: two workers are faster than one with two threads, but for a single line.
            model = _library().Translator(
                str(folder), device="cpu", compute_type=self.quantization, inter_threads=workers, intra_threads=1
            )
            return CTranslate2Searcher(model, composition, (folder / MODEL).stat().st_size)

    def _key(self, composition: Composition, base: str) -> str:
        """A hash of all that decides what is written; parts of a pack that its fingerprint does not know of are hashed."""
        packs = [None if pack is None else _mark(pack) for pack in (composition.source, composition.target)]
        if not base:
            raise ExportError("the engine ctranslate2 needs a base that was stored: its cache is known by fingerprints.")
        made_with = ["graftmt", FORMAT, version("ctranslate2"), self.quantization]
        return hashlib.sha256(json.dumps([made_with, base, packs]).encode()).hexdigest()[:32]


def _library() -> Any:
    try:
        import ctranslate2
    except ImportError:
        raise ExportError("the engine ctranslate2 needs it: pip install 'graftmt[ctranslate2]'.") from None
    return ctranslate2


def _mark(pack: Pack) -> list[Any]:
    """Of a pack as it is used: parts for trained directions may have been left out, and one in memory was never stored."""
    digest = hashlib.sha256()
    hash_tensors(digest, {name: parameter.detach() for name, parameter in pack.parameters.items()})
    return [pack.side, list(pack.languages), str(pack.recipe), pack.tokenizer.fingerprint, digest.hexdigest()]


class CTranslate2Searcher:
    """One model of CTranslate2; rows of the matrices are known there by names."""

    def __init__(self, model: Any, composition: Composition, size: int) -> None:
        self.model, codec = model, composition.codec
        self.bytes = size
        plain = plain_model(composition.model)
        self.source = row_names(composition, "source", len(plain.encoder.embedding))
        self.target = row_names(composition, "target", len(plain.decoder.embedding))
        self.ids = {name: row for row, name in enumerate(self.target)}
        self.end = codec.end_id
        self.never = [[self.target[row]] for row in codec.forbidden if row < len(self.target)]

    def search(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        options: SearchOptions,
        on_batch: OnBatch | None = None,
    ) -> list[list[Hypothesis]]:
        results: list[list[Hypothesis]] = [[] for _ in sources]
        lengths = [len(source) for source in sources]
        done = 0
        workers = os.cpu_count() or 1
        for rows in _grouped(list(length_batches(lengths, options)), workers):
            limits = [options.limit(lengths[row]) for row in rows]
            found = self.model.translate_batch(
                [[self.source[token] for token in sources[row]] for row in rows],
                target_prefix=[[self.target[token] for token in prefixes[row][1:]] for row in rows],
                max_batch_size=max(1, options.batch_tokens // options.beam),
                batch_type="tokens",
                beam_size=options.beam,
                num_hypotheses=options.n_best,
                length_penalty=options.length_penalty,
                max_input_length=0,
                max_decoding_length=max(limits) + len(prefixes[rows[0]]) - 1,  # the prefix counts there
                suppress_sequences=self.never,
                return_scores=True,
                return_end_token=True,
            )
            for row, limit, result in zip(rows, limits, found, strict=True):
                skipped = len(prefixes[row]) - 1
                results[row] = [
                    self._hypothesis(tokens[skipped:], score, limit)
                    for tokens, score in zip(result.hypotheses, result.scores, strict=True)
                ]
            done += len(rows)
            if on_batch is not None:
                on_batch(done)
        return results

    def _hypothesis(self, names: Sequence[str], score: float, limit: int) -> Hypothesis:
        tokens = [self.ids[name] for name in names]
        finished = bool(tokens) and tokens[-1] == self.end and len(tokens) <= limit
        return Hypothesis(tokens[:-1] if finished else tokens[:limit], float(score), finished)


def _grouped(batches: list[list[int]], count: int) -> list[list[int]]:
    """`count` batches together, so that every worker has one."""
    return [[row for batch in batches[at : at + count] for row in batch] for at in range(0, len(batches), count)]
