"""What a re-training asks for, checked before it costs anything: options, languages, directions, resuming. Layer 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from graftmt.base import Base, read_base_document, read_base_text
from graftmt.configuration import from_mapping, to_mapping
from graftmt.data import Corpus, Direction, select_directions
from graftmt.documents import read_json
from graftmt.errors import ConfigError, LanguageError, nearest
from graftmt.model import ModelConfig
from graftmt.places import RUNS, check_place
from graftmt.text import pieces_of
from graftmt.text.protocol import BYTES
from graftmt.training.checkpoints import CannotGoOn, Checkpoints
from graftmt.training.optimization import StageConfig
from graftmt.training.pack_job import with_lines
from graftmt.training.run_configuration import ModelSection, RetrainConfig, SubwordConfig

VALIDATED = 4
"""Directions of the base that are validated unless they are named; and as many of each new language."""


def retrain_config(mapping: Mapping[str, Any]) -> RetrainConfig:
    """The configuration that a plain mapping means. Subword options it does not give are those the base was made with."""
    given = dict(mapping)
    check_not_sharded(given.get("sharded") is True)  # before the options that go with it are looked at
    folder, subwords = given.get("base"), given.get("subwords") or {}
    if isinstance(folder, str | Path) and isinstance(subwords, Mapping) and (Path(folder) / "base.json").is_file():
        given["subwords"] = {**subwords_of(Path(folder)), **subwords}
    return from_mapping(RetrainConfig, given)


def check_not_sharded(sharded: bool) -> None:
    if sharded:
        raise ConfigError("sharded=true is for training a base or a pack; leave it out here.")


def subwords_of(folder: Path) -> dict[str, Any]:
    """How the base's vocabulary was made, as its card says; of a given or unknown model, what can be seen in it."""
    stored = read_base_document(folder)["card"].get("config", {}).get("subwords", {})
    options = {field.name for field in fields(SubwordConfig)} - {"model", "pieces", "merges"}
    known = {key: value for key, value in stored.items() if key in options}
    pieces = pieces_of(read_base_text(folder).side("source"))
    made = "merges" in stored and stored.get("model") is None and stored.get("pieces") is None
    byte_fallback = any(piece in BYTES for piece in pieces)
    single = sum(len(piece) == 1 or piece in BYTES for piece in pieces)
    merges = stored["merges"] if made else max(1, len(pieces) - single)
    return {**known, "merges": merges, "byte_fallback": byte_fallback}


def check(config: RetrainConfig, document: Mapping[str, Any]) -> list[str]:
    """What can be known before anything is read; returns the languages that there must be text in."""
    check_not_sharded(config.sharded)
    known = document["languages"]
    again = [language for language in config.new if language in known]
    if again:
        raise LanguageError(
            f"{', '.join(again)}: a language of the base {config.base} already; it has {', '.join(known)}. "
            "Name languages that it lacks (--new)."
        )
    chosen = known if config.data.languages is None else list(config.data.languages)
    for language in chosen:
        if language in config.new:
            raise LanguageError(f"data.languages names {language!r}, which is new; it names languages of the base alone.")
        if language not in known:
            raise LanguageError(
                f"data.languages names {language!r}, which is no language of the base{nearest(language, known) or '.'} "
                f"It has {', '.join(known)}."
            )
    if config.model is not None:
        check_architecture(config.model, document, config.base)
    languages = [*chosen, *config.new]
    present = Corpus.open(config.data.corpus, "train").languages
    missing = [language for language in languages if language not in present]
    if missing:
        raise LanguageError(
            f"{config.data.corpus} has no train text in {', '.join(missing)}; it has {', '.join(present)}. Re-training needs "
            "text in all languages of the base and in the new ones; data.languages names fewer, which forgets the others."
        )
    for stage in config.stages:
        retrain_directions(config, stage, languages)  # before hours are spent on the first
    check_place(config.run, RUNS["retrained base"])
    return languages


