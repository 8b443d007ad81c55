"""More processes for one call of `graftmt experiment run`, each on a GPU of its own where there are several. Layer 7."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import torch

from graftmt.files import check_regular
from graftmt.folders import make_folder
from graftmt.progress import say
from graftmt.workers import environment_of_child

PATIENCE = 120.0
"""Seconds that a process gets to save what it is at, when this one ends before it."""


@dataclass
class Team:
    """The processes that were started."""

    started: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)
    """Each with its log."""

    def wait(self) -> int:
        """Until all have ended; the worst of their exit codes."""
        worst = 0
        for process, log in self.started:
            code = process.wait()
            worst = max(worst, abs(code))
            if code:
                say(f"a process ended with exit code {code}; its log is {log}")
        return worst


@contextmanager
def team(count: int, arguments: Sequence[str], logs: Path) -> Iterator[Team]:
    """`count` processes in all, this one counted: the others run `graftmt` with these arguments.

    They end with this one, which is to `wait` for them before; after an error or a signal, SIGTERM too, they are asked to stop.
    """
    environments = list(environments_of(count, visible_gpus()))
    os.environ.update(environments[0])
    if "OMP_NUM_THREADS" in environments[0]:
        torch.set_num_threads(int(environments[0]["OMP_NUM_THREADS"]))  # which has been read by now
    found = Team()
    with ExitStack() as opened:
        if count > 1:  # alone, a process has nobody to tell
            opened.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _leave))
        try:
            for number, environment in enumerate(environments[1:], 2):
                log = logs / f"process-{number}.log"
                make_folder(log.parent)
                check_regular(log)
                handle = opened.enter_context(log.open("ab"))
                # -P: this program, and not a file graftmt.py that lies in the current folder.
                command = [sys.executable, "-P", "-m", "graftmt", *arguments]
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=handle,
                    stderr=handle,
                    env={**environment_of_child(), **environment},
                )
                found.started.append((process, log))
            if found.started:
                say(f"{count} processes share the work; what the others say is in {logs}")
            yield found
        finally:
            _end(found)


def visible_gpus() -> list[str]:
    """As CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [one.strip() for one in named.split(",") if one.strip()]
    return [str(number) for number in range(torch.cuda.device_count())]


def environments_of(count: int, gpus: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """GPUs in turn, and CPU threads in equal parts unless someone has chosen."""
    threads = str(max(1, (os.cpu_count() or 1) // count))
    for number in range(count):
        environment = {} if "OMP_NUM_THREADS" in os.environ or count == 1 else {"OMP_NUM_THREADS": threads}
        yield {**environment, "CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]} if len(gpus) > 1 and count > 1 else environment


def _leave(number: int, frame: object) -> NoReturn:
    """A signal as an exception, so that what is to be done at the end is done."""
    raise SystemExit(128 + number)


def _end(found: Team) -> None:
    running = [process for process, _ in found.started if process.poll() is None]
    for process in running:
        process.terminate()  # a training saves its state and ends
    for process in running:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
