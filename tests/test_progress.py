"""Progress: lines where standard error is no terminal, a bar where it is, nothing when quiet."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import graftmt
from graftmt.progress import BarProgress, PlainProgress, SilentProgress, progress, say


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that progress sees; tests move it."""
    now = [0.0]
    monkeypatch.setattr("graftmt.progress.time.monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_are_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("tokenising", 3000) as report:
        assert isinstance(report, PlainProgress)
        report.message("a line that stays")
        report.update(3000, "done")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == ["a line that stays", "tokenising: 3,000/3,000  done"]


def test_plain_lines_come_once_in_a_while_and_at_the_end(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    report = PlainProgress("training", 100, seconds=10)
    for done in range(1, 101):
        clock[0] += 1
        report.update(done)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"training: {done}/100" for done in range(10, 101, 10)]


@pytest.mark.parametrize("total", [0, 1_000_000])
def test_an_unknown_total_is_not_shown_and_does_not_flood(
    clock: list[float], capsys: pytest.CaptureFixture[str], total: int
) -> None:
    report = PlainProgress("reading", total, seconds=10)
    for done in range(1, 26):
        clock[0] += 1
        report.update(done)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"reading: {done}" + (f"/{total:,}" if total else "") for done in (10, 20)]


def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("work", 2) as report:
        assert isinstance(report, SilentProgress)
        report.update(2, "note")
        report.message("text")
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_terminal_gets_a_bar_and_messages_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("work", 10) as report:
        assert isinstance(report, BarProgress)
        report.update(4, "note")
        assert report.bar.tasks[0].completed == 4
        report.message("[not markup] 10%")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "[not markup] 10%" in captured.err


HOSTILE = "\x1b[31mred [/x] [bold]\x07"


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_reported_commands_no_terminal_and_is_no_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "200")
    with progress(HOSTILE, 10) as report:
        report.update(10, HOSTILE)
        report.message(HOSTILE)
    said = capsys.readouterr().err
    assert said.count("\\x1b[31mred [/x] [bold]\\x07") >= 2
    assert "\x1b[31mred" not in said and "\x07" not in said


def test_where_nobody_reads_what_is_said_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        say("a line")
        with progress("work", 1) as report:
            report.update(1)
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()


def test_an_error_inside_passes_through(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="inside"), progress("work", 10):
        raise ValueError("inside")
    assert capsys.readouterr().err == ""


def test_a_pipe_on_standard_error_gets_lines_and_no_control_codes() -> None:
    program = "from graftmt.progress import progress\nwith progress('work', 2) as report:\n    report.update(2, 'note')"
    environment = {**os.environ, "PYTHONPATH": str(Path(graftmt.__file__).parents[1])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment)
    assert (done.stdout, done.stderr) == (b"", b"work: 2/2  note\n")
