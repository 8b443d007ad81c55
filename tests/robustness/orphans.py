"""Commands that start processes of their own: when the command is killed, these end too."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import graftmt
from robustness.cases import Finding, Tally
from robustness.world import KNOWN, QUICK_EXPERIMENT, World, surroundings

Say = Callable[[str], None]
START, END = 90.0, 10.0
"""Seconds in which workers must have come, and must have gone."""
LINES = 60_000
"""Of a corpus that is large enough to be worth several processes."""


class Orphans:
    """Starts real processes, since a fork of this one would not start workers as a user's command does."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder

    def run(self, seed: int, number: int, say: Say) -> Tally:
        case = f"orphans:{seed}:{number}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        commands = self._commands()
        name = list(commands)[number % len(commands)]
        environment = {**os.environ, **surroundings(self.world, self.folder / "cache")}
        environment["PYTHONPATH"] = str(Path(graftmt.__file__).parents[1])
        command = [sys.executable, "-m", "graftmt", *commands[name]]
        with (self.folder / "said.txt").open("wb") as said:
            process = subprocess.Popen(
                command, env=environment, cwd=self.folder, stdout=said, stderr=said, start_new_session=True
            )
            workers = _wait_for_workers(process)
            time.sleep(Random(case).uniform(0, 1.5))
            workers |= descendants(process.pid)
            process.kill()
            process.wait()
        left = _wait_for_end(workers)
        told = (self.folder / "said.txt").read_text(encoding="utf-8", errors="replace")
        say(f"{name}: {len(workers)} processes, {len(left)} left\n{told}")
        for one in left:
            os.kill(one, signal.SIGKILL)
        tally = Tally(cases=1, runs=1, accepted=not left)
        if left or not workers:
            problem = f"{name}: {len(left)} of {len(workers)} left after {END:.0f} s" if workers else f"{name}: no workers came"
            tally.findings.append(Finding("orphans" if workers else "not judged", case, name, "", name, problem, told[-2000:]))
        return tally

    def _commands(self) -> dict[str, list[str]]:
        corpus = self._large_corpus()
        base = str(self.world / "base")
        short = ["--beam", "1", "--max-length", "3", "--device", "cpu", "-q"]
        views = "en-fr,fr-en,ru-fr,fr-ru,en-ru,ru-en"
        return {
            "train": ["train", str(self.world / "train.yaml"), "run=run", f"data.corpus={corpus}"],
            "prepare clean": ["prepare", "clean", str(corpus), "-o", "clean", "--force", "--processes", "2", "-q"],
            "evaluate": ["evaluate", "-b", base, "-c", str(corpus), "-d", views, "-n", "4000", "-o", "scores", *short],
            "experiment run": [
                *(
                    "experiment",
                    "run",
                    "demo",
                    "--corpus",
                    str(self.world / "corpus"),
                    "--base",
                    f"4={base}",
                    "--output",
                    "experiments",
                ),
                *("--tables", "2", "--processes", "2", "-q", *QUICK_EXPERIMENT),
            ],
        }

    def _large_corpus(self) -> Path:
        folder = self.folder / "corpus"
        folder.mkdir()
        for split in ("train", "valid", "test"):
            for language in KNOWN:
                lines = (self.world / "corpus" / f"{split}.{language}.txt").read_text(encoding="utf-8").splitlines()
                wanted = 8 if split == "valid" else LINES
                text = "".join(f"{lines[number % len(lines)]} {number % 97}\n" for number in range(wanted))
                (folder / f"{split}.{language}.txt").write_text(text, encoding="utf-8")
        return folder


def _wait_for_workers(process: subprocess.Popen[bytes]) -> set[int]:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        if found := descendants(process.pid):
            time.sleep(0.5)
            return found
        time.sleep(0.02)
    return set()


def _wait_for_end(processes: set[int]) -> set[int]:
    deadline = time.monotonic() + END
    while (left := {one for one in processes if is_running(one)}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def descendants(parent: int) -> set[int]:
    """Processes that this one has started, and those that these have."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (facts := _facts(int(entry.name))):
            parents[int(entry.name)] = facts[1]
    found, newest = set[int](), {parent}
    while newest:
        newest = {child for child, own in parents.items() if own in newest}
        found |= newest
    return found


def is_running(process: int) -> bool:
    facts = _facts(process)
    return facts is not None and facts[0] not in "ZX"


def _facts(process: int) -> tuple[str, int] | None:
    """State and parent, from the kernel."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)
