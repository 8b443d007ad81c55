"""Training a language pack on a resident base: its vocabulary, text and first values, one run of the common loop. Layer 4."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeGuard

from graftmt.base import Base
from graftmt.checked import read_checked_json, write_checked_json
from graftmt.data import Corpus, Direction, TokenizedCorpus, parse_direction, tokenize_corpus
from graftmt.data.cache import writable_cache
from graftmt.errors import ConfigError, GraftError, LanguageError
from graftmt.model import Transformer
from graftmt.packs import (
    Composition,
    Pack,
    Recipe,
    Side,
    check_recipe,
    compose,
    create_pack,
    load_pack,
    pack_tokenizer,
    save_pack,
)
from graftmt.packs.alignment import VERSION, translation_table, translations_of
from graftmt.packs.card import provenance
from graftmt.packs.component import SCOPED
from graftmt.packs.storage import check_place
from graftmt.places import default_cache_folder
from graftmt.progress import say
from graftmt.text import Text
from graftmt.training.checkpoints import RunState
from graftmt.training.journal import OnStep
from graftmt.training.pack_job import (
    PackJob,
    check_parent,
    check_precision,
    check_text,
    other_side,
    pack_directions,
    possible_partners,
    resolved_recipe,
    training_device,
    with_lines,
    with_scoped_stage,
)
from graftmt.training.run_configuration import PACK_MERGES, PackConfig
from graftmt.training.run_folder import held_run
from graftmt.training.run_text import report_unknown, run_subwords
from graftmt.training.sharding import shard
from graftmt.training.stages import run_facts, run_stages, set_up_torch
from graftmt.training.stopping import stop_on_signals
from graftmt.training.training_job import Prepared
from graftmt.training.validation import Validator

WATCHED = 3
"""Zero-shot directions that are validated unless they are named."""


def train_pack(
    config: PackConfig,
    base: Base,
    train: Corpus,
    valid: Corpus | None = None,
    *,
    minutes: float | None = None,
    fresh: bool = False,
    on_ready: Callable[[PackJob], None] | None = None,
    on_step: OnStep | None = None,
) -> Pack:
    """Runs what is left of a run and returns the pack, stored in the run's folder as `pack`.

    The base is resident and shared: other threads may use it, and it may hold its weights in bf16. It is not changed.
    A run that exists resumes exactly where it stopped; `fresh` moves it aside. `on_ready` hears of the job before it trains.
    """
    started = time.monotonic()
    config = with_scoped_stage(config)
    device = training_device(config, base)
    set_up_torch(device, config.threads)
    with held_run(config.run, device, of="pack", fresh=fresh, sharded=config.sharded) as team:
        check_place(config.run / "pack")  # before hours are spent on what goes there
        with team.first_alone():
            job = prepare_pack(config, base, train, valid)
        if on_ready is not None:
            on_ready(job)
        if team.sharded:
            shard(job.composition.model, device, replicated=job.pack.parameters.values())
        left = None if minutes is None else minutes - (time.monotonic() - started) / 60
        with stop_on_signals(left) as request:
            state = run_stages(job, request, team, on_step=on_step)
        pack = job.pack.to(base.model.device)  # if it was sharded it trained on another device
        whole = ({*pack.partners} - {*pack.few}) | ({*config.data.partners} - {*config.data.few})
        pack.partners = tuple(dict.fromkeys([*pack.partners, *config.data.partners]))  # also those of a pack gone on with
        pack.few = tuple(name for name in pack.partners if name not in whole)
        pack.card |= provenance(base, config.languages) | training_facts(config, state)
        pack.card |= {"partners": list(pack.partners), "few": list(pack.few)}
        if pack.recipe.scoped and state.best_score is not None and not state.best_step:
            pack.card["scoped"] = "left out: no gain in validation"
            say(
                f"the parts with {SCOPED} brought no lower validation loss: they are left as they began, which is nothing, and "
                "all directions are those of the pack without them."
            )
        if team.first:
            save_pack(pack, config.run / "pack", base.model.config, dtype=config.store_dtype)
            of_step = f" of step {state.best_step:,}" if state.best_score is not None else ""
            say(f"pack {pack.fingerprint[:16]}{of_step} stored in {config.run / 'pack'}")
    return pack


def training_facts(config: PackConfig, state: RunState) -> dict[str, Any]:
    """What the pack says of how it came to be."""
    return {"steps": sum(stage.steps for stage in config.stages), **run_facts(config, state)}


def prepare_pack(config: PackConfig, base: Base, train: Corpus, valid: Corpus | None) -> PackJob:
    """Everything before the first step: vocabulary, tokenised text, first values of the parameters, composition."""
    check_precision(config, base)
    parent = None if config.parent is None else load_pack(config.parent)
    if parent is not None:
        check_parent(parent, config, base)
    recipe = resolved_recipe(config, base) if parent is None else parent.recipe
    check_recipe(recipe, config.side, config.languages, base)
    check_text(config, base, train)
    if parent is None:
        tokenizer = pack_tokenizer(pack_subwords(config, train), config.side, base.tokenizer)
    else:
        tokenizer = parent.tokenizer
    tokenizers = _tokenizers(config, base, tokenizer, other_side(config.side))
    wanted = Corpus(train.folder, train.split, {name: train.files[name] for name in (*config.languages, *config.data.partners)})
    tokenized = tokenize_corpus(wanted, tokenizers, config.data.cache)
    pack = _new_pack(config, base, recipe, tokenizer, wanted, tokenized) if parent is None else _continued(parent)
    pack = pack.to(base.model.device)
    composition = compose(base, source=pack) if config.side == "source" else compose(base, target=pack)
    report_unknown(tokenized, len(tokenizer))
    continued = "" if parent is None else parent.fingerprint
    digest = hashlib.sha256(f"{base.fingerprint} {continued} {recipe}".encode())
    digest.update(tokenized.content.encode())
    validator = None
    if valid is not None and config.validation.lines > 0:
        validator = _validator(config, base, valid, composition, tokenizers)
        digest.update(validator.corpus.content.encode())
    marks = {"base": base.fingerprint[:16], "pack to continue": continued[:16], "recipe": str(recipe)}
    prepared = Prepared(composition.codec, tokenized, validator, digest.hexdigest(), config.data.max_length, marks)
    shared = None if parent is None else _without_scoped(base, composition)
    if shared is not None and config.sharded:
        raise ConfigError(f"a pack with parts for trained directions ({SCOPED}) is continued on one device; leave sharded out.")
    return PackJob(config, base, pack, composition, prepared, shared)


def _new_pack(
    config: PackConfig,
    base: Base,
    recipe: Recipe,
    tokenizer: Text,
    wanted: Corpus,
    tokenized: TokenizedCorpus,
) -> Pack:
    """A pack with its first values. `tokenized`: the wanted text in the pieces of the pack, and of the base's other side."""
    translations = None
    if recipe.needs_translations:
        # In the pieces of the matrix that rows start from, which need not be those that partners are read or written in.
        own, other = (_tokenizers(config, base, tokenizer, side) for side in (config.side, other_side(config.side)))
        same = tokenized if own == other else tokenize_corpus(wanted, own, config.data.cache)
        translations = _translations(same, config, tokenizer, base)
    pack = create_pack(
        base,
        side=config.side,
        languages=config.languages,
        recipe=recipe,
        subwords=tokenizer,
        seed=config.seed,
        trained_codes=config.data.partners,
        translations=translations,
    )
    counts = ", ".join(f"{rule} {count:,}" for rule, count in pack.card["initialisation"].items())
    say(f"rows began as: {counts}")
    return pack


