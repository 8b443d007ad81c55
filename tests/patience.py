"""How long a test waits for what has to come. Only what hangs takes that long, however busy the machine is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 1200.0
"""Seconds."""


def until(condition: Callable[[], T], every: float = 0.005) -> T:
    """What the condition gives, once that is true; a condition may raise where waiting has become useless."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"it did not come in {PATIENCE:.0f} seconds"
        threading.Event().wait(every)  # `time.sleep` is what a test may replace
    return found
