"""CTranslate2 as an engine: the same translations as graftmt's own search, exported once, and never from a damaged cache."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import graftmt as graftmt_package
from graftmt.base import Base
from graftmt.decoding import SearchOptions
from graftmt.errors import ConfigError, ExportError
from graftmt.interop.ctranslate2_engine import CTranslate2Engine
from graftmt.interop.engine_registry import ENGINES, open_engine, open_translator
from graftmt.packs import Pack, Recipe, create_pack
from graftmt.text import Subwords
from graftmt.translation_requests import Request, Translation
from graftmt.translator import Translator

OPTIONS = SearchOptions(beam=4, max_length=7)


def sharp_base(folder: Path) -> Base:
    """Random models are as good as undecided; one whose scores are far apart translates one way."""
    base = Base.load(folder)
    with torch.no_grad():
        for parameter in base.model.parameters():
            if parameter.dim() == 2:
                parameter *= 2.0
    return base


@pytest.fixture(scope="module", params=["source", "decoder"])
def base(request: pytest.FixtureRequest, graft_base: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Base:
    made = sharp_base(graft_base("pre", request.param))
    made.save(tmp_path_factory.mktemp("sharp") / request.param)
    return made


@pytest.fixture(scope="module")
def packs(base: Base, graft_subwords: Callable[..., Path]) -> list[Pack]:
    def make(side: str, language: str, recipe: str) -> Pack:
        subwords = Subwords.load(graft_subwords(language))
        pack = create_pack(base, side=side, languages=[language], recipe=Recipe.parse(recipe), subwords=subwords)  # type: ignore[arg-type]
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in pack.parameters.values():
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
        return pack

    return [make("source", "el", "embed + enc-adapters-all(4)"), make("target", "uk", "embed + dec-last-layer")]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ctranslate2"


LINES = {
    "en": ["bada kofe gelo", "lako", "fofe bage dalo kebo dafo", "", "  ", "ёж 12 <unk> </s> fada"],
    "el": ["καλο μενα ροπε", "λαπο", "νορε κεμα πολα", "ψωψω 12"],
}
PAIRS = [("en", "fr"), ("en", "ru"), ("el", "fr"), ("en", "uk"), ("el", "uk")]


def texts(found: list[list[Translation]]) -> list[str]:
    return [each[0].text for each in found]


def test_translations_are_the_same_in_all_directions(base: Base, packs: list[Pack], cache: Path) -> None:
    wanted = [Request(line, *pair) for pair in PAIRS for line in LINES[pair[0]]]
    native = Translator(base, packs).translate_requests(wanted, OPTIONS)
    other = Translator(base, packs, engine=CTranslate2Engine()).translate_requests(wanted, OPTIONS)
    same = sum(one == two for one, two in zip(texts(native), texts(other), strict=True))
    # Scores there leave out tokens that cannot come, to which a random model, unlike a trained one, gives much.
    assert same >= 0.8 * len(wanted)
    assert [each[0].finished for each in native] == [each[0].finished for each in other]
    for one, two in zip(native, other, strict=True):
        if one[0].text == two[0].text:
            assert one[0].tokens == two[0].tokens
            assert two[0].score >= one[0].score - 1e-3
    assert len(os.listdir(cache)) == 4  # base, with a source pack, with a target pack, with both


def test_options_mean_the_same(base: Base) -> None:
    native, other = Translator(base), Translator(base, engine=CTranslate2Engine())
    for options in (
        SearchOptions(beam=1, max_length=5),
        SearchOptions(beam=3, n_best=3, max_length=3),
        SearchOptions(length_penalty=0.0, max_length=4),
    ):
        wanted = [Request(line, "en", "fr") for line in LINES["en"]]
        one, two = native.translate_requests(wanted, options), other.translate_requests(wanted, options)
        assert [len(each) for each in one] == [len(each) for each in two]
        assert all(t.tokens <= options.max_length for each in two for t in each)
        assert sum(a == b for a, b in zip(texts(one), texts(two), strict=True)) >= len(wanted) - 1


def test_progress_and_pivots(base: Base) -> None:
    heard: list[int] = []
    other = Translator(base, engine=CTranslate2Engine())
    found = other.translate(
        ["bada kofe", "", "lako"], source="en", target="fr", pivot="ru", options=OPTIONS, on_batch=heard.append
    )
    assert found[1] == "" and heard == sorted(heard)


def test_a_model_is_exported_once_and_a_damaged_one_again(base: Base, cache: Path) -> None:
    def once() -> list[str]:
        return Translator(base, engine=CTranslate2Engine()).translate(LINES["en"], source="en", target="fr", options=OPTIONS)

    first = once()
    (folder,) = cache.iterdir()
    model = folder / "model.bin"
    stamp = model.stat().st_mtime_ns
    assert once() == first and model.stat().st_mtime_ns == stamp
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 255
    model.write_bytes(content)
    assert once() == first
    (folder / "checksums.json").write_text("{")
    assert once() == first
    CTranslate2Engine("int8").searcher(Translator(base).composition("en", "fr"), base.fingerprint)
    assert len(os.listdir(cache)) == 2


def test_packs_that_differ_in_values_alone_are_different_models(base: Base, packs: list[Pack], cache: Path) -> None:
    Translator(base, packs[:1], engine=CTranslate2Engine()).translate(["λαπο"], source="el", target="fr", options=OPTIONS)
    with torch.no_grad():
        packs[0].parameters["embedding.weight"] += 1.0
    Translator(base, packs[:1], engine=CTranslate2Engine()).translate(["λαπο"], source="el", target="fr", options=OPTIONS)
    assert len(os.listdir(cache)) == 2


def test_what_it_cannot_do_is_said(base: Base, graft_base: Callable[..., Path], graft_subwords: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match="bf16"):
        open_engine("ctranslate2", "cpu", "bf16")
    with pytest.raises(ConfigError, match="CPU"):
        open_engine("ctranslate2", "cuda:0", "fp32")
    with pytest.raises(ConfigError, match="did you mean 'ctranslate2'"):
        open_translator("ctranslate", base.folder or "")
    post = Base.load(graft_base("post"))
    recipe, subwords = Recipe.parse("embed + enc-adapters-all(4)"), Subwords.load(graft_subwords("el"))
    pack = create_pack(post, side="source", languages=["el"], recipe=recipe, subwords=subwords)
    with pytest.raises(ExportError, match="post-norm"):
        Translator(post, [pack], engine=CTranslate2Engine()).translate(["λαπο"], source="el", target="fr")


def test_an_engine_can_go_to_other_processes() -> None:
    for name in ENGINES:
        engine = open_engine(name, "cpu", "fp32")
        assert engine is None or pickle.loads(pickle.dumps(engine)).how == engine.how


DEMO = Path(graftmt_package.__file__).parent / "demo" / "base"
PHRASES = """in 3 days
5 kilometers per hour