def _continued(parent: Pack) -> Pack:
    """A pack that starts as `parent` is."""
    facts = {"fingerprint": parent.fingerprint, "version": parent.card.get("version", 1), "scores": parent.card.get("scores")}
    card = {"parent": facts, "version": facts["version"] + 1}
    card |= {"partners": list(parent.partners), "few": list(parent.few)}
    card |= {key: parent.card[key] for key in ("licence", "author") if key in parent.card}
    say(f"continuing the pack {parent.fingerprint[:16]}")
    return replace(parent, card={"initialisation": parent.card.get("initialisation", {}), **card})


def _tokenizers(config: PackConfig, base: Base, own: Text, side: Side) -> dict[str, Text]:
    """The text of each language: the pack's own for the new ones, that of one side of the base for all others."""
    return {**dict.fromkeys(base.languages, base.tokenizer.side(side)), **dict.fromkeys(config.languages, own)}


def pack_subwords(config: PackConfig, train: Corpus) -> Text:
    """The new languages' own text, without codes, made once in a run's folder: `merges` for each, T=5 among several."""
    options = replace(config.subwords, merges=config.subwords.merges * len(config.languages))
    new = Corpus(train.folder, train.split, {language: train.files[language] for language in config.languages})
    return run_subwords(config.run, options, new, default=PACK_MERGES * len(config.languages))


