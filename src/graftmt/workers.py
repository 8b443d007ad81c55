"""Processes that end when the one that started them does, however it ends: `kill -9` leaves no worker behind. Layer 0."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from graftmt.errors import GraftError

PARENT = "GRAFTMT_PARENT"
"""Environment of a process of our own program: the id of the process to end with."""
LOOK_SECONDS = 0.5
PATIENCE = 30.0
"""Seconds that a whole program gets to save its state, once the process that started it is gone."""


class _Process(SpawnProcess):
    """Begins with an empty `__main__`: otherwise each worker would run a user's script from the top, and end in an error unless
    all of the script is under `if __name__ == "__main__"`. What is sent to workers lies in importable modules."""

    def start(self) -> None:
        with _starting:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = main


class _Context(SpawnContext):
    """`spawn`, as a fork of a process that holds torch's threads can deadlock."""

    Process = _Process


_starting = threading.Lock()


@contextmanager
def pool(
    processes: int, initializer: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool whose workers end with this process. After an error, what has not begun is not done."""
    workers = ProcessPoolExecutor(processes, mp_context=_Context(), initializer=_begin, initargs=(initializer, *arguments))
    try:
        yield workers
    except BrokenProcessPool:
        raise GraftError(
            "a worker process was killed, by the system for want of memory or by someone; free some memory and run the same "
            "command again."
        ) from None
    finally:
        workers.shutdown(cancel_futures=True)


def _begin(initializer: Callable[..., None] | None, *arguments: Any) -> None:
    """In each worker, before its first piece of work."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback of its own
    threading.Thread(target=_watch_sentinel, name="graftmt-parent", daemon=True).start()
    if initializer is not None:
        initializer(*arguments)


def _watch_sentinel() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])  # a pipe that the system closes with the parent, also when it is killed
    os._exit(1)


def environment_of_child() -> dict[str, str]:
    """This process's environment, for another `graftmt` that is to end with it."""
    return {**os.environ, PARENT: str(os.getpid())}


def end_with_parent() -> None:
    """Where another `graftmt` started this one: once that is gone, stop as after SIGTERM, and after a while at once."""
    parent = os.environ.pop(PARENT, "")
    if parent.isdecimal():
        threading.Thread(target=_watch_parent, args=(int(parent),), name="graftmt-parent", daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)  # a training saves its state
    time.sleep(PATIENCE)
    os._exit(1)
