"""The façade routes each request to the right composition of base and packs, keeps order, and says what is missing."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.base import Base
from graftmt.decoding import SearchOptions
from graftmt.errors import CheckpointError, DataError, GraftError, LanguageError
from graftmt.packs import Pack, save_pack
from graftmt.translation_requests import LONGEST_BYTES, LONGEST_SOURCE, LongLine, Request, Translation
from graftmt.translator import Translator

OPTIONS = SearchOptions(beam=2, n_best=2, max_length=6)
LINES = {
    "en": ["bada kofe gelo", "lako", "fofe bage dalo kebo dafo"],
    "fr": ["pazi tura sipu", "vuta", "zipa ruti savu pita zuri"],
    "el": ["καλο μενα ροπε", "λαπο", "νορε κεμα πολα ρανε μεκο"],
    "uk": ["бану гізу", "зажу", "нубі вага жузі баву гана"],
}
PACKS = {
    "el-source": ("source", "embed + enc-adapters-all(4)", ("el",)),
    "uk-source": ("source", "embed + enc-first-layer", ("uk",)),
    "el-target": ("target", "embed + dec-last-layer + enc-adapters-last(4)", ("el",)),
    "uk-target": ("target", "embed + parallel-dec-adapters-all(4)", ("uk",)),
}
DIRECTIONS = [("el", "en"), ("uk", "fr"), ("en", "el"), ("fr", "uk"), ("el", "uk"), ("uk", "el"), ("en", "fr"), ("fr", "en")]


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


@pytest.fixture(scope="module")
def packs(base: Base, train_graft: Callable[..., Pack], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Trained for a moment, so that each does something of its own."""
    paths = {}
    for name, (side, recipe, languages) in PACKS.items():
        run = tmp_path_factory.mktemp(name)
        train_graft(run, base, side, recipe, languages=languages, steps=5)
        paths[name] = run / "pack"
    return paths


@pytest.fixture(scope="module")
def translator(base: Base, packs: dict[str, Path]) -> Translator:
    return Translator(base, list(packs.values()))


def requests(*directions: tuple[str, str], **options: Any) -> list[Request]:
    return [Request(line, *direction, **options) for direction in directions for line in LINES[direction[0]]]


# Packs and routes


def test_packs_add_languages_on_their_side(base: Base, packs: dict[str, Path], translator: Translator) -> None:
    assert translator.packs.keys() == packs.keys()
    assert translator.languages == ("en", "fr", "ru", "el", "uk")
    half = Translator(base, [packs["el-source"]])
    assert half.source_languages == ("en", "fr", "ru", "el")
    assert half.target_languages == ("en", "fr", "ru")
    assert half.add_pack(packs["uk-target"]) == "uk-target"
    assert half.target_languages == ("en", "fr", "ru", "uk")


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("direction", DIRECTIONS, ids="-".join)
def test_every_direction_is_translated_by_its_own_composition(
    translator: Translator, direction: tuple[str, str], beam: int
) -> None:
    source, target = direction
    options = SearchOptions(beam=beam, max_length=6)
    texts = translator.translate(["", *LINES[source], "  "], source=source, target=target, options=options)
    assert len(texts) == 5 and texts[0] == texts[-1] == ""
    composition = translator.composition(source, target)
    assert composition is translator.composition(source, target)
    assert composition.source is (translator.packs[f"{source}-source"] if source in ("el", "uk") else None)
    assert composition.target is (translator.packs[f"{target}-target"] if target in ("el", "uk") else None)


def test_a_base_and_packs_come_from_paths_archives_or_memory(
    base: Base, packs: dict[str, Path], translator: Translator, graft_base: Callable[..., Path], tmp_path: Path
) -> None:
    archive = tmp_path / "uk.graftpack"
    save_pack(translator.packs["uk-target"], archive, base.model.config)
    other = Translator(graft_base(), {"a": packs["el-source"], "b": archive})
    third = Translator(base, [translator.packs["el-source"], translator.packs["uk-target"]])
    wanted = requests(("el", "uk"), ("el", "fr"), ("en", "uk"))
    found = [each.translate_requests(wanted, OPTIONS) for each in (translator, other, third)]
    assert found[0] == found[1] == found[2]
    assert third.packs["el-source"] is translator.packs["el-source"]  # nothing is copied


