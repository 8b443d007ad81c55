"""Several processes on one folder: nothing is done twice, results are those of one, and a kill leaves its work to others."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from patience import PATIENCE, until

from graftmt.base import read_base_document
from graftmt.experiments import scheduling
from graftmt.experiments.addresses import Addresses, short_hash
from graftmt.experiments.job_locks import Held, JobLocks
from graftmt.experiments.jobs import base_job
from graftmt.experiments.profiles import load_profile
from graftmt.experiments.store import Store
from graftmt.experiments.team import Team, environments_of, team, visible_gpus
from graftmt.files import write_text
from graftmt.folders import claimed
from graftmt.progress import heard_by

ASKED = ("--tables", "1,2,9", "--rows", "1,3,4,7,8,21,57", "--json")
"""Two bases of one run, packs that share a vocabulary, one on back-translated text, bilingual models, re-training."""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def ted(graft_corpus: Path, quick: list[str], toy: list[str]) -> Callable[..., list[str]]:
    """`ted(output, …)`: a command that trains its bases too."""

    def make(output: Path, *more: str) -> list[str]:
        limits = [f"evaluation.sets.{name}.lines=3" for name in ("test", "valid")]
        changes = [*quick, *(one for one in toy if "sets" not in one), *limits, "new=[el, uk]", "bilingual.partners=[fr]"]
        given = ["--corpus", str(graft_corpus), "--output", str(output)]
        return ["experiment", "run", "ted", *given, *changes, "bilingual.initial=false", *more]

    return make


@pytest.fixture
def start(start_graftmt: Start) -> Iterator[Start]:
    """As `start_graftmt`; what a test leaves running is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def go(*arguments: str) -> subprocess.Popen[bytes]:
        started.append(start_graftmt(*arguments))
        return started[-1]

    yield go
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def begun(*said: str) -> Counter[str]:
    """Job → how often a process began it."""
    return Counter(line.split()[1] for text in said for line in text.splitlines() if line.startswith("== ") and " of " in line)


@pytest.mark.slow
def test_two_processes_share_the_jobs_and_come_to_the_results_of_one(
    ted, graftmt, start: Start, results, same_scores, tmp_path: Path
) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    result = graftmt(*ted(alone, *ASKED))
    assert result.code == 0, result.stderr
    expected = json.loads(result.stdout)["done"]
    locks = JobLocks(shared / "locks")
    with ExitStack() as held:  # until both are there
        for document in results(alone).values():
            held.enter_context(locks.take(document["name"]))
        processes = [start(*ted(shared, *ASKED)) for _ in range(2)]
        said = [until_it_waits(process) for process in processes]
    outputs = [process.communicate(timeout=PATIENCE) for process in processes]
    said = [f"{before}{after.decode()}" for before, (_, after) in zip(said, outputs, strict=True)]
    assert [process.returncode for process in processes] == [0, 0], said
    documents = [json.loads(output) for output, _ in outputs]
    assert [set(document["done"]) for document in documents] == [set(expected)] * 2, "by whichever process"
    done = Counter(key for document in documents for key in document["done_here"])
    assert set(done) == set(expected)
    assert set(done.values()) == {1}, "each by one process"
    assert all(document["done_here"] for document in documents), "both had something to do"
    assert [document["left"] for document in documents] == [[], []]
    assert "failed" not in "".join(said)
    same_scores(results(alone), results(shared))
    for what in ("making a vocabulary", "of the translations:", "stored in"):
        once = result.stderr.count(what)
        assert once > 0 and sum(text.count(what) for text in said) == once, f"{what}: as often as by one process"
    put_off = sum(text.count("put off") for text in said)
    assert sum(begun(*said).values()) == len(done) + put_off


