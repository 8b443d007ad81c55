from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.adding.verification import verify
from graftmt.base import Base, parameters
from graftmt.data import BatchMaker, BatchPlan, Corpus, PackedMaker, PackedPlan, PairSampler, select_directions, tokenize_corpus
from graftmt.decoding import SearchOptions, search_all
from graftmt.decoding.recorded import recorded_search
from graftmt.errors import ConfigError
from graftmt.packs import Composition, Pack, compose, load_pack, save_pack
from graftmt.text import Text
from graftmt.training.optimization import packed_loss, smoothed_loss
from graftmt.training.retraining import parent_text
from graftmt.translation_requests import Request, source_rows
from graftmt.translator import Translator

KNOWN = ("en", "fr", "ru")
ARRANGEMENTS = ("marian", "nllb-legacy", "one-way")


def optimise(
    model: Any, trained: Iterable[torch.nn.Parameter], codec: Any, tokens: Any, directions: Any, *, steps: int, packed: bool
) -> list[float]:
    """A short training, without the folder of a run; the mean loss of a target token at each step."""
    sampler = PairSampler(tokens, directions, temperature=1.0, max_length=200, seed=1)
    plan = (PackedPlan if packed else BatchPlan)(sampler, tokens, max_tokens=600)
    maker = PackedMaker(tokens, codec, plan.shape) if isinstance(plan, PackedPlan) else BatchMaker(tokens, codec)
    optimizer = torch.optim.Adam(trained, lr=0.01)
    losses = []
    for step in range(steps):
        batch = maker.make(*plan.pairs(step))
        if packed:
            loss = packed_loss(model, batch, 0.0)  # type: ignore[arg-type]
        else:
            loss = smoothed_loss(model, batch.source, batch.decoder_input, batch.labels, 0.0)  # type: ignore[arg-type]
        loss = loss / batch.target_tokens
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS[:2])
def test_a_base_learns_and_its_search_writes_text_alone(
    make_base: Callable[..., Path], graft_corpus: Path, tmp_path: Path, arrangement: str, packed: bool
) -> None:
    torch.manual_seed(1)
    stored = Base.load(make_base(arrangement))
    base, text = Base.create(stored.model.config, stored.tokenizer), stored.tokenizer.side("target")
    tokens = tokenize_corpus(Corpus.open(graft_corpus, "train", KNOWN), text, tmp_path)
    directions = select_directions("multi-parallel", KNOWN)
    codec = compose(base).codec
    losses = optimise(base.model, base.model.parameters(), codec, tokens, directions, steps=60, packed=packed)
    assert losses[-1] < 0.7 * losses[0]
    requests = [Request(line, "en", "ru") for line in Corpus.open(graft_corpus, "valid", ("en",)).lines("en")]
    sources = [source_rows(codec, request, text.encode(request.line)) for request in requests]
    prefixes = [codec.decoder_prefix("ru")] * len(sources)
    options = SearchOptions(beam=3, n_best=3, max_length=30)
    found = search_all(base.model.eval(), sources, prefixes, options, end=codec.end_id, forbidden=codec.forbidden)
    rows = {row for hypotheses in found for hypothesis in hypotheses for row in hypothesis.tokens}
    assert rows <= set(text.piece_rows)
    assert any(hypothesis.finished for hypotheses in found for hypothesis in hypotheses)
    same_recorded(base, sources[:5], prefixes[:5], options, codec)


def same_recorded(base: Base, sources: list[list[int]], prefixes: list[list[int]], options: SearchOptions, codec: Any) -> None:
    """The search that is for GPUs finds the same, with the end as row 0 and padding as the last one."""
    longest = max(map(len, sources))
    padded = torch.tensor([[*source, *[codec.source_padding_id] * (longest - len(source))] for source in sources])
    limits = torch.full((len(sources),), 30)
    found = recorded_search(
        base.model, padded, torch.tensor(prefixes), options, limits=limits, end=codec.end_id, forbidden=codec.forbidden
    )
    expected = search_all(base.model, sources, prefixes, options, end=codec.end_id, forbidden=codec.forbidden)
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]


