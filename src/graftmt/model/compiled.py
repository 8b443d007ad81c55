"""Triton where it is there, as with torch for CUDA on Linux; without it its kernels are not called. Layer 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

__all__ = ["kernel", "tl", "triton"]


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`triton.jit`, with its options; a kernel that nobody can compile stays the function it is."""
    if function is None:
        return lambda given: kernel(given, **options)
    return function if triton is None else triton.jit(function, **options)
