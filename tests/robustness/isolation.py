"""Runs something in a forked child: a crash, a hang or a blow-up ends the child alone, and is told apart from an error.

A fork of a process that has torch imported takes milliseconds, a new process seconds. That is what makes many cases possible.
"""

from __future__ import annotations

import gc
import io
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path

from robustness.serving import answer_and_end

GIGABYTE = 1 << 30
MOST_DATA = 6 * GIGABYTE
"""Private memory that a child may ask for; more is refused, so that a bomb does no harm to other programs."""
MOST_WRITTEN = 1 * GIGABYTE
"""Bytes of a file that a child may write."""


@dataclass(frozen=True)
class Outcome:
    """How a child ended."""

    code: int
    """Its exit code; where a signal ended it, minus the signal's number."""
    stdout: bytes
    stderr: str
    memory: int
    """Bytes it held in memory at most; what it shares with its parent counts."""
    seconds: float
    timed_out: bool = False

    @property
    def crashed(self) -> bool:
        return self.code not in (0, 1, 2) or "Traceback (most recent call last)" in self.stderr

    @property
    def signature(self) -> str:
        """What tells one crash from another: the error and the last lines of code of graftmt that it came from."""
        if self.timed_out:
            return f"no end within {self.seconds:.0f} s"
        if "Traceback (most recent call last)" not in self.stderr:
            return f"exit code {self.code}"
        frames = re.findall(r'File "[^"]*src/(graftmt/[^"]+)", line (\d+), in (\S+)', self.stderr)
        errors = re.findall(
            r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration)?)(?::|$)", self.stderr, re.M
        )
        kind = next((name for name in reversed(errors) if name not in ("Traceback", "graftmt")), "unknown error")
        last = " ".join(f"{path}:{line} {name}" for path, line, name in frames[-1:]) or "outside graftmt"
        return f"{kind} at {last}"


def run_isolated(
    action: Callable[[], None],
    *,
    stdin: bytes = b"",
    timeout: float = 60.0,
    environment: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    folder: Path | None = None,
) -> Outcome:
    """Runs `action` in a fork, in `folder`, with its streams in files; `limits` are resource limits beside the usual ones."""
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        pipes = os.pipe(), os.pipe()  # rather than files, which limits of the child would hold for too
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            streams = (given.fileno(), pipes[0][1], pipes[1][1])
            _become_child(_inside(folder, action), streams, environment or {}, limits or {})
        for _, writing in pipes:
            os.close(writing)
        status, usage, timed_out, (output, errors) = _wait(child, timeout, (pipes[0][0], pipes[1][0]))
        return Outcome(
            code=os.waitstatus_to_exitcode(status),
            stdout=output,
            stderr=errors.decode(errors="replace"),
            memory=usage.ru_maxrss * 1024,
            seconds=time.monotonic() - started,
            timed_out=timed_out,
        )


def _wait(child: int, timeout: float, pipes: tuple[int, int]) -> tuple[int, resource.struct_rusage, bool, list[bytes]]:
    """Reads what the child says until it ends; then all that it has started ends too.

    Time in which other processes had the processor does not count: a busy machine is no hang.
    """
    said: dict[int, bytearray] = {pipe: bytearray() for pipe in pipes}
    started, handle = time.monotonic(), os.pidfd_open(child)
    try:
        ready: list[int] = []
        while handle not in ready and (left := timeout - (time.monotonic() - started) + _queued(child)) > 0:
            ready, _, _ = select.select([handle, *pipes], [], [], left)
            _read_ready(said, ready)
        if timed_out := handle not in ready:
            os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        while _read_ready(said, select.select(pipes, [], [], 0)[0]):
            pass
        return status, usage, timed_out, [bytes(said[pipe]) for pipe in pipes]
    finally:
        os.close(handle)
        for pipe in pipes:
            os.close(pipe)


def _queued(process: int) -> float:
    """Seconds in which it could have run, but waited for a processor."""
    try:
        fields = Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()
    except OSError:  # no Linux
        return 0.0
    return int(fields[1]) / 1e9 if len(fields) == 3 else 0.0


