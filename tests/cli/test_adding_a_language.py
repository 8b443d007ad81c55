"""The walk-through of docs/adding-a-language.md, command by command, on a small NLLB model that transformers has saved."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-language.md"
PUBLISHED = "facebook/nllb-200-distilled-600M"
QUICK = "--steps 3 --merges 60 --lines 2 --beam 1 --device cpu tensorboard=false validation.lines=2"
"""What the test adds to the commands that train."""


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def save_nllb(folder: Path) -> None:
    """A random model of a few thousand rows with its tokenizer, as a folder of the hub has them."""
    import torch
    import transformers
    from peers import foreign_tokenizers as made

    tokenizer = made.nllb(folder, codes=("eng_Latn", "fra_Latn", "rus_Cyrl"))
    torch.manual_seed(1)
    layers = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    sizes = {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "vocab_size": len(tokenizer) + 2}
    symbols = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**layers, **sizes, **symbols)).save_pretrained(folder)
    card = "---\nlicense: cc-by-nc-4.0\n---\n# A small model\n"
    (folder / "README.md").write_text(card, encoding="utf-8")


def write_text(folder: Path) -> None:
    """Pairs of lines in Kazakh letters and in Russian, and some to translate."""
    from babel import Locale

    new, old = Locale("kk"), Locale("ru")
    pairs = [
        (
            f"{new.territories[key]}, {new.languages.get(other, other)} ({number})",
            f"{old.territories[key]}, {old.languages[other]} ({number})",
        )
        for number, (key, other) in enumerate(zip(list(old.territories)[:240], list(old.languages)[:240], strict=True))
        if key in new.territories
    ]
    lines = "".join(f"{one}\t{other}\n" for one, other in pairs)
    (folder / "pairs.tsv").write_text(f"tyv\trus_Cyrl\n{lines}", encoding="utf-8")
    (folder / "input.tyv").write_text("".join(f"{one}\n" for one, _ in pairs[:2]), encoding="utf-8")
    (folder / "input.rus").write_text("".join(f"{other}\n" for _, other in pairs[:2]), encoding="utf-8")


def test_the_page_has_the_whole_walk() -> None:
    verbs = [line.split()[1] for line in commands()]
    assert verbs == ["import", "inspect", "add", "add", "translate", "translate", "translate", "verify"]


@pytest.mark.slow
def test_every_command_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("babel")
    save_nllb(tmp_path / "downloaded")
    write_text(tmp_path)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2] / "src")]),
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    said = {}
    for command in commands():
        run = command.replace(PUBLISHED, "downloaded")
        if " add " in run:
            run = f"{run} {QUICK}"
        if " translate " in run:
            run = run.replace(" -s ", " --beam 1 --max-length 20 --device cpu -s ")
        if " verify " in run:
            run = f"{run} --lines 1 --beam 1"
        done = subprocess.run(run, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{run}\n{done.stdout}\n{done.stderr}"
        said[command] = done.stdout + done.stderr
    assert "cc-by-nc-4.0" in said[commands()[0]]
    assert (tmp_path / "packs" / "tyv-source" / "pack.json").exists() and (
        tmp_path / "packs" / "tyv-target" / "pack.json"
    ).exists()
    assert "cc-by-nc-4.0" in (tmp_path / "packs" / "tyv-source" / "README.md").read_text(encoding="utf-8")
    for name in ("output.rus", "output.eng", "output.tyv"):
        assert (tmp_path / name).read_text(encoding="utf-8").count("\n") == 2
    assert "unchanged" in said[commands()[-1]]
