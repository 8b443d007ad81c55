"""`graftmt translate`: one line in, one line out, as soon as it can, whatever comes in."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.errors import GraftError
from graftmt.translator import Translator

TIMEOUT = 60.0


@pytest.fixture(scope="module")
def english(toy_corpus: Path) -> list[str]:
    return (toy_corpus / "test.en.txt").read_text(encoding="utf-8").splitlines()[:8]


@pytest.fixture(scope="module")
def expected(toy_base: Path, english: list[str]) -> list[str]:
    """What the library makes of these lines."""
    return Translator(toy_base).translate(english, source="en", target="xb")


@pytest.fixture
def translate(graftmt: Callable[..., Any], toy_base: Path) -> Callable[..., Any]:
    """`translate("--beam", "1", stdin=b"…")`, from en into xb."""
    return lambda *options, stdin: graftmt("translate", "-b", str(toy_base), "-s", "en", "-t", "xb", *options, stdin=stdin)


def test_it_gives_what_the_library_gives_and_the_library_is_right(
    translate, english: list[str], expected: list[str], toy_corpus: Path
) -> None:
    result = translate(stdin="\n".join(english).encode() + b"\n")
    assert result == (0, "".join(f"{line}\n" for line in expected), "")
    references = (toy_corpus / "test.xb.txt").read_text(encoding="utf-8").splitlines()
    assert sum(line == reference for line, reference in zip(expected, references, strict=False)) >= 6


@pytest.mark.parametrize(
    ("ending", "last"), [("\n", ""), ("\r\n", ""), ("\r\n", "\r\n"), ("\n", "\n")], ids=["open", "crlf-open", "crlf", "lf"]
)
def test_line_endings_do_not_matter(translate, english: list[str], expected: list[str], ending: str, last: str) -> None:
    result = translate(stdin=(ending.join(english[:3]) + last).encode())
    assert result.stdout.splitlines() == expected[:3]
    assert result.stdout.endswith("\n")


def test_lines_without_words_stay_where_they_are(translate, english: list[str], expected: list[str]) -> None:
    text = f"\n{english[0]}\n   \n\t\r\n{english[1]}\n\n"
    result = translate(stdin=text.encode())
    assert result.stdout.split("\n") == ["", expected[0], "", "", expected[1], "", ""]


def test_no_input_gives_no_output(translate) -> None:
    assert translate(stdin=b"") == (0, "", "")


def test_how_many_lines_go_at_once_does_not_matter(translate, english: list[str], expected: list[str]) -> None:
    result = translate("--chunk", "3", stdin="\n".join(english).encode())
    assert result.stdout.splitlines() == expected


@pytest.mark.parametrize("chunk", ["2", "1024"])
def test_a_line_too_long_is_named_and_the_lines_before_it_are_translated(
    translate, english: list[str], expected: list[str], chunk: str
) -> None:
    long = " ".join([english[0]] * 400)
    result = translate("--chunk", chunk, stdin="\n".join([*english[:3], long, *english[3:]]).encode())
    assert result.code == 1
    assert result.stdout.splitlines() == expected[:3]
    assert f"standard input, line 4, has {len(long):,} characters" in result.stderr
    assert "Split it" in result.stderr


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"kodo \xff", "line 3: not valid UTF-8 (byte 0xff at column 6); convert it"),
        (b"\xd0", "line 3: not valid UTF-8 (byte 0xd0 at column 1)"),
        (b"kodo\0", "line 3: a NUL byte"),
    ],
)
def test_what_is_not_text_is_named_and_the_lines_before_it_are_translated(
    translate, english: list[str], expected: list[str], bad: bytes, words: str
) -> None:
    lines = [english[0].encode(), english[1].encode(), bad, english[2].encode()]
    result = translate(stdin=b"\n".join(lines))
    assert result.code == 1
    assert result.stdout.splitlines() == expected[:2]
    assert words in result.stderr


def test_characters_the_vocabulary_lacks_do_no_harm(translate) -> None:
    result = translate(stdin="東京 🎉 ÅΩ \u2028 <s> </s> <lang:xa>\n\ufeff\u200b\n".encode())
    assert result.code == 0
    assert result.stdout.count("\n") == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-t", "xxb"], "nor in a pack here (installed: none); did you mean 'xb'?"),
        (["-s", "kab"], "make one with `graftmt add kab`"),
        (["-t", "en"], "source and target are both 'en'"),
        (["--beam", "0"], "beam"),
        (["--n-best", "6"], "n_best is 6; it must be between 1 and the beam, 5"),
        (["--dtype", "fp8"], "unknown precision 'fp8'"),
        (["--device", "tpu"], "device 'tpu' cannot be used"),
        (["-b", "nowhere"], "there is no base folder nowhere"),
    ],
)
def test_what_cannot_be_meant_is_one_paragraph_and_exit_code_1(translate, options: list[str], words: str) -> None:
    result = translate(*options, stdin=b"kodo\n")
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith("graftmt: ")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_where_an_error_comes_from(graftmt, toy_base: Path, place: str) -> None:
    command = ["translate", "-b", str(toy_base), "-s", "en", "-t", "xy"]
    with pytest.raises(GraftError, match="'xy' is neither in the base"):
        graftmt(*(["--debug", *command] if place == "before" else [*command, "--debug"]))


def test_n_best_gives_several_on_a_line_the_best_first(translate, english: list[str], expected: list[str]) -> None:
    result = translate("--n-best", "3", stdin=f"{english[0]}\n\n{english[1]}".encode())
    first, empty, second = (line.split("\t") for line in result.stdout.splitlines())
    assert empty == [""]
    for found, best in ((first, expected[0]), (second, expected[1])):
        assert found[0] == best
        assert len(set(found)) == 3


def test_json_gives_an_object_a_line(translate, english: list[str], expected: list[str]) -> None:
    result = translate("--json", "--n-best", "2", stdin=f"{english[0]}\r\n\n".encode())
    entries = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["source"] for entry in entries] == [english[0], ""]
    best, other = entries[0]["translations"]
    assert best["text"] == expected[0]
    assert best["finished"]
    assert other["score"] <= best["score"] <= 0
    assert entries[1]["translations"] == [{"text": "", "score": 0.0, "finished": True}]


def test_max_length_cuts_and_says_so(translate, english: list[str], expected: list[str]) -> None:
    result = translate("--max-length", "2", "--json", stdin=english[0].encode())
    translation = json.loads(result.stdout)["translations"][0]
    assert not translation["finished"]
    assert len(translation["text"]) < len(expected[0])


@pytest.fixture
def process(start_graftmt: Callable[..., subprocess.Popen[bytes]], toy_base: Path) -> Callable[..., subprocess.Popen[bytes]]:
    return lambda **options: start_graftmt("translate", "-b", str(toy_base), "-s", "en", "-t", "xb", **options)


def read_line(running: subprocess.Popen[bytes]) -> str:
    """The next line of its output; one that does not come is a failure, not a wait for ever."""
    ready, _, _ = select.select([running.stdout], [], [], TIMEOUT)
    if not ready:
        running.kill()
    assert ready, f"no line in {TIMEOUT} seconds"
    return running.stdout.readline().decode()


def test_a_producer_that_waits_gets_each_line_back_at_once(process, english: list[str], expected: list[str]) -> None:
    running = process()
    for line, translation in zip(english[:3], expected, strict=False):
        running.stdin.write(f"{line}\n".encode())
        running.stdin.flush()
        assert read_line(running) == f"{translation}\n"
    # Without its newline a line is not complete: it is translated when the input ends.
    rest, said = running.communicate(english[3].encode(), timeout=TIMEOUT)
    assert (rest.decode(), said, running.returncode) == (f"{expected[3]}\n", b"", 0)


def test_when_the_reader_leaves_it_stops_without_a_word(process, english: list[str], expected: list[str]) -> None:
    """As in `… | graftmt translate … | head -1`, with a producer that never ends."""
    running = process()
    running.stdin.write(f"{english[0]}\n".encode())
    running.stdin.flush()
    assert read_line(running) == f"{expected[0]}\n"
    running.stdout.close()
    running.stdin.write(f"{english[1]}\n".encode())
    running.stdin.flush()
    assert running.wait(timeout=TIMEOUT) == 141
    assert running.stderr.read() == b""


def test_an_error_ends_it_while_the_input_is_open_and_output_is_utf8_in_any_locale(
    process, english: list[str], expected: list[str]
) -> None:
    running = process(environment={"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"})
    running.stdin.write(f"{english[0]}\n{english[0] * 400}\n".encode())
    running.stdin.flush()
    assert running.wait(timeout=TIMEOUT) == 1
    assert running.stdout.read().decode("utf-8") == f"{expected[0]}\n"
    assert running.stderr.read().startswith(b"graftmt: standard input, line 2, has ")
