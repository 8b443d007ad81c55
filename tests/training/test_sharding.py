"""A base shared out over processes learns what it learns in one, needs less memory in each, and is stored whole."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from graftmt.base import Base
from graftmt.errors import ConfigError
from graftmt.packs import Pack
from graftmt.training.sharding import clip_gradients, cut_like, group_shards, is_sharded, own_part, whole

Torchrun = Callable[..., str]
Same = Callable[[Path, Path], None]


def held(said: str) -> tuple[int, int]:
    """What the first process said that it holds, and of how much, in bytes."""
    match = re.search(r"this one holds ([\d,]+) of ([\d,]+) bytes", said)
    assert match is not None, said
    mine, all_of_it = (int(number.replace(",", "")) for number in match.groups())
    return mine, all_of_it


def size(tensors: Iterable[Tensor]) -> int:
    return sum(4 * tensor.numel() for tensor in tensors)


def layers(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if name.startswith(("encoder.", "decoder."))}


@pytest.mark.slow
def test_a_base_sharded_over_two_processes_is_the_one_that_one_process_trains(
    tmp_path: Path, torchrun: Torchrun, base_file: Callable[..., str], alone: Path, same_learned: Same
) -> None:
    run = tmp_path / "sharded"
    said = torchrun(2, "-m", "graftmt", "train", base_file(run, "sharded=true"))
    same_learned(run, alone)
    base = load_file(run / "base" / "model.safetensors")
    everything, shared_out = size(base.values()), size(layers(base).values())
    assert held(said) == (everything - shared_out // 2, everything)  # every size is even here
    assert 0.7 * everything < shared_out
    Base.load(run / "base")  # checks the fingerprint


@pytest.mark.slow
def test_a_pack_on_a_sharded_base_is_the_one_that_one_process_trains(
    tmp_path: Path,
    torchrun: Torchrun,
    pack_command: Callable[..., list[str]],
    pack_alone: Path,
    graft_base: Callable[..., Path],
    same_learned: Same,
) -> None:
    before = (graft_base() / "model.safetensors").read_bytes()
    run = tmp_path / "sharded"
    said = torchrun(2, *pack_command(run, sharded=True))
    same_learned(run, pack_alone)
    assert (graft_base() / "model.safetensors").read_bytes() == before
    # The pack is whole in both processes. Of the base, less what the pack has in its place, the layers are halved.
    base, pack = load_file(graft_base() / "model.safetensors"), load_file(run / "pack" / "pack.safetensors")
    shared_out = size(tensor for name, tensor in layers(base).items() if name not in pack)
    everything = size([*pack.values(), base["source_embedding.weight"]]) + shared_out
    assert held(said) == (everything - shared_out // 2, everything)


@pytest.mark.slow
def test_a_run_begun_by_one_process_goes_on_sharded(
    tmp_path: Path, torchrun: Torchrun, base_file: Callable[..., str], alone: Path, same_learned: Same
) -> None:
    run = Path(shutil.copytree(alone, tmp_path / "moved", ignore=shutil.ignore_patterns("base", "stage2-step00000018")))
    said = torchrun(2, "-m", "graftmt", "train", base_file(run, "sharded=true"))
    assert "resuming at stage2-step00000015" in said
    same_learned(run, alone)


def test_what_makes_no_sense_is_said(
    tmp_path: Path,
    train_alone: Callable[..., list[str]],
    train_pack_alone: Callable[..., Pack],
) -> None:
    with pytest.raises(ConfigError, match=r"there is one; start several with `torchrun"):
        train_alone(tmp_path / "run", "sharded=true")
    with pytest.raises(ConfigError, match=r"there is one; start several with `torchrun"):
        train_pack_alone(tmp_path / "run", sharded=True)
    for option in ("compile=true", "stages.1.packed=true"):
        with pytest.raises(ConfigError, match=r"sharded=true .*compile .*packed"):
            train_alone(tmp_path / "run", "sharded=true", option)
    for option in ("validation.translate=true", "validation.metric=chrf"):
        with pytest.raises(ConfigError, match="sharded=true validates by the loss alone"):
            train_alone(tmp_path / "run", "sharded=true", option)
    assert not (tmp_path / "run").exists()


def test_what_is_not_sharded_is_left_as_it_is() -> None:
    parameters = [nn.Parameter(torch.full((3,), 2.0)), nn.Parameter(torch.ones(2, 2))]
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    group_shards(optimizer)
    assert [group["params"] for group in optimizer.param_groups] == [parameters]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 3.0)
        assert not is_sharded(parameter)
        assert own_part(parameter).data_ptr() == whole(parameter).data_ptr() == parameter.data_ptr()
        assert torch.equal(cut_like(parameter, torch.zeros(parameter.shape)), torch.zeros(parameter.shape))
    clip_gradients(parameters, 1.0)
    assert torch.stack([parameter.grad.norm() for parameter in parameters]).norm() == pytest.approx(1.0, rel=1e-4)
