"""What an exported folder says of itself: no other model takes its place unasked, and damage is found by name."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base

Exported = Callable[[str], Path]


@pytest.fixture
def export(
    graft_base: Callable[..., Path], make_pack: Callable[..., Any], tmp_path: Path, graftmt: Callable[..., Any]
) -> Callable[..., Any]:
    """`export("-t", "ru")`: en → fr by default, into the folder `out`; the pack el-source is in `pack`."""
    base = graft_base()
    make_pack(Base.load(base), "source", "embed", "el").save(tmp_path / "pack")

    def run(*options: str) -> Any:
        given = {"-b": str(base), "-s": "en", "-t": "fr", "--to": "ctranslate2", "-o": str(tmp_path / "out")}
        flags = [option for option in options if option in ("--force", "--json", "-q")]
        others = [option for option in options if option not in flags]
        given |= dict(zip(others[::2], others[1::2], strict=True))
        return graftmt("export", *(part for pair in given.items() for part in pair), *flags)

    return run


def test_the_same_model_is_replaced_and_that_is_said(export: Callable[..., Any], tmp_path: Path) -> None:
    first = export("--json")
    assert json.loads(first.stdout)["exported"][0]["replaced"] is None and "replaced" not in first.stderr
    (tmp_path / "out" / "__pycache__").mkdir()  # as Python leaves it
    (tmp_path / "out" / "model.bin").write_bytes(b"")
    again = export()
    assert again.code == 0 and "the same model, which was replaced" in again.stderr
    assert (tmp_path / "out" / "model.bin").stat().st_size
    assert export("-q").stderr == ""
    assert json.loads(export("--json", "-q").stdout)["exported"][0]["replaced"] == "the same model"


@pytest.mark.parametrize(
    ("options", "differs"),
    [
        (("-t", "ru"), "directions"),
        (("--quantization", "int8"), "quantization"),
        (("--to", "hugging-face"), "format"),
        (("-p", "pack", "-s", "el"), "packs, directions"),
        (("-b", "another"), "base"),
    ],
    ids=str,
)
def test_another_model_is_an_error_that_names_it(
    export: Callable[..., Any], graft_base: Callable[..., Path], tmp_path: Path, options: tuple[str, ...], differs: str
) -> None:
    places = {"pack": str(tmp_path / "pack"), "another": str(graft_base(output_bias=True))}
    options = tuple(places.get(option, option) for option in options)
    if options[1] == places["another"]:  # its own tensors
        assert Base.load(places["another"]).fingerprint != Base.load(graft_base()).fingerprint
    assert export().code == 0
    before = (tmp_path / "out" / "export.json").read_bytes()
    for flags in ((), ("--json",)):
        done = export(*options, *flags)
        assert done.code == 1 and done.stdout == "" and (tmp_path / "out" / "export.json").read_bytes() == before
        assert f"It differs in: {differs}" in done.stderr and "en-fr for ctranslate2 (float32)" in done.stderr
        assert "--force" in done.stderr and str(tmp_path / "out-new") in done.stderr
    done = export(*options, "--force", "--json")
    assert done.code == 0 and json.loads(done.stdout)["exported"][0]["replaced"] == "another model"
    assert (tmp_path / "out" / "export.json").read_bytes() != before
    assert export(*options, "--json").code == 0


def test_force_takes_the_place_of_nothing_else(export: Callable[..., Any], tmp_path: Path) -> None:
    assert export().code == 0
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert export("--force").code == 1 and (tmp_path / "out" / "notes.txt").read_text() == "mine"
    done = export("-o", str(tmp_path / "pack"), "--force")
    assert done.code == 1 and "a pack" in done.stderr


def test_an_export_whose_card_is_damaged_needs_force(export: Callable[..., Any], tmp_path: Path) -> None:
    assert export().code == 0
    path = tmp_path / "out" / "export.json"
    path.write_text(path.read_text().replace("float32", "float16"))
    done = export()
    assert done.code == 1 and str(path) in done.stderr and "--force" in done.stderr
    assert export("--force").code == 0 and export().code == 0


def test_folders_are_not_made_inside_an_export(export: Callable[..., Any], tmp_path: Path) -> None:
    assert export("--to", "hugging-face").code == 0
    before = sorted((tmp_path / "out").iterdir())
    done = export("--to", "hugging-face", "-t", "fr,ru", "--force")
    assert done.code == 1 and "en-fr, en-ru" in done.stderr and sorted((tmp_path / "out").iterdir()) == before


@pytest.mark.parametrize("to", ["ctranslate2", "hugging-face"])
def test_the_card_lists_every_file(exported_once: Exported, to: str, graftmt: Callable[..., Any]) -> None:
    folder = exported_once(to)
    card = json.loads((folder / "export.json").read_text())
    contents = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "export.json"}
    expected = {name: {"bytes": len(one), "sha256": hashlib.sha256(one).hexdigest()} for name, one in contents.items()}
    assert card["files"] == expected
    facts = json.loads(graftmt("inspect", str(folder), "--json").stdout)
    assert (facts["kind"], facts["to"], facts["directions"], facts["unchanged"]) == ("export", to, ["el-uk"], True)
    assert facts["base"] == card["base"] and facts["packs"].keys() == {"el-source", "uk-target"}
    shown = graftmt("inspect", str(folder))
    assert shown.code == 0 and "el-uk" in shown.stdout and "float32" in shown.stdout


@pytest.mark.parametrize("to", ["ctranslate2", "hugging-face"])
def test_inspect_names_a_damaged_file(exported: Exported, to: str, graftmt: Callable[..., Any]) -> None:
    folder = exported(to)
    files = json.loads((folder / "export.json").read_text())["files"]
    for name in files.keys() - {"README.md"}:
        content = (folder / name).read_bytes()
        altered = bytes([content[0] ^ 1, *content[1:]])
        for damaged, how in ((content[:-1], "truncated"), (altered, "changed or damaged"), (None, "cannot be read")):
            if damaged is None:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes(damaged)
            done = graftmt("inspect", str(folder))
            assert done.code == 1 and done.stdout == "" and f"{folder / name} " in done.stderr.replace("\n", " ")
            assert how in done.stderr
        (folder / name).write_bytes(content)
    assert graftmt("inspect", str(folder)).code == 0


def test_inspect_shows_what_people_may_change(exported: Exported, graftmt: Callable[..., Any]) -> None:
    folder = exported("ctranslate2")
    (folder / "README.md").write_text("# Ours")
    (folder / "notes.txt").write_text("mine")
    facts = json.loads(graftmt("inspect", str(folder), "--json").stdout)
    assert (facts["unchanged"], facts["edited"], facts["other_files"]) == (True, "README.md", ["notes.txt"])


def test_cards_that_are_no_cards(exported: Exported, graftmt: Callable[..., Any]) -> None:
    path = exported("ctranslate2") / "export.json"
    card = json.loads(path.read_text())
    del card["checksum"]
    outside = {"../x": {"bytes": 1, "sha256": ""}}
    for change in ({"format": 3}, {"files": {"model.bin": 7}}, {"files": outside}, {"base": 1}, {"checksum": "00000000"}):
        path.write_text(json.dumps({**card, **change}))
        done = graftmt("inspect", str(path.parent))
        assert done.code == 1 and str(path) in done.stderr


def test_the_format_before_is_read(export: Callable[..., Any], tmp_path: Path, graftmt: Callable[..., Any]) -> None:
    """Names alone, no checksum of the card; the same model still takes its place, and another one does not."""
    assert export().code == 0
    path = tmp_path / "out" / "export.json"
    card = json.loads(path.read_text())
    del card["checksum"]
    path.write_text(json.dumps({**card, "format": 1, "files": sorted([*card["files"], "export.json"])}))
    facts = json.loads(graftmt("inspect", str(tmp_path / "out"), "--json").stdout)
    assert facts["unchanged"] is None and "earlier version" in facts["note"]
    old = shutil.copytree(tmp_path / "out", tmp_path / "old")
    assert export("-t", "ru").code == 1 and export().code == 0
    assert export("-t", "ru", "-o", str(old), "--force").code == 0


@pytest.mark.parametrize(("to", "said"), [("ctranslate2", "another program"), ("hugging-face", "inline casing")])
def test_exports_that_cannot_be_imported(
    exported_once: Exported, tmp_path: Path, graftmt: Callable[..., Any], to: str, said: str
) -> None:
    done = graftmt("import", str(exported_once(to)), "-o", str(tmp_path / "again"))
    assert done.code == 1 and said in done.stderr and "the base and the packs" in done.stderr
    assert not (tmp_path / "again").exists()
