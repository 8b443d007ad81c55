"""Devices and precisions, by the names that options give them. Layer 1."""

from __future__ import annotations

import os
from typing import TypeAlias

import torch

from graftmt.errors import ConfigError, GraftError, nearest

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

AnyDevice: TypeAlias = str | int | torch.device
AnyDtype: TypeAlias = str | torch.dtype
"""As Python programs may have them; options and files have our own short names."""


def world_size() -> int:
    """How many processes `torchrun` started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def device_name(device: AnyDevice) -> str:
    """The name of a device: a number is that of a GPU."""
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    if not isinstance(device, str | torch.device):
        raise ConfigError(
            f"device is {device!r:.80} ({type(device).__name__}); expected cpu, cuda, cuda:1 or auto, the number of a GPU, "
            "or a torch.device."
        )
    return str(device)


def choose_device(device: AnyDevice) -> str:
    """`auto` is a GPU where there is one; a device that cannot be used is an error now rather than in mid-work."""
    name = device_name(device)
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


def dtype_name(dtype: AnyDtype) -> str:
    """Our name of a precision, which may be torch's (`float32`, `torch.float32`)."""
    ours = {str(known).removeprefix("torch."): name for name, known in DTYPES.items()}
    said = str(dtype).removeprefix("torch.")
    name = ours.get(said, said)
    if name not in DTYPES:
        hint = nearest(name, [*DTYPES, *ours]) or "."
        raise ConfigError(f"unknown precision {said!r}{hint} Known: {', '.join(DTYPES)}.")
    return name


def named_dtype(dtype: AnyDtype) -> torch.dtype:
    return DTYPES[dtype_name(dtype)]