@pytest.mark.slow
def test_what_a_killed_process_was_at_is_done_by_the_other(
    run, arguments, start: Start, results, same_scores, tmp_path: Path
) -> None:
    asked = ("--tables", "4", "--rows", "7+31", "--json")
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    run(alone, *asked)
    killed = start(*arguments(shared, *asked))
    wait_until(lambda: any((shared / "runs").glob("model-7-el-seed1.*/log.jsonl")), killed)  # in training
    killed.send_signal(signal.SIGSTOP)  # it holds the job, for as long as the other one needs to get there
    other = start(*arguments(shared, *asked))
    heard = until_it_waits(other)
    assert "which are at model-7-el-seed1." in heard.splitlines()[-1]
    assert any((shared / "results").glob("model-31-uk-seed1.*.json")), "it did all else before it waited"
    assert not list((shared / "results").glob("compose-7+31-el-uk*"))
    killed.kill()
    killed.communicate()
    output, rest = other.communicate(timeout=PATIENCE)
    assert other.returncode == 0, rest.decode()
    assert begun(heard, rest.decode())["model-7-el-seed1"] == 1
    assert json.loads(output)["left"] == []
    same_scores(results(alone), results(shared))


def until_it_waits(process: subprocess.Popen[bytes]) -> str:
    """What it said until it had nothing to do but to wait."""
    heard = ""
    assert process.stderr is not None
    for line in process.stderr:
        heard += line.decode()
        if line.startswith(b"waiting for"):
            return heard
    raise AssertionError(f"it ended: {heard}")