def test_the_bases_own_directions_are_bit_identical_with_packs(base: Base, translator: Translator) -> None:
    plain = Translator(base)
    wanted = [*requests(("en", "fr"), ("fr", "en")), *requests(("en", "ru"))]
    before = plain.translate_requests(wanted, OPTIONS)
    translator.translate_requests(requests(*DIRECTIONS), OPTIONS)  # with all packs at work
    assert translator.translate_requests(wanted, OPTIONS) == before
    assert any(each.text for found in before for each in found)
    with torch.inference_mode():
        ids = torch.tensor([[*base.tokenizer.source_prefix("en", "fr"), *base.tokenizer.encode(LINES["en"][0]), 2]])
        assert torch.equal(translator.composition("en", "fr").model(ids, ids), base.model(ids, ids))


def test_mixed_requests_keep_their_order(translator: Translator) -> None:
    wanted = [request for row in zip(*(requests(direction) for direction in DIRECTIONS), strict=True) for request in row]
    wanted.insert(5, Request("", "el", "en"))
    heard: list[int] = []
    mixed = translator.translate_requests(wanted, OPTIONS, heard.append)
    assert mixed[5] == [Translation("", 0.0, True)]
    assert heard == sorted(heard) and heard[-1] == len(wanted) - 1  # an empty line takes no work
    for direction in DIRECTIONS:
        alone = translator.translate_requests(requests(direction), OPTIONS)
        found = [each for request, each in zip(wanted, mixed, strict=True) if (request.source, request.target) == direction]
        same_lines(alone, [each for each in found if each != mixed[5]])


def same_lines(one: list[list[Translation]], other: list[list[Translation]]) -> None:
    """Other lines in a batch may change the last bit of a score."""
    assert [[t.text for t in each] for each in one] == [[t.text for t in each] for each in other]
    assert [t.score for each in one for t in each] == pytest.approx([t.score for each in other for t in each], abs=1e-5)


# Several packs for one language


def test_two_packs_for_one_language_need_names(
    base: Base, packs: dict[str, Path], train_graft: Callable[..., Pack], tmp_path: Path
) -> None:
    other = train_graft(tmp_path / "other", base, "source", "embed", steps=5)
    with pytest.raises(LanguageError, match=r"two packs for el as source: .*NAME=PATH"):
        Translator(base, [packs["el-source"], other])
    translator = Translator(base, {"adapters": packs["el-source"], "embed": other, "uk": packs["uk-target"]})
    with pytest.raises(LanguageError, match=r"'el' as source .*: adapters, embed\. .*--source-pack"):
        translator.translate(["λαπο"], source="el", target="en")
    assert translator.composition("el", "uk", source_pack="embed").source is other
    assert translator.composition("el", "uk", source_pack="adapters").source is translator.packs["adapters"]
    for name, path in (("adapters", packs["el-source"]), ("embed", other)):
        alone = Translator(base, [path])
        wanted = requests(("el", "en"))
        found = translator.translate_requests([request._replace(source_pack=name) for request in wanted], OPTIONS)
        assert found == alone.translate_requests(wanted, OPTIONS)
        texts = translator.translate(LINES["el"], source="el", target="en", source_pack=name, options=OPTIONS)
        assert texts == [each[0].text for each in found]
    with pytest.raises(LanguageError, match=r"'uk' .*'el' as source.*: adapters, embed"):
        translator.translate(["λαπο"], source="el", target="en", source_pack="uk")
    with pytest.raises(LanguageError, match=r"'nothing' .*'uk' as target.*: uk"):
        translator.translate(["lako"], source="en", target="uk", target_pack="nothing")
    with pytest.raises(LanguageError, match=r"'en' .*base's .*source .*'embed'"):
        translator.translate(["lako"], source="en", target="fr", source_pack="embed")
    with pytest.raises(LanguageError, match="there is a pack 'uk' already"):
        translator.add_pack(packs["el-target"], "uk")


