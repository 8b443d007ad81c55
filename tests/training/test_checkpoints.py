"""Checkpoints that are damaged, of another run, or do not fit on the disk: clear errors, nothing lost, a way to go on."""

from __future__ import annotations

import json
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.errors import CheckpointError, ConfigError, GraftError
from graftmt.training.checkpoints import Checkpoints, RunState, way_out
from graftmt.training.journal import Journal
from graftmt.training.validation import ValidationConfig

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def listing(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}


def flip(path: Path) -> None:
    """Damage of the same length, in the middle of the file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


DAMAGE = {"half": truncate, "empty": lambda path: path.write_bytes(b""), "gone": Path.unlink, "flipped": flip}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("file", FILES)
def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one_and_names_both(
    stopped_copy: Path, short_config, train, file: str, damage: Callable[[Path], object]
) -> None:
    latest, previous = "stage1-step00000012", "stage1-step00000010"
    damaged = stopped_copy / "checkpoints" / latest
    damage(damaged / file)
    before = listing(damaged)
    said = train(short_config(stopped_copy), minutes=0)
    assert f"{latest}/{file}" in said[0] and f"damaged-1-{latest}" in said[0]
    assert f"resuming at {previous}" in said
    assert listing(stopped_copy / "checkpoints" / f"damaged-1-{latest}") == before  # kept, under another name


def test_past_a_damaged_checkpoint_the_run_ends_as_if_nothing_had_happened(
    stopped_copy: Path, short_config, train, same_result: Callable[[Path], None]
) -> None:
    flip(stopped_copy / "checkpoints" / "stage1-step00000012" / "optimizer.safetensors")
    assert "resuming at stage1-step00000010" in train(short_config(stopped_copy))
    shutil.rmtree(stopped_copy / "checkpoints" / "damaged-1-stage1-step00000012")
    same_result(stopped_copy)


def test_without_a_whole_checkpoint_the_run_does_not_start_over_unasked(stopped_copy: Path, short_config, train) -> None:
    for step in (10, 12):
        truncate(stopped_copy / "checkpoints" / f"stage1-step{step:08d}" / "model.safetensors")
    before = listing(stopped_copy / "checkpoints")
    with pytest.raises(CheckpointError, match=r"no earlier checkpoint: restore \S+stage1-step00000012 .* --fresh"):
        train(short_config(stopped_copy))
    assert listing(stopped_copy / "checkpoints") == before


@pytest.mark.slow
def test_checkpoints_of_earlier_versions_have_no_checksums_and_are_read(
    stopped_copy: Path, short_config, train, same_result: Callable[[Path], None]
) -> None:
    for path in stopped_copy.glob("checkpoints/*/checksums.json"):
        path.unlink()
    (stopped_copy / "run.json").unlink()
    assert "resuming at stage1-step00000012" in train(short_config(stopped_copy))
    same_result(stopped_copy)


BEST_DAMAGE = {
    "flipped": lambda best: flip(best / "model.safetensors"),
    "other scores": lambda best: flip(best / "best.json"),
    "gone": shutil.rmtree,
    "a file": lambda best: (shutil.rmtree(best), best.write_bytes(b"x")),
}


@pytest.mark.parametrize("damage", BEST_DAMAGE.values(), ids=BEST_DAMAGE)
def test_damaged_best_weights_are_taken_from_the_checkpoint_of_the_same_step(
    tmp_path: Path, uninterrupted: Path, short_config, train, same_result, damage: Callable[[Path], object]
) -> None:
    run = Path(shutil.copytree(uninterrupted, tmp_path / "run"))
    best = run / "checkpoints" / "stage2-best"
    sound = {path.name: path.read_bytes() for path in best.iterdir()}
    damage(best)
    shutil.rmtree(run / "base")
    said = train(short_config(run))
    assert "stage2-best" in said[0] and "made again from stage2-step00000040" in said[0]
    assert {path.name: path.read_bytes() for path in best.iterdir()} == sound
    same_result(run)


@pytest.mark.slow
def test_damaged_best_weights_are_made_again_from_a_checkpoint_before_them(
    tmp_path: Path, short_config, train, stopping_after, same_result: Callable[[Path], None]
) -> None:
    """They are of step 16, and there are checkpoints of steps 15 and 17."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", stopping_after(17))
        train(short_config(tmp_path / "run"))
    checkpoints = tmp_path / "run" / "checkpoints"
    assert json.loads((checkpoints / "stage1-best" / "best.json").read_bytes())["step"] == 16
    flip(checkpoints / "stage1-best" / "model.safetensors")
    said = train(short_config(tmp_path / "run"))
    assert "stage1-best/model.safetensors is truncated or damaged" in said[0] and "damaged-1-stage1-best" in said[0]
    assert "resuming at stage1-step00000015" in said
    assert (checkpoints / "later-1-stage1-step00000017").is_dir()
    same_result(tmp_path / "run")


