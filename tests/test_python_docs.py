"""docs/python.md says what is true: its examples run, one after the other, and print what their comments say."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from importlib import resources
from pathlib import Path

import pytest

from graftmt.demo.phrase_corpus import write_corpus

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_every_example_runs_and_prints_what_its_comment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with resources.as_file(resources.files("graftmt.demo") / "base") as folder:
        shutil.copytree(folder, "runs/demo/base")
    languages = ("de", "en", "es", "fr", "ru")
    write_corpus(Path("runs/demo/corpus"), languages, train_lines=300, valid_lines=20, test_lines=30)
    names: dict[str, object] = {}
    assert len(BLOCKS) > 8
    for block in BLOCKS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block, names)
        expected = [line.removeprefix("# ") for line in block.splitlines() if line.startswith("# ")]
        shown = printed.getvalue().splitlines()
        assert not expected or shown == expected, block