def test_languages_of_shared_packs_are_told_apart(base: Base, train_graft: Callable[..., Pack], tmp_path: Path) -> None:
    for side in ("source", "target"):
        train_graft(tmp_path / side, base, side, languages=("el", "uk"), steps=5)
    translator = Translator(base, [tmp_path / side / "pack" for side in ("source", "target")])
    assert translator.packs.keys() == {"el+uk-source", "el+uk-target"}
    both = translator.translate_requests(requests(("el", "uk"), ("uk", "el")), OPTIONS)
    same_lines(both[:3], translator.translate_requests(requests(("el", "uk")), OPTIONS))
    same_lines(both[3:], translator.translate_requests(requests(("uk", "el")), OPTIONS))
    # The code alone decides between two targets of one pack.
    lines = [Request(line, "en", target) for target in ("el", "uk") for line in LINES["en"]]
    scores = [each[0].score for each in translator.translate_requests(lines, OPTIONS)]
    assert scores[:3] != scores[3:]
    with pytest.raises(LanguageError, match="two packs for uk as target"):
        translator.add_pack(train_graft(tmp_path / "uk", base, "target", languages=("uk",)))


# Pivots


def test_a_pivot_is_two_translations(translator: Translator) -> None:
    for source, target in (("el", "uk"), ("fr", "uk"), ("el", "fr")):
        between = translator.translate(LINES[source], source=source, target="en", options=OPTIONS)
        by_hand = translator.translate(between, source="en", target=target, options=OPTIONS)
        assert translator.translate(LINES[source], source=source, target=target, pivot="en", options=OPTIONS) == by_hand
    direct = translator.translate_requests(requests(("el", "en")), OPTIONS)
    assert translator.translate_requests(requests(("el", "en"), pivot="en"), OPTIONS) == direct


def test_pivots_and_direct_requests_mix(translator: Translator) -> None:
    hops = requests(("el", "uk"), pivot="en")
    plain = requests(("el", "uk"), ("en", "fr"))
    mixed = translator.translate_requests([plain[0], hops[0], plain[3], hops[1], hops[2], plain[1]], OPTIONS)
    same_lines(mixed[1:2] + mixed[3:5], translator.translate_requests(hops, OPTIONS))
    direct = translator.translate_requests([plain[0], plain[1], plain[3]], OPTIONS)
    same_lines([mixed[0], mixed[5], mixed[2]], direct)
    assert all(len(each) == OPTIONS.n_best for each in mixed)


def test_a_pivot_passes_named_packs_to_their_hops(base: Base, packs: dict[str, Path]) -> None:
    named = Translator(base, {"in": packs["el-source"], "out": packs["uk-target"]})
    options: dict[str, Any] = {"source": "el", "target": "uk", "pivot": "en", "options": OPTIONS}
    assert named.translate(LINES["el"], **options, source_pack="in", target_pack="out") == named.translate(
        LINES["el"], **options
    )


def test_a_pivot_must_be_known_on_both_sides(base: Base, packs: dict[str, Path], translator: Translator) -> None:
    with pytest.raises(LanguageError, match="'de' is neither in the base"):
        translator.translate(["λαπο"], source="el", target="uk", pivot="de")
    half = Translator(base, [packs["el-source"], packs["uk-target"]])
    with pytest.raises(LanguageError, match="'uk' is installed as a target only"):
        half.translate(["λαπο"], source="el", target="fr", pivot="uk")
    assert translator.translate(
        ["λαπο"], source="el", target="fr", pivot="uk", options=OPTIONS
    )  # with both packs it can be one


# What is missing