def _validator(
    config: PackConfig, base: Base, valid: Corpus, composition: Composition, tokenizers: dict[str, Text]
) -> Validator:
    options = config.validation
    few = config.data.few
    trained = [one for one in pack_directions(config, config.stages[0]) if set(one).isdisjoint(few)]
    known = (*config.languages, *base.languages)
    named = [parse_direction(text, known) for text in options.directions]
    directions = named or with_lines(valid, trained)[:8]
    if not directions:
        raise LanguageError(
            f"the {valid.split!r} split in {valid.folder} has text in {', '.join(valid.languages)}: none of the trained "
            f"directions {', '.join(map(str, trained))}."
        )
    if options.watch is None:
        new = config.languages[0]
        others = [name for name in possible_partners(config, base) if name not in config.data.partners or name in few]
        untrained = [Direction(*((new, other) if config.side == "source" else (other, new))) for other in others]
        possible = with_lines(valid, untrained)
        watched = possible[:: max(1, len(possible) // WATCHED)][:WATCHED]
    else:
        watched = [parse_direction(text, known) for text in options.watch]
    for direction in (*directions, *watched):
        new, old = direction if config.side == "source" else direction[::-1]
        if new not in config.languages or old in config.languages:
            raise LanguageError(
                f"direction {direction} cannot be validated with this pack: its {config.side} side is "
                f"{' or '.join(config.languages)}, the other one a language of the base."
            )
    names = sorted({language for direction in (*directions, *watched) for language in direction})
    missing = [name for name in names if name not in valid.languages]
    if missing:
        raise LanguageError(f"the {valid.split!r} split in {valid.folder} has no text in {', '.join(missing)}.")
    chosen = Corpus(valid.folder, valid.split, {name: valid.files[name] for name in names})
    return Validator.open(
        chosen,
        tokenize_corpus(chosen, tokenizers, config.data.cache),
        composition.codec,
        directions,
        lines=options.lines,
        translate_lines=options.translate_lines,
        max_length=config.data.max_length,
        watched=watched,
        watched_model=_without_scoped(base, composition) if watched else None,
    )


def _without_scoped(base: Base, composition: Composition) -> Transformer | None:
    """The model of directions that are not trained, where it is another one."""
    source, target = composition.source, composition.target
    pack = source or target
    assert pack is not None
    if not pack.recipe.scoped:
        return None
    shared = pack.for_partner("", base.model.config)
    return compose(base, source=shared).model if source else compose(base, target=shared).model


def _translations(corpus: TokenizedCorpus, config: PackConfig, tokenizer: Text, base: Base) -> dict[str, dict[str, float]]:
    """What the pieces of the new languages are translated by in the partners' text, for `init:alignment`.

    It takes half a minute of counting on a CPU, so it is kept next to the tokenised text, under the name of all
    that it comes from.
    """
    pairs = (
        (corpus.texts[new].line(row), corpus.texts[old].line(row))
        for new in config.languages
        for old in corpus.languages
        if old not in config.languages
        for row in range(len(corpus))
        if corpus.lengths[corpus.languages.index(new), row] and corpus.lengths[corpus.languages.index(old), row]
    )
    folder = config.data.cache or default_cache_folder()
    stored = folder / f"alignment-{hashlib.sha256(f'{VERSION} {corpus.content}'.encode()).hexdigest()[:32]}.json"
    with suppress(GraftError):  # damaged: made again
        if stored.is_file() and _is_table(found := read_checked_json(stored, "the cached alignment").get("translations")):
            return found
    base_text = base.tokenizer.side(config.side)
    table = translation_table(pairs, tokenizer, base_text, device=base.model.device)
    found = translations_of(tokenizer, base_text, table)
    with writable_cache(folder):
        write_checked_json(stored, {"translations": found})
    return found


def _is_table(value: Any) -> TypeGuard[dict[str, dict[str, float]]]:
    """Whether it holds numbers for pieces of pieces; files of earlier versions have these on top, and are made again."""
    return isinstance(value, dict) and all(
        isinstance(row, dict) and all(isinstance(one, int | float) for one in row.values()) for row in value.values()
    )
