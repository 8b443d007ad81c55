"""A request to add a language: what can be asked for, what follows from it, and what cannot be meant. Layer 6."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from graftmt.adding.corpus import AddCorpus
from graftmt.adding.examination import Examination
from graftmt.augmentation import Spec
from graftmt.base import Base, choose_device, world_size
from graftmt.configuration import apply_overrides, check_numbers, from_mapping, one_or_more, to_mapping
from graftmt.decoding import SearchOptions
from graftmt.errors import ConfigError
from graftmt.packs import Pack, Recipe, Side, check_recipe, load_pack
from graftmt.packs.pack import has_code_choice
from graftmt.packs.storage import check_place as check_pack_place
from graftmt.packs.storage import check_unclaimed
from graftmt.places import RUNS, check_place
from graftmt.text.languages import check_language_names
from graftmt.training import PackConfig
from graftmt.training.configuration import check_seed
from graftmt.training.pack_directions import with_scoped_stage
from graftmt.training.pack_preparation import check_parent

EPOCHS: dict[Side, int] = {"source": 12, "target": 20}
"""Passes over the text. Embeddings that only read settle soon; a decoder's layer learns longer."""
FEWEST_STEPS, MOST_STEPS = 300, 20_000
BATCH_TOKENS = {"cpu": 2048, "cuda": 16_384}
MOST_LINES = 1000
"""Back-translated for each other language of the base by default, as in the paper's (19) and (20) …"""
PAIRS_PER_LINE = 4
"""… and at most one for so many pairs of the text, over all languages …"""
MOST_IN_ALL = 40_000
"""… and so many, however large the text and however many the base's languages …"""
FEWEST_LINES = 20
"""… or none at all, where fewer than this would be left for each."""
NO_AUGMENTATION = "none"
TEACHER_ALONE = "--teacher is the model that back-translates for --augment; give both or neither."
COMPILED_FROM = 400
"""Steps on a GPU from which compiling, some ten seconds, is worth it."""


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """What `graftmt add` can be asked for."""

    languages: tuple[str, ...]
    base: Path
    train: tuple[str, ...]
    side: Side
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    partners: tuple[str, ...] | None = None
    recipe: str | None = None
    """By side unless given (`default_recipe`)."""
    run: Path | None = None
    """runs/LANG-SIDE unless given; for the second version of a pack, runs/LANG-SIDE-2."""
    output: Path | None = None
    """Where the pack goes besides the run's folder: a folder, or a file that ends in .graftpack."""
    steps: int | None = None
    """Some passes over the text unless given: 12 for a source pack, 20 for a target pack."""
    minutes: float | None = None
    """Training stops in time for the whole command to have taken so long."""
    merges: int | None = None
    augment: str | None = None
    """More text with the base's other languages: `multi-aligned`, `1k`, or back-translated, `multi-aligned-bt`, `1k-bt`; or
    `none`. Unless given, what the default recipe of a source pack needs (`default_augmentation`)."""
    teacher: Path | None = None
    """The base that back-translates; the same one unless given."""
    parent: Path | None = None
    codes_from: Path | None = None
    device: str = "auto"
    base_precision: Literal["fp32", "bf16"] = "fp32"
    seed: int = 1
    test_lines: int = 200
    beam: int = 5
    overrides: tuple[str, ...] = ()
    """Changes to the resolved PackConfig: stages.0.learning_rate=2e-3 …"""
    dry_run: bool = False
    fresh: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        check_language_names(self.languages, "languages to add")
        check_numbers(self, "at least 1", one_or_more, "steps", "merges", "test_lines")
        check_seed(self)