@pytest.mark.parametrize(("kind", "packed"), [("characters", True), ("ours", False)])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_a_pack_learns_and_the_base_does_not(
    make_base: Callable[..., Path],
    make_pack: Callable[..., Pack],
    graft_corpus: Path,
    tmp_path: Path,
    arrangement: str,
    side: str,
    kind: str,
    packed: bool,
) -> None:
    base = Base.load(make_base(arrangement))
    before = {name: tensor.clone() for name, tensor in parameters(base.model).items()}
    pack = make_pack(base, side, "uk", kind, "embed + enc-adapters-all(8)")
    composition = compose(base, **{side: pack})  # type: ignore[arg-type]
    partner = base.target_languages[-1] if side == "source" else base.source_languages[0]
    direction = ("uk", partner) if side == "source" else (partner, "uk")
    texts = texts_of(composition, *direction)
    tokens = tokenize_corpus(Corpus.open(graft_corpus, "train", direction), texts, tmp_path)
    directions = select_directions("-".join(direction), direction)
    losses = optimise(
        composition.model, pack.parameters.values(), composition.codec, tokens, directions, steps=25, packed=packed
    )
    assert losses[-1] < 0.9 * losses[0]
    assert all(torch.equal(tensor, before[name]) for name, tensor in parameters(base.model).items())


def texts_of(composition: Composition, source: str, target: str) -> dict[str, Text]:
    return {source: composition.codec.source_tokenizer(source), target: composition.codec.target_tokenizer(target)}


@pytest.mark.slow
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_packs_are_added_to_a_base_of_another_kind_as_to_ours(
    make_base: Callable[..., Path],
    make_pack: Callable[..., Pack],
    graft_corpus: Path,
    graft_config: Callable[..., Any],
    tmp_path: Path,
    arrangement: str,
) -> None:
    """`train_pack` learns texts of our own kind; the other side's packs have the other kind's. All of it translates."""
    from graftmt.training import SubwordConfig, train_pack

    base = Base.load(make_base(arrangement))
    train, valid = (Corpus.open(graft_corpus, split) for split in ("train", "valid"))
    subwords = SubwordConfig(merges=30, min_character_count=1)
    packs = {}
    for side, language, partners, packed in (
        ("source", "el", base.target_languages, True),
        ("target", "uk", base.source_languages, False),
    ):
        recipe = "embed + init:alignment"
        config = graft_config(tmp_path / side, side, recipe, languages=(language,), partners=partners, subwords=subwords)
        config = replace(config, stages=(replace(config.stages[0], packed=packed),))
        made = train_pack(config, base, train, valid)
        assert made.tokenizer.kind == "inline-cased-bpe"
        assert set(made.card["initialisation"]) >= {"overlap"}
        packs[f"{language}-{side}"] = tmp_path / side / "pack"
    for side, language in (("source", "uk"), ("target", "el")):
        other = make_pack(base, side, language, "characters")
        save_pack(other, tmp_path / f"{language}.graftpack", base.model.config)
        packs[f"{language}-{side}"] = tmp_path / f"{language}.graftpack"
    translator = Translator(base, packs)
    options = SearchOptions(beam=2, max_length=8)
    read, written = base.source_languages[0], base.target_languages[-1]
    for source, target in (
        (read, written),
        ("el", written),
        (read, "uk"),
        ("el", "uk"),
        ("uk", "el"),
        ("uk", written),
        (read, "el"),
    ):
        lines = list(valid.lines(source))[:3]
        together = translator.translate(lines, source=source, target=target, options=options)
        alone = [translator.translate([line], source=source, target=target, options=options)[0] for line in lines]
        assert together == alone
    assert verify(
        make_base(arrangement), {name: load_pack(path) for name, path in packs.items()}, lines=2, beam=2
    ).base_unchanged


def test_a_pack_of_another_kind_on_a_base_of_ours(
    graft_base: Callable[..., Path], make_pack: Callable[..., Pack], graft_corpus: Path, tmp_path: Path
) -> None:
    for placement in ("source", "decoder"):
        base = Base.load(graft_base("pre", placement))
        packs = {}
        for side, language in (("source", "el"), ("target", "uk")):
            path = tmp_path / f"{placement}-{side}"
            save_pack(make_pack(base, side, language, "characters"), path, base.model.config)
            packs[side] = path
        translator = Translator(base, packs)
        lines = list(Corpus.open(graft_corpus, "valid", ("el", "en")).lines("el"))[:3]
        options = SearchOptions(beam=2, max_length=8)
        text = load_pack(packs["target"]).tokenizer
        for source, target in (("el", "uk"), ("el", "fr"), ("en", "uk")):
            found = translator.translate(lines, source=source, target=target, options=options)
            assert len(found) == 3
            if target == "uk":
                assert text.count(found).unknown == 0


def test_a_base_of_another_kind_is_not_retrained(make_base: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match="characters"):
        parent_text(Base.load(make_base("marian")))
