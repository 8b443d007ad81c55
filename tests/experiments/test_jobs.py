"""Which jobs fill a row, under what names, in what order."""

from __future__ import annotations

from itertools import pairwise

import pytest

from graftmt.data import Direction
from graftmt.experiments.definitions import figures, tables
from graftmt.experiments.jobs import Job, directions_of, in_order, needs, trains
from graftmt.experiments.planning import Plan, Request, make_plan
from graftmt.experiments.profiles import load_profile

DOCS, DEMO, TED, PARACRAWL = map(load_profile, ("docs", "demo", "ted", "paracrawl"))


def keys_of(plan: Plan, number: str) -> list[str]:
    return [job.key for row in plan.rows if row.number == number for job in row.jobs]


def test_rows_of_a_table_are_jobs_of_the_languages_of_its_columns() -> None:
    plan = make_plan(DOCS, Request(tables=(2,)))
    assert keys_of(plan, "7") == ["model-7-el-seed1"]
    assert keys_of(plan, "22") == ["model-22-el+uk+sv+id-seed1"]
    assert keys_of(plan, "6") == ["model-6-el+uk+sv+id-seed1"]
    assert keys_of(plan, "1") == ["model-1-el-en-seed1"], "docs trains no bilingual models with others than English"
    assert keys_of(make_plan(DOCS, Request(tables=(11,))), "7") == ["model-7-uk-seed1"]


def test_languages_and_seeds_multiply_the_jobs() -> None:
    plan = make_plan(DOCS, Request(tables=(2,), rows=("7", "22"), languages=("el", "uk"), seeds=(1, 2)))
    assert keys_of(plan, "7") == ["model-7-el-seed1", "model-7-uk-seed1", "model-7-el-seed2", "model-7-uk-seed2"]
    assert keys_of(plan, "22") == ["model-22-el+uk+sv+id-seed1", "model-22-el+uk+sv+id-seed2"]


def test_compositions_are_of_every_two_new_languages() -> None:
    plan = make_plan(DOCS, Request(tables=(4,), rows=("14+31",)))
    composed, pivoted = (row.jobs for row in plan.rows)
    assert len(composed) == len(pivoted) == 12
    assert "compose-14+31-el-uk-seed1" in [job.key for job in composed]
    assert "pivot-14+31-el-uk-seed1" in [job.key for job in pivoted]
    plan = make_plan(DEMO, Request(tables=(4,), bases=(4,)))
    assert keys_of(plan, "7+30") == ["compose-7+30-el-uk-seed1", "compose-7+30-uk-el-seed1"]
    alone = make_plan(DOCS, Request(tables=(4,), languages=("el",)))
    assert [row.reason for row in alone.rows if row.number == "7+30"] == ["takes two new languages"]


def test_the_bilingual_models_of_the_paper() -> None:
    plan = make_plan(TED, Request(tables=(1, 2, 4), rows=("1",)))
    by_table = {row.where: [job.key for job in row.jobs] for row in plan.rows}
    assert len(by_table["Table 1"]) == 19 + 19 + 19 * 18
    assert by_table["Table 2"][:2] == ["model-1-el-en-seed1", "model-1-el-ar-seed1"]
    assert len(by_table["Table 2"]) == 20
    direct, pivot = ([job for job in row.jobs] for row in plan.rows if row.where == "Table 4")
    assert [job.kind for job in direct] == ["model"] * 12
    assert [job.kind for job in pivot] == ["pivot"] * 12
    greek = next(job for job in pivot if job.languages == ("el", "uk"))
    assert [job.key for job in needs(greek, TED)] == ["model-1-el-en-seed1", "model-1-en-uk-seed1"]


def test_figures_by_size_end_with_the_whole_corpus() -> None:
    plan = make_plan(DOCS, Request(figures=(4,), rows=("1", "7")))
    sizes = figures()[4].panels[0].sizes
    assert keys_of(plan, "7") == [*(f"size-7-el-{size}-seed1" for size in sizes), "model-7-el-seed1"]
    bilingual = [row for row in plan.rows if row.number == "1"]
    assert [row.jobs[-1].key for row in bilingual] == ["model-1-el-en-seed1", "model-1-en-el-seed1"]
    other = make_plan(DOCS, Request(figures=(4,), rows=("1",), languages=("uk",)))
    assert other.rows[0].jobs[0].languages == ("uk", "en")


