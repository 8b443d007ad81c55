"""A newcomer's first day: four messy files of Catalan, one command, and a pack that a colleague loads from one file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

import graftmt
from graftmt.demo.phrase_corpus import build_corpus

BASE = Path(graftmt.__file__).parent / "demo" / "base"


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graftmt", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=1200)


def four_files(folder: Path, lines: int) -> list[str]:
    """A table with a header, a translation memory, a catalogue and two files, as people have them."""
    text = build_corpus(("en", "ca"), train_lines=4 * lines, valid_lines=1, test_lines=1, seed=3)["train"]
    parts = [list(zip(text["en"], text["ca"], strict=True))[number * lines : (number + 1) * lines] for number in range(4)]
    rows = "".join(f"{number}\t{en}\t{ca}\n" for number, (en, ca) in enumerate(parts[0]))
    (folder / "pairs.tsv").write_text(f"id\tEnglish\tCatalan\n{rows}", encoding="utf-8")
    unit = '<tu><tuv xml:lang="en-US"><seg>{}</seg></tuv><tuv xml:lang="ca-ES"><seg>{}</seg></tuv></tu>\n'
    units = "".join(unit.format(escape(en), escape(ca)) for en, ca in parts[1])
    (folder / "memory.tmx").write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>', encoding="utf-8")
    quoted = {json.dumps(en, ensure_ascii=False): json.dumps(ca, ensure_ascii=False) for en, ca in parts[2]}
    entries = "".join(f"msgid {en}\nmsgstr {ca}\n\n" for en, ca in quoted.items())
    (folder / "program.po").write_text(f'msgid ""\nmsgstr "Language: ca\\n"\n\n{entries}', encoding="utf-8")
    mojibake = [ca.encode().decode("latin-1") if number % 40 == 0 else ca for number, (_, ca) in enumerate(parts[3])]
    (folder / "corpus.ca").write_text("\n".join(mojibake) + "\n", encoding="utf-8")
    (folder / "corpus.en").write_text("\n".join(en for en, _ in parts[3]) + "\n", encoding="utf-8")
    return [f"--train={folder / name}" for name in ("pairs.tsv", "memory.tmx", "program.po", "corpus.ca", "corpus.en")]


@pytest.mark.slow
def test_from_four_messy_files_to_a_pack_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ("babel", "langcodes", "py3langid", "lxml"):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    given = four_files(tmp_path, 900)
    options = ["--side", "source", "--augment", "none", "--steps", "250", "--lines", "60", "-o", "ca.graftpack"]
    made = run("add", "ca", "-b", str(BASE), "--with", "en", *given, *options)
    assert made.returncode == 0, made.stderr
    for name in ("pairs.tsv", "memory.tmx", "program.po", "corpus.ca"):
        assert f"{name}" in made.stderr
    assert "From " in made.stderr and "columns by the header: English is en, Catalan is ca" in made.stderr
    assert made.stdout.splitlines()[-1].startswith("Verdict: ")
    colleague = tmp_path / "colleague"
    colleague.mkdir()
    (tmp_path / "ca.graftpack").rename(colleague / "ca.graftpack")
    translated = run(
        "translate", "-b", str(BASE), "-p", str(colleague / "ca.graftpack"), "-s", "ca", "-t", "en", stdin="fa 3 dies\n"
    )
    assert translated.returncode == 0, translated.stderr
    assert "3" in translated.stdout and len(translated.stdout.splitlines()) == 1
