"""Whose code `code:proxy` is: the nearest one in a re-trained model, computed, or what the profile names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.errors import ConfigError, DataError
from graftmt.experiments.addresses import Addresses
from graftmt.experiments.definitions import PROXY
from graftmt.experiments.job_locks import JobLocks
from graftmt.experiments.job_settings import training_settings
from graftmt.experiments.jobs import Job, Proxy, in_order, needs, oracle_of
from graftmt.experiments.made import codes_of, noted_codes
from graftmt.experiments.planning import Request, make_plan
from graftmt.experiments.profiles import load_profile
from graftmt.experiments.workshop import Workshop
from graftmt.packs import load_pack
from graftmt.packs.codes import code_distances, nearest_code

PACK = Job(kind="model", model=24, plus=PROXY, languages=("el",))
ASKED = ("--tables", "25", "--rows", "24", "--languages", "el")
KEY, ORACLE = "model-24-el-code-proxy-seed1", "model-6-el+uk-seed1"


# Which model says it


@pytest.mark.parametrize(
    ("profile", "job", "key"),
    [
        ("ted", PACK, "model-6-el+uk+sv+id-seed1"),
        ("ted", replace(PACK, languages=("sv",), seed=2), "model-6-el+uk+sv+id-seed1"),
        ("ted", replace(PACK, initial=3), "model-58-el+uk+sv+id-seed1"),
        ("paracrawl", replace(PACK, model=52, languages=("ru",)), "model-44-ar+ru+zh-seed1"),
        ("demo", PACK, "model-6-el+uk-seed1"),
        ("docs", PACK, None),
        ("docs-quick", PACK, None),
        ("ted", replace(PACK, plus="code:none"), None),
        ("ted", replace(PACK, plus=None), None),
    ],
)
def test_the_re_trained_model_with_most_new_languages_on_the_same_base(profile: str, job: Job, key: str | None) -> None:
    known = load_profile(profile)
    oracle = oracle_of(job, known)
    assert (None if oracle is None else oracle.key) == key
    assert (oracle in needs(job, known)) == (oracle is not None)


def test_it_is_trained_before_the_packs_that_need_it_and_after_those_that_do_not() -> None:
    ted = load_profile("ted")
    jobs = in_order([PACK, replace(PACK, plus="code:none")], ted)
    assert [job.key for job in jobs] == [
        "model-4",
        "model-24-el-code-none-seed1",
        "model-6-el+uk+sv+id-seed1",
        KEY,
    ]
    assert [job.key for job in in_order([PACK], load_profile("docs"))] == ["model-4", KEY]
    assert oracle_of(PACK, load_profile("docs", ["proxies={}"])) == jobs[2], "where a profile's own are taken away"


def test_a_proxy_that_is_named_is_in_the_settings_as_it_always_was() -> None:
    """Results are found by these: `embed + code:proxy:bg` is what they were trained with before proxies were computed."""
    assert training_settings(load_profile("docs"), PACK)["recipe"] == "embed + code:proxy:bg"
    assert training_settings(load_profile("ted"), PACK, "bg")["recipe"] == "embed + code:proxy:bg"
    assert training_settings(load_profile("docs"), PACK, "ru")["recipe"] == "embed + code:proxy:bg", "the profile's counts"


def test_computed_or_named_the_same_proxy_is_the_same_job(graft_base, graft_corpus: Path, tmp_path: Path) -> None:
    toy = ["initial=[en, fr, ru]", "others=[fr, ru]", "packs.watch=[fr]"]

    def name(*more: str) -> str | None:
        return Addresses(load_profile("demo", [*toy, *more]), tmp_path, graft_corpus, {4: graft_base()}).name(PACK)

    assert name() is None, "before it is known"
    oracle = Addresses(load_profile("demo", toy), tmp_path, graft_corpus, {4: graft_base()}).known_name(
        Job(kind="model", model=6, languages=("el", "uk"))
    )
    note = tmp_path / "runs" / oracle / "made.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"codes": {"el": {"ru": 1.5, "fr": 0.5, "en": 2.0}}}), encoding="utf-8")
    assert name() == name("proxies={el: fr}") != name("proxies={el: ru}")


# Where neither is possible


def test_rows_say_so_where_the_nearest_code_cannot_be_known() -> None:
    asked = Request(tables=(25,), rows=("24",), languages=("el",), bases=(4,))

    def reason(*changes: str) -> str:
        (row,) = (row for row in make_plan(load_profile("demo", changes), asked).rows if row.label.endswith("Proxy"))
        return row.reason

    assert reason() == ""
    assert "(6), which is left out: too costly" in reason("left_out.6=too costly")
    assert "proxies: {el: LANGUAGE}" in reason("left_out.6=too costly")
    assert reason("left_out.6=too costly", "proxies={el: ru}") == ""


def test_a_language_that_no_model_is_re_trained_with_needs_a_name() -> None:
    asked = Request(tables=(25,), rows=("24",), languages=("ka",), bases=(4,))
    changes = ["new=[el, ka]"]
    (row,) = (row for row in make_plan(load_profile("demo", changes), asked).rows if row.label.endswith("Proxy"))
    assert "no model that starts from (4) is re-trained with ka" in row.reason
    assert "proxies: {ka: LANGUAGE}" in row.reason
    named = make_plan(load_profile("demo", [*changes, "proxies={ka: ru}"]), asked)
    assert [job.key for job in named.jobs if job.plus == PROXY] == ["model-24-ka-code-proxy-seed1"]


def test_a_workshop_that_is_asked_all_the_same_refuses(graft_base, graft_corpus: Path, tmp_path: Path) -> None:
    profile = load_profile("demo", ["initial=[en, fr, ru]", "others=[fr, ru]", "packs.watch=[fr]", "new=[el, uk, tlh]"])
    workshop = Workshop(Addresses(profile, tmp_path, graft_corpus, {4: graft_base()}), JobLocks(tmp_path / "locks"))
    with pytest.raises(ConfigError, match=r"is re-trained with tlh.*proxies: \{tlh: LANGUAGE\}"):
        workshop.model(replace(PACK, languages=("tlh",)))


@pytest.mark.parametrize("change", ["proxies={el: bg}", "proxies={fr: ru}", "proxies={el: uk}"])
def test_a_profile_names_initial_languages_for_new_ones(change: str) -> None:
    with pytest.raises(ConfigError, match=r"proxies has .* expected a new language"):
        load_profile("demo", [change])


def test_a_profile_may_name_proxies_of_the_papers_languages_that_it_leaves_out() -> None:
    """`new=[el]` is enough to run docs, which names all four, for one language."""
    assert load_profile("docs", ["new=[el]"]).proxies["el"] == "bg"


@pytest.mark.parametrize("codes", [{"el": 1}, {"el": {"fr": "near"}}, [3]])
def test_damaged_distances_are_an_error(tmp_path: Path, codes: Any) -> None:
    (tmp_path / "made.json").write_text(json.dumps({"codes": codes}), encoding="utf-8")
    with pytest.raises(DataError, match=r"made\.json is damaged"):
        noted_codes(tmp_path / "made.json")


# In runs


def test_named_by_the_profile_nothing_is_re_trained(run, results, tmp_path: Path) -> None:
    outcome = run(tmp_path, *ASKED, "proxies={el: ru}")
    assert ORACLE not in outcome["done"]
    found = results(tmp_path)[KEY]
    assert (found["recipe"], found["proxy"]) == (
        "embed + code:proxy:ru",
        {"language": "ru", "by": None, "distances": {}},
    )


@pytest.mark.slow
def test_the_nearest_code_of_a_model_re_trained_here(run, results, report_of, graft_base, tmp_path: Path) -> None:
    asked = ("--tables", "3,25", *ASKED[2:])  # Table 25 has differences from the same pack with a learned code, of Table 3
    outcome = run(tmp_path, *asked)
    assert outcome["left"] == [] and outcome["done"].index(ORACLE) < outcome["done"].index(KEY)
    found = results(tmp_path)
    oracle, pack = found[ORACLE], found[KEY]
    retrained = tmp_path / "runs" / oracle["name"] / "base"
    measured = code_distances("el", Base.load(retrained), ["en", "fr", "ru"])
    nearest = nearest_code("el", retrained, Base.load(graft_base()))
    assert list(measured) == sorted(measured, key=measured.__getitem__) and next(iter(measured)) == nearest
    assert pack["proxy"]["language"] == nearest
    assert pack["proxy"]["by"] == oracle["name"]
    assert pack["proxy"]["distances"] == pytest.approx(measured, abs=1e-5) == oracle["codes"]["el"]
    assert pack["recipe"] == f"embed + code:proxy:{nearest}" == pack["settings"]["recipe"]
    assert str(load_pack(tmp_path / "runs" / pack["name"] / "pack").recipe) == pack["recipe"]
    assert "proxy" not in found["model-24-el-code-none-seed1"] and "codes" not in pack
    # A report says which one it is, and finds the result by its settings.
    page = report_of(tmp_path, "25")
    assert f"{KEY}: the proxy is {nearest}, the nearest code in {oracle['name']} ({nearest} {measured[nearest]:.2f}" in page
    # Known from the result alone, it is not trained again; nor is a pack whose proxy the profile names the same.
    shutil.rmtree(tmp_path / "runs")
    assert run(tmp_path, *asked)["done"] == []
    assert run(tmp_path, *asked, f"proxies={{el: {nearest}}}")["done"] == []


@pytest.mark.slow
def test_a_re_trained_model_from_before_distances_were_noted_is_looked_at(run, results, tmp_path: Path) -> None:
    run(tmp_path, "--tables", "2", "--rows", "6")
    (note,) = (tmp_path / "runs").glob(f"{ORACLE}.*/made.json")
    facts: dict[str, Any] = json.loads(note.read_text("utf-8"))
    codes = facts.pop("codes")
    note.write_text(json.dumps(facts), encoding="utf-8")
    (path,) = (tmp_path / "results").glob(f"{ORACLE}.*.json")
    document = json.loads(path.read_text("utf-8"))
    assert document.pop("codes") == codes
    path.write_text(json.dumps(document), encoding="utf-8")
    outcome = run(tmp_path, *ASKED)
    assert ORACLE not in outcome["done"] and KEY in outcome["done"], "its text and weights are there"
    assert results(tmp_path)[KEY]["proxy"]["distances"] == codes["el"]
    assert json.loads(note.read_text("utf-8"))["codes"] == codes


@pytest.mark.slow
def test_several_processes_wait_for_the_model_that_says_it(run, results, same_scores, tmp_path: Path) -> None:
    run(tmp_path / "one", *ASKED)
    outcome = run(tmp_path / "two", *ASKED, "--processes", "2")
    assert (outcome["left"], outcome["failed"]) == ([], {})
    one, two = (results(tmp_path / name) for name in ("one", "two"))
    same_scores(one, two)
    assert one[KEY]["proxy"] == two[KEY]["proxy"] and one[KEY]["name"] == two[KEY]["name"]


def test_a_base_that_writes_no_codes_has_no_distances(graft_base, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base.load(graft_base())
    assert set(codes_of(base, ("ru", "tlh"), ("en", "fr", "xx"))) == {"ru"}
    monkeypatch.setattr(type(base.tokenizer.layout), "code_matrix", lambda self, side: None)
    assert codes_of(base, ("ru",), ("en", "fr")) == {}


def test_in_words() -> None:
    assert str(Proxy(language="bg")) == "bg, named by the profile"
    words = str(Proxy(language="bg", by="model-6.1a", distances={"fr": 3.0, "ru": 2.0, "bg": 1.0, "de": 4.0}))
    assert words == "bg, the nearest code in model-6.1a (bg 1.00, ru 2.00, fr 3.00)"


@pytest.fixture
def report_of(graftmt, quick: list[str], toy: list[str]) -> Callable[[Path, str], str]:
    def make(output: Path, table: str) -> str:
        made = graftmt("experiment", "report", "demo", *quick, *toy, "-r", str(output), "-t", table, "-f", "none")
        assert made.code == 0, made.stderr
        return (output / "report" / f"table-{table}.md").read_text("utf-8")

    return make
