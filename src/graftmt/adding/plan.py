"""A request to add a language, resolved once into a plan that all that follows reads. Layer 6."""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graftmt.adding.add_options import AddOptions
from graftmt.adding.defaults import augments_by_default, default_augmentation, default_recipe, reason_for
from graftmt.adding.pack_text import AddCorpus, Check, open_add_corpus
from graftmt.augmentation.line_choice import Spec
from graftmt.base import Base
from graftmt.decoding import SearchOptions
from graftmt.devices import choose_device
from graftmt.errors import ConfigError, LanguageError, first_few
from graftmt.packs import Pack, Recipe, Side, check_recipe, load_pack, read_pack_document
from graftmt.packs.archive import ARCHIVE
from graftmt.packs.storage import check_place as check_pack_place
from graftmt.packs.storage import check_unclaimed
from graftmt.places import RUNS, check_place
from graftmt.text import languages_of
from graftmt.text.aliases import find_language, new_language
from graftmt.training import PackConfig
from graftmt.training.pack_job import check_parent, other_side

NO_AUGMENTATION = "none"
TEACHER_ALONE = "--teacher is the model that back-translates for --augment; give both or neither."
DECIDED = ("run", "languages", "side", "recipe", "parent", "codes_from", "data.partners")
"""Keys of the configuration that have options of their own."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One pack that is asked for: one side, its recipe read, its folders named."""

    options: AddOptions
    side: Side
    recipe: Recipe | None
    """None: the default."""
    augment: str | None
    """Lines in the base's other languages, as --augment has it, or `none`; None: the default."""
    parent: Pack | None
    run: Path
    output: Path | None

    @property
    def languages(self) -> tuple[str, ...]:
        return self.options.languages


@dataclass(frozen=True, kw_only=True)
class AddPlan:
    """One pack to make, with everything decided that can be before text is translated and trained on."""

    request: Request
    base: Base
    folder: Path
    """Where the work is done: the run's, or a temporary one."""
    device: str
    given: AddCorpus
    """The text that was found."""
    corpus: AddCorpus
    """The text that is trained on: `given`, with lines in other languages once these are made."""
    recipe: Recipe
    augment: str | None
    """The lines to add, if any."""
    reason: str = ""
    """Why a default was chosen, for people."""

    @property
    def options(self) -> AddOptions:
        return self.request.options

    @property
    def parent(self) -> Pack | None:
        return self.request.parent

    @property
    def side(self) -> Side:
        return self.request.side

    def to_dict(self) -> dict[str, Any]:
        """plan.json of the run."""
        return {
            "languages": list(self.request.languages),
            "side": self.side,
            "base": self.base.fingerprint,
            "recipe": str(self.recipe),
            "continues": None if self.parent is None else self.parent.fingerprint,
            "text": {split: _files(corpus) for split, corpus in self._splits().items() if corpus is not None},
            "partners": list(self.given.partners),
            "augment": self.augment,
            "reason": self.reason or None,
            "output": None if self.request.output is None else str(self.request.output),
        }

    def _splits(self) -> dict[str, Any]:
        return {"train": self.given.train, "valid": self.given.valid, "test": self.given.test}


def _files(corpus: Any) -> dict[str, str]:
    return {language: str(path) for language, path in corpus.files.items()}


# From options to requests


def requests_of(
    options: AddOptions, base: Base, recipes: dict[Side, tuple[Recipe, str | None]] | None = None
) -> tuple[Request, ...]:
    """A request for each side, checked before any text is read.

    `recipes`: by side, where the option is not a recipe but the number of a model; with what that has for --augment.
    """
    parent = None if options.parent is None else load_pack(options.parent)
    sides = choose_sides(options, None if parent is None else parent.side)
    both = len(sides) > 1
    found = []
    for side in sides:
        recipe, lines = (recipes or {}).get(side, (None, None))
        if recipe is None and options.recipe is not None:
            recipe = Recipe.parse(options.recipe)
        if recipe is not None:
            recipe = recipe.with_codes_of(base, side)
        augment = lines if options.augment is None else options.augment
        request = Request(
            options=options,
            side=side,
            recipe=recipe,
            augment=NO_AUGMENTATION if augment is not None and augment.casefold() == NO_AUGMENTATION else augment,
            parent=parent,
            run=_run_folder(options, side, parent, both),
            output=_beside(options.output, side) if options.output and both else options.output,
        )
        check_request(request, base)
        found.append(request)
    return tuple(found)


def with_codes(options: AddOptions, base: Base) -> AddOptions:
    """The same with codes in the place of other names: `eng_Latn` for --with English, `tyv` for Tuvan."""
    languages = tuple(new_language(name, base.languages) for name in options.languages)
    partners = options.partners
    if partners is not None and partners != ("all",):
        found = [find_language(name, base.languages, "--with") or name for name in partners]
        partners = tuple(dict.fromkeys(found))
    return replace(options, languages=languages, partners=partners)


def choose_sides(options: AddOptions, of_parent: Side | None = None) -> tuple[Side, ...]:
    """Those that were asked for; by default both, or that of the pack to continue."""
    if options.parent is not None and of_parent is None:
        of_parent = read_pack_document(options.parent)["side"]
    if options.side in ("source", "target"):
        return (options.side,)
    if of_parent is None:
        return ("source", "target")
    if options.side == "both":
        raise ConfigError(f"--side both: the pack to continue, {options.parent}, is a {of_parent} pack; leave --side out.")
    return (of_parent,)


def _run_folder(options: AddOptions, side: Side, parent: Pack | None, both: bool) -> Path:
    if options.run is not None:
        return options.run / side if both else options.run
    version = f"-{parent.card.get('version', 1) + 1}" if parent else ""
    return Path("runs") / f"{'+'.join(options.languages)}-{side}{version}"


