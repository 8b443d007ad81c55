"""Devices and precisions, by the names that options give them. Layer 1."""

from __future__ import annotations

import os

import torch

from graftmt.errors import ConfigError, GraftError, nearest

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def world_size() -> int:
    """How many processes `torchrun` started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def choose_device(name: str) -> str:
    """`auto` is a GPU where there is one; a device that cannot be used is an error now rather than in mid-work."""
    if torch.cuda.is_available():
        # Padded batches of a shape not seen before took hundreds of milliseconds where the step itself takes fifty. What is
        # planned anew for each shape is, most likely, cuDNN's attention, which torch prefers on recent GPUs.
        torch.backends.cuda.enable_cudnn_sdp(False)
        # Started by torchrun, each process has a GPU of its own.
        if name in ("auto", "cuda"):
            return f"cuda:{os.environ['LOCAL_RANK']}" if world_size() > 1 else "cuda"
    if name == "auto":
        return "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise GraftError(f"device is {name!r} but torch sees no CUDA GPU here; use device=cpu.")
    try:
        if torch.device(name).type == "cpu" and name != "cpu":
            raise GraftError(f"device {name!r}: CPUs have no numbers here; use cpu.")
    except RuntimeError:  # whose message lists every backend that torch has a name for
        raise GraftError(
            f"device {name!r} cannot be used, for torch knows none of this name; use cpu, cuda, cuda:1 or auto."
        ) from None
    try:
        torch.zeros(1, device=name).item()  # "meta" has shapes alone
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise GraftError(f"device {name!r} cannot be used here ({reason}); use cpu, cuda or auto.") from None
    return name


def named_dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        hint = nearest(name, DTYPES) or "."
        raise ConfigError(f"unknown precision {name!r}{hint} Known: {', '.join(DTYPES)}.")
    return DTYPES[name]
