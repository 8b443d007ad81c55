"""Results, bases and stopped runs of other settings: found before anything begins, with ways out that work."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.experiments.claims import Claims
from graftmt.experiments.evaluating import Evaluator
from graftmt.experiments.making import Workshop
from graftmt.training import Stopped


@pytest.fixture
def stop_in_training(graftmt, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives a command whose first training is stopped after its first update."""

    def go(*command: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Workshop, "check_time", lambda self: None)
            patch.setattr(Workshop, "minutes_left", lambda self: 0.0)
            result = graftmt(*command, "--json", "--quiet")
        assert json.loads(result.stdout)["stopped"], result.stderr

    return go


KINDS = {
    "pack": (("demo", "--tables", "2", "--rows", "7"), "packs.source.steps", "runs/*/model-7-el-seed1"),
    "re-training": (("demo", "--tables", "2", "--rows", "5"), "retrain.stages.0.steps", "runs/*/model-5-el-seed1"),
    "bilingual": (("demo", "--tables", "2", "--rows", "1"), "bilingual.stages.0.steps", "runs/model-1-el-en-seed1"),
    "base": (("ted", "--tables", "1", "--rows", "3"), "base.stages.0.steps", "runs/base-4"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_of_other_settings_is_found_before_any_job_begins(
    graftmt, arguments, quick, toy, results, stop_in_training, graft_corpus: Path, tmp_path: Path, kind: str
) -> None:
    (profile, *asked), key, where = KINDS[kind]
    command = arguments(tmp_path, *asked)
    if profile == "ted":
        changes = [*quick, *(one for one in toy if "sets" not in one), "new=[el, uk]", "bilingual.partners=[fr]"]
        limits = [f"evaluation.sets.{name}.lines=3" for name in ("test", "valid")]
        command = ["experiment", "run", "ted", "-c", str(graft_corpus), "-o", str(tmp_path), *changes, *limits, *asked]
    stop_in_training(*command)
    (run,) = tmp_path.glob(where)
    assert list((run / "checkpoints").glob("stage1-step*"))
    before = results(tmp_path)
    steps = 3 if profile == "demo" else 4

    refused = graftmt(*command, f"{key}=5")
    assert refused.code == 1
    told = f"{run.relative_to(tmp_path)}: training.stages.0.steps: {steps} then, 5 now"
    assert f"1 unfinished run in {tmp_path} was made with other settings than those given now" in refused.stderr
    assert told in refused.stderr
    assert "Give the settings of then, or another --output folder, or delete this folder" in refused.stderr
    assert "--fresh" not in refused.stderr and "run=" not in refused.stderr
    assert results(tmp_path) == before
    dry = graftmt(*command, f"{key}=5", "--dry-run").stdout
    assert told in dry and "other settings:" in dry
    assert "will refuse" not in graftmt(*command, "--dry-run").stdout

    copy = tmp_path.with_name(f"{tmp_path.name}-copy")
    shutil.copytree(tmp_path, copy)
    goes_on = graftmt(*command, "--json")
    assert (goes_on.code, json.loads(goes_on.stdout)["left"]) == (0, []), goes_on.stderr
    assert "going on from stage1-step00000001" in goes_on.stderr
    # The other way out.
    shutil.rmtree(copy / run.relative_to(tmp_path))
    anew = graftmt(*(str(copy) if part == str(tmp_path) else part for part in command), f"{key}=5", "--json", "--quiet")
    assert (anew.code, json.loads(anew.stdout)["left"]) == (0, []), anew.stderr


def test_nothing_is_added_beside_a_stopped_run_of_other_settings(
    graftmt, arguments, quick, toy, results, stop_in_training, tmp_path: Path
) -> None:
    stop_in_training(*arguments(tmp_path, "--tables", "2", "--rows", "7", "--seeds", "1"))
    asked = ("--tables", "2", "--rows", "7,8", "packs.source.steps=5")
    refused = graftmt(*arguments(tmp_path, *asked))
    assert refused.code == 1
    assert not any("model-8" in key for key in results(tmp_path))
    base = arguments(tmp_path)[arguments(tmp_path).index("--base") + 1]
    listed = ("experiment", "list", "demo", "-o", str(tmp_path), "--base", base, *quick, *toy, *asked)
    rows = {row["number"]: row for row in json.loads(graftmt(*listed, "--json").stdout)["rows"]}
    assert "3 then, 5 now" in rows["7"]["other_settings"]["model-7-el-seed1"]
    assert "model-7-el-seed1" not in rows["7"]["missing"]
    assert "will refuse: 1 unfinished run in" in graftmt(*listed).stdout


def test_results_and_stopped_runs_are_named_together(graftmt, run, arguments, stop_in_training, tmp_path: Path) -> None:
    run(tmp_path, "--tables", "2", "--rows", "7")
    stop_in_training(*arguments(tmp_path, "--tables", "2", "--rows", "8"))
    refused = graftmt(*arguments(tmp_path, "--tables", "2", "--rows", "7,8", "packs.source.steps=5"))
    assert f"1 result and 1 unfinished run in {tmp_path} were made with other settings" in refused.stderr
    assert "results/model-7-el-seed1.json: " in refused.stderr
    assert "/model-8-el-seed1: " in refused.stderr
    assert "delete these files and folders" in refused.stderr


def test_how_the_base_is_held_in_training_is_a_setting_but_where_it_was_not_noted(
    run, graftmt, arguments, results, tmp_path: Path
) -> None:
    asked = ("--tables", "2", "--rows", "7")
    run(tmp_path, *asked)
    other = arguments(tmp_path, *asked, "packs.base_dtype=bf16")
    assert "model-7-el-seed1.json: training.base_dtype: 'fp32' then, 'bf16' now" in graftmt(*other).stderr
    # As earlier versions left it.
    notes = [tmp_path / "results" / "model-7-el-seed1.json", *tmp_path.glob("runs/*/model-7-el-seed1/made.json")]
    for note in notes:
        document = json.loads(note.read_text("utf-8"))
        training = document["settings"].get("training", document["settings"])
        del training["base_dtype"]
        note.write_text(json.dumps(document), encoding="utf-8")
    before = results(tmp_path)["model-7-el-seed1"]
    assert json.loads(graftmt(*other, "--json", "--quiet").stdout)["done"] == []
    again = graftmt(*other, "evaluation.sets.valid={split: valid, lines: 3}", "--json")
    assert json.loads(again.stdout)["done"] == ["model-4", "model-7-el-seed1"]
    assert "stored in" not in again.stderr, "scored, not trained"
    after = results(tmp_path)["model-7-el-seed1"]
    assert after["settings"]["training"] == before["settings"]["training"], "nothing is known of it still"


def test_a_run_that_another_process_is_at_is_not_to_be_deleted(graftmt, arguments, stop_in_training, tmp_path: Path) -> None:
    command = arguments(tmp_path, "--tables", "2", "--rows", "7")
    stop_in_training(*command)
    with Claims(tmp_path / "locks", print).take("model-7-el-seed1"):
        refused = graftmt(*command, "packs.source.steps=5")
    assert refused.code == 1
    assert (
        "another process is at model-7-el-seed1 with other settings (training.stages.0.steps: 3 then, 5 now" in refused.stderr
    )
    assert "delete" not in refused.stderr


def test_a_run_that_cannot_go_on_for_another_reason_has_a_way_out_too(
    graftmt, arguments, stop_in_training, graft_corpus: Path, tmp_path: Path
) -> None:
    corpus, output = tmp_path / "corpus", tmp_path / "out"
    shutil.copytree(graft_corpus, corpus)
    command = [str(corpus) if part == str(graft_corpus) else part for part in arguments(output, "--tables", "2", "--rows", "7")]
    stop_in_training(*command)
    text = corpus / "train.el.txt"
    text.write_text(text.read_text("utf-8").replace("\n", " \n", 1), encoding="utf-8")
    assert "train.el differs. Give the corpus of then with --corpus, or another --output folder" in graftmt(*command).stderr
    (output / "text.json").unlink()  # as the message says, where the files are other ones and the text is not
    failed = json.loads(graftmt(*command, "--json", "--quiet").stdout)["failed"]["model-7-el-seed1"]
    (run,) = output.glob("runs/*/model-7-el-seed1")
    assert "was trained on other text" in failed
    assert f"or delete {run} to have it start over." in failed
    shutil.rmtree(run)
    assert graftmt(*command, "--quiet").code == 0


def test_an_evaluation_that_was_stopped_is_no_obstacle_to_another_one(
    run, arguments, graftmt, results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(self: Any, *given: Any, **named: Any) -> None:
        raise Stopped("asked to", 0)

    asked = ("--tables", "1", "--rows", "4")
    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "_store", stop)
        graftmt(*arguments(tmp_path, *asked))
    assert list((tmp_path / "work" / "model-4").glob("*/test/test.*.txt")), "translated, not stored"
    assert run(tmp_path, *asked, "evaluation.beam=2")["left"] == []
    assert results(tmp_path)["model-4"]["settings"]["evaluation"]["beam"] == 2
