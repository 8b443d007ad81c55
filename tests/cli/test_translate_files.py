"""`graftmt translate --input --output`: real processes, killed at random moments, and what the command says."""

from __future__ import annotations

import gzip
import json
import os
import pty
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE, until


@pytest.fixture
def options(graft_base: Callable[..., Path]) -> list[str]:
    direction = ["-s", "en", "-t", "fr", "--beam", "2", "--max-length", "8", "--device", "cpu"]
    return ["translate", "-b", str(graft_base()), *direction]


@pytest.fixture
def translate(graftmt: Callable[..., Any], options: list[str], tmp_path: Path) -> Callable[..., Any]:
    """`translate("--beam", "1")`, from in.en to out.fr."""
    files = ["--input", str(tmp_path / "in.en"), "--output", str(tmp_path / "out.fr")]
    return lambda *more, stdin=b"": graftmt(*options, *files, *more, stdin=stdin)


@pytest.fixture
def english(graft_corpus: Path) -> bytes:
    return (graft_corpus / "train.en.txt").read_bytes()


@pytest.mark.parametrize("text", [b"bada kofe\r\n\r\n  \ngelo lako", b"\n\n", b"", b"lako", b"\xef\xbb\xbflako\n"])
def test_a_file_gives_what_standard_input_gives(graftmt, options, translate, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "in.en").write_bytes(text)
    piped = graftmt(*options, stdin=text)
    result = translate("--quiet")
    assert (result.code, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / "out.fr").read_text(encoding="utf-8") == piped.stdout


def done_lines(state: Path) -> int:
    """What is stated as done; -1 before anything is begun."""
    try:
        return int(json.loads(state.read_text(encoding="utf-8"))["position"]["lines"])
    except FileNotFoundError:
        return -1


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "seed"), [("", 1), (".gz", 2)])
def test_killed_at_random_moments_it_goes_on_to_the_same_output(
    start_graftmt, graftmt, options: list[str], english: bytes, tmp_path: Path, suffix: str, seed: int
) -> None:
    """Each process is killed a random moment after it has got further than the one before; the last is left alone."""
    chance = random.Random(seed)
    text = tmp_path / f"in{suffix}"
    text.write_bytes(gzip.compress(english * 10) if suffix else english * 10)
    assert graftmt(*options, "-i", str(text), "-o", str(tmp_path / f"whole{suffix}"), "--chunk", "50", "-q").code == 0
    output, state = tmp_path / f"out{suffix}", tmp_path / f"out{suffix}.work.json"
    command = [*options, "-i", str(text), "-o", str(output), "--chunk", "50"]
    reached = []
    for _ in range(3):
        running = start_graftmt(*command)
        before = max(done_lines(state), 0)
        until(lambda: done_lines(state) > before or running.poll() is not None)  # noqa: B023
        time.sleep(chance.random() * 0.3)
        running.kill()
        running.communicate()
        assert running.returncode == -9, "it was done before it could be killed: give it more to do"
        assert not output.exists()
        reached.append(done_lines(state))
    assert 0 < reached[0] < reached[1] < reached[2] < 3000
    last = start_graftmt(*command, "--json")
    said, shown = (stream.decode() for stream in last.communicate(timeout=PATIENCE))
    assert last.returncode == 0, shown
    assert output.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    assert f"{reached[2]:,} lines of {text} were translated before" in shown
    assert json.loads(said)["translated_now"] == 3000 - reached[2]
    assert not output.with_name(f"{output.name}.partial").exists()
    assert graftmt(*command, "--json").code == 0  # killed after all was done, it finds that out


def test_the_summary_counts(translate, english: bytes, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_bytes(english)
    result = translate("--json")
    summary = json.loads(result.stdout)
    assert (summary["lines"], summary["translated_now"], summary["skipped"]) == (300, 300, 0)
    assert summary["lines_per_second"] == pytest.approx(300 / summary["seconds"], rel=0.05)
    assert summary["tokens_per_second"] > summary["lines_per_second"] > 0
    assert "en-fr: 300/300" in result.stderr
    again = translate("--fresh")
    assert again.stdout == ""
    assert f"300 lines in {tmp_path / 'out.fr'}: " in again.stderr


@pytest.mark.slow
def test_on_a_terminal_there_is_a_bar_with_the_pace(start_graftmt, options: list[str], english: bytes, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_bytes(english)
    ours, theirs = pty.openpty()
    files = ["-i", str(tmp_path / "in.en"), "-o", str(tmp_path / "out.fr"), "--chunk", "50"]
    running = start_graftmt(
        *options, *files, stderr=theirs, stdin=subprocess.DEVNULL, environment={"COLUMNS": "120", "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:
        pass  # Linux says so when the other end is closed
    finally:
        os.close(ours)
    assert running.wait(timeout=PATIENCE) == 0
    running.stdout.close()
    assert "━" in shown.decode()
    assert "lines/s" in shown.decode()


def test_changed_options_are_named(translate, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_bytes(b"bada kofe\ngelo\n\xff\n")
    assert translate("--chunk", "2").code == 1
    for change, words in ((["--beam", "3"], "beam: 2 then, 3 now"), (["--length-penalty", "0.5"], "length_penalty: 1.0 then")):
        result = translate("--chunk", "2", *change)
        assert (result.code, result.stdout) == (1, "")
        assert words in result.stderr
        assert "start over with --fresh" in result.stderr
    result = translate("--chunk", "2", "--skip-bad-lines", "--json")
    assert result.code == 0
    assert json.loads(result.stdout)["translated_now"] == json.loads(result.stdout)["skipped"] == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--input", "in.en"], "--output is missing: give both files"),
        (["--output", "out.fr"], "--input is missing"),
        (["--fresh"], "--fresh is for --input and --output"),
        (["--skip-bad-lines"], "--skip-bad-lines is for --input and --output"),
        (["-i", "nowhere", "-o", "out.fr"], "there is no file nowhere"),
        (["-i", "PIPE", "-o", "out.fr"], "no plain file"),
        (["-i", "in.en", "-o", "/dev/null", "--fresh"], "no plain file"),
    ],
)
def test_what_cannot_be_meant_is_one_paragraph_and_exit_code_1(
    graftmt, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], words: str
) -> None:
    if more[:2] == ["-i", "PIPE"]:
        reader, _ = os.pipe()
        more = ["-i", f"/proc/self/fd/{reader}", *more[2:]]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.en").write_bytes(b"lako\n")
    result = graftmt(*options, *more)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"in.en"}
