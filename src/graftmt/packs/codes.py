"""Which of a base's language codes is nearest to that of a new language, as the paper's proxy codes are chosen. Layer 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from graftmt.base import Base
from graftmt.errors import ConfigError
from graftmt.packs.archive import is_pack
from graftmt.packs.storage import load_pack


def nearest_code(language: str, model: Path, base: Base) -> str:
    """The base's language whose code has the smallest Euclidean distance to `language`'s in another model.

    `model`: a base that knows the language (the paper's oracle: one re-trained with it), where all codes are looked up; or
    a target pack with a learned code for it, which is compared with the codes of `base`.
    """
    if is_pack(model):
        pack = load_pack(model)
        own = pack.side == "target" and pack.recipe.code.is_own(pack.side, pack.tokenizer.layout.placement(pack.side))
        if language not in pack.languages or not own:
            raise ConfigError(f"the pack {model} has no learned code of {language!r}; give a target pack that has, or a base.")
        if pack.base != base.fingerprint:
            raise ConfigError(f"the pack {model} is of another base, whose codes cannot be compared with this one's.")
        wanted = pack.parameters[pack.recipe.code.own_codes][pack.languages.index(language)].detach()
        return next(iter(_distances(wanted, base, base.target_languages)))
    other = Base.load(model)
    if language not in other.target_languages:
        raise ConfigError(f"the base {model} does not know {language!r}; it knows {', '.join(other.target_languages)}.")
    shared = [name for name in base.target_languages if name in other.target_languages]
    if not shared:
        raise ConfigError(f"the base {model} has none of this base's languages, {', '.join(base.target_languages)}.")
    return next(iter(code_distances(language, other, shared)))


def code_distances(language: str, base: Base, among: Sequence[str]) -> dict[str, float]:
    """Other languages of a base → how far their codes are from that of `language`, the nearest first."""
    return _distances(_codes(base, [language])[0], base, among)


def _distances(wanted: Tensor, base: Base, languages: Sequence[str]) -> dict[str, float]:
    found = torch.linalg.vector_norm(_codes(base, languages) - wanted, dim=1).tolist()
    return dict(sorted(zip(languages, found, strict=True), key=lambda one: one[1]))


def _codes(base: Base, languages: Sequence[str]) -> Tensor:
    """(languages, D): the rows that are written for a target language."""
    matrix = base.tokenizer.layout.code_matrix("target")
    if matrix is None:
        raise ConfigError("this base writes no language codes, so that none can be compared; leave code:proxy:nearest out.")
    embedding = base.model.source_embedding if matrix == "source" else base.model.target_embedding
    rows = [base.tokenizer.side(matrix).code(language) for language in languages]
    return embedding.weight.detach()[rows].float().cpu()
