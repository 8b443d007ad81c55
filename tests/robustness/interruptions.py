"""Work that is killed at any file operation, or meets a full disk: rerun, the command must end with the same result."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from robustness.cases import Finding, Tally
from robustness.isolation import Outcome, command_line, run_isolated
from robustness.kills import kill_at, operations_in
from robustness.leavings import left_behind, result_of
from robustness.world import WORK, World, surroundings, work_arguments

Say = Callable[[str], None]
PATIENCE = 120.0
PAGE = 4096
NEW_MOUNTS, REMOUNT, PRIVATE = 0x00020000, 32, 1 << 18 | 1 << 14
"""Flags of unshare(2) and mount(2)."""


class Interruptions:
    """Runs commands of the world in a folder of their own, with an empty cache, and disturbs them."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self._operations: dict[str, int] = {}
        self._sizes: dict[str, tuple[int, int]] = {}

    def kill(self, seed: int, number: int, say: Say) -> Tally:
        """Killed once or twice at a random operation, then left alone."""
        name, case = WORK[number % len(WORK)], f"kills:{seed}:{number}"
        chance, tally = Random(case), Tally(cases=1)
        if name not in self._operations:
            self._empty()
            self._operations[name] = operations_in(self._action(name), self.folder / "here", self._environment())
        total, places = self._operations[name], []
        self._empty()
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            places.append(chance.randint(1, total))
            outcome = self._run(kill_at(self._action(name), self.folder / "here", places[-1]))
            tally.runs += 1
            say(f"{name}: killed at operation {places[-1]} of {total}: {outcome.code}\n{outcome.stderr}")
            if outcome.code not in (0, -signal.SIGKILL):
                tally.findings.append(self._finding(case, name, f"killed at {places}", outcome, "before the kill"))
        self._finish(case, name, f"killed at {places} of {total}", tally, say)
        return tally

    def fill(self, seed: int, number: int, say: Say) -> Tally:
        """A disk that is full at a random moment, or files that may not grow; then there is room again."""
        name, case = WORK[number // 2 % len(WORK)], f"disks:{seed}:{number}"
        chance, tally = Random(case), Tally(cases=1)
        self._empty()
        needed, largest = self._measure(name)
        if number % 2 == 0 and may_mount():
            pages = max(1, int(chance.uniform(0.02, 1.1) * needed / PAGE))
            with small_disk(self.folder / "here", pages * PAGE) as grow:
                outcome = self._run(self._action(name))
                self._judge_full(case, name, f"a disk of {pages} pages", outcome, tally, say)
                grow()
                self._finish(case, name, f"a disk of {pages} pages", tally, say)
        else:
            most = chance.randint(1, largest)
            outcome = self._run(self._action(name), {resource.RLIMIT_FSIZE: most})
            self._judge_full(case, name, f"files of at most {most} bytes", outcome, tally, say)
            self._finish(case, name, f"files of at most {most} bytes", tally, say)
        return tally

    def _judge_full(self, case: str, name: str, damage: str, outcome: Outcome, tally: Tally, say: Say) -> None:
        tally.runs += 1
        tally.refused += outcome.code != 0
        say(f"{name}: {damage}: {outcome.code}\n{outcome.stderr}")
        if outcome.crashed:
            tally.findings.append(self._finding(case, name, damage, outcome, outcome.signature))

    def _finish(self, case: str, name: str, damage: str, tally: Tally, say: Say) -> None:
        """The same command again: it ends well, with the result of one that was left alone, and nothing lies around."""
        outcome = self._run(self._action(name))
        tally.runs += 1
        tally.accepted += outcome.code == 0
        say(f"{name}: again: {outcome.code}\n{outcome.stderr}")
        if outcome.code != 0:
            tally.findings.append(self._finding(case, name, damage, outcome, f"{name} does not resume: {outcome.signature}"))
            return
        found, sound = result_of(name, self.folder / "here" / "work"), result_of(name, self.world / name)
        if found != sound:
            others = sorted(key for key in found.keys() | sound.keys() if found.get(key) != sound.get(key))
            tally.findings.append(self._finding(case, name, damage, outcome, f"{name} ends with other {', '.join(others)}"))
        if left := left_behind(self.folder / "here"):
            tally.findings.append(self._finding(case, name, damage, outcome, f"{name} leaves {_shape(left[0])}", "left behind"))

    def _finding(self, case: str, name: str, damage: str, outcome: Outcome, signature: str, problem: str = "") -> Finding:
        problem = problem or ("traceback" if outcome.crashed else "not the same")
        return Finding(problem, case, name, damage, name, signature, outcome.stderr[-3000:])

    def _action(self, name: str) -> Callable[[], None]:
        return command_line(*work_arguments(self.world, name, Path("here/work")))

    def _run(self, action: Callable[[], None], limits: dict[int, int] | None = None) -> Outcome:
        return run_isolated(action, timeout=PATIENCE, environment=self._environment(), folder=self.folder, limits=limits)

    def _environment(self) -> dict[str, str]:
        return surroundings(self.world, self.folder / "here" / "cache")

    def _empty(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "here").mkdir(parents=True)

    def _measure(self, name: str) -> tuple[int, int]:
        """Bytes on the disk that a command leaves, and of the largest file."""
        if name not in self._sizes:
            outcome = self._run(self._action(name))
            assert outcome.code == 0, outcome
            sizes = [path.stat().st_size for path in (self.folder / "here").rglob("*") if path.is_file()]
            self._sizes[name] = sum(-(-size // PAGE) * PAGE for size in sizes), max(sizes)
            self._empty()
        return self._sizes[name]


def may_mount() -> bool:
    """Whether this process may have mounts of its own; tried once, in a child."""
    if not _permitted:
        child = os.fork()
        if child == 0:
            os._exit(0 if _own_mounts() else 1)
        _permitted.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and _own_mounts())
    return _permitted[0]


_permitted: list[bool] = []
_library = ctypes.CDLL(None, use_errno=True)


def _own_mounts() -> bool:
    """Mounts from here on are this process's and its children's alone, and go with them."""
    return _library.unshare(NEW_MOUNTS) == 0 and _library.mount(b"none", b"/", None, PRIVATE, None) == 0


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[], None]]:
    """A file system of so many bytes at `folder`; what is yielded makes it large."""
    place = os.fsencode(folder)
    if _library.mount(b"tmpfs", place, b"tmpfs", 0, f"size={size}".encode()) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount at {folder}")
    try:
        yield lambda: _library.mount(None, place, None, REMOUNT, b"size=256m")
    finally:
        _library.umount2(place, 2)


def _shape(name: str) -> str:
    """The name of a temporary file without what is random in it."""
    return ".".join("*" if part.isdigit() or (len(part) == 8 and "-" not in part) else part for part in name.split("."))
