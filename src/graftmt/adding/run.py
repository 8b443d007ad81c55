"""`graftmt add`: look at the text, say what it will cost, train the pack, judge it, write all of that on its card. Layer 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from graftmt.adding.corpus import AddCorpus, open_add_corpus
from graftmt.adding.estimate import Estimate, estimate
from graftmt.adding.examination import Examination, examine
from graftmt.adding.verdict import Verdict, judge
from graftmt.base import Base, choose_device
from graftmt.configuration import apply_overrides, from_mapping, to_mapping
from graftmt.errors import ConfigError
from graftmt.packs import Pack, Recipe, Side, check_recipe, load_pack, pack_tokenizer, save_pack
from graftmt.training import PackConfig, train_pack
from graftmt.training.packs import PackJob, check_parent, pack_subwords, resolved_recipe

Say = Callable[[str], None]

EPOCHS = 20
FEWEST_STEPS, MOST_STEPS = 300, 20_000
BATCH_TOKENS = {"cpu": 2048, "cuda": 16_384}


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
    """By side unless given: `embed` as source, `embed + dec-last-layer + enc-adapters-last` as target."""
    run: Path | None = None
    output: Path | None = None
    """Where the pack goes besides the run's folder: a folder, or a file that ends in .graftpack."""
    steps: int | None = None
    """Some 20 passes over the text unless given."""
    minutes: float | None = None
    merges: int | None = None
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

    @property
    def folder(self) -> Path:
        return self.run or Path("runs") / f"{'+'.join(self.languages)}-{self.side}"


@dataclass
class AddResult:
    """What was found at each step; the later ones are missing after a dry run."""

    config: PackConfig
    corpus: AddCorpus
    examination: Examination
    estimate: Estimate | None = None
    pack: Pack | None = None
    path: Path | None = None
    verdict: Verdict | None = None
    before: Verdict | None = None
    """Of the pack that was continued."""
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "languages": list(self.config.languages),
            "side": self.config.side,
            "recipe": self.config.recipe,
            "partners": list(self.corpus.partners),
            "held_out": self.corpus.held_out,
            "text": self.examination.to_dict(),
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "pack": str(self.path) if self.path else None,
            "fingerprint": self.pack.fingerprint if self.pack else None,
            "parameters": self.pack.size if self.pack else None,
            "seconds": self.pack.card.get("training_seconds") if self.pack else None,
            "verdict": self.verdict.facts() if self.verdict else None,
            "before": self.before.facts() if self.before else None,
        }


class OnlyChecked(Exception):
    """A dry run ends here."""


def add_language(options: AddOptions, say: Say = print, base: Base | None = None) -> AddResult:
    """Makes one pack. `base` is one that is resident already; it is loaded from its folder otherwise."""
    device = choose_device(options.device)
    if base is None:
        base = Base.load(options.base, device=device, dtype=options.base_precision)
    parent = None if options.parent is None else load_pack(options.parent)
    recipe = str(parent.recipe) if parent else options.recipe or default_recipe(options.side, base.model.config.model_dim)
    check_early(recipe, options, base)
    corpus = open_add_corpus(
        options.train,
        new=options.languages,
        base_languages=base.languages,
        partners=options.partners,
        valid=options.valid,
        test=options.test,
        work=options.folder,
        seed=options.seed,
    )
    config = make_config(options, corpus, recipe, device)
    resolved = resolved_recipe(config, base) if parent is None else parent.recipe
    check_recipe(resolved, config.side, config.languages, base)
    if parent is not None:
        check_parent(parent, config, base)
    subwords = parent.tokenizer.subwords if parent else pack_subwords(config, corpus.train, say)
    examination = examine(corpus, base.tokenizer, pack_tokenizer(subwords, options.side, base.tokenizer))
    if options.steps is None:
        steps = choose_steps(examination, config.stages[0].batch_tokens)
        config = make_config(replace(options, steps=steps), corpus, recipe, device)
    result = AddResult(config, corpus, examination)
    say_examination(result, say)

    def on_ready(job: PackJob) -> None:
        result.estimate = estimate(job, precision_bytes=4 if config.store_dtype == "fp32" else 2)
        say(f"Estimate: {result.estimate}.")
        if options.dry_run:
            raise OnlyChecked

    try:
        result.pack = train_pack(
            config,
            base,
            corpus.train,
            corpus.valid,
            minutes=options.minutes,
            fresh=options.fresh,
            quiet=options.quiet,
            say=say,
            on_ready=on_ready,
        )
    except OnlyChecked:
        return result
    give_verdict(result, options, base, parent)
    return result