@pytest.mark.parametrize("profile", [DOCS, DEMO, TED, PARACRAWL], ids=lambda profile: profile.name)
def test_nothing_comes_before_what_it_needs(profile) -> None:
    mine = tuple(number for number, table in tables().items() if table.corpus == profile.paper)
    jobs = make_plan(profile, Request(tables=mine, bases=(4,))).jobs
    position = {job: number for number, job in enumerate(jobs)}
    for job in jobs:
        assert all(position[needed] < position[job] for needed in needs(job, profile)), job.key
    kinds = [trains(job) for job in jobs if job.kind == "model"]
    assert kinds.index("pack") > kinds.index("base")
    packs = [job for job in jobs if trains(job) == "pack"]
    changes = sum(needs(one, profile)[0] != needs(other, profile)[0] for one, other in pairwise(packs))
    assert changes <= 1, "packs of one base come together"


def test_what_is_named_first_is_done_first_as_far_as_needs_allow() -> None:
    def trained(rows: str) -> list[int | None]:
        plan = make_plan(DOCS, Request(tables=(2, 3, 101), rows=tuple(rows.split(","))))
        return [job.model for job in plan.jobs]

    assert trained("31,106,7,5") == [4, 31, 106, 7, 5]
    assert trained("5,7,106,31") == [4, 7, 106, 31, 5], "re-training is costly, and comes last whatever was named first"
    composed = make_plan(DOCS, Request(tables=(4,), rows=("20+31", "7+30"), languages=("el", "uk")))
    assert [(job.source, job.target) for job in composed.jobs if job.kind == "composition"] == 2 * [(20, 31)] + 2 * [(7, 30)]
    assert [row.number for row in composed.rows] == ["7+30", "20+31"], "they are shown as the table has them"


def test_the_teacher_comes_before_the_packs_that_it_translates_for() -> None:
    job = Job(kind="model", model=19, languages=("el",))
    assert [needed.key for needed in needs(job, TED)] == ["model-4", "model-3"]
    assert [needed.key for needed in needs(job, DOCS)] == ["model-4"]
    assert [one.key for one in in_order([job], TED)] == ["model-3", "model-4", "model-19-el-seed1"]


def test_models_that_are_others_used_otherwise() -> None:
    assert [one.key for one in needs(Job(kind="pivot", model=50, languages=("ar", "ru", "zh")), PARACRAWL)] == [
        "model-44-ar+ru+zh-seed1"
    ]
    assert [one.key for one in needs(Job(kind="pivot", model=41), PARACRAWL)] == ["model-40"]
    early = Job(kind="model", model=60, languages=("el",))
    assert trains(early) == "substitute"
    assert [one.key for one in needs(early, DOCS)] == ["model-4"]


def test_what_is_scored() -> None:
    others = len(DOCS.others)
    source = directions_of(Job(kind="model", model=7, languages=("el",)), DOCS)
    assert source[0] == Direction("el", "en")
    assert len(source) == 1 + others
    assert directions_of(Job(kind="model", model=31, languages=("el",)), DOCS)[0] == Direction("en", "el")
    assert len(directions_of(Job(kind="model", model=4), DOCS)) == (1 + others) * others
    four = directions_of(Job(kind="model", model=6, languages=DOCS.new), DOCS)
    assert Direction("el", "uk") in four
    assert len(four) == (1 + others + 4) * (others + 4)
    assert directions_of(Job(kind="composition", source=7, target=31, languages=("el", "uk")), DOCS) == [Direction("el", "uk")]


def test_rows_that_a_profile_cannot_run_say_why() -> None:
    rows = {row.number: row.reason for row in make_plan(DEMO, Request(tables=(1, 18), bases=(4,))).rows if row.reason}
    assert "figures of others" in rows["2"]
    assert "--base 3=FOLDER" in rows["3"]
    assert "--base 3=FOLDER" in rows["7"], "on the English-centric base"
    assert not [row for row in make_plan(DEMO, Request(tables=(18,), rows=("7",), bases=(3, 4))).rows if row.reason]
    unfiltered = make_plan(PARACRAWL, Request(tables=(6,), rows=("55",)))
    assert "corpus.unfiltered" in unfiltered.rows[0].reason