def check_early(options: AddOptions, base: Base) -> Pack | None:
    """What can be wrong in the request itself, before any text is read or written; returns the pack to continue."""
    parent = None if options.parent is None else load_pack(options.parent)
    recipe = Recipe.parse(recipe_of(options, base, parent))
    nearest = recipe.code.kind == "proxy" and recipe.code.language == "nearest"
    if options.codes_from is not None and not nearest:
        raise ConfigError(f"--codes-from is for a recipe with code:proxy:nearest; this one is {str(recipe)!r}. Leave it out.")
    if nearest and options.codes_from is None:
        raise ConfigError(
            "code:proxy:nearest needs --codes-from: a base that knows the language, or a target pack with its code. "
            "To name the code yourself, write code:proxy:ru."
        )
    if nearest:
        recipe = replace(recipe, code=replace(recipe.code, language=base.languages[0]))
    check_recipe(recipe, options.side, options.languages, base)
    if parent is not None:
        config = PackConfig(run=Path(), languages=options.languages, side=options.side, parent=options.parent)
        check_parent(parent, config, base)
        if options.merges is not None:
            raise ConfigError("--merges: a pack that is continued keeps its vocabulary; leave the merges out.")
        if options.recipe is not None and Recipe.parse(options.recipe) != parent.recipe:
            raise ConfigError(f"--recipe: a pack that is continued keeps its own, {str(parent.recipe)!r}; leave this one out.")
    if options.base_precision == "bf16" and choose_device(options.device) == "cpu":
        raise ConfigError("a base in bf16 is for training on a GPU; on a CPU fp32 is faster. Leave the precision out.")
    SearchOptions(beam=options.beam)
    if options.augment not in (None, NO_AUGMENTATION):
        try:
            Spec.parse(options.augment)
        except ConfigError as error:
            raise ConfigError(f"{str(error).removesuffix('.')}; or none.") from None
    elif options.teacher is not None and not _augments_by_default(options, base, parent):
        raise ConfigError(TEACHER_ALONE)
    run = run_folder(options, parent)
    check_place(run, RUNS["pack"])
    if options.output is not None:
        check_pack_place(options.output)
        check_unclaimed(options.output, packs_of_run(run))
    for override in options.overrides:
        key = override.partition("=")[0].strip()
        if key in ("run", "languages", "side", "recipe", "parent", "codes_from", "data.partners"):
            raise ConfigError(f"override {override!r}: there is an option for this; see `graftmt add --help`.")
    return parent


def run_folder(options: AddOptions, parent: Pack | None) -> Path:
    version = f"-{parent.card.get('version', 1) + 1}" if parent else ""
    return options.run or Path("runs") / f"{'+'.join(options.languages)}-{options.side}{version}"


def packs_of_run(run: Path) -> list[Path]:
    """Where the packs lie that a run has made: its own, and those that --fresh has moved aside with theirs."""
    return [run / "pack", *(aside / "pack" for aside in run.parent.glob(f"{glob.escape(run.name)}.old-*"))]


def default_recipe(side: Side, base: Base, partners: Sequence[str] | None = None, *, augmented: bool = True) -> str:
    """What lost nothing against the best of the paper's in any column (docs/results/docs-reading.md).

    Writing a language takes a layer and an adapter, (31). Reading it, a first layer helps, (14), but learns to do without the
    other languages' codes unless it sees them: with lines in them, `augmented`, (106); else embeddings alone, (101). The code
    begins as that of English or, in a base without it, of the language it is trained with.
    """
    if side == "target":
        recipe = f"embed + dec-last-layer + enc-adapters-last({2 * base.model.config.model_dim})"
    else:
        recipe = "embed" + " + enc-first-layer" * augmented + " + init:alignment"
    if "en" in base.languages or not has_code_choice(side, base):
        return recipe
    known = [name for name in partners or () if name in base.languages] or base.languages
    return f"{recipe} + code:learned:{known[0]}"


def recipe_of(options: AddOptions, base: Base, parent: Pack | None) -> str:
    if parent is not None:
        return str(parent.recipe)
    augmented = options.augment != NO_AUGMENTATION
    return options.recipe or default_recipe(options.side, base, options.partners, augmented=augmented)


