"""A forged thing is one that graftmt takes for real: otherwise what is refused would be refused for its fingerprint alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from graftmt.base import Base
from graftmt.packs import load_pack
from robustness.archives import KINDS, mutate_archive, read_members, write_archive
from robustness.signing import sign
from robustness.subword_models import mutate_subwords, read_fields, write_fields
from robustness.tensors import join, mutate_tensors, split


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def unsigned(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {**files, name: json.dumps({**json.loads(files[name]), "fingerprint": "0" * 64}).encode()}


def test_a_base_gets_the_fingerprint_that_it_has(graft_base: Callable[..., Path]) -> None:
    files = contents(graft_base())
    forged = unsigned(files, "base.json")
    assert sign(forged)
    assert json.loads(forged["base.json"])["fingerprint"] == json.loads(files["base.json"])["fingerprint"]


@pytest.mark.parametrize("recipe", ["embed", "embed + enc-first-layer@trained"])
def test_a_pack_gets_the_fingerprint_that_it_has(
    graft_base: Callable[..., Path], train_graft: Callable[..., object], tmp_path: Path, recipe: str
) -> None:
    train_graft(tmp_path, Base.load(graft_base()), "source", recipe, steps=1)
    files = contents(tmp_path / "pack")
    forged = unsigned(files, "pack.json")
    assert sign(forged)
    assert json.loads(forged["pack.json"])["fingerprint"] == load_pack(tmp_path / "pack").fingerprint


def test_files_are_taken_apart_and_put_together_again(graft_base: Callable[..., Path]) -> None:
    files = contents(graft_base())
    assert write_fields(list(read_fields(files["subwords.model"]))) == files["subwords.model"]
    header, values = split(files["model.safetensors"])
    assert split(join(header, values)) == (header, values)


@pytest.mark.slow
def test_damage_is_damage(graft_base: Callable[..., Path]) -> None:
    files = contents(graft_base())
    archive = write_archive(list(files.items()))  # type: ignore[arg-type]
    assert read_members(archive) == files
    for number in range(200):
        assert mutate_tensors(Random(number), files["model.safetensors"])[1] != files["model.safetensors"]
        assert mutate_subwords(Random(number), files["subwords.model"])[1] is not files["subwords.model"]
    assert len(KINDS) > 10
    assert mutate_archive(Random(1), archive, "/evil")[1] != archive
