"""translate.py of an exported folder, run as people run it: every mistake is one paragraph and an exit code, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FORMATS = ("ctranslate2", "hugging-face")
LINE = "καλο μενα ροπε"
WEIGHTS = {"ctranslate2": "model.bin", "hugging-face": "model.safetensors"}
Exported = Callable[[str], Path]
both = pytest.mark.parametrize("to", FORMATS)
with_model = pytest.mark.parametrize("to", ["ctranslate2", pytest.param("hugging-face", marks=pytest.mark.slow)])
"""Those that load the model, which takes transformers seconds."""


def run(folder: Path, *arguments: str, given: bytes = f"{LINE}\n".encode(), missing: str = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error, without graftmt and the package that is `missing`."""
    blocker = folder.parent / f"without {missing}"
    blocker.mkdir(exist_ok=True)
    for name in filter(None, ("graftmt", missing)):
        (blocker / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module named {name}', name='{name}')")
    done = subprocess.run(
        [sys.executable, str(folder / "translate.py"), *arguments],
        input=given,
        capture_output=True,
        env={"PYTHONPATH": str(blocker), "OMP_NUM_THREADS": "1", "PATH": "", "LC_ALL": "C"},
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def said(outcome: tuple[int, str, str], code: int = 1) -> str:
    """The one paragraph of an error, after nothing else."""
    assert outcome[0] == code, outcome
    assert outcome[2].startswith("translate.py: ") and outcome[2].count("\n") == 1, outcome[2]
    return outcome[2]


@both
def test_without_languages_it_says_which(exported_once: Exported, to: str) -> None:
    folder = exported_once(to)
    for given in ((), ("el",), ("el", "uk", "en")):
        found = said(run(folder, *given), 2)
        assert "two languages" in found and "translate.py el uk <" in found


@both
@pytest.mark.parametrize("given", [("el", "en"), ("xx", "uk"), ("uk", "el"), ("--quiet", "yes")], ids=" ".join)
def test_a_direction_that_it_does_not_have(exported_once: Exported, to: str, given: tuple[str, str]) -> None:
    found = said(run(exported_once(to), *given))
    assert " ".join(given) in found and "it has: el uk" in found


@both
@pytest.mark.parametrize("given", ["-h", "--help"])
def test_help(exported_once: Exported, to: str, given: str) -> None:
    code, output, errors = run(exported_once(to), given)
    assert (code, errors) == (0, "") and "translate.py SOURCE TARGET" in output and "--check" in output


@with_model
def test_empty_lines_and_line_ends_stay(exported_once: Exported, to: str) -> None:
    code, output, errors = run(exported_once(to), "el", "uk", given=f"\n{LINE}\r\n  \n\n{LINE}".encode())
    assert (code, errors) == (0, "")
    first, one, second, third, other = output.removesuffix("\n").split("\n")
    assert first == second == third == "" and one == other != ""
    assert run(exported_once(to), "el", "uk", given=b"") == (0, "", "")


@both
def test_text_that_is_not_utf_8(exported_once: Exported, to: str) -> None:
    found = said(run(exported_once(to), "el", "uk", given=f"{LINE}\n".encode() + b"abc\xff\n"))
    assert "line 2" in found and "byte 4 is 0xff" in found and "iconv" in found


@with_model
def test_a_line_that_is_too_long_has_its_number_in_the_input(exported_once: Exported, to: str) -> None:
    lines = [""] * 300 + ["α " * 1100]
    found = said(run(exported_once(to), "el", "uk", given="\n".join(lines).encode()))
    assert "line 301 has" in found and "1024" in found


@both
@pytest.mark.parametrize("missing", ["sentencepiece", "the format's"])
def test_a_package_that_is_not_installed(exported_once: Exported, to: str, missing: str) -> None:
    names = {"ctranslate2": ("ctranslate2",), "hugging-face": ("torch", "transformers")}[to]
    for name in names if missing == "the format's" else (missing,):
        assert f"pip install {name}" in said(run(exported_once(to), "el", "uk", missing=name))


@with_model
def test_a_reader_that_goes_away(exported_once: Exported, to: str) -> None:
    """As with `| head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        process = subprocess.run(
            [sys.executable, str(exported_once(to) / "translate.py"), "el", "uk"],
            input=f"{LINE}\n".encode(),
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (process.returncode, process.stderr.decode()) == (141, "")


@with_model
def test_a_disk_that_is_full(exported_once: Exported, to: str) -> None:
    with Path("/dev/full").open("wb") as output:
        command = [sys.executable, str(exported_once(to) / "translate.py"), "el", "uk"]
        done = subprocess.run(command, input=LINE.encode(), stdout=output, stderr=subprocess.PIPE, check=False)
    assert "No space left" in said((done.returncode, "", done.stderr.decode()))


@both
def test_a_file_that_is_truncated_or_missing(exported: Exported, to: str) -> None:
    folder = exported(to)
    files = json.loads((folder / "export.json").read_text())["files"]
    for name in files:
        content = (folder / name).read_bytes()
        if not name.endswith((".md", ".py")):
            (folder / name).write_bytes(content[:-1])
            found = said(run(folder, "el", "uk"))
            assert str(folder / name) in found and "truncated" in found and f"{len(content):,}" in found
        if name not in ("README.md", "translate.py", "exported_folder.py"):  # the last are the program itself
            (folder / name).unlink()
            assert str(folder / name) in said(run(folder, "el", "uk"))
        (folder / name).write_bytes(content)
    assert run(folder, "el", "uk", given=b"")[0] == 0


@with_model
def test_a_model_that_was_altered(exported: Exported, to: str) -> None:
    """If it cannot be loaded, the damaged file is named; `--check` finds every change."""
    folder = exported(to)
    path = folder / WEIGHTS[to]
    content = bytearray(path.read_bytes())
    path.write_bytes(bytes([content[0] ^ 0xFF, *content[1:]]))
    assert f"{path} was changed or damaged" in said(run(folder, "el", "uk"))
    path.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))
    assert f"{path} was changed or damaged" in said(run(folder, "--check"))
    path.write_bytes(content)
    assert run(folder, "--check")[0] == 0


@both
def test_a_card_that_was_altered(exported: Exported, to: str) -> None:
    path = exported(to) / "export.json"
    text = path.read_text()
    for damaged in (text.replace('"uk"', '"en"'), text[:-20], "[]", '{"checksum": "0"}'):
        path.write_text(damaged)
        assert str(path) in said(run(path.parent, "el", "uk"))
    path.unlink()
    assert str(path) in said(run(path.parent))
