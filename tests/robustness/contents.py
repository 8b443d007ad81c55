"""What a base or a pack is once it is loaded, as one hash: of its tensors, and of all else that decides translations."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def say_base(folder: Path) -> None:
    """Prints the hash of a base."""
    from graftmt.base import Base

    def describe() -> list[Any]:
        base = Base.load(folder)
        tensors = {name: tensor.detach() for name, tensor in base.model.named_parameters()}
        return [tensors, base.model.config, base.tokenizer.fingerprint, base.languages]

    _say(describe)


def say_pack(path: Path) -> None:
    """Prints the hash of a pack."""
    from graftmt.packs import load_pack

    def describe() -> list[Any]:
        pack = load_pack(path)
        tensors = {name: tensor.detach() for name, tensor in pack.parameters.items()}
        return [tensors, pack.side, pack.languages, str(pack.recipe), pack.base, pack.tokenizer.fingerprint]

    _say(describe)


def _say(describe: Callable[[], list[Any]]) -> None:
    """As the command line does it: errors that a user can meet are exit code 1."""
    from graftmt.errors import GraftError

    try:
        tensors, *others = describe()
    except (GraftError, OSError) as error:
        print(f"graftmt: {error}", file=sys.stderr)
        sys.exit(1)
    digest = hashlib.sha256(repr(others).encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    print(digest.hexdigest())
