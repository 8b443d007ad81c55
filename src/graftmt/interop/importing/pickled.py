"""Files of `torch.save`: torch's restricted reader makes tensors and plain values of them and runs nothing. Layer 5."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.serialization import safe_globals

from graftmt.errors import CheckpointError
from graftmt.files import open_regular


def load_pickled(path: Path, allowed: Sequence[Any] = ()) -> Any:
    """What a file holds. `allowed`: classes that may be made besides tensors and plain values."""
    try:
        with open_regular(path) as handle:
            zipped = handle.read(2) == b"PK"
    except FileNotFoundError:
        raise CheckpointError(f"the model: there is no file {path}; the folder is incomplete.") from None
    except OSError as error:
        raise CheckpointError(f"the model: {path} cannot be read: {error.strerror}.") from None
    try:
        with safe_globals(list(allowed)):
            # The format of torch before 1.6 cannot be mapped.
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        reason = str(error).strip().partition("\n")[0]
        unsafe = "Unsupported" in str(error) or "GLOBAL" in str(error)
        what = "holds more than tensors, and nothing of it was run" if unsafe else "is damaged"
        raise CheckpointError(
            f"{path} {what} ({_global_in(str(error)) or reason:.300}). Import a copy from its publisher, as safetensors "
            "if there is one."
        ) from None
    except (
        RuntimeError,
        EOFError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
        IndexError,
        OverflowError,
        OSError,
    ) as error:
        # What torch raises for a file that ends early or contradicts itself is not documented.
        raise CheckpointError(f"{path} is truncated or damaged ({error!s:.300}). Restore it from a copy.") from None


def _global_in(message: str) -> str:
    """The name of what a pickle wanted to call, from torch's message."""
    for words in message.splitlines():
        if "GLOBAL " in words:
            return words[words.index("GLOBAL ") :].strip()
    return ""