22 weeks ago: Hindi and Italian; Jerusalem, Istanbul, Oslo and Belgrade
Monday, March 3, 2025 at 10:15
  Greek, Ukrainian and Ελληνικά
"""


def test_a_trained_base_translates_the_same(graftmt: Any) -> None:
    common = ("translate", "-b", str(DEMO), "-s", "en", "-t", "ru", "--device", "cpu")
    native = graftmt(*common, stdin=PHRASES.encode())
    for options in ([], ["--dtype", "int8"]):
        other = graftmt(*common, "--engine", "ctranslate2", *options, stdin=PHRASES.encode())
        assert other.code == 0 and other.stdout == native.stdout


def test_other_commands_take_it(graftmt: Any, graft_base: Callable[..., Path], graft_corpus: Path, tmp_path: Path) -> None:
    folder = str(graft_base())
    scored = graftmt(
        "evaluate", "-b", folder, "-c", str(graft_corpus), "-d", "en-fr", "-n", "4", "--max-length", "6", "--device", "cpu",
        "--no-off-target", "--engine", "ctranslate2", "-q", "--json", "-o", str(tmp_path / "scores"),
    )  # fmt: skip
    assert scored.code == 0
    assert "ctranslate2" in (tmp_path / "scores" / "evaluation.json").read_text()
    made = graftmt(
        "augment", "el", "-b", folder, "--train", str(graft_corpus), "--spec", "3-bt", "-o", str(tmp_path / "more"),
        "--translate-with", "ctranslate2", "--device", "cpu", "-q",
    )  # fmt: skip
    assert made.code == 0, made.stderr
