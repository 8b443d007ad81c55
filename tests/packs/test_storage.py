"""A stored pack comes back as it was, from a folder or an archive, or is refused with words that help."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patience import PATIENCE
from safetensors.torch import load_file, save_file

import graftmt
from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError, GraftError
from graftmt.packs import Pack, compose, is_pack, load_pack, read_pack_document, save_pack
from graftmt.packs.storage import FORMAT, check_unclaimed, uncovered
from graftmt.tensor_files import hash_tensors

RECIPE = "embed + dec-last-layer + enc-adapters-last(4)"
FILES = ["README.md", "pack.json", "pack.safetensors", "subwords.model"]


@pytest.fixture(scope="module")
def pack(base: Base, make_pack: Callable[..., Pack]) -> Pack:
    made = make_pack(base, "target", RECIPE)
    made.card |= {"seed": 7, "scores": {"en-el": {"bleu": 31.5, "chrf": 55.25, "lines": 200}}}
    return made


@pytest.fixture(scope="module")
def stored(base: Base, pack: Pack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only."""
    folder = tmp_path_factory.mktemp("stored") / "el-target"
    save_pack(pack, folder, base.model.config)
    save_pack(pack, folder.with_suffix(".graftpack"), base.model.config)
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(stored, tmp_path / "el-target"))


@pytest.fixture
def archive(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(stored.with_suffix(".graftpack"), tmp_path / "el-target.graftpack"))


def change_document(folder: Path, **changes: Any) -> None:
    """Sets keys of pack.json, or removes those that are None."""
    path = folder / "pack.json"
    document = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}), encoding="utf-8")


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    tensors = load_file(folder / "pack.safetensors")
    change(tensors)
    save_file(tensors, folder / "pack.safetensors")


def refused(path: Path, *words: str) -> None:
    """Loading it is an error that a person can act on."""
    with pytest.raises(GraftError) as caught:
        load_pack(path)
    for expected in words:
        assert expected in str(caught.value)


def equal(one: Pack, other: Pack) -> bool:
    facts = [(p.side, p.languages, str(p.recipe), p.base, p.tokenizer.fingerprint, p.card, p.fingerprint) for p in (one, other)]
    same = all(torch.equal(one.parameters[name], other.parameters[name]) for name in one.parameters)
    return facts[0] == facts[1] and list(one.parameters) == list(other.parameters) and same


def test_folder_and_archive_give_the_pack_back(stored: Path, pack: Pack) -> None:
    archive = stored.with_suffix(".graftpack")
    assert sorted(path.name for path in stored.iterdir()) == FILES
    with zipfile.ZipFile(archive) as opened:
        assert sorted(opened.namelist()) == FILES
        assert all(opened.read(name) == (stored / name).read_bytes() for name in FILES)
    found = [load_pack(path) for path in (stored, archive)]
    assert all(set(loaded.parameters) == set(pack.parameters) for loaded in found)
    for loaded in found:
        assert all(torch.equal(loaded.parameters[name], pack.parameters[name]) for name in pack.parameters)
        assert (loaded.side, loaded.languages, loaded.recipe, loaded.base) == (
            pack.side,
            pack.languages,
            pack.recipe,
            pack.base,
        )
        assert loaded.tokenizer.fingerprint == pack.tokenizer.fingerprint
        assert loaded.fingerprint == pack.fingerprint
        assert loaded.card == pack.card
    assert equal(*found)


def test_an_archive_is_the_same_every_time(base: Base, pack: Pack, stored: Path, tmp_path: Path) -> None:
    for source in (pack, load_pack(stored)):
        save_pack(source, tmp_path / "again.graftpack", base.model.config)
        assert (tmp_path / "again.graftpack").read_bytes() == stored.with_suffix(".graftpack").read_bytes()


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_pack_stored_in_half_the_bytes_loads_in_any_precision(base: Base, pack: Pack, tmp_path: Path, dtype: str) -> None:
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
    mark = save_pack(pack, tmp_path / "half", base.model.config, dtype=dtype)
    loaded = load_pack(tmp_path / "half")
    assert loaded.fingerprint == mark
    assert all(torch.equal(loaded.parameters[name], p.to(kind).float()) for name, p in pack.parameters.items())
    assert save_pack(loaded, tmp_path / "again", base.model.config, dtype=dtype) == mark
    assert load_pack(tmp_path / "half", dtype=dtype).parameters["embedding.weight"].dtype == kind
    full = save_pack(pack, tmp_path / "full", base.model.config)
    assert full != mark
    sizes = [(tmp_path / name / "pack.safetensors").stat().st_size for name in ("half", "full")]
    assert sizes[0] < 0.7 * sizes[1]


