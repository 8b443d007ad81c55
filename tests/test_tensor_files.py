"""Tensor files: what was written is read, into memory of its own, and no size is believed before it has been checked."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graftmt.errors import CheckpointError
from graftmt.tensor_files import TensorFile, hash_tensors, is_finite, open_tensors, read_tensors, write_tensors

TENSORS = {
    "b.weight": torch.randn(3, 5),
    "a.weight": torch.randn(7).bfloat16(),
    "step": torch.tensor(4.0),
    "none": torch.empty(0, 4),
    "ids": torch.arange(6).view(2, 3),
    "flags": torch.tensor([True, False]),
    "half": torch.randn(2, 2, 2).half(),
}


def write(path: Path, header: Any, data: bytes, length: int | None = None) -> Path:
    """A file with this header, whatever it says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(shape: list[Any], start: Any, end: Any, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def test_what_is_written_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", TENSORS)
    found = read_tensors(tmp_path / "file", "the file")
    assert list(found) == sorted(TENSORS)
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name


def test_tensors_do_not_follow_their_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_tensors(path, TENSORS)
    found = read_tensors(path, "the file")
    with path.open("r+b") as handle:
        handle.seek(-100, os.SEEK_END)
        handle.write(b"\0" * 100)
    os.truncate(path, 0)
    assert all(torch.equal(found[name], tensor) for name, tensor in TENSORS.items())


def test_the_order_in_the_file_does_not_matter(tmp_path: Path) -> None:
    first, second = torch.arange(4.0), torch.arange(3.0)
    header = {"z": entry([4], 0, 16), "a": entry([3], 16, 28), "__metadata__": {"any": "thing"}}
    write(tmp_path / "file", header, first.numpy().tobytes() + second.numpy().tobytes())
    found = read_tensors(tmp_path / "file", "the file")
    assert list(found) == ["a", "z"] and torch.equal(found["z"], first) and torch.equal(found["a"], second)


def test_the_hash_is_that_of_names_kinds_shapes_and_bytes_and_takes_no_copy() -> None:
    expected = hashlib.sha256()
    for name in sorted(TENSORS):
        tensor = TENSORS[name]
        expected.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        expected.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    digest = hashlib.sha256()
    hash_tensors(digest, TENSORS)
    assert digest.hexdigest() == expected.hexdigest()
    large = {"large": torch.zeros(2**22)}
    tracemalloc.start()
    hash_tensors(digest, large)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_what_is_hashed_is_what_is_handed_out(tmp_path: Path) -> None:
    tensors = {name: tensor for name, tensor in TENSORS.items() if tensor.is_floating_point()}
    write_tensors(tmp_path / "file", tensors)
    first, second = hashlib.sha256(), hashlib.sha256()
    with open_tensors(tmp_path / "file", "the file") as file:
        found = dict(file.weights(first))
    hash_tensors(second, found)
    assert first.hexdigest() == second.hexdigest()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_one_number_that_is_not_finite_is_found_wherever_it_is(dtype: torch.dtype, value: float) -> None:
    tensor = torch.randn(1037).to(dtype)
    assert is_finite(tensor) and is_finite(torch.empty(0, dtype=dtype))
    for place in (0, 1, 511, 1030, 1036):
        changed = tensor.clone()
        changed[place] = value
        assert not is_finite(changed)


def damaged(path: Path, *words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        read_tensors(path, "the file")
    assert str(path) in str(caught.value) and len(str(caught.value)) < 500
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    "header",
    [
        {"a": entry([4], 0, 12)},
        {"a": entry([4], 4, 20)},
        {"a": entry([4], 0, 16), "b": entry([4], 0, 16)},
        {"a": entry([2], 0, 8), "b": entry([1], 12, 16)},
        {"a": entry([0, 2**63], 0, 0), "b": entry([4], 0, 16)},
        {"a": entry([2**62, 4], 0, 16)},
        {"a": entry([2**32, 2**32], 0, 0)},
        {"a": entry([-4], 0, 16)},
        {"a": entry([-2, -2], 0, 16)},
        {"a": entry([4.0], 0, 16)},
        {"a": entry([True, 4], 0, 16)},
        {"a": entry(["4"], 0, 16)},
        {"a": entry([1] * 100 + [4], 0, 16)},
        {"a": entry([4], 0, "16")},
        {"a": entry([4], -16, 0)},
        {"a": entry([4], 0, 16, "F33")},
        {"a": entry([4], 0, 16, ["F32"])},
        {"a": {"dtype": "F32", "shape": 4, "data_offsets": [0, 16]}},
        {"a": {"dtype": "F32", "shape": [4], "data_offsets": {"0": 16}}},
        {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16, 32]}},
        {"a": {"dtype": "F32", "shape": [4]}},
        {"a": [4]},
        {"a\u001b[31m": entry([4], 0, 16)},
        {"a": None},
        {},
        [],
        b"{",
        b"[" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"\\ud800": {}}',
        b"\xff\xff",
    ],
)
def test_a_header_that_cannot_be_true_is_damage(tmp_path: Path, header: Any) -> None:
    damaged(write(tmp_path / "file", header, bytes(16)), "damaged")


