"""`graftmt export`: directions of a translator as folders for other programs. Layer 5.

Directions that have the same packs have the same model, and share a folder if the format allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graftmt.data import Direction
from graftmt.errors import ConfigError, ExportError, GraftError, nearest
from graftmt.files import atomic_folder, write_text
from graftmt.interop.export.component_check import check_components
from graftmt.interop.export.pages import page
from graftmt.interop.export.plain_model import plain_model
from graftmt.interop.export.target import ExportTarget, Job, Sentences
from graftmt.interop.export.target_registry import export_target, target_names
from graftmt.interop.export_card import differences, in_words, read_card, write_card
from graftmt.packs import Composition
from graftmt.places import EXPORT, PlaceError, check_place
from graftmt.progress import WARNING, say
from graftmt.translator import Translator

Before = Literal["the same model", "another model"] | None
"""What an output folder has an export of."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A folder that was written."""

    folder: Path
    directions: tuple[str, ...]
    bytes: int
    replaced: Before = None


def export(
    translator: Translator,
    directions: Sequence[Direction],
    folder: str | Path,
    *,
    to: str = "ctranslate2",
    quantization: str | None = None,
    source_pack: str | None = None,
    target_pack: str | None = None,
    force: bool = False,
) -> list[Exported]:
    """Writes the models of these directions: into `folder` if one holds them all, else into a folder there for each.

    Everything is checked before anything is written, and each folder is written whole or not at all. An export of the same
    model is replaced; one of another model only with `force`.
    """
    target, folder = export_target(to), Path(folder)
    quantization = _quantization(target, quantization)
    groups = _groups(translator, directions, target, source_pack, target_pack)
    places = [folder] if len(groups) == 1 else [folder / "+".join(map(str, group)) for _, group in groups]
    if len(groups) > 1 and EXPORT.is_one(folder):
        raise PlaceError(
            f"{folder} is an exported model, and these directions need a folder each: {', '.join(one.name for one in places)}. "
            f"Choose another folder for them, such as -o {folder.with_name(folder.name + '-all')}."
        )
    jobs = []
    for (composition, group), place in zip(groups, places, strict=True):
        check_place(place, EXPORT)
        job = _job(translator, composition, group, quantization)
        if problem := target.problem(job):
            raise ExportError(f"{target.title} cannot hold the model of {', '.join(map(str, group))}: {problem}")
        jobs.append((job, place))
    _say_unused(translator, [composition for composition, _ in groups])
    before = [_before(place, _facts(target, job), force=force) for job, place in jobs]
    return [_write(target, job, place, replaced) for (job, place), replaced in zip(jobs, before, strict=True)]


def _quantization(target: ExportTarget, name: str | None) -> str:
    if name is None:
        return target.quantizations[0]
    if name not in target.quantizations:
        others = [other for other in map(export_target, target_names()) if name in other.quantizations]
        hint = f"; {others[0].title} does: --to {others[0].name} --quantization {name}." if others else ""
        hint = hint or nearest(name, target.quantizations) or "."
        raise ConfigError(f"{target.title} stores no {name!r}{hint} It has: {', '.join(target.quantizations)}.")
    return name


def _groups(
    translator: Translator,
    directions: Sequence[Direction],
    target: ExportTarget,
    source_pack: str | None,
    target_pack: str | None,
) -> list[tuple[Composition, list[Direction]]]:
    """Directions by model, with the codes of languages that were given by another name."""
    found: dict[object, tuple[Composition, list[Direction]]] = {}
    for given in directions:
        composition = translator.composition(given.source, given.target, source_pack=source_pack, target_pack=target_pack)
        direction = Direction(translator.code(given.source, "source"), translator.code(given.target, "target"))
        key = (id(composition), direction) if target.one_direction else id(composition)
        group = found.setdefault(key, (composition, []))[1]
        if direction not in group:
            group.append(direction)
    if not found:
        raise ConfigError("no direction to export: source and target must be two languages.")
    return list(found.values())


def _say_unused(translator: Translator, compositions: Sequence[Composition]) -> None:
    """Packs that were given in vain: they are for another language, or for the other side."""
    used = [pack for one in compositions for pack in (one.source, one.target) if pack is not None]
    known = {(pack.side, pack.languages, pack.fingerprint) for pack in used}
    for name, pack in translator.packs.items():
        if (pack.side, pack.languages, pack.fingerprint) not in known:
            what = f"{'+'.join(pack.languages)} as {pack.side}"
            say(f"{WARNING}no direction here uses the pack {name}, which is for {what}; the export is without it.")


def _job(translator: Translator, composition: Composition, group: Sequence[Direction], quantization: str) -> Job:
    check_components(composition)
    codec = composition.codec
    sentences = [
        Sentences(
            source=one.source,
            target=one.target,
            before=tuple(codec.source_prefix(one.source, one.target)),
            after=tuple(codec.source_suffix(one.source, one.target)),
            decoder=tuple(codec.decoder_prefix(one.target)),
        )
        for one in group
    ]
    return Job(
        composition=composition,
        model=plain_model(composition.model),
        directions=tuple(sentences),
        quantization=quantization,
        provenance=_provenance(translator, composition),
        example=_example(composition, group[0]),
    )


def _provenance(translator: Translator, composition: Composition) -> dict[str, Any]:
    packs = [pack for pack in (composition.source, composition.target) if pack is not None]
    facts = [
        {"languages": list(pack.languages), "side": pack.side, "recipe": str(pack.recipe), "fingerprint": pack.fingerprint}
        for pack in packs
    ]
    return {"base": translator.base.fingerprint, "packs": facts}


def _example(composition: Composition, direction: Direction) -> str:
    """A line of the source language that a card has, or one that most vocabularies can write."""
    for pack in (composition.source, composition.target):
        for sample in (pack.card.get("samples") or []) if pack is not None else []:
            if isinstance(sample, dict) and str(sample.get("direction", "")).startswith(f"{direction.source}-"):
                return str(sample.get("source", ""))
    return "2024"


def _facts(target: ExportTarget, job: Job) -> dict[str, Any]:
    """What a card says of any model."""
    directions = [{"source": one.source, "target": one.target} for one in job.directions]
    return {"to": target.name, "quantization": job.quantization, **job.provenance, "directions": directions}


def _before(folder: Path, facts: dict[str, Any], *, force: bool) -> Before:
    """What a folder that is to be written has; an export of another model is an error without `force`."""
    if not EXPORT.is_one(folder):
        return None
    try:
        found = read_card(folder)
    except GraftError as error:
        if force:
            return "another model"
        raise PlaceError(
            f"{folder} has an export already, and nobody can tell of which model: {error} To replace it: --force."
        ) from None
    if not (differing := differences(facts, found)):
        return "the same model"
    if force:
        return "another model"
    raise PlaceError(
        f"{folder} has an export of another model: {in_words(found)}. It differs in: {', '.join(differing)}. To replace it: "
        f"--force. To keep it, choose another folder, such as -o {folder.with_name(folder.name + '-new')}."
    )


def _write(target: ExportTarget, job: Job, folder: Path, replaced: Before) -> Exported:
    with atomic_folder(folder) as place:
        about = {**_facts(target, job), **target.write(job, place)}
        write_text(place / "README.md", page(target, job, about))
        write_card(place, about)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    if replaced is not None:
        say(f"{folder} had an export of {replaced}, which was replaced.")
    return Exported(folder=folder, directions=tuple(one.name for one in job.directions), bytes=size, replaced=replaced)