@pytest.mark.slow
def test_damaged_best_weights_are_made_again_from_the_end_of_the_stage_before(
    tmp_path: Path, short_config, train, stopping_after, same_result: Callable[[Path], None]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", stopping_after(9, "second"))
        train(short_config(tmp_path / "run", "keep_checkpoints=3"))
    checkpoints = tmp_path / "run" / "checkpoints"
    shutil.rmtree(checkpoints / "stage2-step00000005")
    flip(checkpoints / "stage2-best" / "model.safetensors")
    assert "resuming at stage1-step00000024" in train(short_config(tmp_path / "run"))
    same_result(tmp_path / "run")


def test_best_weights_that_no_checkpoint_comes_before_are_an_error(stopped_copy: Path, short_config, train) -> None:
    """They are of step 8, and the checkpoints are of steps 10 and 12."""
    flip(stopped_copy / "checkpoints" / "stage1-best" / "model.safetensors")
    before = listing(stopped_copy / "checkpoints")
    with pytest.raises(CheckpointError, match=r"stage1-best/model\.safetensors is truncated or damaged .* --fresh"):
        train(short_config(stopped_copy))
    assert listing(stopped_copy / "checkpoints") == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda document: document["state"].pop("target_tokens"), "target_tokens"),
        (lambda document: document.update(state=[]), "state"),
        (lambda document: document.update(config="no"), "config"),
        (lambda document: document.update(data=7), "data"),
        (lambda document: document["state"].update(step=-1), "step"),
        (lambda document: document["state"].update(step="12"), "state.step"),
        (lambda document: document["state"].update(stage=9), "state.stage"),
        (lambda document: document["state"].update(validations={}), "validations"),
        (lambda document: document["state"].update(validations=[7]), "validations"),
        (lambda document: document["state"].update(validations=[{"stage": 0, "step": 8, "watched": 7}]), "validations"),
    ],
)
def test_a_state_that_cannot_be_is_damaged_also_without_checksums(
    stopped_copy: Path, short_config, train, change: Callable[[dict[str, Any]], object], named: str
) -> None:
    path = stopped_copy / "checkpoints" / "stage1-step00000012" / "state.json"
    (path.parent / "checksums.json").unlink()
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    said = train(short_config(stopped_copy), minutes=0)
    assert "stage1-step00000012/state.json is damaged" in said[0] and named in said[0]
    assert "resuming at stage1-step00000010" in said


def test_another_configuration_is_refused_with_what_differs(stopped_copy: Path, short_config, train) -> None:
    before = {path: path.read_bytes() for path in stopped_copy.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError) as caught:
        train(short_config(stopped_copy, "seed=2", "stages.0.learning_rate=0.02", "log_every=7"))
    message = str(caught.value)
    assert "seed: 1 then, 2 now" in message
    assert "stages.0.learning_rate: 0.005 then, 0.02 now" in message
    assert "log_every" not in message  # it may change
    assert "--fresh" in message
    assert {path: path.read_bytes() for path in stopped_copy.rglob("*") if path.is_file()} == before