def wait_until(there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    def look() -> bool:
        assert process.poll() is None, process.communicate()[1].decode()
        return there()

    until(look)


# In this process, with locks held as another one would


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`hold(output, name, then)`: as if another process were at it, until it is waited for twice; returns the waits."""

    def take(output: Path, name: str, then: Callable[[], None] = lambda: None) -> list[str]:
        other = JobLocks(output / "locks").take(name)
        other.__enter__()
        waits: list[str] = []

        def sleep(seconds: float) -> None:
            waits.append(name)
            if len(waits) == 2:
                then()
                other.__exit__(None, None, None)

        monkeypatch.setattr(scheduling.time, "sleep", sleep)
        return waits

    return take


def test_a_base_that_is_scored_elsewhere_serves_for_training(graftmt, arguments, hold, names, tmp_path: Path) -> None:
    name = names(tmp_path, "--tables", "2", "--rows", "7")["model-4"]
    waits = hold(tmp_path, name)
    result = graftmt(*arguments(tmp_path, "--tables", "2", "--rows", "7,8"), "--json")
    assert result.code == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if line.startswith(("==", "waiting", "   put off"))]
    assert [line.split(" (")[0] for line in said] == [
        "== model-7-el-seed1",
        f"   put off: another process is at {name}",
        "== model-8-el-seed1",
        f"   put off: another process is at {name}",
        f"waiting for other processes, which are at {name} …",
        "== model-4",
        "== model-7-el-seed1",
        "== model-8-el-seed1",
    ]
    assert len(waits) == 2
    assert result.stderr.count("stored in") == 2, "trained once"
    assert json.loads(result.stdout)["done"] == ["model-4", "model-7-el-seed1", "model-8-el-seed1"]


@pytest.mark.slow
def test_text_that_is_made_elsewhere_is_not_made_twice(
    graftmt, arguments, hold, quick, toy, graft_base, graft_corpus: Path, tmp_path: Path
) -> None:
    profile = load_profile("demo", [*quick, *toy])
    digest = Addresses(profile, tmp_path, graft_corpus).text_hash(("el", *profile.initial))
    by = [read_base_document(graft_base())["fingerprint"], 1, "fp32"]
    text = f"text-el-100-bt-seed1.{short_hash([digest, *by])}"
    hold(tmp_path, text)
    result = graftmt(*arguments(tmp_path, "--tables", "2", "--rows", "21"), "--json")
    assert result.code == 0, result.stderr
    assert f"put off: another process is at {text}" in result.stderr
    assert json.loads(result.stdout)["left"] == []


@pytest.mark.slow
def test_a_failure_elsewhere_is_one_here(run, names, hold, results, tmp_path: Path) -> None:
    known = names(tmp_path, "--tables", "4", "--rows", "7+31")

    def fail() -> None:
        path = tmp_path / "results" / f"{known['model-7-el-seed1']}.json"
        path.write_text(json.dumps({"job": "model-7-el-seed1", "failed": "no room"}))

    fail_before = tmp_path / "results" / f"{known['model-31-uk-seed1']}.json"
    fail_before.parent.mkdir(parents=True)
    fail_before.write_text(json.dumps({"job": "model-31-uk-seed1", "failed": "an earlier time"}))
    hold(tmp_path, known["model-7-el-seed1"], fail)
    outcome = run(tmp_path, "--tables", "4", "--rows", "7+31", code=1)
    found = results(tmp_path)
    assert outcome["failed"]["model-7-el-seed1"] == "no room"
    assert found["compose-7+31-el-uk-seed1"]["failed"] == "it needs model-7-el-seed1, which failed: no room"
    assert "failed" not in found["model-31-uk-seed1"], "what failed earlier is tried again"
    assert "failed" not in found["compose-7+31-uk-el-seed1"]


@pytest.mark.slow
def test_what_others_did_is_told_apart(run, names, hold, tmp_path: Path) -> None:
    asked = ("--tables", "2", "--rows", "7,8")
    other, here = tmp_path / "other", tmp_path / "here"
    run(other, *asked)
    name = names(other, *asked)["model-7-el-seed1"]
    made = (other / "results" / f"{name}.json").read_text("utf-8")
    hold(here, name, lambda: write_text(here / "results" / f"{name}.json", made))
    outcome = run(here, *asked)
    assert outcome["done"] == ["model-4", "model-7-el-seed1", "model-8-el-seed1"]
    assert outcome["done_here"] == ["model-4", "model-8-el-seed1"]


def test_the_sum_says_who_did_what(run, graftmt, arguments, names, hold, tmp_path: Path) -> None:
    asked = ("--tables", "1", "--rows", "4")
    run(tmp_path / "other", *asked)
    done, place = tmp_path / "other" / "results", tmp_path / "here" / "results"
    hold(tmp_path / "here", names(tmp_path / "other", *asked)["model-4"], lambda: shutil.copytree(done, place))
    result = graftmt(*arguments(tmp_path / "here", *asked))
    assert "1 job done now (0 here, 1 by other processes), 0 failed, 0 left" in result.stdout


def test_failures_of_others_count_also_after_this_process_has_ended(tmp_path: Path) -> None:
    store, job = Store(Addresses(load_profile("demo"), tmp_path)), base_job(4)
    store.write_failure(job, {"failed": "an earlier time"})
    outstanding = store.outstanding([job])
    assert store.settled_since(outstanding) == ([], {})
    threading.Event().wait(0.01)  # the clock of files
    store.write_failure(job, {"failed": "no room"})
    assert store.settled_since(outstanding) == ([], {"model-4": "no room"})


def test_the_time_given_ends_a_wait(graftmt, arguments, names, tmp_path: Path) -> None:
    name = names(tmp_path, "--tables", "1", "--rows", "4")["model-4"]
    with JobLocks(tmp_path / "locks").take(name):
        result = graftmt(*arguments(tmp_path, "--tables", "1", "--rows", "4", "--minutes", "0.01"), "--json")
    assert result.code == 0, result.stderr
    assert result.stderr.count(f"waiting for other processes, which are at {name} …") == 1
    outcome = json.loads(result.stdout)
    assert (outcome["stopped"], outcome["left"]) == ("the time given with --minutes is over", ["model-4"])


def test_a_process_with_other_settings_waits_for_nobody(graftmt, arguments, names, tmp_path: Path) -> None:
    command = arguments(tmp_path, "--tables", "2", "--rows", "7")
    with JobLocks(tmp_path / "locks").take(names(tmp_path, "--tables", "2", "--rows", "7")["model-7-el-seed1"]):
        result = graftmt(*command, "packs.source.steps=5")
    assert result.code == 0 and "waiting" not in result.stderr


def test_locks(tmp_path: Path) -> None:
    said: list[str] = []
    mine, other = JobLocks(tmp_path), JobLocks(tmp_path)
    with heard_by(said.append), mine.take("model-4"), mine.take("model-4"):  # what a job has is not taken from it on the way
        assert other.is_held("model-4")
        assert not mine.is_held("model-4")
        with pytest.raises(Held) as held, other.take("model-4"):
            pass
        assert held.value.name == "model-4"
    with heard_by(said.append), other.take("model-4", wait=True):
        assert mine.is_held("model-4")
    assert said == []
    with claimed(tmp_path / "model-4.lock") as free, claimed(tmp_path / "model-4.lock") as again:
        assert (free, again) == (True, False)


# --processes


@pytest.mark.slow
def test_one_call_with_several_processes(run, results, same_scores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--tables", "4", "--rows", "7+31", "--seeds", "1,2")
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    expected = run(alone, *asked)["done"]
    log = shared / "logs" / "process-2.log"
    with ExitStack() as held:
        locks = JobLocks(shared / "locks")
        for document in results(alone).values():
            held.enter_context(locks.take(document["name"]))

        def sleep(seconds: float) -> None:
            """This process lets the other one begin."""
            until(lambda: "waiting for other processes" in log.read_text(encoding="utf-8"))
            held.close()
            until(lambda: any((shared / "results").glob("*.json")))

        monkeypatch.setattr(scheduling.time, "sleep", sleep)
        outcome = run(shared, *asked, "--processes", "2")  # which is --quiet, and the other's log is not
    assert (outcome["left"], outcome["failed"]) == ([], {})
    said = log.read_text(encoding="utf-8")
    assert set(outcome["done"]) == set(expected)
    here = set(outcome["done_here"])
    others = len(expected) - len(here)
    assert others > 0
    by = f" ({others} here, {len(here)} by other processes)" if here else ""
    assert f"{len(expected)} jobs done now{by}, 0 failed, 0 left" in said, "both began before anything was done"
    assert here | set(begun(said)) == set(expected)
    same_scores(results(alone), results(shared))


def test_a_process_that_fails_is_told_of(tmp_path: Path) -> None:
    said: list[str] = []
    with heard_by(said.append), team(3, ["--version"], tmp_path) as good:
        assert good.wait() == 0
    assert len(good.started) == 2
    assert said == [f"3 processes share the work; what the others say is in {tmp_path}"]
    with heard_by(said.append), team(2, ["no-such-command"], tmp_path) as bad:
        assert bad.wait() != 0
    assert said[-1].endswith(f"its log is {tmp_path / 'process-2.log'}")
    assert "no-such-command" in (tmp_path / "process-2.log").read_text(encoding="utf-8")


@pytest.fixture
def sleepers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other processes of a team do nothing, for long."""
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n", encoding="ascii")
    sleeper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(sleeper))


