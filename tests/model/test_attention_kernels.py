"""Kernels for GPUs where there is none: right in Triton's interpreter, and compiled for the GPUs they are meant for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graftmt.decoding import search_kernels as maxima
from graftmt.decoding import step_kernels as steps
from graftmt.decoding.full_sums import HalfNorm
from graftmt.model import attention_kernels as few
from graftmt.model import packed_kernels as packed
from graftmt.training import fused_loss as loss

triton = pytest.importorskip("triton", reason="Triton is there for Linux only")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_they_compute_what_torch_does() -> None:
    """In a process of its own: Triton asks for its interpreter when it is imported."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", "tests/gpu/test_kernels.py"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "PYTEST_ADDOPTS": ""}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "passed" in result.stdout and "skipped" not in result.stdout


@dataclass
class Launch:
    """What a kernel was called with."""

    kernel: Any
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def compile(self, capability: int) -> Any:
        """As for a GPU of this compute capability, which need not be there."""
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        names = self.kernel.arg_names
        given = {**dict(zip(names, self.arguments, strict=False)), **self.named}
        types = {name: "constexpr" if name in self.named else type_of(given[name]) for name in names}
        constants = {(place,): given[name] for place, name in enumerate(names) if name in self.named}
        even = {
            (place,): [["tt.divisibility", 16]]
            for place, name in enumerate(names)
            if types[name].startswith("*") or (types[name] == "i32" and given[name] % 16 == 0)
        }
        options = {name: value for name, value in self.named.items() if name not in names}
        source = ASTSource(self.kernel, types, constexprs=constants, attrs=even)
        return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def type_of(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"*{triton.runtime.jit.type_canonicalisation_dict[str(value.dtype).removeprefix('torch.')]}"
    return "i32" if isinstance(value, int) else "fp32"


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Launch]:
    """Kernels are not run; what they were to be called with comes here."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    found: list[Launch] = []

    class Recorder:
        def __init__(self, kernel: Any) -> None:
            self.kernel = kernel

        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            return lambda *arguments, **named: found.append(Launch(self.kernel, arguments, named))

    for module, name in (
        (packed, "_forward"),
        (packed, "_backward_queries"),
        (packed, "_backward_keys"),
        (few, "_mix_few"),
        (maxima, "_group_maxima"),
        (steps, "_add_and_norm"),
        (loss, "_replace_by_gradient"),
    ):
        monkeypatch.setattr(module, name, Recorder(getattr(module, name)))
    return found


SHARED = {89: 99, 90: 227}
"""Compute capability (of RTX 40, of H100 and H200) → KiB of shared memory for a block."""


@pytest.mark.slow
@pytest.mark.parametrize(("capability", "dim"), [(89, 128), (90, 64), (90, 128)])
def test_they_compile_and_fit(capability: int, dim: int, launches: list[Launch]) -> None:
    starts = torch.tensor([0, 30, 100, 128], dtype=torch.int32)
    q, k, v = (torch.zeros(1, 128, 8, dim, dtype=torch.bfloat16).transpose(1, 2).requires_grad_() for _ in range(3))
    packed.mix_packed(q, k, v, packed.tiles_of(starts, starts, 128, 128, causal=True), True).sum().backward()
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        keys = torch.zeros(3, 8, 80, dim, dtype=dtype)
        few.mix_few(keys[:, :, :5], keys, keys, torch.ones(3, 1, 5, 80, dtype=torch.bool))
    maxima.group_maxima(torch.zeros(7, 70 * maxima.GROUP), torch.ones(70 * maxima.GROUP, dtype=torch.bool))
    sums, norm = torch.zeros(7, 8 * dim), HalfNorm(torch.nn.LayerNorm(8 * dim).bfloat16())
    steps.add_and_norm(sums, sums, norm.bias, norm)
    loss.replace_by_gradient(torch.zeros(7, 64_000, dtype=torch.bfloat16), 64_000, torch.zeros(7, dtype=torch.long), 1, 0.1)
    names = [launch.kernel.fn.__name__ for launch in launches]
    assert names == [
        "_forward",
        "_backward_queries",
        "_backward_keys",
        "_mix_few",
        "_mix_few",
        "_mix_few",
        "_group_maxima",
        "_add_and_norm",
        "_replace_by_gradient",
    ]
    for launch in launches:
        made = launch.compile(capability)
        assert "cubin" in made.asm
        assert made.metadata.shared <= SHARED[capability] * 1024, launch.kernel.fn.__name__
