"""The nearest code is the one at the smallest distance, among a base that knows the language or beside a pack's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graftmt.base import Base
from graftmt.errors import ConfigError, GraftError
from graftmt.packs import Pack, save_pack
from graftmt.packs.codes import nearest_code

LANGUAGES = ("en", "fr", "ru")


def move_code(base: Base, language: str, near: str) -> None:
    """Puts a base's code of one language beside that of another."""
    vocabulary = base.tokenizer.vocabulary
    for embedding in {id(e): e for e in (base.model.source_embedding, base.model.target_embedding)}.values():
        with torch.no_grad():
            embedding.weight[vocabulary.code(language)] = embedding.weight[vocabulary.code(near)] + 1e-3


@pytest.mark.parametrize("placement", ["source", "decoder"])
@pytest.mark.parametrize("near", LANGUAGES)
def test_a_base_that_knows_the_language_says_which(
    graft_base: Callable[..., Path], tmp_path: Path, placement: str, near: str
) -> None:
    base = Base.load(graft_base("pre", placement))
    oracle = Base.load(graft_base("pre", placement, languages=("ru", "el", "en", "uk", "fr")))
    move_code(oracle, "el", near)
    move_code(oracle, "uk", "el")  # nearer still, but none of the base's
    oracle.save(tmp_path / "oracle")
    assert nearest_code("el", tmp_path / "oracle", base) == near


def test_only_languages_that_both_have_are_compared(graft_base: Callable[..., Path], tmp_path: Path) -> None:
    base = Base.load(graft_base("pre", "source", languages=("fr", "ru")))
    oracle = Base.load(graft_base("pre", "source", languages=("en", "fr", "el")))
    move_code(oracle, "el", "en")
    oracle.save(tmp_path / "oracle")
    assert nearest_code("el", tmp_path / "oracle", base) == "fr"


@pytest.mark.parametrize("placement", ["source", "decoder"])
@pytest.mark.parametrize("archive", [False, True])
def test_a_target_pack_with_a_learned_code_says_which(
    graft_base: Callable[..., Path], make_pack: Callable[..., Pack], tmp_path: Path, placement: str, archive: bool
) -> None:
    base = Base.load(graft_base("post", placement))
    pack = make_pack(base, "target", "embed", "el", "uk")
    rows = {"el": "ru", "uk": "fr"}
    with torch.no_grad():
        for number, near in enumerate(rows.values()):
            row = base.model.target_embedding.weight[base.tokenizer.vocabulary.code(near)]
            pack.parameters["code.weight"][number] = row + 1e-3
    path = tmp_path / ("pack.graftpack" if archive else "pack")
    save_pack(pack, path, base.model.config)
    assert {language: nearest_code(language, path, base) for language in rows} == rows


def test_a_model_that_cannot_say_is_an_error(
    base: Base, graft_base: Callable[..., Path], make_pack: Callable[..., Pack], tmp_path: Path
) -> None:
    def pack(name: str, *arguments: str, of: Base = base) -> Path:
        save_pack(make_pack(of, *arguments), tmp_path / name, of.model.config)
        return tmp_path / name

    decoder = Base.load(graft_base("pre", "decoder"))
    learned = pack("learned", "target", "embed")
    cases: list[tuple[str, Path, Base, str]] = [
        ("el", graft_base(), base, "does not know 'el'; it knows en, fr, ru"),
        ("el", graft_base("pre", "source", languages=("el", "uk")), base, "none of this base's languages, en, fr, ru"),
        ("uk", learned, base, "no learned code of 'uk'; give a target pack that has, or a base"),
        ("el", pack("fixed", "target", "embed + code:fixed:en"), base, "no learned code of 'el'"),
        ("el", pack("none", "target", "embed + code:none"), base, "no learned code of 'el'"),
        ("el", pack("source", "source", "embed"), base, "no learned code of 'el'"),
        ("el", pack("reads", "source", "embed", of=decoder), decoder, "no learned code of 'el'"),  # of a source, not a target
        ("el", learned, decoder, "is of another base"),
    ]
    for language, model, asking, words in cases:
        with pytest.raises(ConfigError) as caught:
            nearest_code(language, model, asking)
        assert words in str(caught.value)
    with pytest.raises(GraftError, match="there is no base folder"):
        nearest_code("el", tmp_path / "nowhere", base)
