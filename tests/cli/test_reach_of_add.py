"""How many modules one `graftmt add` runs functions of: who wants to follow it has to open that many files, and no more.

Class bodies do not count, nor what runs while a module is imported, nor the kinds of components.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import graftmt as package

FOLDER = f"{Path(package.__file__).parent}/"
COMPONENTS = "packs/components/"
MOST_MODULES = 108
"""108 when this was written, seven of them for back-translation. A change that needs more is looked at twice."""


@contextmanager
def entered() -> Iterator[set[str]]:
    """The modules of the package whose functions are called meanwhile, in any thread."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDER) and code.co_flags & CO_OPTIMIZED:
            name = code.co_filename.removeprefix(FOLDER)
            if name not in found and not is_imported(frame):
                found.add(name)

    before = sys.getprofile(), threading.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])


def is_imported(frame: FrameType | None) -> bool:
    """Whether a module of the package is being imported for this call."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(FOLDER):
            return True
        frame = frame.f_back
    return False


@pytest.mark.slow
def test_one_add_enters_no_more_modules_than_before(
    graftmt: Callable[..., Any],
    graft_base: Callable[..., Path],
    graft_corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    base = str(graft_base())
    quick = ("--steps", "3", "--lines", "4", "--beam", "1", "--merges", "30", "tensorboard=false", "threads=1")
    with entered() as found:
        result = graftmt("add", "el", "-b", base, "--train", str(graft_corpus), "--side", "source", *quick)
    assert result.code == 0, result.stderr
    assert {"adding/add.py", "training/loop.py", "packs/pack.py"} <= found, "what was counted is not an add"
    modules = sorted(name for name in found if not name.startswith(COMPONENTS))
    assert len(modules) <= MOST_MODULES, f"{len(modules)} modules: {', '.join(modules)}"
