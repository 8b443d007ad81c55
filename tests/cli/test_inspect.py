"""`graftmt inspect`: what a folder is, for people and for scripts."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from graftmt.base import Base
from graftmt.packs import Recipe, create_pack, load_pack, save_pack
from graftmt.tensor_files import hash_tensors


def test_a_base_is_described(graftmt, toy_base: Path) -> None:
    facts = json.loads(graftmt("inspect", str(toy_base), "--json").stdout)
    base = Base.load(toy_base)
    assert facts["kind"] == "base"
    assert facts["fingerprint"] == base.fingerprint
    assert facts["languages"] == list(base.languages)
    assert facts["parameters"] == sum(parameter.numel() for parameter in base.model.parameters())
    assert facts["architecture"]["model_dim"] == 32
    assert facts["unchanged"] is True
    assert facts["bytes"]["model.safetensors"] == (toy_base / "model.safetensors").stat().st_size
    assert facts["training"]["seed"] == 1
    shown = graftmt("inspect", str(toy_base))
    assert shown.code == 0
    assert base.fingerprint in shown.stdout
    assert "en, xa, xb, xc" in shown.stdout


@pytest.mark.parametrize("name", ["[/x]", "[red]", ":smile:", "a\\[b"])
@pytest.mark.parametrize("kind", ["base", "missing"])
def test_names_are_no_markup(graftmt, toy_base: Path, tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / name
    if kind == "base":
        shutil.copytree(toy_base, folder)
    result = graftmt("inspect", str(folder))
    assert result.code == (0 if kind == "base" else 1)
    assert name in result.stdout + result.stderr


def test_a_card_commands_no_terminal(graftmt, base_copy: Path) -> None:
    document = json.loads((base_copy / "base.json").read_text(encoding="utf-8"))
    document["card"] = {"note\x1b[31m": "\x1b]0;title\x07 \u202eabc", "list": ["\x9b2J"]}
    (base_copy / "base.json").write_text(json.dumps(document), encoding="utf-8")
    result = graftmt("inspect", str(base_copy))
    assert result.code == 0, result.stderr
    assert "\\x1b[31m" in result.stdout and "\\u202eabc" in result.stdout and "\\x9b2J" in result.stdout
    assert not set(result.stdout) & set("\x1b\x07\x9b\u202e")


def test_a_run_is_described(graftmt, toy_run: Path) -> None:
    facts = json.loads(graftmt("inspect", str(toy_run), "--json").stdout)
    assert facts["kind"] == "run"
    assert facts["checkpoint"] == "stage1-step00000500"
    assert (facts["stage"], facts["step"], facts["stages"]) == (1, "500 of 500", ["train"])
    assert facts["base"] == str(toy_run / "base")
    assert facts["last_validation"]["chrf"] > 90
    shown = graftmt("inspect", str(toy_run))
    assert shown.code == 0
    assert "500 of 500" in shown.stdout


def test_a_run_that_has_just_begun_has_no_checkpoint_yet(graftmt, toy_run: Path, tmp_path: Path) -> None:
    shutil.copy(toy_run / "config.yaml", tmp_path)
    facts = json.loads(graftmt("inspect", str(tmp_path), "--json").stdout)
    assert (facts["kind"], facts["checkpoint"], facts["base"]) == ("run", None, None)


def test_a_run_before_its_first_validation_has_no_best_step(graftmt, toy_run: Path, tmp_path: Path) -> None:
    shutil.copytree(toy_run, tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "stage1-step00000500" / "state.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["state"] |= {"best_score": None, "best_step": 0, "validations": []}
    path.write_text(json.dumps(document), encoding="utf-8")
    facts = json.loads(graftmt("inspect", str(tmp_path / "run"), "--json").stdout)
    assert "best_step" not in facts
    assert facts["last_validation"] is None
    assert "best_step" in json.loads(graftmt("inspect", str(toy_run), "--json").stdout)


def test_a_changed_base_is_an_error(graftmt, base_copy: Path) -> None:
    path = base_copy / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    result = graftmt("inspect", str(base_copy))
    assert (result.code, result.stdout) == (1, "")
    assert "the base was changed or damaged" in result.stderr


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds neither a base (base.json), nor a pack (pack.json), nor a run"),
        ({"config.yaml": "title: of something else\n"}, "unknown key 'title'"),
        ({"config.yaml": "- a list\n"}, "holds a list"),
        ({"base.json": "{"}, "is damaged"),
    ],
)
def test_a_folder_of_something_else_is_an_error(graftmt, tmp_path: Path, files: dict[str, str], words: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    result = graftmt("inspect", str(folder))
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr


def test_no_folder_is_an_error(graftmt, tmp_path: Path) -> None:
    result = graftmt("inspect", str(tmp_path / "nowhere"))
    assert result.code == 1
    assert "give a base, a pack, a run or an export" in result.stderr


def test_the_curves_of_a_run_can_be_plotted(graftmt, toy_run: Path, tmp_path: Path) -> None:
    result = graftmt("inspect", str(toy_run), "--plot", str(tmp_path / "plots"), "--json")
    assert result.code == 0
    for path in json.loads(result.stdout)["plots"]:
        assert Path(path).read_bytes().startswith(b"\x89PNG")
    nothing = graftmt("inspect", str(toy_run / "base"), "--plot", str(tmp_path / "none"))
    assert nothing.code == 1
    assert "no log.jsonl" in nothing.stderr


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_a_pack_is_described(graftmt, grafted, tmp_path: Path, kind: str) -> None:
    pack, path = load_pack(grafted.other), grafted.other
    if kind == "archive":
        path = tmp_path / "el.graftpack"
        save_pack(pack, path, Base.load(grafted.base).model.config)
    facts = json.loads(graftmt("inspect", str(path), "--json").stdout)
    assert (facts["kind"], facts["side"], facts["languages"]) == ("pack", "source", ["el"])
    assert (facts["fingerprint"], facts["base"]) == (pack.fingerprint, Base.load(grafted.base).fingerprint)
    assert facts["recipe"] == "embed + enc-adapters-all(4)"
    assert facts["unchanged"] is True
    assert facts["parameters"] == pack.size == sum(facts["parameters_of"].values())
    assert {"embedding", "encoder.adapters.0", "encoder.adapters.2"} <= facts["parameters_of"].keys()
    assert sum(facts["initialisation"].values()) == facts["rows"]
    shown = graftmt("inspect", str(path))
    assert shown.code == 0
    assert pack.fingerprint in shown.stdout
    assert "unchanged        │ yes" in shown.stdout


def test_a_pack_s_scores_are_a_line_each(graftmt, grafted, tmp_path: Path) -> None:
    pack = load_pack(grafted.el)
    pivot = {"through": "en", "bleu": 3.0, "chrf": 40.0}
    pack.card["scores"] = {"el-fr": {"bleu": 2.0, "chrf": 31.25, "lines": 4, "zero_shot": True, "pivot": pivot}}
    save_pack(pack, tmp_path / "pack", Base.load(grafted.base).model.config)
    shown = graftmt("inspect", str(tmp_path / "pack")).stdout
    assert "el-fr: bleu 2, chrf 31.25, lines 4, zero_shot yes, pivot (through en, bleu 3, chrf 40)" in shown


def test_a_fingerprint_that_does_not_cover_all_says_so(graftmt, grafted, tmp_path: Path) -> None:
    base = Base.load(grafted.base)
    recipe, subwords = Recipe.parse("embed + enc-adapters-all(4)@trained"), load_pack(grafted.el).tokenizer.subwords
    pack = create_pack(base, side="source", languages=("el",), recipe=recipe, subwords=subwords)
    pack.partners = ("en",)
    save_pack(pack, tmp_path / "pack", base.model.config)
    facts = json.loads(graftmt("inspect", str(tmp_path / "pack"), "--json").stdout)
    assert (facts["format"], facts["partners"], facts["few"]) == (2, ["en"], [])
    assert "fingerprint_does_not_cover" not in facts
    # As the version before wrote it.
    path = tmp_path / "pack" / "pack.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    parts = [pack.side, pack.languages, str(pack.recipe), pack.base, pack.tokenizer.fingerprint]
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode())
    hash_tensors(digest, pack.parameters)
    document |= {"format": 1, "fingerprint": digest.hexdigest(), "card": {"partners": document.pop("partners"), "few": []}}
    path.write_text(json.dumps(document), encoding="utf-8")
    facts = json.loads(graftmt("inspect", str(tmp_path / "pack"), "--json").stdout)
    assert facts["unchanged"] is True
    assert "card.partners" in facts["fingerprint_does_not_cover"]


def test_a_card_cannot_speak_for_what_is_checked(graftmt, grafted, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(grafted.el, tmp_path / "copy"))
    document = json.loads((copy / "pack.json").read_text(encoding="utf-8"))
    card = {"fingerprint": "f" * 64, "unchanged": "yes", "base": "other", "languages": ["uk"], "kept": 1}
    (copy / "pack.json").write_text(json.dumps({**document, "card": card}), encoding="utf-8")
    facts = json.loads(graftmt("inspect", str(copy), "--json").stdout)
    assert (facts["fingerprint"], facts["base"], facts["languages"]) == (document["fingerprint"], document["base"], ["el"])
    assert facts["unchanged"] is True and facts["kept"] == 1


def test_a_damaged_checkpoint_is_told_with_a_way_out(graftmt, grafted, tmp_path: Path) -> None:
    run = Path(shutil.copytree(grafted.el.parent, tmp_path / "run"))
    for path in run.glob("checkpoints/stage*/state.json"):
        path.write_text("{", encoding="utf-8")
    result = graftmt("inspect", str(run))
    assert (result.code, result.stdout) == (1, "")
    assert "state.json is damaged" in result.stderr
    assert "or start over in another folder." in result.stderr


def test_the_run_of_a_pack_is_described(graftmt, grafted) -> None:
    run = grafted.el.parent
    facts = json.loads(graftmt("inspect", str(run), "--json").stdout)
    assert (facts["kind"], facts["step"], facts["pack"]) == ("run", "2 of 2", str(run / "pack"))
    assert (facts["languages"], facts["side"], facts["recipe"]) == (["el"], "source", "embed")


def test_a_changed_pack_and_a_file_that_is_none_are_errors(graftmt, grafted, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(grafted.el, tmp_path / "copy"))
    document = json.loads((copy / "pack.json").read_text(encoding="utf-8"))
    (copy / "pack.json").write_text(json.dumps({**document, "languages": ["uk"]}), encoding="utf-8")
    result = graftmt("inspect", str(copy))
    assert (result.code, result.stdout) == (1, "")
    assert "the pack was changed or damaged" in result.stderr
    (tmp_path / "notes.txt").write_text("el\n", encoding="utf-8")
    result = graftmt("inspect", str(tmp_path / "notes.txt"))
    assert (result.code, result.stdout) == (1, "")
    assert "notes.txt is a file, and not that of a pack" in result.stderr
