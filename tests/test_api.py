"""The functions of `graftmt`: a pack from pairs in memory, the same as the command's; a base; scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import graftmt
from graftmt import Base, Pack, Recipe, Translator, add, evaluate
from graftmt.data import Corpus
from graftmt.errors import ConfigError, DataError, GraftError, LanguageError

QUICK: dict[str, Any] = {"steps": 2, "merges": 20, "test_lines": 2, "beam": 1, "device": "cpu"}
QUICK["overrides"] = ("threads=1", "tensorboard=false")


@pytest.fixture
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pairs(graft_corpus: Path) -> list[tuple[str, str]]:
    texts = Corpus.open(graft_corpus, "train").texts(["el", "en"])
    return list(zip(texts["el"], texts["en"], strict=True))


def test_everything_that_is_promised_is_there() -> None:
    assert all(getattr(graftmt, name) is not None for name in graftmt.__all__)
    with pytest.raises(AttributeError, match="no_such"):
        graftmt.no_such  # noqa: B018


def test_a_pack_comes_from_pairs_and_translates(base: Base, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    pack = add(base, "el", pairs, partner="en", side="source", recipe="embed", on_step=heard.append, **QUICK)
    assert isinstance(pack, Pack)
    assert repr(pack).startswith("<Pack el (source): embed, ") and len(repr(pack)) < 120 and "tensor" not in repr(pack)
    assert f"en, fr, ru, fingerprint {base.fingerprint[:16]}>" in repr(base)
    assert (pack.languages, pack.side, pack.recipe, pack.base) == (("el",), "source", Recipe(), base.fingerprint)
    assert {event["event"] for event in heard} >= {"train"}
    assert (tmp_path / "runs" / "el-source" / "plan.json").is_file()
    assert len(Translator(base, packs=[pack]).translate(["ένα"], source="el", target="fr")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["columns", "pandas", "translation"])
def test_other_shapes_give_the_same_pack(base: Base, pairs: list[tuple[str, str]], shape: str, tmp_path: Path) -> None:
    wanted = add(base, "el", pairs, partner="en", side="source", recipe="embed", run=tmp_path / "first", **QUICK)
    columns = {"el": [a for a, _ in pairs], "en": [b for _, b in pairs]}
    given: Any = columns
    if shape == "pandas":
        given = pytest.importorskip("pandas").DataFrame(columns)
    elif shape == "translation":
        given = {"translation": [{"el": a, "en": b} for a, b in pairs]}
    found = add(base, "el", given, side="source", recipe="embed", run=tmp_path / "second", **QUICK)
    assert found.fingerprint == wanted.fingerprint


def test_both_sides_are_the_default(base: Base, graft_corpus: Path) -> None:
    source, target = add(base, "el", train=graft_corpus, partner="en", augment="none", **QUICK)
    assert (source.side, target.side) == ("source", "target")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ConfigError),
        ({"pairs": [("a", "b")], "train": "corpus"}, ConfigError),
        ({"pairs": [("a", "b")]}, LanguageError),
        ({"pairs": [("a", "b", "c")], "partner": "en"}, DataError),
        ({"pairs": [("a", 3)], "partner": "en"}, DataError),
        ({"pairs": "text", "partner": "en"}, DataError),
        ({"pairs": {"el": ["a"], "en": ["b", "c"]}}, DataError),
        ({"pairs": {"fr": ["a"], "en": ["b"]}}, LanguageError),
        ({"pairs": {"el": ["a"], "../en": ["b"]}}, LanguageError),
        ({"train": "corpus", "step": 3}, ConfigError),
    ],
)
def test_what_cannot_be_meant_is_an_error(base: Base, arguments: dict[str, Any], error: type[GraftError]) -> None:
    with pytest.raises(error):
        add(base, "el", side="source", **arguments)


def test_a_missing_translation_may_be_nan_and_a_column_of_numbers_is_no_language(base: Base, graft_corpus: Path) -> None:
    texts = Corpus.open(graft_corpus, "train").texts(["el", "en"])
    texts["en"][3] = float("nan")
    given = {"id": range(len(texts["el"])), **texts}
    assert add(base, "el", given, side="source", recipe="embed", **QUICK).languages == ("el",)


def test_partners_may_be_a_list_and_what_names_no_language_is_an_error(base: Base, graft_corpus: Path) -> None:
    pack = add(base, "el", train=graft_corpus, partner=["en", "fr"], side="source", recipe="embed", **QUICK)
    assert pack.partners == ("en", "fr")
    for wrong in ([], [1], 7, ""):
        with pytest.raises(ConfigError, match=r"partner is .*expected a language"):
            add(base, "el", train=graft_corpus, partner=wrong, side="source", **QUICK)  # type: ignore[arg-type]


def test_a_pack_alone_is_a_list_of_one(base: Base, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    pack = add(base, "el", pairs, partner="en", side="source", recipe="embed", **QUICK)
    pack.save(tmp_path / "el")
    for given in (pack, tmp_path / "el", str(tmp_path / "el")):
        assert list(Translator(base, given).packs) == ["el-source"]


def test_a_device_that_is_not_there_is_an_error_of_ours(base: Base) -> None:
    assert base.folder is not None
    with pytest.raises(GraftError, match="'cuda:99'"):
        Base.load(base.folder, device="cuda:99")


def same(one: Base, other: Base) -> bool:
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return all(a.dtype == b.dtype and a.device == b.device and torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(("spelling", "name"), [("float32", "fp32"), ("float16", "fp16"), ("bfloat16", "bf16")])
def test_devices_and_precisions_may_be_torchs_own(base: Base, make_pack: Any, spelling: str, name: str, tmp_path: Path) -> None:
    assert base.folder is not None
    wanted = Base.load(base.folder, dtype=name)
    for dtype in (spelling, getattr(torch, spelling)):
        assert same(Base.load(base.folder, device=torch.device("cpu"), dtype=dtype), wanted)
    pack = make_pack(base)
    assert pack.save(tmp_path / "ours", dtype=name) == pack.save(tmp_path / "torchs", dtype=getattr(torch, spelling))
    loaded = Pack.load(tmp_path / "torchs", device=torch.device("cpu"), dtype=spelling)
    assert next(iter(loaded.parameters.values())).dtype == getattr(torch, spelling)


def test_a_number_is_a_gpus(base: Base) -> None:
    assert base.folder is not None
    for load in (Base.load, Translator, lambda *given, **named: Pack.load(*given, **named)):
        with pytest.raises(GraftError, match="'cuda:99'"):
            load(base.folder, device=99)
    for wrong in (None, True, 1.5):
        with pytest.raises(ConfigError, match="device is"):
            Base.load(base.folder, device=wrong)  # type: ignore[arg-type]
    for dtype in (torch.int32, "float33", None):
        with pytest.raises(ConfigError, match="unknown precision"):
            Base.load(base.folder, dtype=dtype)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the base is None"):
        Base.load(None)  # type: ignore[arg-type]


def test_add_takes_torchs_device(base: Base, pairs: list[tuple[str, str]]) -> None:
    asked = {**QUICK, "device": torch.device("cpu"), "base_precision": torch.float32}
    assert add(base, "el", pairs, partner=["en"], side="source", recipe="embed", **asked).partners == ("en",)


def test_options_of_a_search_are_no_dict(base: Base) -> None:
    translator = Translator(base)
    for asked in ({}, {"n_best": 2}):
        with pytest.raises(ConfigError, match=r"SearchOptions\(beam=1\).* import SearchOptions"):
            translator.translate(["bada"], source="en", target="fr", options={"beam": 1}, **asked)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="expected SearchOptions"):
        translator.translate_requests([], 5)  # type: ignore[arg-type]


def test_a_number_is_a_recipe_to_add_alone() -> None:
    with pytest.raises(ConfigError, match="the recipe is 14; expected a text"):
        Recipe.parse(14)  # type: ignore[arg-type]


def test_scores_go_by_the_names_of_directions(base: Base, graft_corpus: Path) -> None:
    found = evaluate(base, graft_corpus, "en-fr,fr-en", split="valid", lines=3, beam=1, off_target=False)
    assert list(found["directions"]) == ["en-fr", "fr-en"]
    assert 0 <= found["directions"]["en-fr"]["chrf"] <= 100


def test_directions_may_be_pairs(base: Base, graft_corpus: Path) -> None:
    how: dict[str, Any] = {"split": "valid", "lines": 2, "beam": 1, "off_target": False}
    chosen = Translator(base).directions[0]
    for given, wanted in (
        ([("en", "fr"), "fr-en"], ["en-fr", "fr-en"]),
        ([["en", "fr"]], ["en-fr"]),
        ((chosen,), [str(chosen)]),
        (chosen, [str(chosen)]),
    ):
        assert list(evaluate(base, graft_corpus, given, **how)["directions"]) == wanted
    for wrong in ([("en",)], ("en", "fr"), "en"):
        with pytest.raises(LanguageError, match="such as en-fr") as caught:
            evaluate(base, graft_corpus, wrong, **how)  # type: ignore[arg-type]
        assert "did you mean" not in str(caught.value)
    for odd in ([("en", "fr", "ru")], 3, [("en", 3)]):
        with pytest.raises(ConfigError, match="expected two languages"):
            evaluate(base, graft_corpus, odd, **how)  # type: ignore[arg-type]


def test_pairs_are_no_corpus_to_evaluate_on(base: Base, graft_corpus: Path) -> None:
    for given in ([("bada", "pazi")], {"en": ["bada"]}, None):
        with pytest.raises(DataError, match=r"folder .*such as test\.en\.txt"):
            evaluate(base, given, "en-fr")  # type: ignore[arg-type]
    assert base.folder is not None
    found = evaluate(
        base.folder, graft_corpus, "en-fr", split="valid", lines=2, beam=1, off_target=False, device=torch.device("cpu")
    )
    assert list(found["directions"]) == ["en-fr"]
