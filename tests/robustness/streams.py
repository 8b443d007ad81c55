"""Standard streams that are closed, full or no files: real processes, since Python meets these when it starts and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import graftmt
from robustness.arguments import Arguments
from robustness.cases import Finding, Tally
from robustness.isolation import Outcome

Say = Callable[[str], None]
ENDS = ("<&-", ">&-", "2>&-", ">/dev/full", "<&- >&- 2>&-", "< base")
"""As a shell writes them."""
PATIENCE = 120.0


class Streams:
    """Runs the commands of `Arguments` as they are, with other streams."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments

    def run(self, seed: int, number: int, say: Say) -> Tally:
        self.arguments.place()
        known = self.arguments.commands()
        commands = [
            *(known[name] for name in ("inspect", "translate", "verify", "recipes", "stats")),
            ["inspect", "base", "--json"],
        ]
        arguments, end = commands[number % len(commands)], ENDS[(number + number // len(commands)) % len(ENDS)]
        outcome = self._start(arguments, end)
        say(f"{arguments} {end}: {outcome.code}\n{outcome.stderr}")
        tally = Tally(cases=1, runs=1, accepted=outcome.code == 0, refused=outcome.code != 0)
        if outcome.crashed or "Exception ignored" in outcome.stderr:
            case = f"streams:{seed}:{number}"
            finding = Finding("traceback", case, "", end, arguments[0], f"{outcome.signature} ({end})", outcome.stderr[-2000:])
            tally.findings.append(finding)
        return tally

    def _start(self, arguments: list[str], end: str) -> Outcome:
        source = str(Path(graftmt.__file__).parents[1])
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" -m graftmt "$@" {end}', sys.executable, *arguments],
            env={**os.environ, **self.arguments.environment(), "PYTHONPATH": source},
            cwd=self.arguments.inside,
            input=b"bada\n",
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr.decode(errors="replace"), 0, 0.0)
