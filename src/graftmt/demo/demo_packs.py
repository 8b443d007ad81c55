"""The demo's three language packs: what they are, how they are trained, how they are scored. Layer 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graftmt.adding.verdict import Verdict, figures, sample_translations
from graftmt.assessment.direction_lines import Evaluation
from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.errors import CheckpointError, ConfigError
from graftmt.packs import Pack, Side, save_pack
from graftmt.progress import say
from graftmt.training import PackConfig, PackDataConfig, StageConfig, SubwordConfig, ValidationConfig, train_pack

PARTNER = "en"
"""All that a pack's training text is paired with; every other direction is zero-shot."""


@dataclass(frozen=True, kw_only=True)
class PackPlan:
    """One pack of the demo."""

    name: str
    language: str
    side: Side
    recipe: str
    steps: int
    learning_rate: float

    def directions(self, languages: Sequence[str]) -> list[Direction]:
        """With each of these languages, the trained one first."""
        others = [PARTNER, *(language for language in languages if language != PARTNER)]
        return [Direction(self.language, old) if self.side == "source" else Direction(old, self.language) for old in others]


GREEK = PackPlan(name="el-source", language="el", side="source", recipe="embed + init:alignment", steps=200, learning_rate=3e-3)
UKRAINIAN = PackPlan(
    name="uk-target",
    language="uk",
    side="target",
    recipe="embed + dec-last-layer + enc-adapters-last(256) + init:alignment",
    steps=250,
    learning_rate=2.5e-3,
)
# The Greek pack but for its recipe, so that what differs between the two is the adapters' doing.
GREEK_ADAPTERS = replace(GREEK, name="el-source-adapters", recipe="embed + enc-adapters-all(64) + init:alignment")

# Enough that whole years and two-digit numbers are pieces, as they are in the base's vocabulary: with 1,000 merges 2014 is
# 201 + 4, which the frozen base cannot read as its own piece 2014, and chrF into English stays below 95.
MERGES = 1300
VALIDATIONS = 5


def pack_config(
    plan: PackPlan, run: Path, languages: Sequence[str], *, steps: int | None, seed: int, device: str
) -> PackConfig:
    """The run of one pack; `steps` instead of the plan's own is for a quick look."""
    steps = steps or plan.steps
    trained, *zero_shot = map(str, plan.directions(languages))
    stage = StageConfig(
        name=plan.name,
        directions=(trained,),
        steps=steps,
        batch_tokens=2048,
        learning_rate=plan.learning_rate,
        warmup=max(1, steps // 10),
        schedule="constant",
        cooldown=0.5,
        dropout=0.0,
    )
    every = max(1, steps // VALIDATIONS)
    return PackConfig(
        run=run,
        languages=(plan.language,),
        side=plan.side,
        recipe=plan.recipe,
        data=PackDataConfig(partners=(PARTNER,), max_length=120),
        subwords=SubwordConfig(merges=MERGES),
        stages=(stage,),
        validation=ValidationConfig(lines=80, every=every, watch=tuple(zero_shot)),
        checkpoint_every=every,
        keep_checkpoints=1,
        log_every=every,
        tensorboard=False,
        seed=seed,
        device=device,
    )


def make_pack(config: PackConfig, base: Base, train: Corpus, valid: Corpus) -> Pack:
    """Trains a pack, resumes an earlier demo, or takes what it finished.

    A run of another base, text or settings is moved aside: the demo can always be run again.
    """
    try:
        return train_pack(config, base, train, valid)
    except (ConfigError, CheckpointError):
        if not (config.run / "checkpoints").is_dir():
            raise
        say("an earlier run here is of another base, text or settings, or damaged: starting over")
        return train_pack(config, base, train, valid, fresh=True)


def store_pack(pack: Pack, folder: Path, base: Base, evaluations: Sequence[Evaluation], beam: int, split: str) -> None:
    """The pack's own folder, with its scores and samples on its card. The first direction is the trained one."""
    scores = {
        str(evaluation.direction): {
            **evaluation.direction._asdict(),
            **figures(evaluation),
            "zero_shot": number > 0,
        }
        for number, evaluation in enumerate(evaluations)
    }
    pack.card |= Verdict(split, beam, scores, sample_translations(evaluations, 2 * len(evaluations))).facts()
    save_pack(pack, folder, base.model.config)
