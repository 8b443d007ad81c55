"""Named directions run by CTranslate2: the same texts, stated memory, models that come and go with their packs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from server.conftest import DEMO, LINES, serving

from graftmt.server.fast_models import FastModels
from graftmt.server.shelf import Shelf

pytest.importorskip("ctranslate2", reason="the extra graftmt[ctranslate2] is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def torch_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def engine() -> Any:
    from graftmt.interop.ctranslate2_engine import CTranslate2Engine

    return CTranslate2Engine()


@pytest.mark.slow
def test_a_named_direction_answers_like_the_offline_translation(offline: Any, torch_threads: None) -> None:
    with serving(ctranslate2=("el-uk", "en-fr", "el-xx"), threads=1) as live:
        assert torch.get_num_threads() == 1
        for source, target in (("el", "uk"), ("en", "fr"), ("ru", "uk")):
            right = offline.translate(LINES[source], source=source, target=target)
            assert live.translate(LINES[source], source, target) == right
        answer = live.get("/v1/packs").json()
    models = {tuple(model["directions"]): model for model in answer["models"]}
    assert set(models) == {("el-uk",), ("en-fr",)}
    assert models["el-uk",]["source_pack"] == "el-source" and models["el-uk",]["engine"] == "ctranslate2 float32"
    assert all(model["bytes"] > 0.5 * answer["base"]["bytes"] for model in models.values())
    assert [problem["direction"] for problem in answer["model_problems"]] == ["el-xx"]


def test_models_come_and_go_with_their_packs(demo_base: Any, tmp_path: Path) -> None:
    packs = tmp_path / "packs"
    packs.mkdir()
    shelf, fast = Shelf(demo_base, [packs]), FastModels(engine, ["el-fr", "el-de", "en-fr", "en-fr"])
    fast.hear_catalog(shelf.catalog)
    (first,) = fast.state.models.values()
    assert first.directions == ("en-fr",) and set(fast.state.problems) == {"el-fr", "el-de"}

    shutil.copy(DEMO / "packs" / "el-source.graftpack", packs)
    shelf.refresh(settle=False)
    fast.hear_catalog(shelf.catalog)
    translator = shelf.catalog.translator
    greek = translator.composition("el", "fr", source_pack="el-source")
    assert not fast.state.problems and fast.state.models[id(greek)].directions == ("el-fr", "el-de")
    searcher = fast.searcher(translator, greek)
    assert searcher is fast.state.models[id(greek)].searcher
    assert fast.state.models[id(first.composition)].searcher is first.searcher  # it was not made again

    (packs / "el-source.graftpack").unlink()
    shelf.refresh(settle=False)
    fast.hear_catalog(shelf.catalog)
    assert fast.searcher(translator, greek) is translator.searcher(greek)  # for requests that began with the pack
    assert list(fast.state.models) == [id(first.composition)]


def test_a_model_that_cannot_be_made_is_reported_and_the_rest_is_served(demo_base: Any) -> None:
    class Broken:
        how = "broken"

        def searcher(self, composition: Any, base: str) -> Any:
            raise MemoryError

    fast = FastModels(Broken, ["en-fr"])
    shelf = Shelf(demo_base)
    fast.hear_catalog(shelf.catalog)
    assert "MemoryError" in fast.state.problems["en-fr"]
    translator = shelf.catalog.translator
    composition = translator.composition("en", "fr")
    assert fast.searcher(translator, composition) is translator.searcher(composition)


def test_int8_serves_too(offline: Any) -> None:
    with serving(dtype="int8") as live:
        assert live.translate(LINES["el"][0], "el", "uk") == offline.translate(LINES["el"][:1], source="el", target="uk")[0]
