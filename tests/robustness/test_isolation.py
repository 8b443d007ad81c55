"""The attacks see what they are there to see: crashes, hangs, memory, kills, writes, and things that are not the same."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from robustness.isolation import run_isolated
from robustness.kills import kill_at, operations_in
from robustness.leavings import left_behind, snapshot

MEGABYTE = 1 << 20


def fail() -> None:
    raise KeyError("nothing")


def test_streams_and_exit_codes_come_back() -> None:
    def speak() -> None:
        print(sys.stdin.read())
        print("no", file=sys.stderr)
        sys.exit(2)

    outcome = run_isolated(speak, stdin=b"yes")
    assert (outcome.code, outcome.stdout, outcome.stderr, outcome.crashed) == (2, b"yes\n", "no\n", False)


def test_much_output_does_not_hold_the_child_up() -> None:
    assert len(run_isolated(lambda: print("x" * 3_000_000)).stdout) == 3_000_001


@pytest.mark.slow
def test_a_traceback_and_a_signal_are_crashes() -> None:
    traced = run_isolated(fail)
    assert traced.crashed and traced.signature.startswith("KeyError")
    killed = run_isolated(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert killed.crashed and killed.code == -signal.SIGKILL


@pytest.mark.slow
def test_what_does_not_end_is_ended() -> None:
    outcome = run_isolated(lambda: time.sleep(3600), timeout=0.2)
    assert outcome.timed_out


@pytest.mark.slow
def test_waiting_for_a_processor_is_no_hang() -> None:
    """One processor for both: the child needs a second of it, and gets it in two or more."""
    cores = os.sched_getaffinity(0)
    rival = os.fork()
    try:
        os.sched_setaffinity(0, {min(cores)})
        if rival == 0:
            while True:
                pass
        outcome = run_isolated(lambda: _work(1.0), timeout=1.5)
    finally:
        os.sched_setaffinity(0, cores)
        os.kill(rival, signal.SIGKILL)
        os.waitpid(rival, 0)
    assert not outcome.timed_out and outcome.code == 0


def _work(seconds: float) -> None:
    while time.process_time() < seconds:
        pass


def test_memory_is_that_of_the_child() -> None:
    small, large = run_isolated(lambda: None), run_isolated(lambda: [bytearray(b"x" * (300 * MEGABYTE))])
    assert large.memory - small.memory > 250 * MEGABYTE


def test_limits_are_those_of_the_child(tmp_path: Path) -> None:
    outcome = run_isolated(lambda: (tmp_path / "file").write_bytes(bytes(1000)), limits={resource.RLIMIT_FSIZE: 10})
    assert "File too large" in outcome.stderr


@pytest.mark.slow
def test_a_kill_comes_before_the_operation_it_is_asked_for(tmp_path: Path) -> None:
    def work() -> None:
        for name in ("first", "second", "third"):
            (tmp_path / name).write_bytes(b"x")
        os.replace(tmp_path / "first", tmp_path / "last")

    total = operations_in(work, tmp_path, {})
    assert total == 4 and (tmp_path / "last").is_file()
    for name in ("second", "third", "last"):
        (tmp_path / name).unlink()
    assert run_isolated(kill_at(work, tmp_path, 3)).code == -signal.SIGKILL
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_every_change_of_a_folder_is_seen(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "file").write_bytes(b"x")
    (tmp_path / "allowed").mkdir()
    before = snapshot(tmp_path, (tmp_path / "allowed",))
    (tmp_path / "allowed" / "new").write_bytes(b"x")
    assert snapshot(tmp_path, (tmp_path / "allowed",)) == before
    (tmp_path / "inside" / "file").write_bytes(b"y")
    assert snapshot(tmp_path, (tmp_path / "allowed",)) != before


def test_temporary_files_are_seen(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".base.123456789012.tmp").write_bytes(b"")
    assert left_behind(tmp_path) == [str(Path("run") / ".base.123456789012.tmp")]


@pytest.mark.parametrize("number", range(5))
def test_a_case_is_the_same_each_time(number: int) -> None:
    from random import Random

    from robustness.documents import mutate_json
    from robustness.mutations import mutate

    data = b'{"languages": ["en", "fr"], "rows": 3, "card": {"score": 0.5}}'
    for mutation in (mutate, lambda chance, content: mutate_json(chance, content, "/evil")):
        assert mutation(Random(number), data) == mutation(Random(number), data)