def give_verdict(result: AddResult, options: AddOptions, base: Base, parent: Pack | None) -> None:
    """Scores the pack on held-out text, the one it continues too, and stores what was found on its card."""
    assert result.pack is not None
    split = result.corpus.test or result.corpus.valid

    def verdict_on(pack: Pack) -> Verdict:
        return judge(
            base,
            pack,
            split,
            result.corpus.partners,
            lines=options.test_lines,
            beam=options.beam,
            quiet=options.quiet,
        )

    result.verdict = verdict_on(result.pack)
    result.pack.card |= result.verdict.facts()
    result.pack.card["text"] = result.examination.to_dict()
    if parent is not None:
        result.before = verdict_on(parent.to(base.model.device))
        result.pack.card["parent"]["scores_here"] = result.before.scores
    result.path = result.config.run / "pack"
    save_pack(result.pack, result.path, base.model.config, dtype=result.config.store_dtype)
    if options.output is not None:
        save_pack(result.pack, options.output, base.model.config, dtype=result.config.store_dtype)
        result.path = options.output


def default_recipe(side: Side, model_dim: int) -> str:
    """The paper's best trade-offs: embeddings alone read a language well; writing one takes a layer and an adapter too."""
    return "embed" if side == "source" else f"embed + dec-last-layer + enc-adapters-last({2 * model_dim})"


def check_early(recipe: str, options: AddOptions, base: Base) -> None:
    """What can be wrong in the request itself, before any text is read."""
    parsed = Recipe.parse(recipe)
    if parsed.code.kind == "proxy" and parsed.code.language == "nearest":
        parsed = replace(parsed, code=replace(parsed.code, language=base.languages[0]))
    check_recipe(parsed, options.side, options.languages, base)
    if options.base_precision == "bf16" and choose_device(options.device) == "cpu":
        raise ConfigError("a base in bf16 is for training on a GPU; on a CPU fp32 is faster. Leave the precision out.")


def make_config(options: AddOptions, corpus: AddCorpus, recipe: str, device: str) -> PackConfig:
    """Defaults for this machine, what was asked for, then the overrides."""
    on_gpu = device.startswith("cuda")
    stage: dict[str, Any] = {
        "name": "pack",
        "directions": [],
        "batch_tokens": BATCH_TOKENS["cuda" if on_gpu else "cpu"],
        "steps": options.steps or FEWEST_STEPS,
        "learning_rate": 2e-3,
        "warmup": 0,
        "betas": [0.9, 0.98],
        "schedule": "constant",
        "cooldown": 0.5,
        "dropout": 0.1,
    }
    values: dict[str, Any] = {
        "run": str(options.folder),
        "languages": list(options.languages),
        "side": options.side,
        "recipe": recipe,
        "data": {"partners": list(corpus.partners)},
        "subwords": {"merges": options.merges or 4000},
        "stages": [stage],
        "validation": {"lines": 100},
        "seed": options.seed,
        "device": device,
        "precision": "bf16" if options.base_precision == "bf16" else "fp32",
        "parent": str(options.parent) if options.parent else None,
        "codes_from": str(options.codes_from) if options.codes_from else None,
    }
    config = with_pace(from_mapping(PackConfig, values))
    return from_mapping(PackConfig, apply_overrides(to_mapping(config), options.overrides))


def with_pace(config: PackConfig) -> PackConfig:
    """Warm-up, validations, checkpoints and log lines at the pace of the number of steps."""
    stage = config.stages[0]
    stage = replace(stage, warmup=max(1, min(400, stage.steps // 10)))
    every = max(50, stage.steps // 10)
    return replace(
        config,
        stages=(stage,),
        validation=replace(config.validation, every=every),
        checkpoint_every=every,
        log_every=max(1, min(50, stage.steps // 10)),
    )


def choose_steps(examination: Examination, batch_tokens: int) -> int:
    """About EPOCHS passes over the text, at least a few hundred updates."""
    tokens = sum(
        found.lines * max(1.0, (found.under_pack or found.under_base).tokens_per_line)
        for found in examination.languages.values()
    )
    return int(min(MOST_STEPS, max(FEWEST_STEPS, EPOCHS * tokens / batch_tokens)))


def say_examination(result: AddResult, say: Say) -> None:
    rows = result.examination.rows()
    width = max(len(name) for name, _ in rows)
    say("The text:")
    for name, value in rows:
        say(f"  {name:<{width}}  {value}")
    if result.corpus.held_out:
        say(f"  a held-out split was made: {result.corpus.valid.folder}")
    for warning in result.examination.warnings:
        say(f"warning: {warning}")
