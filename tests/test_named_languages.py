"""Languages by any name that people and files have for them, with a base whose codes are NLLB-200's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from patience import PATIENCE

import graftmt
from graftmt.base import Base
from graftmt.data import Corpus, Direction, select_directions
from graftmt.data.corpus import open_split
from graftmt.errors import LanguageError
from graftmt.packs import Recipe
from graftmt.text import Tokenizer
from graftmt.text.languages import is_installed
from graftmt.translator import Translator

CODES = {"en": "eng_Latn", "fr": "fra_Latn", "ru": "rus_Cyrl"}
needs_names = pytest.mark.skipif(not is_installed(), reason="names of languages need langcodes")


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Base:
    found = Base.load(graft_base())
    torch.manual_seed(1)
    made = Base.create(found.model.config, Tokenizer(found.tokenizer.subwords, list(CODES.values()), "decoder"))  # type: ignore[attr-defined]
    folder = tmp_path_factory.mktemp("named") / "base"
    made.save(folder)
    return Base.load(folder)


LINES = ["lako moze", "fada"]


@pytest.mark.slow
@needs_names
@pytest.mark.parametrize(("source", "target"), [("en", "fr"), ("English", "French"), ("eng", "fra-Latn"), ("en-US", "FR")])
def test_translate(base: Base, source: str, target: str) -> None:
    translator = Translator(base)
    expected = translator.translate(LINES, source="eng_Latn", target="fra_Latn")
    assert translator.translate(LINES, source=source, target=target) == expected
    pivoted = translator.translate(LINES, source="eng_Latn", target="fra_Latn", pivot="rus_Cyrl")
    assert translator.translate(LINES, source=source, target=target, pivot="Russian") == pivoted


def test_what_fits_nothing_is_an_error_with_the_nearest(base: Base) -> None:
    translator = Translator(base)
    for source in ("kab", "de", "fra_Cyrl"):
        with pytest.raises(LanguageError, match=source):
            translator.translate(LINES, source=source, target="eng_Latn")
    with pytest.raises(LanguageError, match="both"):
        translator.translate(LINES, source="eng_Latn", target="ENG-Latn")


@needs_names
def test_evaluate(base: Base, graft_corpus: Path) -> None:
    """Whose files are called train.en.txt, and so on."""
    found = graftmt.evaluate(Translator(base), graft_corpus, "en-fr,Russian-English", beam=1, lines=2, off_target=False)
    assert set(found["directions"]) == {"eng_Latn-fra_Latn", "rus_Cyrl-eng_Latn"}
    centric = graftmt.evaluate(Translator(base), graft_corpus, "english-centric", beam=1, lines=1, off_target=False)
    assert len(centric["directions"]) == 4


@needs_names
def test_a_corpus_under_a_base_s_codes(graft_corpus: Path) -> None:
    corpus = Corpus.open(graft_corpus, "train")
    known = corpus.known_as(tuple(CODES.values()))
    assert set(known.languages) == {*CODES.values(), "el", "uk"}
    assert known.files["rus_Cyrl"] == corpus.files["ru"]
    files = [f"Greek={corpus.files['el']}", f"eng={corpus.files['en']}"]
    assert set(open_split(files, "train", ("el", *CODES.values()), ("el",)).languages) == {"el", "eng_Latn"}
    assert set(open_split([str(graft_corpus)], "train", ("ell_Grek", *CODES.values()), ("ell_Grek",)).languages) == {
        "ell_Grek",
        *CODES.values(),
    }


def test_directions_by_name() -> None:
    languages = tuple(CODES.values())
    assert select_directions("to-en", languages) == [
        Direction("fra_Latn", "eng_Latn"),
        Direction("rus_Cyrl", "eng_Latn"),
    ]
    assert len(select_directions("english-centric", languages)) == 4
    with pytest.raises(LanguageError, match="kab"):
        select_directions("kab-eng_Latn", languages)


@needs_names
@pytest.mark.parametrize("written", ["code:learned:en", "code:learned:English", "code:learned:eng"])
def test_codes_in_recipes(base: Base, written: str) -> None:
    recipe = Recipe.parse(f"embed + {written}").with_codes_of(base, "target")
    assert recipe.code.language == "eng_Latn"
    assert Recipe.parse("embed + code:proxy:Russian").with_codes_of(base, "target").code.language == "rus_Cyrl"
    assert Recipe.parse("embed + code:none").with_codes_of(base, "target") == Recipe.parse("embed + code:none")


def test_a_recipe_without_a_code_takes_english_without_a_library(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftmt.text.aliases.is_installed", lambda: False)
    assert Recipe.parse("embed").with_codes_of(base, "target").code.language == "eng_Latn"


@pytest.mark.slow
@needs_names
def test_add(base: Base, graft_corpus: Path, tmp_path: Path) -> None:
    made = graftmt.add(
        base,
        "Greek",
        train=str(graft_corpus),
        partner="English",
        side="target",
        recipe="embed + code:learned:Russian",
        run=tmp_path / "run",
        steps=2,
        merges=30,
        test_lines=2,
        beam=1,
        overrides=("tensorboard=false", "threads=1", "validation.lines=2"),
    )
    assert made.languages == ("el",)
    assert made.partners == ("eng_Latn",)
    assert str(made.recipe) == "embed + code:learned:rus_Cyrl"
    assert Translator(base, [made]).code("Greek", "target") == "el"
    with pytest.raises(LanguageError, match=r"rus_Cyrl.*languages"):
        graftmt.add(base, "Russian", train=str(graft_corpus), partner="English", side="source", run=tmp_path / "other")


@pytest.mark.slow
@needs_names
def test_the_command(base: Base) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "graftmt", "translate", "-b", str(base.folder), "-s", "English", "-t", "fr", "--beam", "1"]
    done = subprocess.run(command, input="lako moze\n", capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