@pytest.mark.slow
def test_the_others_end_with_the_first(sleepers: None, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), team(3, [], tmp_path) as found:
        assert all(process.poll() is None for process, _ in found.started)
        raise KeyboardInterrupt
    assert all(process.poll() is not None for process, _ in found.started)


@pytest.mark.slow
def test_the_others_end_with_the_first_after_sigterm(sleepers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))  # which would end the tests otherwise
    try:
        with pytest.raises(SystemExit) as leaving, team(2, [], tmp_path) as found:
            signal.raise_signal(signal.SIGTERM)
            raise AssertionError("it goes on")
        assert leaving.value.code == 143
        assert all(process.poll() is not None for process, _ in found.started)
        signal.raise_signal(signal.SIGTERM)
        assert told == [signal.SIGTERM], "as it was before"
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
def test_after_a_training_that_a_signal_stopped_nobody_is_waited_for(
    sleepers: None, graftmt, arguments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = scheduling.Outcome(stopped="stopped by SIGTERM", exit_code=143)
    monkeypatch.setattr(scheduling, "run_experiments", lambda *given, **named: stopped)
    monkeypatch.setattr(Team, "wait", lambda self: pytest.fail("it waits"))
    result = graftmt(*arguments(tmp_path / "out", "--tables", "1", "--rows", "4", "--processes", "2"))
    assert result.code == 143
    assert "stopped by SIGTERM; everything is saved" in result.stderr


def test_gpus_are_taken_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 5")
    assert visible_gpus() == ["2", "5"]
    assert [one.get("CUDA_VISIBLE_DEVICES") for one in environments_of(3, visible_gpus())] == ["2", "5", "2"]
    assert list(environments_of(3, ["0"])) == [{}, {}, {}]
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert {one["OMP_NUM_THREADS"] for one in environments_of(10_000, [])} == {"1"}
    assert list(environments_of(1, ["0", "1"])) == [{}]
