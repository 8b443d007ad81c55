"""Ownership decides what trains: for every component of a recipe, its parameters move and nothing else does.

What was trained gives the same outputs after it was saved and loaded, from a folder and from an archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graftmt.base import Base
from graftmt.data import BatchMaker, Corpus
from graftmt.errors import ConfigError, GraftError, LanguageError
from graftmt.packs import Pack, Recipe, check_recipe, compose, create_pack, load_pack, save_pack
from graftmt.packs.components.adapters import NEARLY_ZERO
from graftmt.text import END_ID, PADDING_ID, Subwords, code_symbol
from graftmt.training.pack_job import PackJob
from graftmt.training.pack_training import prepare_pack
from graftmt.training.stages import batch_plan

SERIAL = ("norm.weight", "norm.bias", "down.weight", "down.bias", "up.weight", "up.bias")
PARALLEL = SERIAL[2:]


def adapters(stack: str, *layers: int, leaves: tuple[str, ...] = SERIAL) -> tuple[str, ...]:
    return tuple(f"{stack}.adapters.{layer}.{leaf}" for layer in layers for leaf in leaves)


EVERY = (0, 1, 2)
SOURCE_RECIPES: dict[str, tuple[str, ...]] = {
    "embed": (),
    "embed + init:random": (),
    "embed + init:pieces": (),
    "embed + init:alignment": (),
    "embed + enc-norm + enc-biases": ("encoder.*norm.weight", "encoder.*.bias"),
    "embed + enc-adapters-first(4)": adapters("encoder", 0),
    "embed + enc-adapters-last(4)": adapters("encoder", 2),
    "embed + enc-adapters-all(4)": adapters("encoder", *EVERY),
    "embed + enc-adapters-1,3(4)": adapters("encoder", 0, 2),
    "embed + parallel-enc-adapters-all(4)": adapters("encoder", *EVERY, leaves=PARALLEL),
    "embed + enc-first-layer": ("encoder.layers.0.*",),
    "embed + enc-layer-2": ("encoder.layers.1.*",),
    "embed + enc-all-layers": ("encoder.layers.*",),
    "embed + enc-layer-2 + enc-adapters-all(4)": ("encoder.layers.1.*", *adapters("encoder", 0, 2)),
}
TARGET_RECIPES: dict[str, tuple[str, ...]] = {
    "embed": (),
    "embed + non-tied": ("output.weight",),
    "embed + dec-norm + dec-biases": ("decoder.*norm.weight", "decoder.*.bias"),
    "embed + dec-adapters-all(4)": adapters("decoder", *EVERY),
    "embed + adapters-all(4)": adapters("encoder", *EVERY) + adapters("decoder", *EVERY),
    "embed + parallel-dec-adapters-last(4)": adapters("decoder", 2, leaves=PARALLEL),
    "embed + parallel-adapters-all(4)": adapters("encoder", *EVERY, leaves=PARALLEL)
    + adapters("decoder", *EVERY, leaves=PARALLEL),
    "embed + dec-last-layer": ("decoder.layers.2.*",),
    "embed + dec-all-layers": ("decoder.layers.*",),
    "embed + dec-last-layer + enc-adapters-last(4)": ("decoder.layers.2.*", *adapters("encoder", 2)),
    "embed + dec-last-layer + adapters-all(4)": (
        "decoder.layers.2.*",
        *adapters("encoder", *EVERY),
        *adapters("decoder", 0, 1),
    ),
}
CODES = ("code:learned:fr", "code:none", "code:fixed:en", "code:proxy:ru")
CASES = [
    *(("pre", "source", "source", recipe) for recipe in SOURCE_RECIPES),
    *(("post", "source", "target", recipe) for recipe in TARGET_RECIPES),
    *(("pre", "source", "target", f"embed + {code}") for code in CODES),
    *(("post", "decoder", side, f"embed + {code}") for side in ("source", "target") for code in CODES),
    # Where the other kind of norm, or of placement, could make a difference.
    ("post", "source", "source", "embed + enc-norm + enc-biases"),
    ("post", "source", "source", "embed + enc-adapters-all(4)"),
    ("post", "source", "source", "embed + parallel-enc-adapters-all(4)"),
    ("post", "source", "source", "embed + enc-all-layers"),
    ("pre", "source", "target", "embed + dec-norm + dec-biases"),
    ("pre", "source", "target", "embed + dec-last-layer + adapters-all(4)"),
    ("pre", "source", "target", "embed + parallel-adapters-all(4)"),
    ("pre", "source", "target", "embed + dec-all-layers"),
    ("pre", "decoder", "source", "embed + init:random"),
    ("pre", "decoder", "target", "embed + non-tied"),
    ("pre", "decoder", "target", "embed + dec-last-layer + enc-adapters-last(4)"),
]


@dataclass
class Trained:
    """A pack, its values before it was trained, and what its base was like before and after."""

    base: Base
    folder: Path
    job: PackJob
    first: dict[str, Tensor]
    pack: Pack
    base_before: dict[str, Any]
    base_after: dict[str, Any]
    run: Path

    def moved(self, name: str) -> Tensor:
        """(rows,): which rows of a matrix are not what they were."""
        return (self.pack.parameters[name] != self.first[name]).any(dim=1)


def look_at(base: Base, folder: Path) -> dict[str, Any]:
    """Every byte of a base in memory and on disk, and how its modules are set."""
    return {
        "memory": {name: p.detach().numpy().tobytes() for name, p in base.model.named_parameters()},
        "buffers": {name: buffer.numpy().tobytes() for name, buffer in base.model.named_buffers()},
        "tensors": {name: (id(p), p.data_ptr(), p.requires_grad) for name, p in base.model.named_parameters()},
        "gradients": [name for name, p in base.model.named_parameters() if p.grad is not None],
        "training": [module.training for module in base.model.modules()],
        "dropout": [module.p for module in base.model.modules() if isinstance(module, nn.Dropout)],
        "disk": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())},
    }


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case).replace(" ", ""))
def trained(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    graft_base: Callable[..., Path],
    graft_config: Callable[..., Any],
    graft_corpus: Path,
    train_graft: Callable[..., Pack],
) -> Trained:
    norm, placement, side, recipe = request.param
    folder, run = graft_base(norm, placement), tmp_path_factory.mktemp("pack")
    base = Base.load(folder)
    before = look_at(base, folder)
    config = graft_config(run, side, recipe)
    job = prepare_pack(config, base, Corpus.open(graft_corpus, "train"), None)
    first = {name: parameter.detach().clone() for name, parameter in job.pack.parameters.items()}
    pack = train_graft(run, base, side, recipe)
    return Trained(base, folder, job, first, pack, before, look_at(base, folder), run)


def test_exactly_the_parameters_of_the_recipe_move(trained: Trained) -> None:
    pack, names = trained.pack, [name for name, _ in trained.base.model.named_parameters()]
    recipes = SOURCE_RECIPES if pack.side == "source" else TARGET_RECIPES
    patterns = recipes.get(str(trained.job.config.recipe), ())
    expected = {"embedding.weight", *(pattern for pattern in patterns if "*" not in pattern)}
    expected |= {name for name in names if any(fnmatch(name, pattern) for pattern in patterns)}
    written_here = pack.side == "target" or trained.base.tokenizer.code_placement == "decoder"
    if written_here and pack.recipe.code.kind == "learned":
        expected.add("code.weight")
    assert pack.parameters.keys() == trained.first.keys() == expected
    still = [name for name, first in trained.first.items() if torch.equal(first, pack.parameters[name])]
    assert not still
    assert trained.base_after == trained.base_before
    assert trained.base_before["gradients"] == []
    assert Base.load(trained.folder).fingerprint == trained.base.fingerprint == pack.base


def test_rows_move_where_training_touched_them(trained: Trained) -> None:
    pack, job = trained.pack, trained.job
    plan = batch_plan(job.config, job.prepared, 0, job.directions)
    maker = BatchMaker(job.prepared.train, job.prepared.codec)
    batches = [maker.make(*plan.pairs(step)) for step in range(job.config.stages[0].steps)]
    read = {int(row) for batch in batches for row in (batch.source if pack.side == "source" else batch.decoder_input).unique()}
    every = set(range(len(pack.tokenizer)))
    moved = set(trained.moved("embedding.weight").nonzero().flatten().tolist())
    tied = "output.weight" not in pack.parameters
    if pack.side == "source" or not tied:
        assert moved == (read & every) - {PADDING_ID}
        assert not moved & {pack.tokenizer.vocabulary.id(letter) for letter in "ψω"}  # which the training text has not
        assert not pack.parameters["embedding.weight"][PADDING_ID].any()
    if pack.side == "target":
        # Every row stands in the softmax.
        assert trained.moved("embedding.weight" if tied else "output.weight").all()
    if "code.weight" in pack.parameters:
        assert trained.moved("code.weight").all()
    elif pack.recipe.code.kind in ("fixed", "proxy"):
        # The code in use is the base's, which has not moved.
        model, codec, direction = job.composition.model, job.prepared.codec, job.directions[0]
        decoder = pack.side == "target" and trained.base.tokenizer.code_placement == "decoder"
        code = codec.decoder_prefix(direction.target)[1] if decoder else codec.source_prefix(*direction)[0]
        used = (model.target_embedding if decoder else model.source_embedding)(torch.tensor([code]))[0]
        row = trained.base.tokenizer.vocabulary.code(pack.recipe.code.language)
        assert torch.equal(used, trained.base.model.source_embedding.weight[row])
    elif pack.side == "source" and trained.base.tokenizer.code_placement == "source":
        codes = {language: pack.tokenizer.vocabulary.code(language) for language in trained.base.languages}
        assert {language for language, row in codes.items() if row in moved} == {"en"}
        for language in ("fr", "ru"):
            known = trained.base.model.source_embedding.weight[trained.base.tokenizer.vocabulary.code(language)]
            assert torch.equal(pack.parameters["embedding.weight"][codes[language]], known)


def test_what_is_saved_is_the_same_when_loaded(trained: Trained, outputs: Callable[..., Any], tmp_path: Path) -> None:
    pack, config = trained.pack, trained.base.model.config
    direction = ("el", "fr") if pack.side == "source" else ("en", "el")

    def seen(shown: Pack) -> Any:
        return outputs(compose(trained.base, **{shown.side: shown}), *direction)  # type: ignore[arg-type]

    now = seen(pack)
    stored = load_pack(trained.run / "pack")
    assert seen(stored).same_as(now)
    archives = [tmp_path / f"{name}.graftpack" for name in "ab"]
    marks = [save_pack(shown, path, config) for shown, path in zip((pack, stored), archives, strict=True)]
    assert marks == [pack.fingerprint] * 2
    assert archives[0].read_bytes() == archives[1].read_bytes()
    sent = load_pack(archives[0])
    assert seen(sent).same_as(now)
    assert (sent.side, sent.languages, sent.recipe, sent.base) == (pack.side, pack.languages, pack.recipe, pack.base)
    assert sent.tokenizer.fingerprint == pack.tokenizer.fingerprint
    assert sent.card == stored.card
    # Training has changed what comes out.
    with torch.no_grad():
        for name, value in trained.first.items():
            sent.parameters[name].copy_(value)
    assert not torch.equal(seen(sent).scores, now.scores)


# Before training


@pytest.fixture(scope="module")
def subwords(graft_subwords: Callable[..., Path]) -> Subwords:
    return Subwords.load(graft_subwords("el"))


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_new_pack_starts_from_the_base(any_base: Base, subwords: Subwords, side: Any) -> None:
    recipe = Recipe.parse("embed + enc-layer-2 + enc-adapters-last(4)" + (" + code:learned:fr" if side == "target" else ""))
    pack = create_pack(any_base, side=side, languages=["el"], recipe=recipe, subwords=subwords)
    known = dict(any_base.model.named_parameters())
    for name, parameter in pack.parameters.items():
        if name in known:
            assert torch.equal(parameter, known[name]) and parameter.data_ptr() != known[name].data_ptr()
    decoder = any_base.tokenizer.code_placement == "decoder"
    assert set(pack.tokenizer.languages) == (set(any_base.languages) if side == "source" or decoder else set())
    vocabulary, base_vocabulary = pack.tokenizer.vocabulary, any_base.tokenizer.vocabulary
    matrix = any_base.model.source_embedding.weight
    for symbol in set(vocabulary.symbols) & set(base_vocabulary.symbols):
        assert torch.equal(pack.parameters["embedding.weight"][vocabulary.id(symbol)], matrix[base_vocabulary.id(symbol)])
    if side == "target":
        assert torch.equal(pack.parameters["code.weight"][0], matrix[base_vocabulary.id(code_symbol("fr"))])
    assert pack.size == sum(parameter.numel() for parameter in pack.parameters.values())
    assert sum(pack.card["initialisation"].values()) == len(pack.tokenizer)


def test_adapters_begin_as_almost_nothing(base: Base, subwords: Subwords, outputs: Callable[..., Any]) -> None:
    texts = ("embed", "embed + enc-adapters-all(8)", "embed + parallel-enc-adapters-all(8)")
    packs = [create_pack(base, side="source", languages=["el"], recipe=Recipe.parse(text), subwords=subwords) for text in texts]
    plain, *adapted = [outputs(compose(base, source=pack), "el", "en").scores for pack in packs]
    for scores in adapted:
        assert not torch.equal(scores, plain)
        assert (scores - plain).abs().max() < 100 * NEARLY_ZERO


def test_the_seed_decides_all_that_is_random(base: Base, subwords: Subwords) -> None:
    recipe = Recipe.parse("embed + enc-adapters-all(4) + init:random")

    def first(seed: int) -> dict[str, Tensor]:
        pack = create_pack(base, side="source", languages=["el"], recipe=recipe, subwords=subwords, seed=seed)
        return dict(pack.parameters)

    one, again, other = first(1), first(1), first(2)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["embedding.weight"], other["embedding.weight"])
    assert not torch.equal(one["encoder.adapters.0.down.weight"], other["encoder.adapters.0.down.weight"])


def test_a_matrix_that_starts_from_noise_keeps_the_codes_that_do_not_train(base: Base, subwords: Subwords) -> None:
    recipe = Recipe.parse("embed + init:random")
    pack = create_pack(base, side="source", languages=["el"], recipe=recipe, subwords=subwords, trained_codes=["en"])
    own, known = pack.tokenizer.vocabulary, base.tokenizer.vocabulary
    same = {
        language: torch.equal(
            pack.parameters["embedding.weight"][own.code(language)], base.model.source_embedding.weight[known.code(language)]
        )
        for language in base.languages
    }
    assert same == {"en": False, "fr": True, "ru": True}
    assert pack.parameters["embedding.weight"][END_ID].any()


@pytest.mark.parametrize("embeddings", ["tied", "tied-target", "separate"])
def test_each_matrix_starts_from_its_own(graft_base: Callable[..., Path], subwords: Subwords, embeddings: str) -> None:
    base = Base.load(graft_base("pre", "source", embeddings=embeddings))
    row = base.tokenizer.vocabulary.id("</s>")

    def start(side: Any, recipe: str) -> dict[str, Tensor]:
        pack = create_pack(base, side=side, languages=["el"], recipe=Recipe.parse(recipe), subwords=subwords)
        return dict(pack.parameters)

    model = base.model
    assert torch.equal(start("source", "embed")["embedding.weight"][END_ID], model.source_embedding.weight[row])
    target = start("target", "embed + non-tied")
    assert torch.equal(target["embedding.weight"][END_ID], model.target_embedding.weight[row])
    assert torch.equal(target["output.weight"][END_ID], model.projection.weight[row])
    code = base.tokenizer.vocabulary.code("en")
    assert torch.equal(target["code.weight"][0], model.source_embedding.weight[code])


@pytest.mark.parametrize(
    ("side", "languages", "recipe", "error", "words"),
    [
        ("source", ["en"], "embed", LanguageError, "'en' is one of the base's languages already (en, fr, ru)"),
        ("source", ["el", "el"], "embed", LanguageError, "one or several different languages; got el, el"),
        ("source", [], "embed", LanguageError, "got none"),
        ("source", ["el"], "embed + enc-adapters-9(4)", ConfigError, "no layer 9; expected 1 to 3"),
        ("source", ["el"], "embed + dec-last-layer", ConfigError, "make a target pack"),
        ("source", ["el"], "embed + code:none", ConfigError, "no language code of its own"),
        ("target", ["el"], "embed + code:fixed:de", ConfigError, "no code of 'de' to take; it has those of en, fr, ru"),
        ("target", ["el"], "embed + code:learned:de", ConfigError, "Name one of them, as in code:learned:en"),
        ("target", ["el"], "embed + code:proxy:nearest", ConfigError, "see --codes-from"),
    ],
)
def test_a_recipe_that_does_not_fit_the_base_is_refused(
    base: Base, side: Any, languages: list[str], recipe: str, error: type[GraftError], words: str
) -> None:
    with pytest.raises(error) as caught:
        check_recipe(Recipe.parse(recipe), side, languages, base)
    assert words in str(caught.value)


def test_a_base_without_english_asks_for_a_code_to_start_from(graft_base: Callable[..., Path], subwords: Subwords) -> None:
    base = Base.load(graft_base("pre", "source", languages=("fr", "ru")))
    create_pack(base, side="source", languages=["el"], recipe=Recipe.parse("embed"), subwords=subwords)
    with pytest.raises(ConfigError, match=r"'en'.*fr, ru.*code:learned:fr"):
        create_pack(base, side="target", languages=["el"], recipe=Recipe.parse("embed"), subwords=subwords)


@pytest.mark.parametrize("start", ["overlap", "random"])
def test_the_output_bias_starts_from_the_base_s_where_the_rows_do(
    graft_base: Callable[..., Path], subwords: Subwords, start: str
) -> None:
    base = Base.load(graft_base(embeddings="separate", output_bias=True))
    pack = create_pack(base, side="target", languages=("el",), recipe=Recipe.parse(f"embed + init:{start}"), subwords=subwords)
    known = {symbol: row for row, symbol in enumerate(base.tokenizer.vocabulary.symbols)}
    symbols = pack.tokenizer.vocabulary.symbols
    shared = [row for row, symbol in enumerate(symbols) if symbol in known and symbol != "<pad>"]
    assert 0 < len(shared) < len(symbols)
    bias, theirs = pack.parameters["output.bias"], base.model.projection.bias
    assert theirs is not None and theirs.abs().min() > 0
    for row, symbol in enumerate(symbols):
        expected = theirs[known[symbol]] if start == "overlap" and row in shared else 0
        assert bias[row] == expected, symbol


def test_a_pack_elsewhere_is_the_same_pack(base: Base, make_pack: Callable[..., Pack]) -> None:
    pack = make_pack(base)
    assert pack.to("cpu") is pack and pack.to("cpu", torch.float32) is pack
    half = pack.to("cpu", torch.bfloat16)
    assert half.parameters["embedding.weight"].dtype == torch.bfloat16
    assert pack.parameters["embedding.weight"].dtype == torch.float32
    assert (half.name, half.recipe, half.base) == (pack.name, pack.recipe, pack.base)
    assert pack.name == "el (source)"
