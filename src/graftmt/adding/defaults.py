"""What `graftmt add` does where it is not told: recipe, lines in other languages, steps, configuration. Layer 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graftmt.base import Base
from graftmt.configuration import apply_overrides, from_mapping, to_mapping
from graftmt.devices import world_size
from graftmt.packs import Recipe, Side
from graftmt.text import languages_of
from graftmt.text.aliases import english_in
from graftmt.training import PackConfig
from graftmt.training.pack_job import with_scoped_stage
from graftmt.training.run_configuration import PACK_MERGES

if TYPE_CHECKING:
    from graftmt.adding.examination import Examination
    from graftmt.adding.pack_text import AddCorpus
    from graftmt.adding.plan import AddPlan, Request

EPOCHS: dict[Side, int] = {"source": 12, "target": 20}
"""Passes over the text. Embeddings that only read settle soon; a decoder's layer learns longer."""
FEWEST_STEPS, MOST_STEPS = 300, 20_000
MOST_LINES = 1000
"""Back-translated for each other language of the base by default, as in the paper's (19) and (20) …"""
PAIRS_PER_LINE = 4
"""… and at most one for N pairs of the text, over all languages …"""
MOST_IN_ALL = 40_000
"""… and at most N lines, however large the text and however many the base's languages …"""
FEWEST_LINES = 20
"""… or none at all, where fewer than this would be left for each."""

BATCH_TOKENS = {"cpu": 2048, "cuda": 16_384}
COMPILED_FROM = 400
"""Steps on a GPU from which compiling, some ten seconds, is worth it."""


def default_recipe(side: Side, base: Base, partners: Sequence[str] | None = None, *, augmented: bool = True) -> Recipe:
    """What keeps the other languages, and is nearly the best with the one it is trained with (docs/results/paper-settings.md).

    Writing a language takes a layer and an adapter, (31). Reading it, a first layer helps, (14). In the paper, on a post-norm
    base, that layer learns to do without the other languages' codes. So lines in these languages come with it, `augmented`,
    (106); without them it is embeddings alone, (101). A whole encoder, (15), is better into English, and forgets the rest.

    The code begins as that of English or, in a base without it, of the language it is trained with.
    """
    if side == "target":
        recipe = f"embed + dec-last-layer + enc-adapters-last({2 * base.model.config.model_dim})"
    else:
        recipe = "embed" + " + enc-first-layer" * augmented + " + init:alignment"
    own = languages_of(base.tokenizer, side)  # those with a code where the new language gets one
    if "en" not in own and base.tokenizer.layout.code_matrix(side) is not None:
        known = [name for name in partners or () if name in own] or own
        recipe = f"{recipe} + code:learned:{english_in(own) or known[0]}"
    return Recipe.parse(recipe)


def pairs_for_a_line(base: Base, languages: int) -> int:
    """How many pairs of the text make one line for each other language of the base, of each new one."""
    return PAIRS_PER_LINE * (len(base.languages) - 1) * languages


