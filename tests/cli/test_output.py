"""Standard input, output and error that are closed, full or gone: an error or a result, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

import graftmt as package
from graftmt.cli.output import hand_over, json_text, tell
from graftmt.errors import printable

# One process, which imports everything once; each case is a fork of it.
CASES = """
import json, os, sys
import rich.console, rich.table
import graftmt.adding.add, graftmt.adding.verification, graftmt.assessment.assess, graftmt.bulk, graftmt.experiments.planning
from graftmt.cli.app import main

def run(arguments, closed):
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if number in closed:
            os.close(number)
            setattr(sys, name, None)  # as Python has it where a stream is closed
    sys.argv = ["graftmt", *arguments]
    try:
        main()
    except SystemExit as leaving:
        os._exit(leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 98)
    except BaseException as error:
        open(sys.argv[0] + ".txt", "w").write(repr(error))
        os._exit(99)
    os._exit(0)

codes = []
for arguments, closed in json.load(open(sys.argv[1])):
    child = os.fork()
    if not child:
        run(arguments, closed)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
json.dump(codes, open(sys.argv[1], "w"))
"""


@pytest.fixture
def exit_codes(tmp_path: Path) -> Any:
    def run(cases: list[tuple[list[str], list[int]]]) -> list[int]:
        path = tmp_path / "cases.json"
        path.write_text(json.dumps(cases), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", CASES, str(path)]
        subprocess.run(command, env=environment, cwd=tmp_path, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        found: list[int] = json.loads(path.read_text(encoding="utf-8"))
        return found

    return run


@pytest.mark.slow
def test_a_closed_stream_for_translate_and_inspect(exit_codes: Any, grafted: Any) -> None:
    translate = ["translate", "-b", str(grafted.base), "-s", "en", "-t", "fr", "--beam", "1", "--device", "cpu"]
    inspect = ["inspect", str(grafted.base)]
    cases = [(command, closed) for command in (translate, inspect) for closed in ([0], [1], [2], [0, 1, 2])]
    assert exit_codes(cases) == [1, 0, 0, 1, 0, 1, 0, 1]


@pytest.mark.slow
def test_closed_streams(exit_codes: Any, grafted: Any, graft_corpus: Path, tmp_path: Path) -> None:
    base, corpus = str(grafted.base), str(graft_corpus)
    text = str(graft_corpus / "test.en.txt")
    direction = ["-s", "en", "-t", "fr", "--beam", "1", "--device", "cpu"]
    # What each does with standard input, output or error closed: 0 where it needs none, 1 where it cannot do its work.
    expected: dict[tuple[str, ...], tuple[int, int, int]] = {
        ("translate", "-b", base, *direction): (1, 0, 0),  # no input, nothing to write
        ("translate", "-b", base, *direction, "-i", text, "-o", str(tmp_path / "OUT")): (0, 0, 0),
        ("inspect", base): (0, 1, 0),
        ("inspect", base, "--json"): (0, 1, 0),
        ("inspect", "nowhere"): (1, 1, 1),
        ("recipes",): (0, 1, 0),
        ("verify", "-b", base, "-n", "1"): (0, 1, 0),
        ("evaluate", "-b", base, "-c", corpus, "-n", "1", "-d", "en-fr", "-o", str(tmp_path / "OUT")): (0, 1, 0),
        ("augment", "el", "-b", base, "--train", corpus, "--spec", "2-bt", "-o", str(tmp_path / "OUT")): (0, 1, 0),
        ("prepare", "stats", corpus): (0, 1, 0),
        ("prepare", "clean", corpus, "-o", str(tmp_path / "OUT"), "--force"): (0, 1, 0),
        ("experiment", "list", "docs", "--tables", "2"): (0, 1, 0),
        ("--help",): (0, 1, 0),
        ("nonsense",): (2, 2, 2),
    }
    cases, wanted = [], []
    for number, (command, codes) in enumerate(expected.items()):
        for closed, code in enumerate(codes):
            cases.append(([part.replace("OUT", f"out-{number}-{closed}") for part in command], [closed]))
            wanted.append(code)
        cases.append(([part.replace("OUT", f"out-{number}-3") for part in command], [0, 1, 2]))
        wanted.append(max(codes))
    found = exit_codes(cases)
    wrong = [(case, code, want) for case, code, want in zip(cases, found, wanted, strict=True) if code != want]
    assert not wrong, (wrong, [path.read_text() for path in tmp_path.glob("graftmt.txt")])


@pytest.mark.slow
def test_translations_that_cannot_be_written_are_an_error(start_graftmt: Any, grafted: Any) -> None:
    arguments = ["translate", "-b", str(grafted.base), "-s", "en", "-t", "fr", "--beam", "1", "--device", "cpu"]
    with open("/dev/full", "wb") as full:
        process = start_graftmt(*arguments, stdout=full)
        _, errors = process.communicate(b"fada\n", timeout=PATIENCE)
    assert process.returncode == 1
    assert b"standard output" in errors and b"Traceback" not in errors


def test_an_argument_that_is_not_text_is_refused(start_graftmt: Any) -> None:
    process = start_graftmt("inspect", b"name\xff\x1b")
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (1, b"")
    assert b"UTF-8" in errors and b"\\udcff" in errors and b"\x1b" not in errors and b"Traceback" not in errors


HOSTILE = "a\x1b[31mb\x7f\x9b2J\u202ec\ud800\té\n"


def test_json_commands_no_terminal_and_reads_as_the_same() -> None:
    text = json_text({"name": HOSTILE, "list": [1, None]})
    assert printable(text) == text and "é" in text
    assert json.loads(text) == {"name": HOSTILE, "list": [1, None]}


@pytest.mark.parametrize("terminal", [True, False])
def test_results_are_harmless_on_a_terminal_and_paths_exact_in_a_pipe(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    tell("runs/\x1b[31m/base")
    assert capsys.readouterr().out == "runs/\\x1b[31m/base\n", "a sentence is for people"
    hand_over("runs/\x1b[31m/base")
    assert capsys.readouterr().out == ("runs/\\x1b[31m/base\n" if terminal else "runs/\x1b[31m/base\n")
