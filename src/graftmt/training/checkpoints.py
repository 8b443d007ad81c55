"""Checkpoints: the counters and the tensors of a run, in folders that it resumes from exactly. Layer 4.

`checkpoints/stage1-step00001000` holds the weights, the optimiser and `state.json`; `checkpoints/stage1-best` the best
weights of that stage.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graftmt.checked import write_checksums
from graftmt.configuration import check_numbers, differences, from_mapping, to_mapping, zero_or_more
from graftmt.documents import read_json, write_json
from graftmt.errors import CheckpointError, ConfigError, GraftError
from graftmt.files import atomic_folder, sweep
from graftmt.tensor_files import read_tensors, write_tensors
from graftmt.training.run_configuration import MAY_CHANGE, RunConfig, TrainConfig
from graftmt.training.sharding import cut_like, whole
from graftmt.training.validation import ValidationConfig

NAME = re.compile(r"stage(\d+)-step(\d+)")
WAY_OUT = "use another run folder (run=…), or --fresh to start over"
"""Of `train` and `retrain`; others say their own with `way_out`."""


class CannotGoOn(CheckpointError, ConfigError):
    """A run whose checkpoints are damaged, or were begun otherwise than is asked for now.

    `problem` ends in what would let it resume, `way_out` is what can be done instead, in the words of whoever started it.
    """

    def __init__(self, problem: str, way_out: str = WAY_OUT) -> None:
        super().__init__(f"{problem}, or {way_out}.")
        self.problem = problem


@contextmanager
def way_out(words: str) -> Iterator[None]:
    """Around training: what its caller offers if a run cannot resume, such as "use another folder (--run FOLDER)"."""
    try:
        yield
    except CannotGoOn as error:
        raise CannotGoOn(error.problem, words) from None


FORMAT = 1
COUNTERS = ("stage", "step", "best_step", "without_improvement", "target_tokens", "seconds")


@dataclass
class RunState:
    """The counters of a run: all that is needed, with the tensors, to resume as if it had never stopped."""

    stage: int = 0
    step: int = 0
    """Updates done in this stage."""
    best_score: float | None = None
    best_step: int = 0
    without_improvement: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    """Spent training, over all the commands it took."""
    validations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def best_validation(self) -> dict[str, Any] | None:
        """Of the weights that are kept."""
        best = (self.stage, self.best_step)
        return next((entry for entry in self.validations if (entry.get("stage"), entry.get("step")) == best), None)


def read_state_document(path: Path) -> dict[str, Any]:
    """state.json of a checkpoint, with all its keys and these of their kinds; another format is left to the caller."""
    document = read_json(path / "state.json", "the checkpoint")
    missing = [key for key in ("format", "state", "config", "data") if key not in document]
    if document.get("format") == FORMAT and not missing:
        try:
            missing = _wrong_keys(document)
        except ConfigError as error:
            raise CheckpointError(f"the checkpoint: {path / 'state.json'} is damaged ({error}).") from None
    if missing:
        raise CheckpointError(f"the checkpoint: {path / 'state.json'} is damaged (keys {', '.join(missing)}).")
    return document


def _wrong_keys(document: Mapping[str, Any]) -> list[str]:
    state = document["state"]
    kinds = {"state": dict, "config": dict, "data": str, "marks": dict}
    wrong = [key for key, kind in kinds.items() if not isinstance(document.get(key, kind()), kind)]
    if wrong:
        return wrong
    if missing := sorted({field.name for field in fields(RunState)} ^ state.keys()):
        return missing
    found = from_mapping(RunState, state, "state")
    check_numbers(found, "at least 0", zero_or_more, *COUNTERS)
    stages = document["config"].get("stages")
    if isinstance(stages, list) and 0 < len(stages) <= found.stage:
        return ["state.stage"]
    return [f"state.validations.{number}" for number, entry in enumerate(found.validations) if not is_validation(entry)]


def is_validation(entry: Mapping[str, Any]) -> bool:
    """Whether a validation names its step; scores are numbers, or mappings of such."""
    placed = all(type(entry.get(key, 0)) is int for key in ("stage", "step"))
    watched = entry.get("watched", {})
    figures = [entry.get("loss", 0), entry.get("chrf", 0), *(watched.values() if isinstance(watched, Mapping) else ["damaged"])]
    directions = entry.get("directions", {})
    return placed and all(isinstance(one, int | float) for one in figures) and isinstance(directions, Mapping)


class Checkpoints:
    """The checkpoints folder of one run, whose configuration is a `kind`.

    Of several processes only the first `writes`; the others take part in saving by handing over what they hold.
    """

    def __init__(self, folder: Path, keep: int, kind: type[RunConfig] = TrainConfig, *, writes: bool = True) -> None:
        self.folder, self.keep, self.kind, self.writes = folder, keep, kind, writes

    def latest(self) -> Path | None:
        """The newest whole checkpoint; unfinished ones have other names and are never seen."""
        return next(iter(self.newest_first()), None)

    def newest_first(self) -> list[Path]:
        """All checkpoints but the best ones, whole or damaged."""
        return sorted(self._all(), key=self._order, reverse=True)

    def sweep(self) -> None:
        """Removes what a kill left half written, and brings back what was to be replaced; a run does so before all else."""
        sweep(self.folder)

    def save(
        self,
        state: RunState,
        parameters: Mapping[str, nn.Parameter],
        optimizer: torch.optim.Optimizer,
        config: Any,
        data: str,
        marks: Mapping[str, str] | None = None,
    ) -> Path:
        """Writes a checkpoint and removes those that are too many."""
        path = self.folder / f"stage{state.stage + 1}-step{state.step:08d}"
        weights, moments = self._stored(parameters), self._stored(_optimizer_tensors(parameters, optimizer))
        if not self.writes:
            return path
        with atomic_folder(path) as temporary:
            write_tensors(temporary / "model.safetensors", weights)
            write_tensors(temporary / "optimizer.safetensors", moments)
            document = {"format": FORMAT, "state": asdict(state), "config": config, "data": data, "marks": dict(marks or {})}
            write_json(temporary / "state.json", document)
            write_checksums(temporary)
        for old in self.newest_first()[self.keep :]:
            shutil.rmtree(old, ignore_errors=True)
        return path

    def read_document(self, path: Path) -> dict[str, Any]:
        """state.json of a checkpoint: `state`, `config` and `data`; where it is damaged, the error says how to resume."""
        with self._going_on(path):
            document = read_state_document(path)
        if document["format"] != FORMAT:
            raise CheckpointError(f"{path} has format {document['format']!r}; this version of graftmt reads {FORMAT}.")
        return document

    def read_state(self, path: Path, config: Any, data: str, marks: Mapping[str, str] | None = None) -> RunState:
        """The counters of a checkpoint, refused where it belongs to another configuration, or to other `data`.

        `marks`: what that comes from besides text, by the names that people know it by, such as base.
        """
        document = self.read_document(path)
        stored = as_today(document["config"], self.kind)
        # Stages that have not begun may still be planned anew.
        ahead = tuple(f"stages.{number}." for number in range(document["state"]["stage"] + 1, len(config["stages"])))
        changed = [
            line
            for line in differences(stored, config)
            if line.partition(":")[0] not in MAY_CHANGE and not line.startswith(ahead)
        ]
        if changed:
            raise CannotGoOn(
                f"the run in {self.folder.parent} was made with another configuration ({'; '.join(changed)}). "
                "Use the configuration it began with (its config.yaml)"
            )
        if document["data"] != data:
            raise CannotGoOn(f"the run in {self.folder.parent} {_other_data(document.get('marks'), marks or {})}")
        return RunState(**document["state"])

    def load_parameters(self, path: Path, parameters: Mapping[str, nn.Parameter]) -> None:
        """Copies the stored weights into these parameters."""
        with self._going_on(path):
            tensors = read_tensors(path / "model.safetensors", "the checkpoint")
        wrong = sorted(tensors.keys() ^ parameters.keys())
        wrong += [name for name in tensors.keys() & parameters.keys() if tensors[name].shape != parameters[name].shape]
        if wrong:
            raise CheckpointError(f"{path} does not fit this model: {', '.join(wrong[:5])}; it is of another configuration.")
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(cut_like(parameter, tensors[name]))

    def load_optimizer(self, path: Path, parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
        """Gives each parameter its moments again; one that has not had a gradient yet has none."""
        with self._going_on(path):
            tensors = read_tensors(path / "optimizer.safetensors", "the checkpoint")
        unknown = sorted({key.rpartition("/")[0] for key in tensors} - parameters.keys())
        if unknown:
            raise CheckpointError(
                f"{path}/optimizer.safetensors does not fit this model, which has no {', '.join(unknown[:5])}; it is of "
                "another configuration."
            )
        for key, tensor in tensors.items():
            name, _, kind = key.rpartition("/")
            optimizer.state[parameters[name]][kind] = cut_like(parameters[name], tensor)

    def best(self, stage: int) -> Path:
        """Each stage has its own, so that the next one can begin from it again if it is killed early."""
        return self.folder / f"stage{stage + 1}-best"

    def read_best(self, stage: int) -> dict[str, Any]:
        """The validation of the weights that are stored as the best."""
        with self._going_on(self.best(stage)):
            return read_best_document(self.best(stage))

    def adopt_best(self, state: RunState, options: ValidationConfig) -> None:
        """A run that resumes from before its best was stored, such as after a kill, has that one and no other."""
        if state.best_score is None or not self.best(state.stage).is_dir():
            return  # what may be stored is of an earlier try, and the next validation replaces it
        best = self.read_best(state.stage)
        if best["step"] != state.best_step:
            try:
                score = options.score(best)
            except (KeyError, TypeError):
                raise self.advised(
                    self.best(state.stage), CheckpointError(f"{self.best(state.stage)}/best.json lacks the scores.")
                ) from None
            state.best_score, state.best_step, state.without_improvement = score, best["step"], 0

    def save_best(self, stage: int, parameters: Mapping[str, nn.Parameter], facts: dict[str, Any]) -> None:
        weights = self._stored(parameters)
        if not self.writes:
            return
        with atomic_folder(self.best(stage)) as temporary:
            write_tensors(temporary / "model.safetensors", weights)
            write_json(temporary / "best.json", facts)
            write_checksums(temporary)

    def _stored(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Whole and in host memory, one after the other; nothing in a process that does not write."""
        stored = {}
        for name, tensor in tensors.items():
            full = whole(tensor)
            if self.writes:
                stored[name] = full.cpu().contiguous()
        return stored

    @contextmanager
    def _going_on(self, path: Path) -> Iterator[None]:
        """Adds to the error about a file of `path` how the run can resume; nothing is deleted here."""
        try:
            yield
        except GraftError as error:
            raise self.advised(path, error) from None

    def advised(self, path: Path, error: GraftError) -> CannotGoOn:
        """The error about a file of `path`, with what would let the run resume."""
        if not NAME.fullmatch(path.name):
            return CannotGoOn(f"{error} The run cannot resume without {path}: restore it from a copy")
        return CannotGoOn(f"{error} Restore {path} from a copy")

    def _all(self) -> list[Path]:
        return [path for path in self.folder.glob("stage*-step*") if NAME.fullmatch(path.name)] if self.folder.is_dir() else []

    @staticmethod
    def _order(path: Path) -> tuple[int, int]:
        match = NAME.fullmatch(path.name)
        assert match is not None
        return int(match[1]), int(match[2])