def most_lines(base: Base, languages: int) -> int:
    """How many lines for each other language there are at most, however large the text."""
    return min(MOST_LINES, MOST_IN_ALL * PAIRS_PER_LINE // pairs_for_a_line(base, languages))


def default_augmentation(request: Request, corpus: AddCorpus, base: Base) -> str | None:
    """The lines in the base's other languages that keep them where the default recipe tunes the encoder, as `--augment` has it.

    For text with one partner alone, for with several the encoder sees several codes; and where there is enough of it.
    """
    if not augments_by_default(request, base) or _why_no_lines(request, corpus, base):
        return None
    each, most = pairs_for_a_line(base, len(request.languages)), most_lines(base, len(request.languages))
    lines = corpus.pairs(most=most * each) // each
    return f"{lines}-bt" if lines >= FEWEST_LINES else None


def _why_no_lines(request: Request, corpus: AddCorpus, base: Base) -> str:
    """What keeps the base from translating the text into others of its languages; "" where nothing does."""
    partner, *others = corpus.partners
    if others:
        return "training sees several languages already"
    if not {*base.target_languages} - {partner}:
        return f"the base {'has' if len(base.languages) == 1 else 'writes'} no other language"
    if partner not in base.source_languages and request.options.teacher is None:
        return f"the base does not read {partner}, so it cannot translate the text into its other languages"
    return ""


def augments_by_default(request: Request, base: Base) -> bool:
    if request.side == "target" or request.augment is not None or request.recipe is not None:
        return False
    parent = request.parent
    return parent is None or parent.recipe == default_recipe(request.side, base, request.options.partners)


def reason_for(plan: AddPlan) -> str:
    """What was chosen of what was not asked for, and why; nothing where all was asked for, or is as ever."""
    request, base, parent = plan.request, plan.base, plan.parent
    if not augments_by_default(request, base):
        return ""
    if plan.augment is not None:
        words = (
            f"--augment {plan.augment} by default: lines in the base's other languages keep these while the encoder learns "
            f"to read {', '.join(request.languages)}."
        )
        return words if parent is not None else f"{words} For embeddings alone: --augment none."
    if why := _why_no_lines(request, plan.given, base):
        return "" if parent is not None else f"embeddings alone by default: {why}."
    needed = FEWEST_LINES * pairs_for_a_line(base, len(request.languages))
    why = f"{plan.given.pairs(needed):,} line pairs are too few for lines in the base's other languages; {needed:,} are needed"
    if parent is None:
        return f"embeddings alone by default: {why}."
    return f"warning: {why}. The encoder is trained on, and may forget those languages; more text, or --with all, prevents it."


def choose_steps(examination: Examination, side: Side, batch_tokens: int) -> int:
    """About EPOCHS passes over the text, at least a few hundred updates."""
    tokens = sum(
        found.lines * max(1.0, (found.under_pack or found.under_base).tokens_per_line)
        for found in examination.languages.values()
    )
    return int(min(MOST_STEPS, max(FEWEST_STEPS, EPOCHS[side] * tokens / batch_tokens)))


def make_config(plan: AddPlan, steps: int | None = None) -> PackConfig:
    """Defaults for this machine, what was asked for, then the overrides. `steps`: how many, where none were asked for."""
    values = _defaults(plan, plan.options.steps or steps or FEWEST_STEPS)
    # The stage that parts with `@trained` add is there only once all else is settled.
    overrides = plan.options.overrides
    last = [one for one in overrides if plan.recipe.scoped and one.startswith("stages.1.")]
    first = [one for one in overrides if one not in last]
    # Twice: what follows from the number of steps follows from one that is overridden too, and can be overridden itself.
    config = with_pace(from_mapping(PackConfig, apply_overrides(values, first)))
    config = with_scoped_stage(from_mapping(PackConfig, apply_overrides(to_mapping(config), first)))
    if last:
        config = from_mapping(PackConfig, apply_overrides(to_mapping(config), last))
        whole, part = config.stages
        config = replace(config, stages=(whole, replace(whole.with_steps(part.steps), name=part.name)))
        config = with_scoped_stage(from_mapping(PackConfig, apply_overrides(to_mapping(config), last)))
    return config


def _defaults(plan: AddPlan, steps: int) -> dict[str, Any]:
    options, corpus = plan.options, plan.corpus
    on_gpu = plan.device.startswith("cuda")
    stage: dict[str, Any] = {
        "name": "pack",
        "directions": [],
        "batch_tokens": BATCH_TOKENS["cuda" if on_gpu else "cpu"],
        "packed": on_gpu and world_size() == 1,
        # A few lines more for each other language stay few: drawn as often as those that are translated, they crowd these out.
        "temperature": 1.0 if plan.augment is not None else 5.0,
        "steps": steps,
        "learning_rate": 2e-3,
        "warmup": 0,
        "betas": [0.9, 0.98],
        "schedule": "constant",
        "cooldown": 0.5,
        "dropout": 0.1,
    }
    return {
        "run": str(plan.folder),
        "languages": list(options.languages),
        "side": plan.side,
        "recipe": str(plan.recipe),
        "data": {"partners": list(corpus.partners), "few": list(corpus.few)},
        "subwords": {"merges": options.merges or PACK_MERGES},
        "stages": [stage],
        "validation": {"lines": 100},
        "seed": options.seed,
        "device": plan.device,
        "precision": "bf16" if on_gpu or options.base_precision == "bf16" else "fp32",
        "compile": on_gpu and steps >= COMPILED_FROM,
        "parent": str(options.parent) if options.parent else None,
        "codes_from": str(options.codes_from) if options.codes_from else None,
    }


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
