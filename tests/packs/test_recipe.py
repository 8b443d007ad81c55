"""Recipes: the paper's spellings, one canonical form, errors that say where."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.errors import ConfigError
from graftmt.packs.component import Component
from graftmt.packs.components.adapters import Adapters
from graftmt.packs.components.first_values import FirstValues
from graftmt.packs.components.language_code import LanguageCode
from graftmt.packs.components.non_tied import NonTied
from graftmt.packs.components.norms_and_biases import NormsOrBiases
from graftmt.packs.components.tuned_layers import TunedLayers
from graftmt.packs.recipe import Recipe


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("Only embed", "embed"),
        ("embed only", "embed"),
        ("embed+enc-norm  +  ENC-biases", "embed + enc-norm + enc-biases"),
        ("embed + Enc-adapters-all (d=64)", "embed + enc-adapters-all(64)"),
        ("embed + enc-adapters-all(dim = 64)", "embed + enc-adapters-all(64)"),
        ("embed + enc-adapters-all d=64", "embed + enc-adapters-all(64)"),
        ("embed + enc-adapters-all dim=64", "embed + enc-adapters-all(64)"),
        ("embed + enc-adapters-{1,2,3} (d=1024)", "embed + enc-adapters-1,2,3(1024)"),
        ("embed + enc-adapters-3, 1,2(1024)", "embed + enc-adapters-1,2,3(1024)"),
        ("embed + enc-adapters-1(8) + enc-adapters-3(8)", "embed + enc-adapters-1,3(8)"),
        ("embed + enc-adapters-1(8) + enc-adapters-3(9)", "embed + enc-adapters-first(8) + enc-adapters-3(9)"),
        ("embed + all-enc-layers", "embed + enc-all-layers"),
        ("embed + all-dec-layers", "embed + dec-all-layers"),
        ("embed + dec-layer-4 + dec-layer-2", "embed + dec-layer-2 + dec-layer-4"),
        ("embed + dec-layer-1", "embed + dec-first-layer"),
        ("embed + enc-adapt-last + dec-adapt-all (1024)", "embed + enc-adapters-last(1024) + dec-adapters-all(1024)"),
        ("embed + dec-ad-all (690) + enc-ad-last (1024)", "embed + enc-adapters-last(1024) + dec-adapters-all(690)"),
        ("embed + dec-adapters-all(64) + enc-adapters-all(64)", "embed + adapters-all(64)"),
        ("embed + adapters-all", None),
        ("enc-parallel-adapters-all(64) + embed", "embed + parallel-enc-adapters-all(64)"),
        ("embed + parallel-adapters-all(64)", "embed + parallel-adapters-all(64)"),
        ("embed + parallel-enc-adapters-all(64) + dec-adapters-all(64)",) * 2,
        ("embed + enc-adapters-last(1024) + dec-last-layer", "embed + dec-last-layer + enc-adapters-last(1024)"),
        ("embed + random embed init", "embed + init:random"),
        ("embed + random-embed-init", "embed + init:random"),
        ("embed + init:overlap + code:learned", "embed"),
        ("embed + code:learned:en", "embed"),
        ("embed + code:learned:pt_BR", "embed + code:learned:pt_BR"),
        ("code:proxy:NEAREST + non-tied + embed", "embed + non-tied + code:proxy:nearest"),
        ("embed + enc-adapters-all(64) @Trained", "embed + enc-adapters-all(64)@trained"),
        ("embed + adapters-all (d=64)@trained", "embed + adapters-all(64)@trained"),
        ("embed + dec-layer-2@trained + dec-layer-3", "embed + dec-layer-2@trained + dec-layer-3"),
        ("embed + enc-adapters-1(8)@trained + enc-adapters-2(8)", "embed + enc-adapters-first(8)@trained + enc-adapters-2(8)"),
    ],
)
def test_the_papers_spellings_have_one_canonical_form(written: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(ConfigError, match=re.escape("write 'adapters-all(512)'")):
            Recipe.parse(written)
    else:
        assert str(Recipe.parse(written)) == canonical


def test_a_recipe_is_a_value() -> None:
    recipe = Recipe.parse("embed + dec-last-layer + enc-adapters-{1,2} (64) + code:none")
    assert recipe == Recipe(
        (
            LanguageCode(kind="none"),
            Adapters(stack="encoder", layers=(2, 1), dim=64),
            TunedLayers(stack="decoder", layers="last"),
        )
    )
    assert len({recipe, Recipe.parse(str(recipe))}) == 1


STACKS = st.sampled_from(["encoder", "decoder"])
NUMBERS = st.lists(st.integers(1, 12), min_size=1, unique=True).map(tuple)
LAYERS = st.sampled_from(["first", "last", "all"]) | NUMBERS
LANGUAGES = st.sampled_from(["en", "fr", "pt_BR", "eng_Latn"])
CODES = (
    st.builds(LanguageCode, kind=st.sampled_from(["learned", "fixed", "proxy"]), language=LANGUAGES)
    | st.just(LanguageCode(kind="none"))
    | st.just(LanguageCode(kind="proxy", language="nearest"))
)


def few_of(parts: st.SearchStrategy) -> st.SearchStrategy:
    """One or two, of different stacks so that no layer is named twice, or none."""
    return st.lists(parts, max_size=2, unique_by=lambda part: part.stack).map(tuple)


def recipe_of(*parts: list[Component]) -> Recipe:
    return Recipe(tuple(component for own in parts for component in own))


RECIPES = st.builds(
    recipe_of,
    few_of(st.builds(Adapters, stack=STACKS, layers=LAYERS, dim=st.integers(1, 3), parallel=st.booleans())),
    few_of(st.builds(TunedLayers, stack=STACKS, layers=LAYERS)),
    st.lists(st.builds(NormsOrBiases, stack=STACKS, what=st.sampled_from(["norm", "biases"])), unique=True),
    st.lists(st.just(NonTied()), max_size=1),
    st.lists(st.builds(FirstValues, method=st.sampled_from(["overlap", "random", "pieces", "alignment"])), max_size=1),
    st.lists(CODES, max_size=1),
)


@given(recipe=RECIPES, chance=st.randoms(use_true_random=False))
def test_what_is_printed_is_read_back_whatever_the_order_and_case(recipe: Recipe, chance) -> None:
    assert Recipe.parse(str(recipe)) == recipe
    components = str(recipe).split(" + ")
    chance.shuffle(components)
    again = Recipe.parse("+".join(text if text.startswith("code:") else text.upper() for text in components))
    assert (again, str(again)) == (recipe, str(recipe))


@given(st.text(alphabet="+-:(){},=12adeclnr \n", max_size=40))
def test_any_text_is_a_recipe_or_an_error_of_ours(text: str) -> None:
    try:
        recipe = Recipe.parse("embed + " + text)
    except ConfigError as error:
        assert "character" in str(error)
    else:
        assert Recipe.parse(str(recipe)) == recipe


@pytest.mark.parametrize(
    ("text", "character", "words"),
    [
        ("", 1, "a component is missing"),
        ("embed + ", 8, "a component is missing"),
        ("enc-norm", 1, "every pack has its own embeddings"),
        ("embed + enc-adaptors-all (64)", 9, "did you mean 'enc-adapters-all(64)'?"),
        ("embed + decoder-last-layer", 9, "did you mean 'dec-last-layer'?"),
        ("embed + enc-adapters-all", 9, "write 'enc-adapters-all(512)'"),
        ("embed + enc-adapters-all + enc-norm + dec-adapters-all(8)", 9, "has no dimension"),
        ("embed + enc-adapters-all(0)", 26, "dimension is 0"),
        ("embed + enc-adapters-all d=0", 28, "dimension is 0"),
        ("embed + enc-adapters-2,0(8)", 24, "layer 0"),
        ("embed + enc-adapters-2,2(8)", 24, "a second time"),
        ("embed + dec-layer-0", 19, "layer 0"),
        ("embed + adapters-last(8)", 9, "enc-adapters-last or dec-adapters-last"),
        ("12", 1, "'12' is a number; write the components of that model, which `graftmt recipes --id 12` shows"),
        ("embed + ( 12 )", 9, "`graftmt recipes --id 12`"),
        ("embed + embed", 9, "again"),
        ("embed + enc-norm + enc-norm", 20, "again"),
        ("embed + non-tied + non-tied", 20, "again"),
        ("embed + enc-adapters-all(8) + enc-adapters-2(9)", 31, "second adapter on a layer of the encoder"),
        ("embed + enc-adapters-first(8) + enc-adapters-1,2(9)", 33, "second adapter"),
        ("embed + dec-adapters-all(8) + parallel-adapters-all(8)", 31, "second adapter on a layer of the decoder"),
        ("embed + enc-all-layers + enc-last-layer", 26, "a second time"),
        ("embed + init:radom", 14, "did you mean 'random'?"),
        ("embed + init:random + random embed init", 23, "second choice of init"),
        ("embed + code:none + code:fixed:en", 21, "second choice of code"),
        ("embed + code:fixd:en", 14, "did you mean 'fixed'?"),
        ("embed + code:fixed", 19, "'code:fixed:en'"),
        ("embed + code:none:en", 19, "'code:none'"),
        ("embed + code:fixed:nearest", 20, "'code:proxy:nearest'"),
    ],
)
def test_an_error_says_where_and_what_to_write(text: str, character: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.parse(text)
    message, line, caret = str(caught.value).rsplit("\n", 2)
    assert f"recipe {text!r}, character {character}: " in message
    assert words in message
    assert (line, caret) == ("  " + text, " " * (character + 1) + "^")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Adapters(stack="encoder", layers="all", dim=0),
        lambda: TunedLayers(stack="encoder", layers=(0,)),
        lambda: TunedLayers(stack="encoder", layers=()),
        lambda: LanguageCode(kind="learned", language="nearest"),
        lambda: LanguageCode(kind="fixed", language="e n"),
        lambda: Recipe((TunedLayers(stack="encoder", layers="all"), TunedLayers(stack="encoder", layers=(2,)))),
        lambda: Recipe((NonTied(), NonTied())),
    ],
)
def test_values_are_checked_too(make) -> None:
    with pytest.raises(ConfigError):
        make()


def test_without_its_scoped_components_a_recipe_is_what_other_directions_get() -> None:
    recipe = Recipe.parse("embed + dec-last-layer + enc-adapters-last(8)@trained + init:random")
    assert recipe.scoped
    assert str(recipe.shared()) == "embed + dec-last-layer + init:random"
    assert not recipe.shared().scoped


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("embed@trained", "'embed' cannot be for trained directions only"),
        ("embed + enc-norm@trained", "'enc-norm' cannot be"),
        ("embed + enc-adapters-all(8)@en", "character 28: '@en' is no scope; write '@trained'"),
    ],
)
def test_a_scope_stands_after_adapters_and_layers_alone(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Recipe.parse(text)