def _read_ready(said: dict[int, bytearray], ready: list[int]) -> bool:
    """Whether there was something."""
    before = sum(map(len, said.values()))
    for pipe in said.keys() & set(ready):
        said[pipe] += os.read(pipe, 1 << 20)
    return sum(map(len, said.values())) > before


def _inside(folder: Path | None, action: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        if folder is not None:
            os.chdir(folder)
        action()

    return run


def _become_child(
    action: Callable[[], None], streams: tuple[int, int, int], environment: Mapping[str, str], limits: Mapping[int, int]
) -> None:
    """Never returns."""
    code = 70
    try:
        os.setsid()
        for number, handle in enumerate(streams):
            os.dup2(handle, number)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8")
        sys.stderr = io.TextIOWrapper(
            io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True
        )
        os.environ.update(environment)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        usual = {resource.RLIMIT_DATA: MOST_DATA, resource.RLIMIT_FSIZE: MOST_WRITTEN, resource.RLIMIT_CORE: 0}
        for limit, value in {**usual, **limits}.items():
            resource.setrlimit(limit, (value, value))
        code = _exit_code(action)
        sys.stdout.flush()
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(code)


def _exit_code(action: Callable[[], None]) -> int:
    try:
        action()
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
            return 1
        return leaving.code or 0
    return 0


def command_line(*arguments: str) -> Callable[[], None]:
    """The whole command line as an action: what a user's terminal would show, without the start of a new process."""

    def run() -> None:
        from graftmt.cli.app import main

        if arguments[:1] == ("serve",):
            answer_and_end()
        # Pools of processes take seconds to start, and the texts here are small.
        os.cpu_count = lambda: 1  # type: ignore[assignment]
        sys.argv = ["graftmt", *arguments]
        main()

    return run


def warm_up() -> None:
    """Imports what commands import, once, so that children have it already."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["COLUMNS"] = "200"
    os.environ["HF_HUB_OFFLINE"] = "1"  # before anything of it is imported: a name may look like an id
    import matplotlib
    import sacrebleu  # noqa: F401
    import torch

    matplotlib.use("agg")
    import importlib
    import pkgutil

    import graftmt

    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(graftmt.__path__, "graftmt."):
        if module.name != "graftmt.__main__":
            importlib.import_module(module.name)
    _parse_options_once()
    _read_tables_once()
    settle_memory()


def _read_tables_once() -> None:
    """Files of graftmt's own that a process reads once."""
    from graftmt.experiments import definitions
    from graftmt.prepare.detector import detector

    for read in (definitions.findings, definitions.models, definitions.tables, definitions.figures, detector):
        read()
    for new in ("el", "uk"):  # the languages of the world
        detector(tuple(sorted((new, "en", "fr", "ru"))))


def settle_memory() -> None:
    """What is there now stays: children share it for good."""
    gc.collect()
    gc.freeze()


def noting_imports(action: Callable[[], None], note: Path) -> Callable[[], None]:
    """The action, which leaves the names of all modules that are imported by its end."""

    def run() -> None:
        try:
            action()
        finally:
            note.write_text("\n".join(sys.modules), encoding="utf-8")

    return run


def import_noted(note: Path) -> None:
    """Imports what a child imported, so that the next ones have it already."""
    import importlib

    for name in note.read_text(encoding="utf-8").splitlines():
        if name not in sys.modules:
            with suppress(Exception):  # some are made while a program runs
                importlib.import_module(name)


def _parse_options_once() -> None:
    """typer turns functions into commands at every call, which takes longer than most of them run."""
    import typer.main

    from graftmt.cli import app

    app.app = typer.main.get_command(app.app)  # type: ignore[assignment]
    with suppress(SystemExit), open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):  # imports on first use
        sys.argv = ["graftmt", "inspect", os.devnull]
        app.main()


def quick_folder() -> Path:
    """A place for many small files: in memory where there is one, since commands wait for the disk after each file."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) and memory.is_dir() else Path(tempfile.gettempdir())