def test_an_unknown_language_is_named_with_what_there_is(base: Base, packs: dict[str, Path]) -> None:
    translator = Translator(base, [packs["el-source"], packs["uk-target"]])
    for direction in (("kab", "en"), ("en", "kab"), ("el", "kab")):
        with pytest.raises(LanguageError) as caught:
            translator.translate(["x"], source=direction[0], target=direction[1])
        assert "language 'kab' is neither in the base (en, fr, ru) nor in a pack here (installed: el, uk)" in str(caught.value)
        assert "`graftmt add kab`" in str(caught.value)
    with pytest.raises(LanguageError, match=r"installed: none\)"):
        Translator(base).translate(["x"], source="kab", target="en")
    with pytest.raises(LanguageError, match="did you mean 'fr'"):
        translator.translate(["x"], source="frx", target="en")


def test_a_language_of_the_other_side_says_what_to_add(base: Base, packs: dict[str, Path]) -> None:
    translator = Translator(base, [packs["el-source"], packs["uk-target"]])
    with pytest.raises(LanguageError, match=r"'el' .*source only.* `graftmt add el --side target`"):
        translator.translate(["lako"], source="en", target="el")
    with pytest.raises(LanguageError, match=r"'uk' .*target only.* `graftmt add uk --side source`"):
        translator.translate(["зажу"], source="uk", target="en")
    with pytest.raises(LanguageError, match="both 'el'"):
        translator.translate(["λαπο"], source="el", target="el")


def test_packs_that_do_not_fit_are_refused(graft_base: Callable[..., Path], packs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="was made for the base"):
        Translator(graft_base("post"), [packs["el-source"]])
    with pytest.raises(GraftError, match="there is no pack"):
        Translator(graft_base(), [tmp_path / "nowhere"])
    with pytest.raises(DataError, match="got one string"):
        Translator(graft_base()).translate("lako", source="en", target="fr")  # type: ignore[arg-type]


def test_packs_that_conflict_say_so_when_they_meet(
    base: Base, packs: dict[str, Path], train_graft: Callable[..., Pack], tmp_path: Path
) -> None:
    train_graft(tmp_path / "run", base, "target", "embed + enc-first-layer", languages=("uk",))
    translator = Translator(base, [packs["el-source"], packs["uk-source"], tmp_path / "run" / "pack"])
    translator.translate(LINES["el"], source="el", target="uk", options=OPTIONS)
    train_graft(tmp_path / "other", base, "source", "embed + enc-norm", languages=("el",))
    translator.add_pack(tmp_path / "other" / "pack", "norms")
    with pytest.raises(GraftError, match=r"both have their own encoder\.layers\.0.*--pivot"):
        translator.translate(LINES["el"], source="el", target="uk", source_pack="norms")
    assert translator.translate(LINES["el"], source="el", target="uk", source_pack="norms", pivot="en", options=OPTIONS)


def test_a_long_line_is_named_by_its_place_in_the_request(translator: Translator) -> None:
    long = "λαπο " * LONGEST_SOURCE
    wanted = [*requests(("en", "fr")), Request(LINES["el"][0], "el", "uk", "en"), Request(long, "el", "uk", "en")]
    with pytest.raises(LongLine, match="line 5 has"):
        translator.translate_requests(wanted, OPTIONS)
    with pytest.raises(LongLine, match="line 2 has"):
        translator.translate(["λαπο", long], source="el", target="en")


