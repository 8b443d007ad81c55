"""Progress: lines where standard error is no terminal, a bar where it is, nothing when quiet."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE

import graftmt
from graftmt.progress import (
    _AUDIENCE,
    BarProgress,
    PlainProgress,
    SilentProgress,
    announce,
    heard_by,
    indented,
    progress,
    say,
    silence,
)


@contextlib.contextmanager
def as_in_a_program() -> Iterator[None]:
    """Without the audience that the command line sets up."""
    before = _AUDIENCE.set(None)
    yield
    _AUDIENCE.reset(before)


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


@pytest.fixture
def loggers_as_at_first() -> Iterator[None]:
    """As Python starts: other tests, and what they import, may have left handlers and levels."""
    loggers = [logging.getLogger(), logging.getLogger("graftmt")]
    before = [(logger.level, logger.handlers) for logger in loggers]
    for logger, level in zip(loggers, (logging.WARNING, logging.NOTSET), strict=True):
        logger.handlers = []
        logger.setLevel(level)
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.handlers = handlers
        logger.setLevel(level)


@pytest.mark.parametrize("audience", [silence, None])
def test_where_nobody_listens_nothing_is_written(
    audience, capsys: pytest.CaptureFixture[str], loggers_as_at_first: None
) -> None:
    with audience() if audience else as_in_a_program():
        with progress("work", 2) as report:
            assert isinstance(report, SilentProgress)
            report.update(2, "note")
            report.message("text")
        say("a line")
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_python_programs_hear_through_logging(caplog: pytest.LogCaptureFixture) -> None:
    with as_in_a_program(), caplog.at_level(logging.INFO, logger="graftmt"):
        say("100% of it")
        with progress("work", 2) as report:
            report.update(2)
    assert caplog.messages == ["100% of it", "work: 2/2"]


def test_warnings_are_warnings_to_a_program(caplog: pytest.LogCaptureFixture) -> None:
    with as_in_a_program(), caplog.at_level(logging.INFO, logger="graftmt"):
        say("warning: little text")
        say("as it was")
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "little text"),
        ("INFO", "as it was"),
    ]


def test_what_is_said_inside_of_more_is_indented_and_a_listener_hears_no_counts() -> None:
    heard: list[str] = []
    with heard_by(heard.append):
        say("outside")
        with indented():
            say("inside")
            with silence():
                say("not heard")
            with progress("work", 1) as report:
                report.update(1)
        say("after")
    assert heard == ["outside", "   inside", "after"]


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
        announce("a line")
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
    program = (
        "from graftmt.progress import on_standard_error, progress\n"
        "with on_standard_error(), progress('work', 2) as report:\n    report.update(2, 'note')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(graftmt.__file__).parents[1])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE, env=environment)
    assert (done.stdout, done.stderr) == (b"", b"work: 2/2  note\n")