def test_the_fingerprint_is_that_of_what_a_pack_does(base: Base, make_pack: Callable[..., Pack], tmp_path: Path) -> None:
    def mark(*arguments: Any, card: Any = None, **options: Any) -> str:
        pack = make_pack(base, *arguments, **options)
        pack.card |= card or {}
        return save_pack(pack, tmp_path / "pack", base.model.config)

    first = mark("source", "embed", "el")
    assert mark("source", "embed", "el", card={"scores": {}, "note": "words change nothing"}) == first
    others = [
        mark("source", "embed", "uk"),
        mark("source", "embed", "el", seed=2),
        mark("source", "embed + enc-adapters-first(2)", "el"),
        mark("target", "embed", "el"),
        mark("target", "embed + code:fixed:en", "el"),
        mark("target", "embed + code:proxy:ru", "el"),
    ]
    assert len({first, *others}) == 7


def test_the_card_is_a_readme_for_people(stored: Path, pack: Pack) -> None:
    text = (stored / "README.md").read_text(encoding="utf-8")
    for words in ("el as target", pack.base, pack.fingerprint, RECIPE, f"{pack.size:,}", "| seed | 7 |", "31.5", "55.2"):
        assert words in text
    assert "graftmt translate --base" in text


def test_a_document_can_be_read_without_the_tensors(stored: Path, folder: Path) -> None:
    document = read_pack_document(stored)
    assert document == read_pack_document(stored.with_suffix(".graftpack"))
    assert (document["side"], document["languages"], document["recipe"]) == ("target", ["el"], RECIPE)
    stored_bytes = (stored / "pack.safetensors").stat().st_size + (stored / "subwords.model").stat().st_size
    assert document["bytes"] == stored_bytes
    (folder / "pack.safetensors").unlink()
    assert read_pack_document(folder) == document


def test_packs_are_known_when_seen(stored: Path, tmp_path: Path, graft_base: Callable[..., Path]) -> None:
    assert is_pack(stored) and is_pack(stored.with_suffix(".graftpack"))
    renamed = shutil.copy(stored.with_suffix(".graftpack"), tmp_path / "pack.zip")
    assert is_pack(Path(renamed)) and load_pack(renamed).languages == ("el",)
    assert not is_pack(graft_base()) and not is_pack(tmp_path)


# Damage


@pytest.mark.parametrize("file", ["pack.json", "pack.safetensors", "subwords.model"])
def test_a_missing_file_is_named(folder: Path, archive: Path, file: str) -> None:
    (folder / file).unlink()
    refused(folder, "not a whole pack", file, "copy")
    with zipfile.ZipFile(archive) as whole:
        content = {name: whole.read(name) for name in FILES if name != file}
    with zipfile.ZipFile(archive, "w") as part:
        for name, data in content.items():
            part.writestr(name, data)
    refused(archive, "not a whole pack", file, "copy")


def test_parameters_come_in_the_recipes_order(stored: Path, pack: Pack) -> None:
    # An optimiser, and the norm of a gradient, take them in order: a pack that is continued twice must give the same.
    assert all(list(load_pack(stored).parameters) == list(pack.parameters) for _ in range(5))


@pytest.mark.parametrize("file", ["pack.json", "pack.safetensors", "subwords.model"])
@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_truncated_file_is_named(folder: Path, file: str, share: float) -> None:
    path = folder / file
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    refused(folder, file)


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_archive_is_refused(archive: Path, share: float) -> None:
    archive.write_bytes(archive.read_bytes()[: int(share * archive.stat().st_size)])
    refused(archive, "truncated", "Get it again from a copy")


def test_one_changed_bit_of_a_tensor_is_noticed(folder: Path, archive: Path) -> None:
    path = folder / "pack.safetensors"
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(bytes(content))
    refused(folder, "changed or damaged after it was made", "Get it again from a copy")
    content = bytearray(archive.read_bytes())
    place = content.find(b"embedding.weight") + 5000
    content[place] ^= 1
    archive.write_bytes(bytes(content))
    refused(archive, "Get it again from a copy")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.floats(0, 1, exclude_max=True),
    value=st.integers(1, 255),
    target=st.sampled_from(["pack.json", "pack.safetensors", "subwords.model", None]),
)
def test_whatever_byte_changes_a_pack_is_refused_or_the_same(
    stored: Path, tmp_path_factory: pytest.TempPathFactory, place: float, value: int, target: str | None
) -> None:
    whole = load_pack(stored)
    copy = tmp_path_factory.mktemp("fuzz") / ("el" if target else "el.graftpack")
    if target:
        shutil.copytree(stored, copy)
    else:
        shutil.copy(stored.with_suffix(".graftpack"), copy)
    path = copy / target if target else copy
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= value
    path.write_bytes(bytes(content))
    try:
        found = load_pack(copy)
    except GraftError:
        return
    found.card = whole.card  # what is told to people is not part of the fingerprint
    assert equal(found, whole)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": FORMAT + 1}, f"has format {FORMAT + 1}; this version of graftmt reads up to {FORMAT}. Upgrade graftmt"),
        ({"format": None}, "has format None"),
        ({"kind": "base"}, "does not describe a pack"),
        ({"languages": ["uk"]}, "changed or damaged after it was made"),
        ({"languages": ["el", "uk"]}, "code.weight has shape"),
        ({"languages": ["en"]}, "changed or damaged"),
        ({"languages": [7]}, "languages"),
        ({"languages": []}, "languages"),
        ({"codes": [None]}, "codes"),
        ({"codes": ["en"]}, "changed or damaged"),
        ({"codes": ["en", "en"]}, "codes"),
        ({"languages": ["../../evil"]}, "'../../evil' cannot name a language"),
        ({"languages": ["el\u001b[31m"]}, "cannot name a language"),
        ({"codes": ["/etc"]}, "'/etc' cannot name a language"),
        ({"languages": "el"}, "languages is 'el'"),
        ({"languages": {"el": 1}}, "languages"),
        ({"recipe": "embed + dec-last-layer"}, "has unexpected tensors"),
        ({"recipe": "embed + dec-last-layer + enc-adapters-first(4)"}, "lacks tensors"),
        ({"recipe": RECIPE + " + code:learned:fr"}, "changed or damaged"),
        ({"recipe": "embed + dec-lst-layer"}, "dec-lst-layer"),
        ({"recipe": "embed + \u001b[31m"}, "recipe"),
        ({"bytes": None}, "bytes missing"),
        ({"side": "source"}, "source pack"),
        ({"side": "middle"}, "side is 'middle'"),
        ({"side": ["source"]}, "side"),
        ({"base": 7}, "base is 7"),
        ({"base": "x" * 64}, "base is"),
        ({"fingerprint": "0"}, "fingerprint is '0'"),
        ({"dtype": ["fp32"]}, "dtype"),
        ({"bytes": "many"}, "bytes"),
        ({"base": "0" * 64}, "changed or damaged"),
        ({"fingerprint": "0" * 64}, "changed or damaged"),
        ({"code_placement": "decoder"}, "changed or damaged"),
        ({"code_placement": "nowhere"}, "code_placement"),
        ({"card": None, "languages": None}, "languages, card missing"),
        ({"architecture": {"model_dim": "wide"}}, "architecture"),
        ({"architecture": []}, "architecture"),
        ({"architecture": {"encoder_layers": 200_000_000}}, "encoder_layers is 200000000"),
        ({"architecture": {"norm_epsilon": float("nan")}}, "norm_epsilon"),
        ({"recipe": " + ".join(["embed", *(f"enc-layer-{number}" for number in range(1, 20_000))])}, "recipe"),
        ({"architecture": {"no_such_key": 1}}, "no_such_key"),
    ],
)
def test_a_document_that_does_not_fit_is_refused(folder: Path, changes: dict[str, Any], words: str) -> None:
    change_document(folder, **changes)
    refused(folder, words)


@pytest.mark.parametrize("content", [b"[]", b"null", b"\xff\xfe", b"{", b""])
def test_a_document_that_is_none_is_refused(folder: Path, content: bytes) -> None:
    (folder / "pack.json").write_bytes(content)
    refused(folder, "pack.json")
    with pytest.raises(CheckpointError):
        read_pack_document(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors.pop("decoder.layers.2.ffn.up.bias"), "lacks tensors"),
        (lambda tensors: tensors.pop("embedding.weight"), "lacks tensors"),
        (lambda tensors: tensors.update(stray=torch.ones(1)), "has unexpected tensors"),
        (lambda tensors: tensors.update({"code.weight": torch.ones(1, 17)}), "code.weight has shape (1, 17)"),
        (lambda tensors: tensors.update({"code.weight": torch.ones(1, 16, dtype=torch.int32)}), "code.weight"),
        (lambda tensors: tensors.update({"code.weight": torch.ones(1, 16)}), "fingerprint"),
        (lambda tensors: tensors["code.weight"][0, 3:4].fill_(float("nan")), "code.weight has numbers that are not finite"),
        (lambda tensors: tensors["embedding.weight"][-1, -1:].fill_(float("inf")), "embedding.weight has numbers"),
    ],
    ids=["missing", "no embedding", "extra", "misshapen", "whole numbers", "other", "nan", "inf"],
)
def test_tensors_that_do_not_fit_are_named(folder: Path, change: Callable[..., Any], words: str) -> None:
    change_tensors(folder, change)
    refused(folder, words)


def test_what_is_no_pack_is_refused(tmp_path: Path, graft_base: Callable[..., Path]) -> None:
    refused(tmp_path / "nowhere", "there is no pack", "graftmt add")
    refused(tmp_path / "nowhere.graftpack", "there is no pack")
    refused(graft_base(), "is not a pack", "is a base", "-b ")
    (tmp_path / "text.txt").write_text("words", encoding="utf-8")
    refused(tmp_path / "text.txt", "is not a pack")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("words.txt", "words")
    refused(tmp_path / "other.zip", "pack.json")


def test_a_pack_of_another_base_is_refused_when_it_is_used(stored: Path, graft_base: Callable[..., Path]) -> None:
    loaded, other = load_pack(stored), Base.load(graft_base("post"))
    with pytest.raises(CheckpointError, match=r"made for the base "):
        compose(other, target=loaded)


def test_an_unknown_precision_is_an_error(stored: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'fp32'"):
        load_pack(stored, dtype="fp23")


# Writing


def test_saving_replaces_a_pack_whole(base: Base, make_pack: Callable[..., Pack], folder: Path, archive: Path) -> None:
    new = make_pack(base, "source")
    for path in (folder, archive):
        mark = save_pack(new, path, base.model.config)
        assert load_pack(path).fingerprint == mark
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, archive.name}


@pytest.mark.parametrize("name", ["folder", "archive"])
def test_what_a_program_saves_takes_no_other_packs_place_unasked(
    name: str, base: Base, pack: Pack, make_pack: Callable[..., Pack], request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(name)
    before, new = read_pack_document(path), make_pack(base, "source")
    with pytest.raises(GraftError) as caught:
        new.save(path)
    for fact in (str(path), f"el (target): {RECIPE}", before["fingerprint"][:16], "replace=True"):
        assert fact in str(caught.value)
    assert read_pack_document(path) == before and new.fingerprint == ""
    same = load_pack(path)
    same.card["author"] = "Ana"  # the card is for people: it is the same pack
    assert same.save(path) == before["fingerprint"]
    assert read_pack_document(path)["card"]["author"] == "Ana"
    assert new.save(path, replace=True) == load_pack(path).fingerprint != before["fingerprint"]


def test_a_file_that_is_no_pack_is_not_replaced_unasked(pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / "el.graftpack"
    path.write_text("kept", encoding="utf-8")
    with pytest.raises(GraftError, match="cannot be read as a pack"):
        pack.save(path)
    assert path.read_text(encoding="utf-8") == "kept"
    (tmp_path / "empty").mkdir()
    assert pack.save(tmp_path / "empty") == load_pack(tmp_path / "empty").fingerprint


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_a_failing_disk_leaves_what_was_there(
    base: Base, make_pack: Callable[..., Pack], folder: Path, archive: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    old, new = load_pack(folder), make_pack(base, "source")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        for path in (folder, archive):
            with pytest.raises(GraftError, match=r"could not write .*Input/output error\. Nothing that was there"):
                save_pack(new, path, base.model.config)
    assert new.fingerprint == ""
    assert equal(load_pack(folder), old) and equal(load_pack(archive), old)
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, archive.name}


FULL_DISK = """
import pathlib, resource, signal, sys
from graftmt.base import Base
from graftmt.errors import GraftError
from graftmt.packs import load_pack, save_pack

base, folder, archive = sys.argv[1:]
config, pack = Base.load(base).model.config, load_pack(folder)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
pack.card["changed"] = True
for path in (folder, archive):
    try:
        save_pack(pack, path, config)
    except GraftError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_full_disk_leaves_what_was_there(graft_base: Callable[..., Path], folder: Path, archive: Path) -> None:
    pytest.importorskip("resource")
    before = {path.name: path.read_bytes() for path in (*folder.iterdir(), archive)}
    environment = {**os.environ, "PYTHONPATH": str(Path(graftmt.__file__).parents[1])}
    command = [sys.executable, "-c", FULL_DISK, str(graft_base()), str(folder), str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    for said in (first, second):
        assert "File too large. Nothing that was there before has changed; free some space" in said
    assert {path.name: path.read_bytes() for path in (*folder.iterdir(), archive)} == before
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, archive.name}


# Places


def test_a_pack_takes_the_place_of_a_pack_and_of_nothing_else(folder: Path, base: Base, tmp_path: Path) -> None:
    pack, config = load_pack(folder), base.model.config
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "work.txt").write_text("kept", encoding="utf-8")
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "folder.graftpack").mkdir()
    for name, why in (("full", "not empty and not a pack"), ("file", "is a file"), ("folder.graftpack", "is a folder")):
        with pytest.raises(GraftError, match=why):
            save_pack(pack, tmp_path / name, config)
    assert (tmp_path / "full" / "work.txt").read_text(encoding="utf-8") == "kept"
    with pytest.raises(GraftError, match="is no folder"):
        save_pack(pack, tmp_path / "file" / "pack", config)
    mixed = Path(shutil.copytree(folder, tmp_path / "mixed"))
    (mixed / "notes.txt").write_text("kept", encoding="utf-8")
    for place, why in ((mixed, r"other things in it \(notes\.txt\)"), (folder / "inside", "which is a pack")):
        with pytest.raises(GraftError, match=why):
            save_pack(pack, place, config)
    assert (mixed / "notes.txt").is_file() and not (folder / "inside").exists()
    (tmp_path / "empty").mkdir()
    for name in ("empty", "empty", "new/deep", "one.graftpack", "one.graftpack"):
        save_pack(pack, tmp_path / name, config)
        assert load_pack(tmp_path / name).fingerprint == pack.fingerprint


@pytest.mark.parametrize("name", ["pack", "el.graftpack"])
def test_only_a_pack_that_is_kept_elsewhere_may_be_replaced_unasked(
    folder: Path, base: Base, tmp_path: Path, name: str
) -> None:
    place, own = tmp_path / name, tmp_path / "run" / "pack"
    check_unclaimed(place, [own])  # nothing is there
    save_pack(load_pack(folder), place, base.model.config)
    with pytest.raises(GraftError, match=r"is there already: .*el \(target\): embed "):
        check_unclaimed(place, [own])
    shutil.copytree(folder, own)
    check_unclaimed(place, [own])
    if place.is_dir():
        place = place / "pack.json"
    place.write_bytes(b"{")
    with pytest.raises(GraftError, match="something that cannot be read as a pack"):
        check_unclaimed(tmp_path / name, [own])


def test_the_folder_of_a_run_hints_at_the_pack_in_it(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run" / "pack")
    refused(tmp_path / "run", f"did you mean {tmp_path / 'run' / 'pack'}?")


def test_the_card_compares_with_the_pivot_and_with_the_parent(folder: Path, base: Base, tmp_path: Path) -> None:
    pack = load_pack(folder)
    pack.card |= {
        "scores": {
            "el-en": {"bleu": 1.0, "chrf": 2.0, "lines": 3, "zero_shot": False},
            "el-fr": {"bleu": 4.0, "chrf": 5.0, "lines": 6, "zero_shot": True, "pivot": {"through": "en", "chrf": 7.0}},
        },
        "parent": {"fingerprint": "f", "version": 1, "scores_here": {"el-en": {"chrf": 1.5}}},
        "target_tokens": 12345,
    }
    save_pack(pack, tmp_path / "pack", base.model.config)
    card = (tmp_path / "pack" / "README.md").read_text(encoding="utf-8")
    for line in (
        "| direction |  | BLEU | chrF | lines | chrF through en | chrF before |",
        "| el-en | trained | 1.0 | 2.0 | 3 |  | 1.5 |",
        "| el-fr | zero-shot | 4.0 | 5.0 | 6 | 7.0 |  |",
        "| target tokens | 12,345 |",
    ):
        assert line in card.splitlines()


# Packs with parts for trained directions

SCOPED = "embed + enc-adapters-all(4)@trained"


@pytest.fixture
def scoped(base: Base, make_pack: Callable[..., Pack], tmp_path: Path) -> Path:
    pack = make_pack(base, "source", SCOPED)
    pack.partners, pack.few = ("en", "fr"), ("fr",)
    pack.card |= {"partners": ["en", "fr"], "few": ["fr"], "seed": 7}
    save_pack(pack, tmp_path / "scoped", base.model.config)
    return tmp_path / "scoped"


def as_format_1(folder: Path) -> str:
    """What the version before wrote; returns the fingerprint."""
    document = json.loads((folder / "pack.json").read_text(encoding="utf-8"))
    card = {**document["card"], "partners": document.pop("partners"), "few": document.pop("few")}
    pack = load_pack(folder)
    parts = [pack.side, pack.languages, str(pack.recipe), pack.base, pack.tokenizer.fingerprint]
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode())
    hash_tensors(digest, load_file(folder / "pack.safetensors"))
    document |= {"format": 1, "card": card, "fingerprint": digest.hexdigest()}
    (folder / "pack.json").write_text(json.dumps(document), encoding="utf-8")
    return digest.hexdigest()


def test_partners_are_fields_of_format_2_and_in_its_fingerprint(scoped: Path, base: Base, tmp_path: Path) -> None:
    document, pack = read_pack_document(scoped), load_pack(scoped)
    assert (document["format"], document["partners"], document["few"]) == (2, ["en", "fr"], ["fr"])
    assert document["card"].keys().isdisjoint(("partners", "few")) and document["card"]["seed"] == 7
    assert (pack.partners, pack.few) == (("en", "fr"), ("fr",))
    assert uncovered(document) == ""
    assert save_pack(pack, tmp_path / "again", base.model.config) == pack.fingerprint
    marks = {pack.fingerprint}
    for partners, few in ((("en",), ()), (("en", "fr"), ()), (("fr", "en"), ("en",)), ((), ())):
        pack.partners, pack.few = partners, few
        marks.add(save_pack(pack, tmp_path / "other", base.model.config))
    assert len(marks) == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"partners": ["en", "fr", "ru"]},
        {"partners": ["fr"]},
        {"few": []},
        {"partners": None},
        {"few": None},
        {"partners": "en"},
        {"partners": [7]},
        {"partners": ["../en"]},
        {"few": {"fr": 1}},
        {"format": 1},
        {"recipe": "embed + enc-adapters-all(4)"},
    ],
)
def test_changed_partners_are_refused(scoped: Path, changes: dict[str, Any]) -> None:
    change_document(scoped, **changes)
    refused(scoped, "pack.json")


def test_the_card_decides_nothing(scoped: Path) -> None:
    document = read_pack_document(scoped)
    change_document(scoped, card={**document["card"], "partners": ["ru"], "few": []})
    pack = load_pack(scoped)
    assert [pack.is_whole_with(language) for language in ("en", "fr", "ru")] == [True, False, False]


def test_a_pack_of_format_1_keeps_its_fingerprint_and_takes_partners_from_its_card(scoped: Path) -> None:
    mark = as_format_1(scoped)
    pack = load_pack(scoped)
    assert pack.fingerprint == mark
    assert (pack.partners, pack.few) == (("en", "fr"), ("fr",))
    assert "partners" in uncovered(read_pack_document(scoped))
    change_document(scoped, format=2)
    refused(scoped, "partners")
    change_document(scoped, format=2, partners=["en", "fr"], few=["fr"])
    refused(scoped, "changed or damaged")


@pytest.mark.parametrize("partners", ["en", [7], {"en": True}, ["a/b"], [None]])
def test_partners_of_format_1_are_checked_too(scoped: Path, partners: Any) -> None:
    as_format_1(scoped)
    card = read_pack_document(scoped)["card"]
    change_document(scoped, card={**card, "partners": partners})
    refused(scoped, "pack.json")


def test_a_pack_without_such_parts_is_written_as_before(stored: Path, base: Base, make_pack: Callable[..., Pack]) -> None:
    document = read_pack_document(stored)
    assert document["format"] == 1 and document.keys().isdisjoint(("partners", "few"))
    pack = load_pack(stored)
    parts = [pack.side, pack.languages, str(pack.recipe), pack.base, pack.tokenizer.fingerprint]
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode())
    hash_tensors(digest, load_file(stored / "pack.safetensors"))
    assert document["fingerprint"] == digest.hexdigest()
    assert uncovered(document) == ""
