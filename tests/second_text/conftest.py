"""Bases and packs with another package's kinds of text, registered as an installed package would register them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.model import ModelConfig
from graftmt.packs import Pack, Recipe, create_pack
from graftmt.text import Layout
from graftmt.text.kinds import _other_kinds

LAYOUTS = {
    "marian": Layout(source_code="target", decoder_start="padding"),
    "nllb-legacy": Layout(source_code="source", decoder_code=True, code_after_text=True),
    "m2m-100": Layout(source_code="source", decoder_code=True),
    "no-codes": Layout(source_code=None, decoder_start="padding"),
}
SHAPE = {"model_dim": 32, "ffn_dim": 48, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
KNOWN = ("en", "fr", "ru")


@pytest.fixture(scope="session", autouse=True)
def characters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of the other package, which is installed as far as entry points tell."""
    site = tmp_path_factory.mktemp("site")
    info = site / "graftmt_characters-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: graftmt-characters\nVersion: 1.0\n")
    entries = {"characters": "Characters", "two-alphabets": "TwoWay", "broken": "Broken", "missing": "NoSuchClass"}
    lines = [f"{name} = graftmt_characters:{value}" for name, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(["[graftmt.text]", *lines, ""]))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        patch.syspath_prepend(str(site))
        _other_kinds.cache_clear()
        import graftmt_characters

        yield graftmt_characters
    _other_kinds.cache_clear()
    sys.modules.pop("graftmt_characters", None)


@pytest.fixture(scope="session")
def text_of(characters: Any, graft_corpus: Path) -> Callable[..., Any]:
    """`text_of("en", "fr")`: the characters of these languages, without codes."""

    def learn(*languages: str) -> Any:
        corpus = Corpus.open(graft_corpus, "train", languages)
        return characters.Characters().learn({language: corpus.lines(language) for language in languages}, sizes={})

    return learn


@pytest.fixture(scope="session")
def make_base(characters: Any, text_of: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`make_base("marian")`: the folder of a base with random weights; read only."""
    made: dict[str, Path] = {}

    def make(layout: str) -> Path:
        if layout not in made:
            torch.manual_seed(1)
            if layout == "one-way":
                text = characters.TwoAlphabets(text_of("en", "fr"), text_of("ru"), ("en", "fr"), ("ru",))
                config = ModelConfig(**SHAPE, embeddings="separate", output_bias=True)  # type: ignore[arg-type]
            else:
                text = characters.CharacterText(text_of(*KNOWN).alphabet, KNOWN, LAYOUTS[layout])
                config = ModelConfig(**SHAPE)  # type: ignore[arg-type]
            base = Base.create(config, text)
            with torch.no_grad():
                for parameter in base.model.parameters():
                    parameter += 0.1 * torch.randn_like(parameter)  # padding rows too
            made[layout] = tmp_path_factory.mktemp("bases") / layout
            base.save(made[layout])
        return made[layout]

    return make


@pytest.fixture(scope="session", params=[*LAYOUTS, "one-way"])
def any_base(request: pytest.FixtureRequest, make_base: Callable[..., Path]) -> Base:
    return Base.load(make_base(request.param))


@pytest.fixture(scope="session")
def make_pack(text_of: Callable[..., Any], graft_subwords: Callable[..., Path]) -> Callable[..., Pack]:
    """`make_pack(base, "source", "el", "characters")`: an untrained pack whose text is of this kind, or of ours."""
    from graftmt.text import Subwords

    def make(base: Base, side: str, language: str, kind: str, recipe: str = "embed", **options: Any) -> Pack:
        text = text_of(language) if kind == "characters" else Subwords.load(graft_subwords(language))
        made = Recipe.parse(recipe)
        return create_pack(base, side=side, languages=(language,), recipe=made, subwords=text, **options)  # type: ignore[arg-type]

    return make
