"""`graftmt verify`: the proof for people, for scripts, and for the shell."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.base import Base
from graftmt.translator import Translator


@pytest.fixture
def verify(graftmt: Callable[..., Any], grafted) -> Callable[..., Any]:
    """`verify("--packs", …)`, quick."""
    return lambda *options: graftmt("verify", "-b", str(grafted.base), "-n", "2", "--beam", "1", *options)


def test_each_look_at_the_base_is_a_line_and_the_last_one_sums_up(verify, grafted) -> None:
    result = verify("-p", f"{grafted.el},{grafted.uk}")
    assert (result.code, result.stderr) == (0, "")
    *looks, packs, verdict = result.stdout.splitlines()
    assert len(looks) == 3
    assert all(line.startswith("yes  ") for line in looks)
    assert Base.load(grafted.base).fingerprint[:16] in looks[0]
    assert "6 translations in en-fr, fr-ru, ru-en are bit-identical" in looks[2]
    assert packs == "packs: el-source, uk-target; used in between: el-en, en-uk, el-uk"
    assert verdict == "The base is unchanged, bit for bit."


@pytest.mark.slow
def test_json_says_the_same(verify, grafted, graft_corpus: Path) -> None:
    found = json.loads(verify("-p", f"a={grafted.el},b={grafted.other}", "-c", str(graft_corpus), "--json").stdout)
    assert found["base_unchanged"] is True
    assert found["fingerprint"] == Base.load(grafted.base).fingerprint
    assert (found["packs"], found["pack_directions"]) == (["a", "b"], ["el-en", "el-en"])
    assert found["lines"] == 6


def test_without_packs_the_base_is_checked_all_the_same(verify) -> None:
    assert "packs: none; used in between: nothing" in verify().stdout


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_base_that_changes_is_exit_code_1(verify, grafted, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    install = Translator.add_pack

    def spoil(self: Translator, *arguments: Any) -> str:
        with torch.no_grad():
            self.base.model.source_embedding.weight[5] += 1e-7
        return install(self, *arguments)

    monkeypatch.setattr(Translator, "add_pack", spoil)
    result = verify("-p", str(grafted.el), *options)
    assert result.code == 1
    if options:
        assert json.loads(result.stdout)["base_unchanged"] is False
    else:
        assert "NO   tensors in memory" in result.stdout
        assert result.stdout.endswith("The base has CHANGED.\n")


def test_a_base_damaged_on_disk_is_refused(verify, grafted, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(grafted.base, tmp_path / "copy"))
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(bytes(content))
    result = verify("-b", str(copy))
    assert (result.code, result.stdout) == (1, "")
    assert "the base was changed or damaged" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-p", "nowhere"], "there is no pack nowhere"),
        (["-p", "{el},{other}"], "two packs for el as source: give each a name"),
        (["-p", "{base}"], "is a base; give it with -b"),
        (["-c", "nowhere"], "there is no corpus folder nowhere"),
        (["-b", "nowhere"], "there is no base folder nowhere"),
    ],
)
def test_what_cannot_be_meant_is_one_paragraph_and_exit_code_1(verify, grafted, options: list[str], words: str) -> None:
    result = verify(*(option.format(**grafted._asdict()) for option in options))
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr
