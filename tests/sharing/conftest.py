"""A base, two packs, and the servers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graftmt.base import Base
from graftmt.packs import Recipe, create_pack, load_pack, save_pack
from graftmt.sharing.stores.folder import write_index
from graftmt.text import Subwords
from sharing.hub_server import Hub, serve_hub
from sharing.web_server import WebFolder, serve

SCORES = {"el-en": {"bleu": 30.0, "chrf": 51.26, "lines": 20}, "el-fr": {"bleu": 20.0, "chrf": 41.0, "lines": 20}}


@pytest.fixture(scope="session")
def base(graft_base: Callable[..., Path]) -> Path:
    """The folder of a base."""
    return graft_base()


@pytest.fixture(scope="session")
def packs(base: Path, graft_subwords: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packs el-source and uk-target, with scores and licences; read only."""
    folder = tmp_path_factory.mktemp("shared") / "packs"
    loaded = Base.load(base)
    for language, side, licence in (("el", "source", "cc-by-4.0"), ("uk", "target", "mit")):
        subwords = Subwords.load(graft_subwords(language))
        pack = create_pack(loaded, side=side, languages=[language], recipe=Recipe.parse("embed"), subwords=subwords)  # type: ignore[arg-type]
        pack.card |= {"licence": licence, "scores": SCORES if side == "source" else None}
        save_pack(pack, folder / f"{language}-{side}", loaded.model.config)
    return folder


@pytest.fixture(scope="session")
def shelf(packs: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with base, a pack as a folder and one as a single file, and its index; read only."""
    folder = tmp_path_factory.mktemp("shelf")
    shutil.copytree(packs / "el-source", folder / "greek" / "el-source")
    save_pack(load_pack(packs / "uk-target"), folder / "uk-target.graftpack", Base.load(base).model.config)
    shutil.copytree(base, folder / "base")
    write_index(folder)
    return folder


@pytest.fixture
def public(shelf: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(shelf, tmp_path / "public"))


@pytest.fixture
def web(public: Path) -> Iterator[WebFolder]:
    with serve(public) as web:
        yield web


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with serve_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # tests/conftest.py sets it: no test asks the real Hub
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)  # a protocol of its own
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
        yield hub


@pytest.fixture(autouse=True)
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """graftmt's folder of unfinished downloads, a new one for each test."""
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "downloads"