def read_best_document(path: Path) -> dict[str, Any]:
    """best.json of a best checkpoint: the validation of its weights."""
    found = read_json(path / "best.json", "the best checkpoint")
    if type(found.get("step")) is not int or not is_validation(found):
        raise CheckpointError(f"the best checkpoint: {path / 'best.json'} is damaged (its scores are none).")
    return found


def _other_data(then: Mapping[str, str] | None, now: Mapping[str, str]) -> str:
    """What has changed of that which a run takes as given. Checkpoints of earlier versions have no marks to tell it by."""
    if then is None and now:
        return f"was begun with other text or another {' or '.join(now)} than is given now. Give the same again"
    for name, mark in now.items():
        if then is not None and then.get(name, mark) != mark:
            return f"was begun with another {name} ({then[name] or 'none'}, not {mark or 'none'}). Give the same {name}"
    return "was trained on other text: the files of the corpus have changed since. Restore them"


def _optimizer_tensors(parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments under the name of the parameter they belong to."""
    return {
        f"{name}/{key}": value for name, parameter in parameters.items() for key, value in optimizer.state[parameter].items()
    }


def as_today(config: Any, kind: type[RunConfig]) -> Any:
    """A stored configuration with the keys that later versions added; one that no longer makes sense is compared as it is."""
    try:
        return to_mapping(from_mapping(kind, config))
    except ConfigError:
        return config
