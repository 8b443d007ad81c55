"""Worker processes end with the process that started them, and say what happened when one of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE, until

import graftmt
from graftmt.errors import GraftError
from graftmt.workers import pool

linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by their environment")
MARK = "GRAFTMT_TEST_FAMILY"
Start = Callable[..., subprocess.Popen[bytes]]


def family(mark: str) -> dict[int, str]:
    """Process id → command line of all that inherited this mark. The resource tracker ends by itself."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it ended meanwhile, or is not ours
    return {number: command for number, command in found.items() if "resource_tracker" not in command}


@pytest.fixture
def start() -> Iterator[Start]:
    """A Python program of its own; whatever it leaves behind is ended after the test."""
    marks: list[str] = []

    def begin(*arguments: str) -> subprocess.Popen[bytes]:
        marks.append(uuid.uuid4().hex)
        source = str(Path(graftmt.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", MARK: marks[-1]}
        process = subprocess.Popen(
            [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        process.mark = marks[-1]  # type: ignore[attr-defined]
        return process

    yield begin
    for mark in marks:
        for number in family(mark):
            os.kill(number, signal.SIGKILL)


def kill_with_workers(process: Any, workers: int) -> None:
    """SIGKILL when so many workers are there; soon nothing is left of them. Ray looks every ten seconds."""

    def are_there() -> bool:
        assert process.poll() is None, process.stderr.read().decode()
        return len(family(process.mark)) > workers

    until(are_there, every=0.05)
    time.sleep(1)
    assert process.poll() is None, "it ended before it was killed; give it more to do"
    process.kill()
    process.wait()
    until(lambda: not family(process.mark), every=0.1)


def doze(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@pytest.mark.slow
def test_results_and_errors_come_back() -> None:
    with pool(2) as workers:
        assert list(workers.map(abs, [-1, -2, -3])) == [1, 2, 3]
        with pytest.raises(ZeroDivisionError):
            workers.submit(divmod, 1, 0).result()


@pytest.mark.slow
def test_a_killed_worker_is_said() -> None:
    with pytest.raises(GraftError, match="killed"), pool(1) as workers:
        os.kill(workers.submit(os.getpid).result(), signal.SIGKILL)
        workers.submit(os.getpid).result()


SLEEPERS = """
import time
from graftmt.workers import pool
if __name__ == "__main__":
    with pool(2) as workers:
        list(workers.map(time.sleep, [10_000, 10_000]))
"""


@pytest.mark.slow
@linux
def test_a_pool_ends_with_its_process(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "sleepers.py"
    script.write_text(SLEEPERS, encoding="utf-8")
    kill_with_workers(start(str(script)), workers=2)


UNGUARDED = """
import math
from graftmt.workers import pool
print("from the top")
with pool(2) as workers:
    print(list(workers.map(math.sqrt, [4, 9])))
"""


@pytest.mark.slow
@pytest.mark.parametrize("from_a_file", [True, False], ids=["script", "standard input"])
def test_workers_do_not_run_the_users_script(from_a_file: bool, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(UNGUARDED, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "script.py") if from_a_file else "-"]
    ended = subprocess.run(command, input=UNGUARDED, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stdout.splitlines()) == (0, ["from the top", "[2.0, 3.0]"]), ended.stderr


@pytest.fixture(scope="module")
def much_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that is tokenised in several processes, and takes some seconds."""
    folder = tmp_path_factory.mktemp("much") / "corpus"
    folder.mkdir()
    for language, stem in (("en", "word"), ("fr", "mot"), ("ru", "слово"), ("el", "λέξη")):
        for split, count in (("train", 60_000), ("valid", 20)):
            lines = (" ".join(f"{stem}{(number * factor) % 9973}" for factor in range(1, 12)) for number in range(count))
            (folder / f"{split}.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("engine", "workers"), [("local", 2), ("ray", 6)])
def test_cleaning_leaves_no_worker(start: Start, much_text: Path, engine: str, workers: int, tmp_path: Path) -> None:
    """Ray has processes of its own beside the workers."""
    if engine == "ray":
        pytest.importorskip("ray")
    command = (
        "prepare",
        "clean",
        str(much_text),
        "-o",
        str(tmp_path / "out"),
        "--processes",
        "2",
        "--force",
        "--engine",
        engine,
    )
    kill_with_workers(start("-m", "graftmt", *command), workers)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "add"])
def test_training_leaves_no_worker(
    start: Start,
    much_text: Path,
    command: str,
    graft_base: Callable[..., Path],
    graft_subwords: Callable[..., Path],
    toy_settings: Callable[..., dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from graftmt.documents import write_json

    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    subwords = f"subwords.model={graft_subwords('el')}"
    if command == "train":
        write_json(tmp_path / "config.yaml", toy_settings(tmp_path / "run", f"data.corpus={much_text}", subwords))
        arguments = ["train", str(tmp_path / "config.yaml")]
    else:
        arguments = ["add", "el", "-b", str(graft_base()), "--train", str(much_text), "--with", "all", "--side", "source"]
        arguments += ["--run", str(tmp_path / "run"), "--recipe", "embed", "--augment", "none", subwords]
    kill_with_workers(start("-m", "graftmt", *arguments), workers=2)


SCORING = """
from graftmt.assessment.scoring_pool import ScoringJob, scorer
if __name__ == "__main__":
    lines = [f"some words {number} and more of them" for number in range(20_000)]
    with scorer(None, 100_000) as scores:
        for future in [scores.submit(ScoringJob("en", "fr", lines, lines, None)) for _ in range(20)]:
            future.result()
"""
COMPARING = """
from graftmt.assessment.comparison import _compare, _Job
from graftmt.data import Direction
from graftmt.evaluation import Resampling
if __name__ == "__main__":
    lines = [f"some words {number} and more of them" for number in range(5_000)]
    options = {"tokenize": "13a", "lines": list(range(5_000)), "of": 5_000}
    jobs = [_Job(Direction("en", "fr"), lines, lines, lines, options) for _ in range(20)]
    list(_compare(jobs, Resampling(resamples=1000, seed=1)))
"""
TEAM = """
import sys, time
from pathlib import Path
from graftmt.experiments.team import team
with team(2, sys.argv[2:], Path(sys.argv[1])):
    time.sleep(600)
"""


@linux
@pytest.mark.slow
@pytest.mark.parametrize("script", [SCORING, COMPARING], ids=["scoring", "comparing"])
def test_scoring_leaves_no_worker(start: Start, script: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    kill_with_workers(start(str(tmp_path / "script.py")), workers=2)


@linux
@pytest.mark.slow
def test_a_team_leaves_nobody_nor_their_workers(start: Start, much_text: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(TEAM, encoding="utf-8")
    command = ("prepare", "clean", str(much_text), "-o", str(tmp_path / "out"), "--force", "--processes", "2")
    kill_with_workers(start(str(tmp_path / "script.py"), str(tmp_path / "logs"), *command), workers=3)
