"""The text that jobs share: made once, within the time that is given."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from graftmt.augmentation.augment_options import AugmentOptions
from graftmt.augmentation.back_translation import BackTranslator
from graftmt.augmentation.line_choice import Spec
from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.experiments.job_locks import JobLocks
from graftmt.experiments.material import Material, Teacher, augmented
from graftmt.training import Stopped


def test_back_translation_stops_when_the_time_is_over_and_goes_on(
    graft_corpus: Path, graft_base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graftmt.augmentation.augmenting.AugmentOptions", partial(AugmentOptions, chunk_lines=4))
    base, folder = Base.load(graft_base()), tmp_path / "text"
    teacher = Teacher(graft_base(), base.fingerprint, base, "fp32", 1, "cpu")

    def make(minutes: float | None) -> Material:
        return augmented(
            Corpus.open(graft_corpus, "train", ("el", "en", "fr", "ru")),
            Spec.parse("12-bt", ("el",)),
            ("el",),
            graft_base(),
            teacher,
            folder,
            seed=1,
            digest="0",
            locks=JobLocks(tmp_path / "locks"),
            minutes=minutes,
        )

    with pytest.raises(Stopped, match="time"):
        make(0.0)
    (begun,) = folder.glob("*.begun.json")
    begun.write_text(json.dumps({"seconds": 1000.0}), encoding="utf-8")
    calls, translate = [], BackTranslator.__call__
    monkeypatch.setattr(BackTranslator, "__call__", lambda self, chunks: calls.append(chunks) or translate(self, chunks))
    made = make(None)
    assert sum(len(chunk.lines) for chunks in calls for chunk in chunks) == 2 * 12 - 4, "the first chunk is there"
    assert set(made.partners) == {"en", "fr", "ru"}
    assert made.seconds > 1000.0, "the time before it was stopped counts"
    assert not list(folder.glob("*.begun.json"))
    assert make(0.0) == made, "what is there needs no time"
