"""A composition as a Hugging Face folder: the same scores through transformers, also after `generate` and its own tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from interop.export.native import forced, recipes_of_tables
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from graftmt.base import Base
from graftmt.data import Direction
from graftmt.errors import CheckpointError, ExportError
from graftmt.interop.export.exporting import export
from graftmt.model import ModelConfig
from graftmt.packs import Recipe, create_pack
from graftmt.text.kinds import text_kind
from graftmt.translator import Translator

NEAR = 1e-4
LANGUAGES = ("en", "fr", "ru", "el", "uk")
MIXED = [
    ("embed + enc-adapters-all(4)", "embed + adapters-all(4) + non-tied"),
    ("embed + enc-lora-all(2) + enc-first-layer", "embed + dec-lora-1,3(2) + parallel-adapters-all(3)"),
    ("embed + enc-norm + enc-biases", ""),
    ("", "embed + dec-last-layer + code:proxy:ru"),
    ("", "embed + code:none"),
    ("", ""),
]
SHAPE = {"model_dim": 16, "ffn_dim": 24, "heads": 2, "encoder_layers": 3, "decoder_layers": 3}


@pytest.fixture(scope="module")
def corpus(graft_corpus: Path) -> dict[str, list[str]]:
    """Lines with capitals and punctuation, which plain text keeps as they are."""
    found = {language: (graft_corpus / f"train.{language}.txt").read_text().splitlines()[:120] for language in LANGUAGES}
    return {language: [f"{line.capitalize()}, 7!" for line in lines] for language, lines in found.items()}


def learned(lines: dict[str, list[str]]) -> Any:
    sizes = {language: len(own) for language, own in lines.items()}
    options = {"merges": 60, "temperature": 5.0, "min_character_count": 1, "byte_fallback": False, "pieces": None}
    return text_kind("sentencepiece").learn(lines, sizes=sizes, **options)


@pytest.fixture(scope="module")
def plain_base(corpus: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Base]:
    """`plain_base("decoder", …)`: a random base with plain text."""

    def build(placement: str = "decoder", **changes: Any) -> Base:
        known = {language: corpus[language] for language in ("en", "fr", "ru")}
        torch.manual_seed(1)
        base = Base.create(ModelConfig(**{**SHAPE, **changes}), learned(known).with_codes(tuple(known), placement))
        with torch.no_grad():
            for name, parameter in base.model.named_parameters():
                if "embedding" not in name:
                    parameter += 0.1 * torch.randn_like(parameter)
        folder = tmp_path_factory.mktemp("plain") / "base"
        base.save(folder)
        return Base.load(folder)

    return build


@pytest.fixture(scope="module")
def translator(plain_base: Callable[..., Base], corpus: dict[str, list[str]]) -> Callable[..., Translator]:
    """`translator(source_recipe, target_recipe, …)`: with noise for what training would do."""

    def build(source: str, target: str, **base_options: Any) -> Translator:
        base = plain_base(**base_options)
        packs = []
        for side, language, recipe in (("source", "el", source), ("target", "uk", target)):
            if recipe:
                subwords = learned({language: corpus[language]})
                options = {"side": side, "languages": (language,), "recipe": Recipe.parse(recipe), "subwords": subwords}
                pack = create_pack(base, **options)  # type: ignore[arg-type]
                generator = torch.Generator().manual_seed(len(recipe))
                with torch.no_grad():
                    for parameter in pack.parameters.values():
                        parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
                packs.append(pack)
        return Translator(base, packs)

    return build


def largest_difference(translator: Translator, folder: Path, corpus: dict[str, list[str]], lines: int = 5) -> float:
    """Between log-probabilities of given tokens, from text on: the tokenizer is the folder's own."""
    source = "el" if "el" in translator.source_languages else "en"
    target = "uk" if "uk" in translator.target_languages else "fr"
    export(translator, [Direction(source, target)], folder, to="hugging-face")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    pairs = list(zip(corpus[source][:lines], corpus[target][:lines], strict=True))
    composition = translator.composition(source, target)
    prefix = [model.config.decoder_start_token_id]
    if (code := model.generation_config.forced_bos_token_id) is not None:
        prefix.append(code)
    worst = 0.0
    for line, (text, _) in zip(forced(composition, source, target, pairs), pairs, strict=True):
        inputs = tokenizer([text], return_tensors="pt")
        ids = [joint_id(tokenizer, composition, row) for row in line.target]
        assert tokenizer.decode(ids, skip_special_tokens=True) == composition.codec.target_tokenizer(target).decode(line.target)
        with torch.inference_mode():
            scores = model(**inputs, decoder_input_ids=torch.tensor([[*prefix, *ids[:-1]]])).logits[0, len(prefix) - 1 :]
        theirs = torch.log_softmax(scores, dim=-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
        worst = max(worst, (theirs - torch.tensor(line.log_probabilities)).abs().max().item())
    return worst


def joint_id(tokenizer: Any, composition: Any, row: int) -> int:
    """The id of a row of the target's text."""
    name, vocabulary = composition.codec.text_of("target").symbols[row], tokenizer.get_vocab()
    return int(next(vocabulary[one] for one in (f"\ue000{name}", name) if one in vocabulary))


@pytest.mark.parametrize("base", [{}, {"placement": "source"}, {"embeddings": "separate", "output_bias": True}], ids=str)
@pytest.mark.parametrize("recipes", MIXED, ids=" | ".join)
def test_same_log_probabilities(
    translator: Callable[..., Translator], corpus: dict[str, list[str]], tmp_path: Path, base: Any, recipes: Any
) -> None:
    assert largest_difference(translator(*recipes, **base), tmp_path / "out", corpus) < NEAR


@pytest.mark.slow
@pytest.mark.parametrize("placement", ["source", "decoder"])
def test_every_recipe_of_tables_2_and_3(
    translator: Callable[..., Translator], corpus: dict[str, list[str]], tmp_path: Path, placement: str
) -> None:
    recipes = recipes_of_tables()
    for number, recipe in enumerate((*recipes["source"], *recipes["target"])):
        pair = (recipe, "embed") if recipe in recipes["source"] else ("embed", recipe)
        found = largest_difference(translator(*pair, placement=placement), tmp_path / str(number), corpus)
        assert found < NEAR, recipe


def test_a_base_alone_keeps_its_rows_and_one_matrix(
    translator: Callable[..., Translator], corpus: dict[str, list[str]], tmp_path: Path
) -> None:
    from safetensors import safe_open

    alone = translator("", "")
    export(alone, [Direction("en", "fr")], tmp_path / "out", to="hugging-face")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["tie_word_embeddings"] is True
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as file:
        assert torch.equal(file.get_tensor("model.shared.weight"), alone.base.model.source_embedding.weight)
        assert "lm_head.weight" not in list(file.keys())


@pytest.mark.parametrize("recipes", [("", ""), ("embed + enc-adapters-all(4)", "embed")])
def test_generate_translates(
    translator: Callable[..., Translator], corpus: dict[str, list[str]], tmp_path: Path, recipes: Any
) -> None:
    from graftmt.decoding import SearchOptions

    ours = translator(*recipes, output_bias=True)
    with torch.no_grad():  # random models do not end by themselves
        for parameters in (dict(ours.base.model.named_parameters()), *(pack.parameters for pack in ours.packs.values())):
            for name in ("projection.bias", "output.bias"):
                if name in parameters:
                    parameters[name][2] += 4
    source, target = ("el", "uk") if recipes[0] else ("en", "fr")
    export(ours, [Direction(source, target)], tmp_path / "out", to="hugging-face")
    tokenizer, model = (kind.from_pretrained(tmp_path / "out") for kind in (AutoTokenizer, AutoModelForSeq2SeqLM))
    lines = corpus[source][:6]
    inputs = tokenizer(lines, return_tensors="pt", padding=True)
    outputs = model.generate(**inputs, num_beams=1, max_length=None, max_new_tokens=12)
    found = tokenizer.batch_decode(outputs, skip_special_tokens=True)
    expected = ours.translate(lines, source=source, target=target, options=SearchOptions(beam=1, max_length=11))
    assert [" ".join(text.split()) for text in found] == expected


def test_inline_casing_has_a_python_file(composed_translator: Any, tmp_path: Path) -> None:
    export(composed_translator, [Direction("el", "uk")], tmp_path / "out", to="hugging-face")
    assert not (tmp_path / "out" / "tokenizer.json").exists()
    assert "inline" in (tmp_path / "out" / "README.md").read_text()


def test_post_norm_is_refused(translator: Callable[..., Translator], tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"post-norm.*CTranslate2"):
        export(translator("embed", "", norm="post"), [Direction("el", "fr")], tmp_path / "out", to="hugging-face")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("recipes", [("", ""), *MIXED[:2], ("embed", "embed + code:none")], ids=" | ".join)
@pytest.mark.parametrize("placement", ["source", "decoder"])
def test_an_export_imported_again_translates_alike(
    translator: Callable[..., Translator], corpus: dict[str, list[str]], tmp_path: Path, recipes: Any, placement: str
) -> None:
    from graftmt.api import import_model
    from graftmt.decoding import SearchOptions

    ours = translator(*recipes, placement=placement)
    source, target = ("el" if recipes[0] else "en"), ("uk" if recipes[1] else "fr")
    export(ours, [Direction(source, target)], tmp_path / "out", to="hugging-face")
    import_model(str(tmp_path / "out"), tmp_path / "again")
    again = Translator(tmp_path / "again")
    options = SearchOptions(beam=3, max_length=8)
    lines = [*corpus[source][:4], "", " 漢  7"]
    expected = ours.translate(lines, source=source, target=target, n_best=2, options=options)
    found = again.translate(lines, source=source, target=target, n_best=2, options=options)
    assert [[one.text for one in both] for both in found] == [[one.text for one in both] for both in expected]
    for both, theirs in zip(found, expected, strict=True):
        assert [one.score for one in both] == pytest.approx([one.score for one in theirs], abs=NEAR)
    if not any(recipes):
        own, other = (dict(one.model.named_parameters()) for one in (ours.base, again.base))
        assert own.keys() == other.keys() and all(torch.equal(own[name], other[name]) for name in own)


def test_the_import_of_an_export_names_a_damaged_file(translator: Callable[..., Translator], tmp_path: Path) -> None:
    from graftmt.api import import_model

    out = tmp_path / "out"
    export(translator("embed", "embed"), [Direction("el", "uk")], out, to="hugging-face")
    text = json.loads((out / "export.json").read_text())["text"]["files"]
    for name in ("model.safetensors", "config.json", *text):
        content = (out / name).read_bytes()
        for damaged in (content[:-1], bytes([*content[:-1], content[-1] ^ 1])):
            (out / name).write_bytes(damaged)
            with pytest.raises(CheckpointError, match=rf"{re.escape(str(out / name))}"):
                import_model(str(out), tmp_path / "again")
            assert not (tmp_path / "again").exists()
        (out / name).write_bytes(content)
    (out / "README.md").write_text("# Ours")  # people edit it
    import_model(str(out), tmp_path / "again")