def _beside(output: Path, side: str) -> Path:
    """el.graftpack → el-source.graftpack: each side of two has a file of its own."""
    archive = ARCHIVE if output.suffix == ARCHIVE else ""
    return output.with_name(f"{output.name.removesuffix(archive)}-{side}{archive}")


def check_request(request: Request, base: Base) -> None:
    """What can be wrong in the request itself, before any text is read or written."""
    options, parent = request.options, request.parent
    recipe = recipe_of(request, base, augmented=request.augment != NO_AUGMENTATION)
    _check_code(recipe, options)
    if recipe.code.is_nearest:
        recipe = recipe.having(recipe.code.naming(languages_of(base.tokenizer, request.side)[0]))
    check_recipe(recipe, request.side, options.languages, base)
    if parent is not None:
        config = PackConfig(run=Path(), languages=options.languages, side=request.side, parent=options.parent)
        check_parent(parent, config, base)
        if options.merges is not None:
            raise ConfigError("--merges: a pack that is continued keeps its vocabulary; leave the merges out.")
        if request.recipe is not None and request.recipe != parent.recipe:
            raise ConfigError(f"--recipe: a pack that is continued keeps its own, {str(parent.recipe)!r}; leave this one out.")
    if options.base_precision == "bf16" and choose_device(options.device) == "cpu":
        raise ConfigError("a base in bf16 is for training on a GPU; on a CPU fp32 is faster. Leave the precision out.")
    SearchOptions(beam=options.beam)
    possible_partners(request, base)
    _check_augmentation(request, base)
    check_place(request.run, RUNS["pack"])
    if request.output is not None:
        check_pack_place(request.output)
        check_unclaimed(request.output, packs_of_run(request.run))
    for override in options.overrides:
        if override.partition("=")[0].strip() in DECIDED:
            raise ConfigError(f"override {override!r}: there is an option for this; see `graftmt add --help`.")


def _check_code(recipe: Recipe, options: AddOptions) -> None:
    nearest = recipe.code.is_nearest
    if options.codes_from is not None and not nearest:
        raise ConfigError(f"--codes-from is for a recipe with code:proxy:nearest; this one is {str(recipe)!r}. Leave it out.")
    if nearest and options.codes_from is None:
        raise ConfigError(
            "code:proxy:nearest needs --codes-from: a base that knows the language, or a target pack with its code. "
            "To name the code yourself, write code:proxy:ru."
        )


def _check_augmentation(request: Request, base: Base) -> None:
    if request.augment not in (None, NO_AUGMENTATION):
        try:
            Spec.parse(request.augment)
        except ConfigError as error:
            raise ConfigError(f"{str(error).removesuffix('.')}; or none.") from None
    elif request.options.teacher is not None and not augments_by_default(request, base):
        raise ConfigError(TEACHER_ALONE)


def packs_of_run(run: Path) -> list[Path]:
    """Where the packs lie that a run has made: its own, and those that --fresh has moved aside with theirs."""
    return [run / "pack", *(aside / "pack" for aside in run.parent.glob(f"{glob.escape(run.name)}.old-*"))]


# From a request to a plan


def make_plan(request: Request, base: Base, folder: Path, device: str, check: Check | None = None) -> AddPlan:
    """Finds the text, and decides what was left open: lines in other languages, and the recipe that goes with them.

    `check` may refuse the text.
    """
    given = find_text(request, base, folder, check)
    asked = request.augment or default_augmentation(request, given, base) or NO_AUGMENTATION
    if asked == NO_AUGMENTATION and request.options.teacher is not None:
        raise ConfigError(TEACHER_ALONE)
    augmented = asked != NO_AUGMENTATION
    plan = AddPlan(
        request=request,
        base=base,
        folder=folder,
        device=device,
        given=given,
        corpus=given,
        recipe=recipe_of(request, base, augmented=augmented),
        augment=asked if augmented else None,
    )
    return replace(plan, reason=reason_for(plan))


def without_more_text(plan: AddPlan) -> AddPlan:
    """The plan with what is done by default where there are no lines in other languages."""
    recipe = recipe_of(plan.request, plan.base, augmented=False)
    return replace(plan, corpus=plan.given, augment=None, recipe=recipe, reason="the lines in other languages were no good")


def find_text(request: Request, base: Base, folder: Path, check: Check | None = None) -> AddCorpus:
    options = request.options
    return open_add_corpus(
        options.train,
        new=options.languages,
        base_languages=languages_of(base.tokenizer, other_side(request.side)),
        partners=possible_partners(request, base),
        valid=options.valid,
        test=options.test,
        work=folder,
        seed=options.seed,
        check=check,
    )


def possible_partners(request: Request, base: Base) -> tuple[str, ...] | None:
    """Those asked for that the base has on the other side, as `--with` is one option for both; one that it has on neither is
    left for an error that names it."""
    asked = request.options.partners
    other = languages_of(base.tokenizer, other_side(request.side))
    kept = tuple(name for name in asked or () if name in other or name not in base.languages)
    if asked and not kept:
        raise LanguageError(
            f"--with: this base does not {'write' if request.side == 'source' else 'read'} {', '.join(asked)}, and a "
            f"{request.side} pack is trained with what it does: {first_few(other, 20)}. Name one of these, or make only the "
            f"{other_side(request.side)} pack (--side {other_side(request.side)})."
        )
    return kept if asked else asked


def recipe_of(request: Request, base: Base, *, augmented: bool) -> Recipe:
    if request.parent is not None:
        return request.parent.recipe
    return request.recipe or default_recipe(request.side, base, request.options.partners, augmented=augmented)
