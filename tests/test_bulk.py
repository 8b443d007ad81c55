"""Whole files: what the library makes of their lines, whatever the window, the compression and the interruptions."""

from __future__ import annotations

import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.bulk import FileJob, FileResult, raw_lines, translate_file
from graftmt.data.line_files import compressed, open_binary
from graftmt.decoding import SearchOptions
from graftmt.errors import ConfigError, DataError, GraftError
from graftmt.packs import Pack, save_pack
from graftmt.translation_requests import LONGEST_BYTES, LONGEST_SOURCE
from graftmt.translator import Translator

OPTIONS = SearchOptions(beam=2, max_length=5)
LONG = "lako " * LONGEST_SOURCE


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


@pytest.fixture(scope="module")
def translator(base: Base) -> Translator:
    return Translator(base)


@pytest.fixture(scope="module")
def lines(graft_corpus: Path) -> list[str]:
    """With empty ones between."""
    found = (graft_corpus / "test.en.txt").read_text(encoding="utf-8").splitlines()
    return [*found[:7], "", *found[7:11], "  "]


@pytest.fixture(scope="module")
def expected(translator: Translator, lines: list[str]) -> str:
    found = translator.translate(lines, source="en", target="fr", options=OPTIONS)
    assert len(set(found)) > 5
    return "".join(f"{line}\n" for line in found)


@pytest.fixture
def job(tmp_path: Path, lines: list[str]) -> Callable[..., FileJob]:
    """`job(text=…, window=3)`: from in.txt, en, to out.txt, fr."""

    def make(text: bytes | str | None = None, *, name: str = "in.txt", output: str = "out.txt", **changes: Any) -> FileJob:
        path = tmp_path / name
        if text is not None or not path.exists():
            text = "".join(f"{line}\n" for line in lines) if text is None else text
            path.write_bytes(compressed(text.encode() if isinstance(text, str) else text, path))
        job = {"source": "en", "target": "fr", "options": OPTIONS, "window": 4, **changes}
        return FileJob(input=path, output=tmp_path / output, **job)

    return make


class Killed(BaseException):
    """Like a kill, as far as a process can do that to itself."""


