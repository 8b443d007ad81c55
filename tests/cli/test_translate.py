"""`graftmt translate`: one line in, one line out, as soon as it can, whatever comes in."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

from graftmt.base import Base
from graftmt.cli.translate import chunks
from graftmt.decoding import SearchOptions
from graftmt.errors import DataError, GraftError
from graftmt.packs import load_pack, save_pack
from graftmt.translation_requests import LONGEST_BYTES
from graftmt.translator import Translator


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


@pytest.mark.slow
def test_a_line_without_end_is_named_at_once_and_not_held_in_memory(process, english: list[str], expected: list[str]) -> None:
    running = process()
    running.stdin.write(f"{english[0]}\n\n".encode())
    with suppress(BrokenPipeError):  # it need not read all of it
        running.stdin.write(b"a" * (LONGEST_BYTES + 1))
        running.stdin.flush()
    assert running.wait(timeout=PATIENCE) == 1  # while the input is open
    assert running.stdout.read().decode() == f"{expected[0]}\n\n"
    said = b"standard input, line 3, has more than 200,000 bytes. Split it into sentences, one a line.\n"
    assert running.stderr.read() == b"graftmt: " + said


def test_no_more_of_a_line_is_read_than_may_be() -> None:
    class Endless(BytesIO):
        """Without a line's end; hears how much is asked for at a time."""

        def __init__(self) -> None:
            super().__init__(b"kodo\n")
            self.asked: list[int] = []

        def readline(self, size: int | None = -1, /) -> bytes:
            self.asked.append(-1 if size is None else size)
            return super().readline(size) or b"a" * (size or 0)

        def __next__(self) -> bytes:
            raise OSError("a whole line, of any length")

    stream = Endless()
    found = chunks(stream, 1)
    assert next(found) == ["kodo"]
    with pytest.raises(DataError, match="standard input, line 2, has more than"):
        next(found)
    assert stream.asked == [LONGEST_BYTES + 1] * 2


def test_lines_up_to_the_limit_are_read() -> None:
    whole = [b"a" * (LONGEST_BYTES - 1) + b"\n", b"b\n", b"c" * LONGEST_BYTES]
    found = [line for group in chunks(BytesIO(b"".join(whole)), 8) for line in group]
    assert [len(line) for line in found] == [LONGEST_BYTES - 1, 1, LONGEST_BYTES]


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
        (["--pivot", "en"], "it is one of the two languages"),
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
    ready, _, _ = select.select([running.stdout], [], [], PATIENCE)
    if not ready:
        running.kill()
    assert ready, f"no line in {PATIENCE} seconds"
    return running.stdout.readline().decode()


@pytest.mark.slow
def test_a_producer_that_waits_gets_each_line_back_at_once(process, english: list[str], expected: list[str]) -> None:
    running = process()
    for line, translation in zip(english[:3], expected, strict=False):
        running.stdin.write(f"{line}\n".encode())
        running.stdin.flush()
        assert read_line(running) == f"{translation}\n"
    # Without its newline a line is not complete: it is translated when the input ends.
    rest, said = running.communicate(english[3].encode(), timeout=PATIENCE)
    assert (rest.decode(), said, running.returncode) == (f"{expected[3]}\n", b"", 0)


@pytest.mark.slow
def test_when_the_reader_leaves_it_stops_without_a_word(process, english: list[str], expected: list[str]) -> None:
    """As in `… | graftmt translate … | head -1`, with a producer that never ends."""
    running = process()
    running.stdin.write(f"{english[0]}\n".encode())
    running.stdin.flush()
    assert read_line(running) == f"{expected[0]}\n"
    running.stdout.close()
    running.stdin.write(f"{english[1]}\n".encode())
    running.stdin.flush()
    assert running.wait(timeout=PATIENCE) == 141
    assert running.stderr.read() == b""


@pytest.mark.slow
def test_an_error_ends_it_while_the_input_is_open_and_output_is_utf8_in_any_locale(
    process, english: list[str], expected: list[str]
) -> None:
    running = process(environment={"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"})
    running.stdin.write(f"{english[0]}\n{english[0] * 400}\n".encode())
    running.stdin.flush()
    assert running.wait(timeout=PATIENCE) == 1
    assert running.stdout.read().decode("utf-8") == f"{expected[0]}\n"
    assert running.stderr.read().startswith(b"graftmt: standard input, line 2, has ")


# Packs


@pytest.fixture
def with_packs(graftmt: Callable[..., Any], grafted) -> Callable[..., Any]:
    """`with_packs("{el},{uk}", "-s", "el", …)`: two lines of Greek, translated greedily."""

    def run(packs: str, *options: str, stdin: bytes = "κεκε λαμα\nραρα\n".encode()) -> Any:
        chosen = packs.format(**grafted._asdict())
        return graftmt("translate", "-b", str(grafted.base), "--packs", chosen, "--beam", "1", *options, stdin=stdin)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("pivot", [None, "en"])