def check_architecture(wanted: ModelSection, document: Mapping[str, Any], folder: Path) -> None:
    has = to_mapping(from_mapping(ModelConfig, document["architecture"], "architecture"))
    has["code_placement"] = document["code_placement"]
    asked = to_mapping(wanted.architecture()) | {"code_placement": wanted.code_placement}
    named = {field.name for field in fields(ModelSection)} - {"size"}
    differs = [f"{name} {has[name]}, not {asked[name]}" for name in asked if name in named and asked[name] != has[name]]
    if differs:
        raise ConfigError(
            f"the base {folder} has {'; '.join(differs)}. Re-training keeps the base's architecture: leave `model` out, or "
            "train a new base with `graftmt train`."
        )


def retrain_directions(config: RetrainConfig, stage: StageConfig, languages: Sequence[str]) -> list[Direction]:
    """A stage's directions over old and new languages, those of new ones replaced where `new_directions` names them."""
    found = select_directions(stage.directions, languages, config.data.pivot)
    if not config.new_directions.directions:
        return found
    special = select_directions(config.new_directions.directions, languages, config.data.pivot)
    chosen = [direction for direction in special if is_new(direction, config.new)]
    if not chosen:
        raise ConfigError("new_directions.directions has no direction of a new language; name some, or leave it out.")
    return [direction for direction in found if not is_new(direction, config.new)] + chosen


def is_new(direction: Direction, new: Sequence[str]) -> bool:
    return direction.source in new or direction.target in new


def validation_text(config: RetrainConfig, languages: Sequence[str]) -> tuple[Corpus, list[Direction]]:
    """The directions to validate, named or some of the old and of the new ones, and the text of their languages."""
    options = config.validation
    if options.directions:
        directions = select_directions(options.directions, languages, config.data.pivot)
    else:
        valid = Corpus.open(config.data.corpus, options.split)
        known = [language for language in languages if language in valid.languages]
        possible = retrain_directions(config, config.stages[-1], languages)
        possible = with_lines(valid, [direction for direction in possible if set(direction) <= set(known)])
        directions = _spread([direction for direction in possible if not is_new(direction, config.new)], VALIDATED)
        for language in config.new:
            own = [direction for direction in possible if language in direction]
            central = [direction for direction in own if config.data.pivot in direction]
            directions += central or _spread(own, VALIDATED)
        directions = list(dict.fromkeys(directions))
        if not directions:
            raise LanguageError(
                f"the {options.split!r} split in {config.data.corpus} has no lines in any direction that trains; add some, or "
                "train without validation (validation.lines=0)."
            )
    named = sorted({language for direction in directions for language in direction})
    return Corpus.open(config.data.corpus, options.split, named), directions


def _spread(directions: Sequence[Direction], count: int) -> list[Direction]:
    return list(directions[:: max(1, len(directions) // count)][:count])


def origin(config: RetrainConfig, parent: Base) -> dict[str, Any]:
    """What the vocabulary of a run, and with it everything else, follows from."""
    return {"parent": parent.fingerprint, "method": config.method, "new_languages": list(config.new)}


def check_origin(config: RetrainConfig, parent: Base) -> None:
    """A run that has checkpoints keeps its vocabulary, so it resumes with the same base, method and languages."""
    stored = config.run / "vocabulary.json"
    if Checkpoints(config.run / "checkpoints", 1).latest() is None or not stored.is_file():
        return
    began = read_json(stored, "the run's vocabulary")
    differs = [
        f"{key} {on_one_line(began[key])}, not {on_one_line(value)}"
        for key, value in origin(config, parent).items()
        if key in began and began[key] != value
    ]
    if differs:
        raise CannotGoOn(f"the run in {config.run} began with {'; '.join(differs)}. Give what it began with")


def on_one_line(value: Any) -> str:
    """A value of vocabulary.json, whatever it holds."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)[:16]
