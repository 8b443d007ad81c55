"""The base that packs are trained on and scored with, held in memory, and the look that shows it unchanged. Layer 7."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graftmt.base import Base, fingerprint, parameters, read_base_document
from graftmt.data import Direction
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.devices import DTYPES
from graftmt.tensor_files import hash_tensors
from graftmt.translation_requests import Request
from graftmt.translator import Translator

LOOKED_AT = 4
"""Lines of each direction that are translated with the base alone before and after a pack is trained."""

LONGEST_LOOK = 60
"""Tokens."""


@dataclass(frozen=True)
class Look:
    """A base at one moment: all its bytes, and what it makes of some lines."""

    fingerprint: str
    """Recomputed from the tensors in memory, as they are stored."""
    tensors: tuple[str, ...]
    """The hash of each copy in memory that is held otherwise than it is stored."""
    translations: tuple[Any, ...]


@dataclass
class Resident:
    """One base, once for training and once for scores, which are those of fp32; one and the same where that is possible."""

    folder: Path
    trainer: Base
    scorer: Base

    @classmethod
    def load(cls, folder: Path, *, device: str, dtype: str) -> Resident:
        scorer = Base.load(folder, device=device)
        trainer = Base.load(folder, device=device, dtype=dtype) if dtype != "fp32" else scorer
        return cls(folder, trainer, scorer)

    @property
    def fingerprint(self) -> str:
        return self.scorer.fingerprint

    def look(self, texts: Mapping[str, Sequence[str]], max_length: int) -> Look:
        """Whatever was done to it between two looks that are equal has left it as it was, to the last bit."""
        base = self.scorer
        stored = DTYPES[str(read_base_document(self.folder).get("dtype", "fp32"))]
        held = {id(one): one for one in (self.scorer, self.trainer)}.values()
        # Held as it is stored, its fingerprint is of every bit; otherwise that of its rounded numbers, and all are hashed too.
        exact = next((one for one in held if _dtypes(one) == {stored}), None)
        rounded = {name: tensor.to("cpu", stored) for name, tensor in parameters((exact or base).model).items()}
        languages = [language for language in base.languages if texts.get(language)][:3]
        pairs = [Direction(a, b) for a, b in zip(languages, (*languages[1:], languages[0]), strict=True) if a != b]
        requests = [Request(line, *pair) for pair in pairs for line in texts[pair.source][:LOOKED_AT]]
        options = SearchOptions(beam=2, max_length=max_length, batch_tokens=batch_tokens_for(base.model.device.type))
        return Look(
            fingerprint=fingerprint(rounded, base.model.config, base.tokenizer),
            tensors=tuple(_digest(one) for one in held if one is not exact),
            translations=tuple(tuple(found) for found in Translator(base).translate_requests(requests, options)),
        )

    def verified(self, before: Look, after: Look) -> dict[str, bool]:
        return {
            "base_unchanged": before.tensors == after.tensors and after.fingerprint == self.fingerprint,
            "base_scores_identical": before.translations == after.translations,
        }


def _dtypes(base: Base) -> set[torch.dtype]:
    return {tensor.dtype for tensor in parameters(base.model).values()}


def _digest(base: Base) -> str:
    digest = hashlib.sha256()
    hash_tensors(digest, parameters(base.model))
    return digest.hexdigest()


def free_memory() -> None:
    """After a base was let go."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