def test_packs_open_directions_and_combine(with_packs, grafted, pivot: str | None) -> None:
    lines = ["κεκε λαμα", "ραρα"]
    translator = Translator(grafted.base, [grafted.el, grafted.uk])
    for source, target in (("el", "fr"), ("el", "uk"), ("fr", "uk")):
        expected = translator.translate(lines, source=source, target=target, pivot=pivot, options=SearchOptions(beam=1))
        result = with_packs("{el},{uk}", "-s", source, "-t", target, *(["--pivot", pivot] if pivot else []))
        assert result == (0, "".join(f"{line}\n" for line in expected), "")


def test_an_archive_serves_as_well_as_a_folder(with_packs, grafted, tmp_path: Path) -> None:
    archive = tmp_path / "el.graftpack"
    save_pack(load_pack(grafted.el), archive, Base.load(grafted.base).model.config)
    assert with_packs(str(archive), "-s", "el", "-t", "fr") == with_packs("{el}", "-s", "el", "-t", "fr")


def test_of_several_packs_for_a_language_one_is_named(with_packs) -> None:
    both = "a={el},b={other},{uk}"
    ambiguous = with_packs(both, "-s", "el", "-t", "fr")
    assert ambiguous.code == 1
    assert "'el' as source has several packs: a, b. Say which one with --source-pack" in ambiguous.stderr
    for name, alone in (("a", "{el}"), ("b", "{other}")):
        assert with_packs(both, "-s", "el", "-t", "fr", "--source-pack", name) == with_packs(alone, "-s", "el", "-t", "fr")
    assert with_packs(both, "-s", "en", "-t", "uk").code == 0


@pytest.mark.parametrize(
    ("packs", "options", "words"),
    [
        ("{el},{other}", ["-s", "el", "-t", "fr"], "two packs for el as source: give each a name (NAME=PATH"),
        ("a={el},a={other}", ["-s", "el", "-t", "fr"], "is the second pack with the name 'a'"),
        ("a=,{el}", ["-s", "el", "-t", "fr"], "'a=' has no path"),
        ("{el}", ["-s", "en", "-t", "el"], "'el' is installed as a source only"),
        ("{uk}", ["-s", "uk", "-t", "en"], "'uk' is installed as a target only"),
        (
            "{el}",
            ["-s", "kab", "-t", "en"],
            "nor in a pack here (installed: el); if you have a pack for it, give it with --packs",
        ),
        ("{el}", ["-s", "el", "-t", "en", "--source-pack", "x"], "the pack 'x' is not one for 'el' as source"),
        ("{el},{uk}", ["-s", "el", "-t", "en", "--target-pack", "uk-target"], "as target it takes no pack"),
        ("{el}", ["-s", "el", "-t", "en", "--pivot", "it"], "'it' is neither in the base"),
        ("nowhere", ["-s", "el", "-t", "en"], "there is no pack nowhere"),
        ("{base}", ["-s", "el", "-t", "en"], "is a base; give it with -b"),
    ],
)
def test_packs_that_do_not_serve_are_one_paragraph_and_exit_code_1(
    with_packs, packs: str, options: list[str], words: str
) -> None:
    result = with_packs(packs, *options)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_the_packs_in_a_folder_that_is_none_are_named(with_packs, grafted, tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    for name, pack in (("el-source", grafted.el), ("uk-target", grafted.uk)):
        shutil.copytree(pack, folder / name)
    shutil.copytree(grafted.other, folder / "run" / "pack")
    (folder / "el.graftpack").write_bytes(b"")
    (folder / "something-else").mkdir()
    for given in (f"{folder}", f"x={folder}", f"{{uk}},{folder}"):
        result = with_packs(given, "-s", "el", "-t", "uk")
        assert (result.code, result.stdout) == (1, "")
        assert f"{folder} is no pack; it holds 4 packs: el-source, el.graftpack, run/pack, uk-target. " in result.stderr
        assert f"Name them: -p {folder}/el-source,{folder}/el.graftpack" in result.stderr
    result = with_packs(str(folder / "run"), "-s", "el", "-t", "en")
    assert f"did you mean {folder}/run/pack?" in result.stderr


def test_a_pack_of_another_base_is_refused(with_packs, graft_base: Callable[..., Path]) -> None:
    result = with_packs("{el}", "-b", str(graft_base("post")), "-s", "el", "-t", "en")
    assert (result.code, result.stdout) == (1, "")
    assert "the pack el (source) was made for the base" in result.stderr


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda content: content[: len(content) // 2], "truncated or damaged"),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), "was changed or damaged after it was made"),
    ],
)
def test_a_damaged_pack_is_refused(with_packs, grafted, tmp_path: Path, damage: Callable[[bytes], bytes], words: str) -> None:
    copy = Path(shutil.copytree(grafted.el, tmp_path / "copy"))
    path = copy / "pack.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    result = with_packs(str(copy), "-s", "el", "-t", "en")
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr


def test_a_path_with_an_equals_sign_is_a_path_where_it_exists(with_packs, grafted, tmp_path: Path) -> None:
    copy = shutil.copytree(grafted.el, tmp_path / "lr=0.1")
    assert with_packs(str(copy), "-s", "el", "-t", "fr") == with_packs("{el}", "-s", "el", "-t", "fr")
