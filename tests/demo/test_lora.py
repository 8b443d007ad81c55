"""LoRA on the demo's base: trains, proves the base unchanged, composes with a pack of another recipe, and folds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graftmt.adding.verification import verify
from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.demo.demo_packs import GREEK, UKRAINIAN, make_pack, pack_config
from graftmt.demo.phrase_corpus import BASE_LANGUAGES, write_corpus
from graftmt.demo.story import LANGUAGES, shipped_base
from graftmt.packs import load_pack
from graftmt.translator import Translator


@pytest.mark.slow
def test_lora_trains_verifies_composes_and_folds(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", LANGUAGES, train_lines=300, valid_lines=20, test_lines=20)
    train, valid, test = (Corpus.open(tmp_path / "corpus", split, LANGUAGES) for split in ("train", "valid", "test"))
    with shipped_base() as folder:
        base = Base.load(folder)
        before = {name: tensor.clone() for name, tensor in base.model.named_parameters()}
        packs = []
        for plan, recipe in ((GREEK, "embed + enc-lora-all(16) + init:alignment"), (UKRAINIAN, UKRAINIAN.recipe)):
            config = pack_config(
                replace(plan, recipe=recipe), tmp_path / plan.name, BASE_LANGUAGES, steps=8, seed=1, device="cpu"
            )
            make_pack(replace(config, validation=replace(config.validation, lines=0)), base, train, valid)
            packs.append(load_pack(tmp_path / plan.name / "pack"))
        greek = packs[0]
        updates = {name: tensor for name, tensor in greek.parameters.items() if ".lora." in name}
        assert updates and all(tensor.any() for tensor in updates.values()), "B starts at zero, and has learned"
        proof = verify(folder, packs, lines=2, beam=1)
    assert proof.base_unchanged and len(proof.packs) == 2
    assert all(torch.equal(before[name], tensor) for name, tensor in base.model.named_parameters())
    lines = [line for line in test.lines("el") if line.strip()][:4]
    folded, apart = (Translator(base, packs, fold=fold) for fold in (True, False))
    assert len(folded.translate(lines, source="el", target="uk")) == len(lines)
    ids = torch.arange(4, 16)[None]
    first, second = (each.composition("el", "uk").model(ids, ids) for each in (folded, apart))
    assert torch.allclose(first, second, atol=1e-4)
    assert sum(p.numel() for p in folded.composition("el", "uk").model.parameters()) < sum(
        p.numel() for p in apart.composition("el", "uk").model.parameters()
    ), "what is folded has no tensors of its own"