def test_what_does_not_decide_the_result_may_change(
    stopped_copy: Path, short_config, train, uninterrupted: Path, toy_corpus: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(toy_corpus, tmp_path / "moved")
    train(short_config(stopped_copy, f"data.corpus={moved}", "checkpoint_every=7", "keep_checkpoints=1", "log_every=9"))
    for file in ("model.safetensors", "subwords.model"):
        assert (stopped_copy / "base" / file).read_bytes() == (uninterrupted / "base" / file).read_bytes()
    assert len(list((stopped_copy / "checkpoints").glob("stage*-step*"))) == 1


def test_a_stage_that_has_not_begun_may_be_planned_anew(stopped_copy: Path, short_config, train) -> None:
    train(short_config(stopped_copy, "stages.1.steps=3", "stages.1.learning_rate=0.02"))
    assert (stopped_copy / "checkpoints" / "stage2-step00000003").is_dir()
    with pytest.raises(ConfigError, match=r"stages\.1\.steps: 3 then, 40 now"):
        train(short_config(stopped_copy, "stages.1.learning_rate=0.02"))


@pytest.mark.parametrize("split", ["train", "valid"])
def test_other_text_is_refused(stopped_copy: Path, short_config, train, toy_corpus: Path, tmp_path: Path, split: str) -> None:
    corpus = Path(shutil.copytree(toy_corpus, tmp_path / "corpus"))
    changed = corpus / f"{split}.xb.txt"
    words = changed.read_text(encoding="utf-8").split(" ")
    changed.write_text(" ".join([words[1], *words[1:]]), encoding="utf-8")
    with pytest.raises(ConfigError, match="trained on other text"):
        train(short_config(stopped_copy, f"data.corpus={corpus}"))
    assert (stopped_copy / "checkpoints" / "stage1-step00000012" / "state.json").is_file()


def test_who_starts_a_run_says_what_its_way_out_is_called(stopped_copy: Path, short_config, train) -> None:
    with pytest.raises(ConfigError, match=r"run=….*--fresh"):
        train(short_config(stopped_copy, "seed=2"))
    with pytest.raises(ConfigError, match=r"\(its config\.yaml\), or delete it\.$") as caught, way_out("delete it"):
        train(short_config(stopped_copy, "seed=2"))
    assert "run=" not in str(caught.value) and "--fresh" not in str(caught.value)
    for checkpoint in (stopped_copy / "checkpoints").glob("stage1-step*"):
        truncate(checkpoint / "state.json")
    with pytest.raises(CheckpointError, match=r"from a copy, or delete it\.$"), way_out("delete it"):
        train(short_config(stopped_copy))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """For this process, the disk is full once a file has so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
@pytest.mark.parametrize("full_at", ["model", "optimizer"])
def test_a_full_disk_leaves_the_checkpoint_before_and_the_run_goes_on_from_it(
    stopped_copy: Path, short_config, train, same_result: Callable[[Path], None], full_at: str
) -> None:
    latest = stopped_copy / "checkpoints" / "stage1-step00000012"
    size = (latest / "model.safetensors").stat().st_size
    before = listing(latest)
    limit = size // 2 if full_at == "model" else size + 1000
    with largest_file(limit), pytest.raises(GraftError, match=r"could not write \S+.*[Ff]ile too large"):
        train(short_config(stopped_copy, "validation.translate=true"))
    assert listing(latest) == before
    assert not list((stopped_copy / "checkpoints").glob(".*"))
    train(short_config(stopped_copy))
    same_result(stopped_copy)


def test_a_full_disk_under_the_log_is_an_error_that_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path, tensorboard=False, resume_at=None)
    with largest_file(200), pytest.raises(GraftError, match=r"could not write to \S+log\.jsonl.*File too large"):
        for step in range(100):
            journal.write("train", 0, step, loss=1.0)
    with largest_file(200):
        journal.close()


@pytest.fixture
def small() -> tuple[dict[str, torch.nn.Parameter], torch.optim.Optimizer]:
    """One parameter with an optimiser that has made a step."""
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.Adam([parameter])
    parameter.sum().backward()
    optimizer.step()
    return {"weight": parameter}, optimizer


def test_the_newest_checkpoints_are_kept_and_stages_count_before_steps(tmp_path: Path, small) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    for stage, step in [(0, 5), (0, 100), (1, 3), (1, 20)]:
        checkpoints.save(RunState(stage=stage, step=step), *small, {}, "")
        assert checkpoints.latest() == tmp_path / f"stage{stage + 1}-step{step:08d}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stage2-step00000003", "stage2-step00000020"]


class Killed(BaseException):
    """In place of a kill: nothing is saved, and with `killed` nothing tidied up."""


@contextmanager
def killed(monkeypatch: pytest.MonkeyPatch, moment: str, when: Callable[..., bool]) -> Iterator[None]:
    """As a kill would, the block ends at the first call of `moment` of which `when` is true."""
    module, _, name = moment.rpartition(".")
    real = getattr(sys.modules[module], name)

    def call(*arguments: Any) -> Any:
        if when(*arguments):
            raise Killed
        return real(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(moment, call)
        patch.setattr("graftmt.files._clear", lambda place, path: None)
        yield


def test_a_half_written_checkpoint_is_never_seen_and_swept_up(tmp_path: Path, small, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(RunState(step=5), *small, {}, "")
    with killed(monkeypatch, "os.replace", lambda source, target: Path(source).name == "new"):
        checkpoints.save(RunState(step=10), *small, {}, "")
    assert len(list(tmp_path.iterdir())) == 2
    assert checkpoints.latest() == tmp_path / "stage1-step00000005"
    checkpoints.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["stage1-step00000005"]


def test_a_best_that_had_stepped_aside_when_its_process_was_killed_comes_back(
    tmp_path: Path, small, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save_best(0, small[0], {"step": 1000})
    with killed(monkeypatch, "os.replace", lambda source, target: (Path(source).parent / "old").exists()):
        checkpoints.save_best(0, small[0], {"step": 2000})
    assert not checkpoints.best(0).exists()
    checkpoints.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["stage1-best"]
    assert checkpoints.read_best(0) == {"step": 1000}


@pytest.mark.parametrize(
    ("score", "step", "adopted"),
    [(-5.0, 10, (-4.0, 18)), (-3.0, 20, (-4.0, 18)), (-4.1, 18, (-4.1, 18)), (None, 0, (None, 0))],
    ids=["of an earlier one", "of a later one", "of this one", "none yet"],
)
def test_the_best_of_a_run_that_goes_on_is_the_one_that_is_stored(
    tmp_path: Path, small, score: float | None, step: int, adopted: tuple[float | None, int]
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    state = RunState(step=17, best_score=score, best_step=step)
    checkpoints.adopt_best(state, ValidationConfig())  # nothing is stored
    assert (state.best_score, state.best_step) == (score, step)
    checkpoints.save_best(0, small[0], {"step": 18, "loss": 4.0})
    checkpoints.adopt_best(state, ValidationConfig())
    assert (state.best_score, state.best_step) == adopted


def test_a_checkpoint_gives_back_the_very_bits(tmp_path: Path, small) -> None:
    parameters, optimizer = small
    state = RunState(stage=1, step=7, best_score=-0.1, seconds=1.5, validations=[{"loss": 0.1}])
    checkpoints = Checkpoints(tmp_path, keep=2)
    config = {"seed": 1, "stages": []}
    path = checkpoints.save(state, parameters, optimizer, config, "text")
    assert checkpoints.read_state(path, config, "text") == state

    fresh = {"weight": torch.nn.Parameter(torch.zeros(4))}
    new = torch.optim.Adam(fresh.values())
    checkpoints.load_parameters(path, fresh)
    checkpoints.load_optimizer(path, fresh, new)
    assert torch.equal(fresh["weight"], parameters["weight"])
    stored, given = optimizer.state[parameters["weight"]], new.state[fresh["weight"]]
    assert stored.keys() == given.keys()
    assert all(torch.equal(stored[key], given[key]) for key in stored)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path, small) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    path = checkpoints.save(RunState(step=5), *small, {}, "")
    for other in ({"bias": torch.nn.Parameter(torch.zeros(4))}, {"weight": torch.nn.Parameter(torch.zeros(5))}):
        with pytest.raises(CheckpointError, match="does not fit this model"):
            checkpoints.load_parameters(path, other)
    other = {"bias": torch.nn.Parameter(torch.zeros(4))}
    with pytest.raises(CheckpointError, match="which has no weight"):
        checkpoints.load_optimizer(path, other, torch.optim.Adam(other.values()))


def test_a_checkpoint_of_a_newer_format_is_refused(tmp_path: Path, small) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    path = checkpoints.save(RunState(step=5), *small, {}, "")
    document = json.loads((path / "state.json").read_text(encoding="utf-8"))
    (path / "state.json").write_text(json.dumps({**document, "format": 99}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="has format 99"):
        checkpoints.read_state(path, {}, "")
