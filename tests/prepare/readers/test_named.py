"""mtdata is run as the module that is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from graftmt.prepare.readers.named import Named, read_named

INSTALLED = """
import sys
from pathlib import Path
folder = Path(sys.argv[sys.argv.index("-o") + 1]) / "train-parts"
folder.mkdir(parents=True)
for code in ("deu", "eng"):
    (folder / f"X-y-1-deu-eng.{code}").write_text("text\\n")
"""


def test_a_file_of_that_name_in_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed, here = tmp_path / "installed", tmp_path / "here"
    for folder in (installed, here):
        folder.mkdir()
    (installed / "mtdata.py").write_text(INSTALLED, encoding="utf-8")
    (here / "mtdata.py").write_text("open('run', 'w')\n", encoding="utf-8")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("PYTHONPATH", str(installed))
    found = read_named(Named("mtdata", "X-y-1-deu-eng", ("deu", "eng")), tmp_path / "downloads")
    assert list(found["train"]) == [("text", "text")]
    assert not (here / "run").exists()