@pytest.fixture
def dying(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`dying(job, after=2)`: translates two windows and a bit."""

    def run(job: FileJob, *, after: int, by: Translator = translator) -> None:
        real, windows = by.translate_requests, []

        def translate(requests: Any, *rest: Any) -> Any:
            windows.append(len(requests))
            if len(windows) > after:
                raise Killed
            return real(requests, *rest)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(by, "translate_requests", translate)
            translate_file(by, job)

    return run


@pytest.mark.parametrize("window", [1, 4, 13, 100])
def test_it_gives_what_the_library_gives(translator: Translator, job, expected: str, window: int) -> None:
    result = translate_file(translator, job(window=window))
    assert result.output.read_text(encoding="utf-8") == expected
    assert {path.name for path in result.output.parent.iterdir()} == {"in.txt", "out.txt", "out.txt.work.json"}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_endings_do_not_matter(translator, job, lines, expected: str, ending: str, last: bool) -> None:
    text = ending.join(lines[:-1]) + ending * last
    result = translate_file(translator, job("\ufeff" + text))
    assert result.lines == len(lines) - 1
    assert result.output.read_text(encoding="utf-8").splitlines() == expected.splitlines()[:-1]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_an_empty_file_gives_an_empty_file_of_its_kind(translator: Translator, job, suffix: str) -> None:
    result = translate_file(translator, job("", name="in" + suffix, output="out" + suffix))
    assert result.to_dict() | {"seconds": 0.0} == {
        "input": str(result.input),
        "output": str(result.output),
        **dict.fromkeys(("lines", "translated_now", "skipped"), 0),
        **dict.fromkeys(("seconds", "lines_per_second", "tokens_per_second"), 0.0),
    }
    with open_binary(result.output) as handle:
        assert handle.read() == b""
    assert (result.output.stat().st_size > 0) == bool(suffix)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_what_was_interrupted_goes_on_to_the_same_bytes(translator, job, dying, expected, suffix: str, after: int) -> None:
    """Compressed or not, on both sides."""
    whole = translate_file(translator, job(name="in" + suffix, output="whole" + suffix))
    interrupted = job(name="in" + suffix, output="out" + suffix)
    dying(interrupted, after=after)
    assert not interrupted.output.exists()
    result = translate_file(translator, interrupted)
    assert result.translated == whole.lines - 4 * after
    assert result.lines == whole.lines
    assert result.output.read_bytes() == whole.output.read_bytes()
    with open_binary(result.output) as handle:
        assert handle.read().decode() == expected
    assert not interrupted.output.with_name(f"out{suffix}.partial").exists()
    again = translate_file(translator, interrupted)
    assert (again.lines, again.translated) == (whole.lines, 0)


def test_other_programs_read_what_is_compressed_in_pieces(translator: Translator, job, expected: str) -> None:
    for suffix, decompress in ((".gz", gzip.decompress), (".xz", lzma.decompress)):
        result = translate_file(translator, job(output="out" + suffix))
        assert decompress(result.output.read_bytes()).decode() == expected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"options": SearchOptions(beam=3, max_length=5)}, "beam: 2 then, 3 now"),
        ({"options": SearchOptions(beam=2, max_length=5, batch_tokens=64)}, "batch_tokens: 8192 then, 64 now"),
        ({"window": 5}, "chunk: 4 then, 5 now"),
        ({"target": "ru"}, "target: 'fr' then, 'ru' now"),
        ({"pivot": "ru"}, "pivot: None then, 'ru' now"),
        ({"desegment": True}, "desegment: False then, True now"),
        ({"text": "bada kofe\n"}, r"input\.bytes: \d+ then, 10 now; input\.sha256: '"),
    ],
)
def test_other_options_or_text_are_refused_until_it_starts_over(
    translator, job, dying, change: dict[str, Any], words: str
) -> None:
    dying(job(), after=2)
    with pytest.raises(GraftError, match=rf"out\.txt\.partial .*: {words}.*--fresh"):
        translate_file(translator, job(**change))
    result = translate_file(translator, job(**change, fresh=True))
    assert result.translated == result.lines
    alone = translate_file(translator, job(**change, output="alone"))
    assert result.output.read_bytes() == alone.output.read_bytes()


def test_another_base_or_pack_is_refused(
    base: Base, graft_base: Callable[..., Path], train_graft: Callable[..., Pack], job, dying, tmp_path: Path
) -> None:
    packs = [train_graft(tmp_path / name, base, "source", "embed", steps=steps) for name, steps in (("a", 1), ("b", 2))]
    for pack in packs:
        save_pack(pack, tmp_path / "stored", base.model.config)
    first, other = (Translator(base, [pack]) for pack in packs)
    greek = job("καλο μενα\nλαπο\n", source="el", window=1)
    dying(greek, after=1, by=first)
    with pytest.raises(GraftError, match=f"begun otherwise: source_pack: '{packs[0].fingerprint}' then"):
        translate_file(other, greek)
    assert translate_file(first, greek).translated == 1
    english = job(name="english.txt", output="english")
    dying(english, after=1, by=first)
    with pytest.raises(GraftError, match=r"begun otherwise: base: '[0-9a-f]+' then"):
        translate_file(Translator(graft_base("post")), english)
    # A pack that has no part in the direction makes no difference.
    assert translate_file(other, english).translated == 9


BAD = {"utf-8": (b"kodo \xff", "line 6: not valid UTF-8"), "nul": (b"ko\0do", "line 6: a NUL byte")}
BAD |= {"long": (LONG.encode(), "line 6, has 5,120 characters"), "endless": (b"a" * (3 * LONGEST_BYTES), "line 6, has 600,00")}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_line_ends_it_and_may_be_skipped_from_there(translator, job, lines, expected, capsys, kind: str) -> None:
    bad, words = BAD[kind]
    text = b"\n".join([*(line.encode() for line in lines[:5]), bad, *(line.encode() for line in lines[5:])]) + b"\n"
    with pytest.raises(DataError, match=rf"in\.txt, {words}.*--skip-bad-lines"):
        translate_file(translator, job(text))
    result = translate_file(translator, job(skip_bad_lines=True))
    assert (result.translated, result.skipped) == (len(lines) + 1 - 4, 1)
    found = expected.splitlines()
    assert result.output.read_text(encoding="utf-8").splitlines() == [*found[:5], "", *found[5:]]
    assert words in capsys.readouterr().err
    assert "1 could not be translated" in str(result)


def test_many_bad_lines_are_counted_and_not_all_named(translator: Translator, job, capsys) -> None:
    result = translate_file(translator, job(b"\xff\n" * 50 + b"lako\n", skip_bad_lines=True))
    assert (result.lines, result.skipped) == (51, 50)
    assert capsys.readouterr().err.count("not valid UTF-8") == 20


def test_n_best_stands_on_one_line(translator: Translator, job, lines: list[str]) -> None:
    options = SearchOptions(beam=2, n_best=2, max_length=5)
    result = translate_file(translator, job(options=options))
    assert [line.count("\t") for line in result.output.read_text(encoding="utf-8").splitlines()] == [
        int(bool(line.strip())) for line in lines
    ]


def test_its_state_says_what_the_work_is_and_its_pace_is_shown(translator: Translator, job, dying, capsys) -> None:
    dying(job(), after=2)
    state = json.loads(job().output.with_name("out.txt.work.json").read_text(encoding="utf-8"))
    assert state["work"]["input"].keys() == {"bytes", "sha256"}
    assert (state["work"]["base"], state["work"]["beam"]) == (translator.base.fingerprint, 2)
    assert state["position"]["lines"] == 8
    result = translate_file(translator, job())
    said = capsys.readouterr().err
    assert "8 lines of" in said
    assert "en-fr: 13/13" in said
    assert "lines/s" in said
    assert result.translated == 5
    assert result.tokens > 0
    assert result.to_dict()["tokens_per_second"] > result.to_dict()["lines_per_second"] > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output": "in.txt"}, "--input and --output are both"),
        ({"output": "folder"}, "is no plain file"),
        ({"name": "folder", "text": None}, "is no plain file; leave out"),
        ({"window": 0}, "expected 1 to"),
    ],
)
def test_what_cannot_be_meant_is_said_at_once(translator, job, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    job()
    (tmp_path / "folder").mkdir()
    with pytest.raises((ConfigError, DataError), match=words):
        translate_file(translator, job(**change))
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "folder"}


def test_a_truncated_input_is_found_before_anything_is_translated(translator: Translator, job, tmp_path: Path) -> None:
    whole = job(name="in.gz").input
    whole.write_bytes(whole.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"in\.gz cannot be read .*truncated"):
        translate_file(translator, job(name="in.gz"))
    with pytest.raises(DataError, match=r"there is no file .*nowhere"):
        translate_file(translator, FileJob(**{**vars(job()), "input": tmp_path / "nowhere"}))
    assert {path.name for path in tmp_path.iterdir()} == {"in.gz", "in.txt"}


def test_an_input_that_grows_meanwhile_is_an_error(translator: Translator, job, monkeypatch: pytest.MonkeyPatch) -> None:
    growing, real = job(), translator.translate_requests

    def translate(*arguments: Any) -> Any:
        with growing.input.open("ab") as handle:
            handle.write(b"lako\n")
        return real(*arguments)

    monkeypatch.setattr(translator, "translate_requests", translate)
    with pytest.raises(DataError, match="was changed while it was being translated"):
        translate_file(translator, growing)
    assert not growing.output.exists()


def test_a_link_is_followed(translator: Translator, job, tmp_path: Path, expected: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    translate_file(translator, job(output="link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere").read_text(encoding="utf-8") == expected


@pytest.mark.slow
def test_no_more_than_a_window_is_in_memory(job, monkeypatch: pytest.MonkeyPatch, translator: Translator) -> None:
    """Neither the text nor a line without an end."""
    big = job(
        "lako bada kofe gelo fofe bage dalo kebo dafo lako bada kofe\n" * 100_000 + "x" * 4_000_000,
        window=1000,
        skip_bad_lines=True,
    )
    monkeypatch.setattr(translator, "translate_requests", lambda requests, *_: [[] for _ in requests])
    tracemalloc.start()
    try:
        result: FileResult = translate_file(translator, big)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (result.lines, result.skipped) == (100_001, 1)
    assert big.input.stat().st_size == 10_000_000
    assert peak < 3_500_000


def test_lines_are_cut_as_files_cut_them(tmp_path: Path) -> None:
    text = b"a\n\r\n" + b"b" * LONGEST_BYTES + b"\n" + b"c" * (LONGEST_BYTES - 1) + b"\nlast"
    path = tmp_path / "text"
    path.write_bytes(text)
    with path.open("rb") as handle:
        found = list(raw_lines(handle))
    assert sum(size for _, size in found) == len(text)
    assert [raw for raw, _ in found] == [b"a\n", b"\r\n", b"b" * LONGEST_BYTES, b"c" * (LONGEST_BYTES - 1) + b"\n", b"last"]


@pytest.mark.parametrize("window", [0, -1, 2**63])
def test_a_window_that_no_memory_holds_is_an_error(job: Callable[..., FileJob], window: int) -> None:
    with pytest.raises(ConfigError, match="expected 1 to"):
        job(window=window)