@pytest.mark.parametrize("length", [0, 1, 10**6, 2**40, 2**63, 2**64 - 1])
def test_a_header_longer_than_the_file_is_damage(tmp_path: Path, length: int) -> None:
    damaged(write(tmp_path / "file", {"a": entry([4], 0, 16)}, bytes(16), length), "damaged")


def test_a_file_that_is_cut_anywhere_is_damage(tmp_path: Path) -> None:
    write_tensors(tmp_path / "whole", TENSORS)
    content = (tmp_path / "whole").read_bytes()
    for size in [*range(0, len(content), 7), len(content) - 1]:
        (tmp_path / "cut").write_bytes(content[:size])
        damaged(tmp_path / "cut", "damaged")
    (tmp_path / "longer").write_bytes(content + b"\0")
    damaged(tmp_path / "longer", "damaged")


def test_a_file_cut_while_it_is_read_is_damage(tmp_path: Path) -> None:
    tensors: dict[str, Tensor] = {name: torch.randn(2**19) for name in "abc"}
    write_tensors(tmp_path / "file", tensors)
    with open_tensors(tmp_path / "file", "the file") as file:
        found = file.read()
        name, tensor = next(found)
        os.truncate(tmp_path / "file", 2**21 + 2**20)
        with pytest.raises(CheckpointError, match="ends early"):
            list(found)
    assert torch.equal(tensor, tensors[name])


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device", "none"):
        damaged(tmp_path / name)


def test_what_is_not_expected_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as stream:
        write(tmp_path / "file", {"a": entry([2**28], 0, 2**30)}, b"")
        size = (tmp_path / "file").stat().st_size + 2**30
        for expected in ({}, {"b": (2**28,)}, {"a": (2**28, 1)}, {"a": (2**28,), "b": (1,)}):
            stream.seek(0)
            file = TensorFile(stream, size, "the file")  # the tensor itself is not there
            with pytest.raises(CheckpointError):
                file.check(expected, "the test")


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.bfloat16, torch.float16])
def test_what_is_converted_while_it_is_read_is_what_is_converted_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_order: bool, dtype: torch.dtype | None
) -> None:
    monkeypatch.setattr("graftmt.tensor_files._WINDOW", 1000)
    torch.manual_seed(1)
    tensors = {"a": torch.randn(37, 101), "b": torch.randn(()), "c": torch.empty(0, 3), "d": torch.randn(1000)}
    names, start, header, data = list(tensors) if in_order else list(tensors)[::-1], 0, {}, b""
    for name in names:
        size = tensors[name].numel() * 4
        header[name] = entry(list(tensors[name].shape), start, start + size)
        data, start = data + tensors[name].numpy().tobytes(), start + size
    write(tmp_path / "file", header, data)
    heard, expected = hashlib.sha256(), hashlib.sha256()
    with open_tensors(tmp_path / "file", "the file") as file:
        found = dict(file.weights(heard, dtype))
    hash_tensors(expected, tensors)
    assert heard.hexdigest() == expected.hexdigest()
    assert list(found) == list(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor if dtype is None else tensor.to(dtype)), name
        assert found[name].shape == tensor.shape
    with open_tensors(tmp_path / "file", "the file") as file:
        assert all(torch.equal(found[name], tensor) for name, tensor in file.weights(None, dtype, known=True))


def test_a_number_that_is_not_finite_is_found_in_any_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftmt.tensor_files._WINDOW", 100)
    tensor = torch.randn(257)
    for place in (0, 99, 100, 256):
        changed = tensor.clone()
        changed[place] = float("nan")
        write_tensors(tmp_path / "file", {"one": changed})
        for dtype in (torch.float32, torch.bfloat16):
            with open_tensors(tmp_path / "file", "the file") as file, pytest.raises(CheckpointError, match="not finite"):
                dict(file.weights(None, dtype))
