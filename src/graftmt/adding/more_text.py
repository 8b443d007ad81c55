"""More text for a pack in the base's other languages, asked for or by default, made, or for a dry run only counted. Layer 6."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from graftmt.adding.estimate import duration
from graftmt.adding.examination import Examination
from graftmt.adding.pack_text import AddCorpus
from graftmt.adding.plan import AddPlan
from graftmt.augmentation.augmenting import augment_training
from graftmt.augmentation.back_translation import BackTranslator, Teacher, search_options
from graftmt.augmentation.chunks import Chunk
from graftmt.augmentation.line_choice import Plan, Spec, choose_languages, make_plan
from graftmt.documents import read_json
from graftmt.errors import ConfigError

TIMED_ON_CPU, TIMED_ON_GPU = 16, 512
"""Lines that are translated to say how long all of them take."""


@dataclass(frozen=True, kw_only=True)
class PlannedText:
    """What `--augment` would add to the training text."""

    spec: str
    """As it was written."""
    lines: dict[str, int]
    """The base's language → lines that would be paired with it."""
    back_translated: bool
    usable: dict[str, int]
    """New language → its lines that would then have a translation."""
    seconds: float | None
    """To translate them, by the time that a few take; None where none would be, or by a teacher that is not at hand."""
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def counted_in(self, examination: Examination) -> Examination:
        """With as many lines as there would be: what the number of steps follows from."""
        languages = {name: replace(found, lines=self.usable[name]) for name, found in examination.languages.items()}
        return replace(examination, languages=languages)

    def __str__(self) -> str:
        if not self.lines:
            return f"--augment {self.spec}: there is no other language of the base with lines to add."
        counts = sorted(set(self.lines.values()))
        names = ", ".join(self.lines)
        each = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        languages = f"{len(self.lines)} language{'s' * (len(self.lines) != 1)} ({names})"
        how = "translated first, some of which may be dropped" if self.back_translated else "from the same text"
        if self.seconds is not None:
            how += f" (which takes about {duration(self.seconds)})"
        return (
            f"--augment {self.spec}: a dry run does not make this text. It would add {each} lines × {languages}, "
            f"{sum(self.lines.values()):,} in all, {how}. Steps are as many as with it, timed without it."
        )


def with_more_text(add: AddPlan, minutes: float | None = None) -> AddCorpus:
    """The training text with pairs in the base's other languages, real or back-translated; all of them are partners then."""
    corpus, options, folder = add.given, add.options, add.folder
    assert add.augment is not None
    _languages(add)
    train = augment_training(
        corpus.train,
        spec=add.augment,
        new=options.languages,
        base=options.base,
        pivot=_pivot(corpus),
        resident=add.base,
        teacher=options.teacher,
        folder=folder / "augmented",
        seed=options.seed,
        device=options.device,
        dtype=options.base_precision,
        minutes=minutes,
    )
    made = read_json(folder / "augmented" / "corpus.json", "the corpus")["augmentation"]
    chosen, lines = (
        {name: counts[what] for name, counts in made["report"]["languages"].items()} for what in ("chosen", "lines")
    )
    partners = tuple(name for name in train.languages if name not in options.languages and lines.get(name, 1))
    many = corpus.partners if Spec.parse(add.augment, options.languages).lines else partners
    facts = {key: made[key] for key in ("spec", "pivot", "teacher") if key in made}
    return replace(
        corpus,
        train=train,
        partners=partners,
        few=tuple(name for name in partners if name not in many),
        augmentation={**facts, "chosen": chosen, "lines": lines},
    )


def poor_text(corpus: AddCorpus, fewest: int) -> str:
    """What is wrong with lines that were translated, in words: of enough too few were worth keeping, for most languages."""
    assert corpus.augmentation is not None
    chosen, lines = corpus.augmentation["chosen"], corpus.augmentation["lines"]
    if "teacher" not in corpus.augmentation:
        return ""
    poor = [name for name, left in lines.items() if left < fewest <= chosen[name]]
    if 2 * len(poor) <= len(lines):
        return ""
    names = ", ".join(poor[:4]) + " …" * (len(poor) > 4)
    return (
        f"of the lines translated into {len(poor)} of {len(lines)} languages ({names}) fewer than {fewest} were worth keeping: "
        f"the base does not translate well enough from {corpus.augmentation['pivot']}"
    )


def _pivot(corpus: AddCorpus) -> str:
    """What the text is paired with already, and translated from."""
    if len(corpus.partners) > 1:
        raise ConfigError(
            "--augment adds the base's other languages to text that is paired with one of them; this one is trained with "
            f"{', '.join(corpus.partners)}. Name one with --with, or train without: --augment none."
        )
    return corpus.partners[0]


def _languages(add: AddPlan) -> tuple[str, tuple[str, ...]]:
    """What is translated from, and into what; a teacher that cannot is refused."""
    corpus, options = add.given, add.options
    assert add.augment is not None
    pivot, languages = choose_languages(
        options.languages, corpus.train, add.base.languages, add.base.target_languages, pivot=_pivot(corpus)
    )
    if Spec.parse(add.augment, options.languages).back_translated:
        way_out = "Take another --teacher, leave it out, or train without: --augment none."
        Teacher(base=options.teacher or options.base).check(pivot, languages, way_out)
    return pivot, languages


def plan_more_text(add: AddPlan, *, timed: bool) -> PlannedText:
    """The same lines chosen and nothing written; what cannot be done is an error as it would be then.

    `timed`: some lines are translated, to say how long all would take.
    """
    corpus, options = add.given, add.options
    assert add.augment is not None
    spec = Spec.parse(add.augment, options.languages)
    pivot, languages = _languages(add)
    plan = make_plan(
        spec, corpus.train, new=options.languages, pivot=pivot, languages=languages, named=False, seed=options.seed
    )
    timed = timed and spec.back_translated and options.teacher is None and bool(plan.chosen)
    return PlannedText(
        spec=add.augment,
        lines={language: int(chosen.sum()) for language, chosen in plan.chosen.items()},
        back_translated=spec.back_translated,
        usable={name: int((plan.kept & spoken).sum()) for name, spoken in plan.spoken.items()},
        seconds=_seconds_to_translate(plan, add) if timed else None,
        notes=tuple(plan.notes),
    )


def _seconds_to_translate(plan: Plan, add: AddPlan) -> float:
    """By timing some of the lines; of thousands, more are translated at a time, so that it is rather less."""
    base = add.base
    device = str(base.model.device)
    translate = BackTranslator(Teacher(base=add.options.base), plan.pivot, search_options(device, beam=1), base)
    texts = add.given.train.texts([plan.pivot])[plan.pivot]
    sample = TIMED_ON_GPU if device.startswith("cuda") else TIMED_ON_CPU

    def chunks(lines: int) -> list[Chunk]:
        """As many of each language, from all over the text."""
        each = -(-lines // len(plan.chosen))
        chosen = {language: plan.lines(language) for language in plan.languages}
        spread = {name: tuple(map(int, rows[:: max(1, len(rows) // each)][:each])) for name, rows in chosen.items()}
        return [Chunk(name, 0, rows, tuple(texts[row] for row in rows)) for name, rows in spread.items()]

    translate(chunks(1))  # kernels that are made at their first use are no part of it
    asked = chunks(sample)
    started = time.monotonic()
    translate(asked)
    taken = time.monotonic() - started
    lines = sum(int(chosen.sum()) for chosen in plan.chosen.values())
    return round(taken * lines / sum(len(chunk.lines) for chunk in asked), 1)
