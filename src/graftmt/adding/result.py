"""What `graftmt add` found and made, for people and for scripts. Layer 6."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graftmt.adding.estimate import Estimate
from graftmt.adding.examination import Examination
from graftmt.adding.judgement import Judgement
from graftmt.adding.more_text import PlannedText
from graftmt.adding.pack_text import AddCorpus
from graftmt.adding.plan import AddPlan
from graftmt.adding.verdict import Verdict
from graftmt.packs import Pack
from graftmt.training import PackConfig


@dataclass
class AddResult:
    """What was found at each step; the later ones are missing after a dry run."""

    plan: AddPlan
    config: PackConfig
    examination: Examination
    estimate: Estimate | None = None
    pack: Pack | None = None
    path: Path | None = None
    verdict: Verdict | None = None
    """None where the held-out text had no line for one; `unjudged` says so."""
    unjudged: str = ""
    judgement: Judgement | None = None
    """Whether the pack can be used; None where no trained direction was scored."""
    before: Verdict | None = None
    """Of the pack that was continued."""
    planned: PlannedText | None = None
    """What --augment would add, which a dry run does not make."""
    alignment: list[dict[str, Any]] = field(default_factory=list)
    """Whether the lines of two languages belong together, by text and pair."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Phase → how long it took."""

    @property
    def corpus(self) -> AddCorpus:
        return self.plan.corpus

    def lines(self, told: Examination | None = None) -> list[str]:
        """What is known before training, for a person; of the text nothing where the same was `told` for the other side."""
        whose = f"{', '.join(self.config.languages)} as {self.config.side}"
        lines = [f"The recipe, {whose}: {self.config.recipe}"]
        lines += [] if self.examination == told else self._text_lines()
        if self.planned is not None:
            lines += [str(self.planned), *(f"note: {note}" for note in self.planned.notes)]
        return lines

    def estimate_line(self) -> str:
        return f"Estimate for {', '.join(self.config.languages)} as {self.config.side}: {self.estimate}."

    def _text_lines(self) -> list[str]:
        rows = self.examination.rows()
        width = max(len(name) for name, _ in rows)
        lines = [
            f"From {piece.name}: {piece.lines:,} lines{'; ' * bool(piece.note)}{piece.note}" for piece in self.corpus.pieces
        ]
        lines += ["The text:", *(f"  {name:<{width}}  {value}" for name, value in rows)]
        return lines + [f"warning: {warning}" for warning in self.examination.warnings]

    def to_dict(self) -> dict[str, Any]:
        return {
            "languages": list(self.config.languages),
            "side": self.config.side,
            "recipe": str(self.pack.recipe) if self.pack else self.config.recipe,
            "run": str(self.config.run),
            "steps": sum(stage.steps for stage in self.config.stages),
            "partners": [name for name in self.corpus.partners if name not in self.corpus.few],
            "few_lines": list(self.corpus.few),
            "augmentation": self.corpus.augmentation,
            "held_out": self.corpus.held_out,
            "pieces": [asdict(piece) for piece in self.corpus.pieces],
            "text": self.examination.to_dict(),
            "alignment": self.alignment,
            "planned": self.planned.to_dict() if self.planned else None,
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "pack": str(self.path) if self.path else None,
            "fingerprint": self.pack.fingerprint if self.pack else None,
            "parameters": self.pack.size if self.pack else None,
            "seconds": self.pack.card.get("training_seconds") if self.pack else None,
            "seconds_by_phase": {phase: round(seconds, 1) for phase, seconds in self.seconds.items()},
            "verdict": self.verdict.facts() if self.verdict else None,
            "judgement": self.judgement.to_dict() if self.judgement else None,
            "unjudged": self.unjudged or None,
            "before": self.before.facts() if self.before else None,
        }