@pytest.mark.parametrize("pivot", [None, "en"])
@pytest.mark.parametrize("character", ["a", "λ", "\U0001f389"])
def test_a_line_of_too_many_bytes_is_named_before_it_is_made_into_tokens(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, character: str, pivot: str | None
) -> None:
    most = character * (LONGEST_BYTES // len(character.encode()))
    with pytest.raises(LongLine, match=r"line 2 has [\d,]+ characters \("):
        translator.translate(["λαπο", most], source="el", target="fr", pivot=pivot, options=OPTIONS)
    monkeypatch.setattr(type(translator.composition("el", "fr").codec), "source_tokenizer", None)  # would fail
    with pytest.raises(LongLine, match=r"^line 2 .*200,000 bytes\b"):
        translator.translate(["λαπο", most + character], source="el", target="fr", pivot=pivot)


@pytest.mark.parametrize(
    ("line", "words"),
    [(None, "None (NoneType)"), (float("nan"), "nan (float)"), (b"lako", "b'lako' (bytes)"), (["a"], "['a'] (list)")],
)
def test_a_line_that_is_no_text_is_named(translator: Translator, line: Any, words: str) -> None:
    for pivot in (None, "fr"):
        with pytest.raises(DataError, match=re.escape(f"line 3 is {words}; a str was expected")):
            translator.translate(["lako", "", line], source="en", target="uk", pivot=pivot)


@pytest.mark.parametrize("lines", [None, 5, b"lako"])
def test_what_is_no_list_of_lines_is_refused(translator: Translator, lines: Any) -> None:
    with pytest.raises(DataError, match=r"a list of lines, .*; got "):
        translator.translate(lines, source="en", target="fr")


@pytest.mark.parametrize(
    ("languages", "words"),
    [
        ({"source": None}, "source is None (NoneType)"),
        ({"target": b"fr"}, "target is b'fr' (bytes)"),
        ({"target": ["fr"]}, "target is ['fr'] (list)"),
        ({"pivot": 5}, "pivot is 5 (int)"),
    ],
)
def test_a_language_that_is_no_text_is_named(translator: Translator, languages: dict[str, Any], words: str) -> None:
    wanted = {"source": "en", "target": "fr", **languages}
    expected = re.escape(f"{words}; a language's code was expected, a str such as 'en'")
    with pytest.raises(LanguageError, match=expected):
        translator.translate(["lako"], **wanted)
    with pytest.raises(LanguageError, match="a language's code was expected"):
        translator.translate_requests([Request("lako", **wanted)], OPTIONS)


# Precision and threads


def test_packs_take_the_precision_of_their_base(graft_base: Callable[..., Path], packs: dict[str, Path]) -> None:
    half = Translator(graft_base(), list(packs.values()), dtype="bf16")
    assert {p.dtype for pack in half.packs.values() for p in pack.parameters.values()} == {torch.bfloat16}
    for direction in DIRECTIONS:
        assert len(half.translate(LINES[direction[0]], source=direction[0], target=direction[1], options=OPTIONS)) == 3


def test_many_threads_translate_what_one_does(base: Base, packs: dict[str, Path]) -> None:
    wanted = {direction: requests(direction) * 2 for direction in DIRECTIONS}
    one = Translator(base, list(packs.values()))
    alone = {direction: one.translate_requests(lines, OPTIONS) for direction, lines in wanted.items()}
    shared = Translator(base, list(packs.values()))  # its compositions are made while others are at work
    together = threading.Barrier(len(DIRECTIONS))

    def work(direction: tuple[str, str]) -> list[bool]:
        together.wait()
        return [shared.translate_requests(wanted[direction], OPTIONS) == alone[direction] for _ in range(3)]

    with ThreadPoolExecutor(len(DIRECTIONS)) as pool:
        assert all(all(same) for same in pool.map(work, DIRECTIONS))
    assert len(shared._compositions) == len({id(one.composition(*direction)) for direction in DIRECTIONS})


def test_packs_can_be_added_while_others_translate(base: Base, packs: dict[str, Path]) -> None:
    translator = Translator(base, [packs["el-source"]])
    expected = translator.translate(LINES["el"], source="el", target="en", options=OPTIONS)
    extra = Translator(base, [packs["uk-target"]]).packs["uk-target"]
    added = threading.Event()

    def add() -> None:
        for number in range(300):
            translator.add_pack(extra, f"pack {number}")
        added.set()

    for _ in translator.packs:  # as a thread would that is reading it just now
        translator.add_pack(extra)
    adding = threading.Thread(target=add)
    adding.start()
    while not added.is_set():
        assert translator.translate(LINES["el"], source="el", target="en", options=OPTIONS) == expected
    adding.join()
    assert len(translator.packs) == 302