def default_augmentation(options: AddOptions, corpus: AddCorpus, base: Base, parent: Pack | None) -> str | None:
    """The lines in the base's other languages that keep them where the default recipe tunes the encoder, as `--augment` has it.

    For text with one partner alone, for with several the encoder sees several codes; and where there is enough of it.
    """
    if not _augments_by_default(options, base, parent) or len(corpus.partners) != 1 or len(base.languages) == 1:
        return None
    each = _pairs_for_a_line(options, base)
    most = min(MOST_LINES, MOST_IN_ALL * PAIRS_PER_LINE // each)
    lines = corpus.pairs(most=most * each) // each
    return f"{lines}-bt" if lines >= FEWEST_LINES else None


def _pairs_for_a_line(options: AddOptions, base: Base) -> int:
    """So many pairs of the text make one line for each other language, of each new one."""
    return PAIRS_PER_LINE * (len(base.languages) - 1) * len(options.languages)


def _augments_by_default(options: AddOptions, base: Base, parent: Pack | None) -> bool:
    if options.side == "target" or options.augment is not None or options.recipe is not None:
        return False
    return parent is None or parent.recipe == Recipe.parse(default_recipe(options.side, base, options.partners))


def with_defaults(options: AddOptions, corpus: AddCorpus, base: Base, parent: Pack | None) -> AddOptions:
    """With what follows from the text where it was not asked for: more text, and the recipe that goes with it."""
    asked = options.augment or default_augmentation(options, corpus, base, parent) or NO_AUGMENTATION
    if asked == NO_AUGMENTATION and options.teacher is not None:
        raise ConfigError(TEACHER_ALONE)
    recipe = None if parent is not None else recipe_of(replace(options, augment=asked), base, parent)
    return replace(options, recipe=recipe, augment=None if asked == NO_AUGMENTATION else asked)


def default_words(asked: AddOptions, chosen: AddOptions, corpus: AddCorpus, base: Base, parent: Pack | None) -> str:
    """What was chosen of what was not asked for, and why; nothing where all was asked for, or is as ever."""
    if not _augments_by_default(asked, base, parent):
        return ""
    if chosen.augment is not None:
        words = (
            f"--augment {chosen.augment} by default: lines in the base's other languages keep these while the encoder learns "
            f"to read {', '.join(asked.languages)}."
        )
        return words if parent is not None else f"{words} For embeddings alone: --augment none."
    if len(corpus.partners) != 1 or len(base.languages) == 1:
        why = "training sees several languages already" if len(corpus.partners) > 1 else "the base has no other language"
        return "" if parent is not None else f"embeddings alone by default: {why}."
    needed = FEWEST_LINES * _pairs_for_a_line(asked, base)
    why = f"{corpus.pairs(needed):,} line pairs are too few for lines in the base's other languages; {needed:,} are needed"
    if parent is None:
        return f"embeddings alone by default: {why}."
    return f"warning: {why}. The encoder is trained on, and may forget those languages; more text, or --with all, prevents it."


def make_config(options: AddOptions, corpus: AddCorpus, recipe: str, folder: Path, device: str) -> PackConfig:
    """Defaults for this machine, what was asked for, then the overrides."""
    on_gpu = device.startswith("cuda")
    steps = options.steps or FEWEST_STEPS
    stage: dict[str, Any] = {
        "name": "pack",
        "directions": [],
        "batch_tokens": BATCH_TOKENS["cuda" if on_gpu else "cpu"],
        "packed": on_gpu and world_size() == 1,
        # A few lines more for each other language stay few: drawn as often as those that are translated, they crowd these out.
        "temperature": 1.0 if options.augment is not None else 5.0,
        "steps": steps,
        "learning_rate": 2e-3,
        "warmup": 0,
        "betas": [0.9, 0.98],
        "schedule": "constant",
        "cooldown": 0.5,
        "dropout": 0.1,
    }
    values: dict[str, Any] = {
        "run": str(folder),
        "languages": list(options.languages),
        "side": options.side,
        "recipe": recipe,
        "data": {"partners": list(corpus.partners), "few": list(corpus.few)},
        "subwords": {"merges": options.merges or 4000},
        "stages": [stage],
        "validation": {"lines": 100},
        "seed": options.seed,
        "device": device,
        "precision": "bf16" if on_gpu or options.base_precision == "bf16" else "fp32",
        "compile": on_gpu and steps >= COMPILED_FROM,
        "parent": str(options.parent) if options.parent else None,
        "codes_from": str(options.codes_from) if options.codes_from else None,
    }
    # The stage that parts with `@trained` add is there only once all else is settled.
    scoped = Recipe.parse(recipe).scoped
    last = [one for one in options.overrides if scoped and one.startswith("stages.1.")]
    first = [one for one in options.overrides if one not in last]
    # Twice: what follows from the number of steps follows from one that is overridden too, and can be overridden itself.
    config = with_pace(from_mapping(PackConfig, apply_overrides(values, first)))
    config = with_scoped_stage(from_mapping(PackConfig, apply_overrides(to_mapping(config), first)))
    if last:
        config = from_mapping(PackConfig, apply_overrides(to_mapping(config), last))
        whole, part = config.stages
        config = replace(config, stages=(whole, replace(whole.with_steps(part.steps), name=part.name)))
        config = with_scoped_stage(from_mapping(PackConfig, apply_overrides(to_mapping(config), last)))
    return config


def with_pace(config: PackConfig) -> PackConfig:
    """Warm-up, validations, checkpoints and log lines at the pace of the number of steps."""
    stage = config.stages[0]
    stage = replace(stage, warmup=max(1, min(400, stage.steps // 10)))
    # Validating takes as long as a hundred steps of a GPU.
    times, fewest = (4, 100) if config.device.startswith("cuda") else (10, 50)
    every = max(fewest, -(-stage.steps // times))  # rounded up: the last of them is at the end, not just before it
    return replace(
        config,
        stages=(stage,),
        validation=replace(config.validation, every=every),
        checkpoint_every=every,
        log_every=max(1, min(50, stage.steps // 10)),
    )


def choose_steps(examination: Examination, side: Side, batch_tokens: int) -> int:
    """About EPOCHS passes over the text, at least a few hundred updates."""
    tokens = sum(
        found.lines * max(1.0, (found.under_pack or found.under_base).tokens_per_line)
        for found in examination.languages.values()
    )
    return int(min(MOST_STEPS, max(FEWEST_STEPS, EPOCHS[side] * tokens / batch_tokens)))
