"""The scores of many directions, on all cores while others are still being translated. Layer 5, without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from graftmt.assessment.off_target import Judge, OffTarget
from graftmt.evaluation.scores import Score, Scores, score_direction
from graftmt.workers import pool

FEWEST_LINES = 20_000
"""For which processes of their own are worth starting."""


@dataclass(frozen=True)
class Scored:
    """One direction's rows of the table, and what is known of translations in the wrong language."""

    scores: Scores
    off_target: OffTarget | None


@dataclass(frozen=True)
class ScoringJob:
    """One direction's lines."""

    source: str
    target: str
    hypotheses: list[str]
    references: list[str]
    tokenize: str | None
    """BLEU's tokeniser; by target language where there is none."""

    def score(self, judge: Judge | None) -> Scored:
        scores = score_direction(
            self.hypotheses, self.references, source=self.source, target=self.target, tokenize=self.tokenize
        )
        if judge is None:
            return Scored(scores, None)
        found = judge.judge(self.hypotheses, self.target)
        rate = Score(metric="off_target", value=found.rate, source=self.source, target=self.target)
        return Scored(Scores((*scores, rate)), found)


class Scorer:
    """Scores in processes of its own, or at once where there are none."""

    def __init__(self, judge: Judge | None, pool: ProcessPoolExecutor | None) -> None:
        self.judge, self.pool = judge, pool

    def submit(self, job: ScoringJob) -> Future[Scored]:
        if self.pool is not None:
            return self.pool.submit(_score_here, job)
        done: Future[Scored] = Future()
        done.set_result(job.score(self.judge))
        return done


@contextmanager
def scorer(judge: Judge | None, lines: int) -> Iterator[Scorer]:
    """For this number of lines in all: chrF of a direction takes longer than its translation on a GPU."""
    cores = os.cpu_count() or 1
    if lines < FEWEST_LINES or cores < 2:
        yield Scorer(judge, None)
        return
    # The judge goes to each process once, not with each job: a classifier is some megabytes.
    with pool(cores, _remember, (judge,)) as workers:
        yield Scorer(judge, workers)


_judges: list[Judge | None] = [None]
"""In a process that scores, the one it was started with."""


def _remember(judge: Judge | None) -> None:
    _judges[0] = judge


def _score_here(job: ScoringJob) -> Scored:
    return job.score(_judges[0])
