"""Checkpoints: folders written atomically, that a run goes on from exactly. Layer 4.

`checkpoints/stage1-step00001000` holds the weights, the optimiser and `state.json`; `checkpoints/stage1-best` the best
weights of that stage.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from graftmt.base import read_tensors
from graftmt.configuration import differences
from graftmt.errors import CheckpointError, ConfigError
from graftmt.files import atomic_folder, read_json, write_json
from graftmt.training.configuration import MAY_CHANGE

FORMAT = 1
NAME = re.compile(r"stage(\d+)-step(\d+)")


@dataclass
class RunState:
    """The counters of a run: all that is needed, with the tensors, to go on as if it had never stopped."""

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


class Checkpoints:
    """The checkpoints folder of one run."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def latest(self) -> Path | None:
        """The newest whole checkpoint; unfinished ones have other names and are never seen."""
        found = sorted(self._all(), key=self._order)
        return found[-1] if found else None

    def save(
        self,
        state: RunState,
        parameters: Mapping[str, nn.Parameter],
        optimizer: torch.optim.Optimizer,
        config: Any,
        data: str,
    ) -> Path:
        """Writes a checkpoint and removes those that are too many."""
        path = self.folder / f"stage{state.stage + 1}-step{state.step:08d}"
        with atomic_folder(path) as temporary:
            save_file({name: _stored(tensor) for name, tensor in parameters.items()}, temporary / "model.safetensors")
            save_file(_optimizer_tensors(parameters, optimizer), temporary / "optimizer.safetensors")
            write_json(temporary / "state.json", {"format": FORMAT, "state": asdict(state), "config": config, "data": data})
        for old in sorted(self._all(), key=self._order)[: -self.keep]:
            shutil.rmtree(old, ignore_errors=True)
        return path

    def read_state(self, path: Path, config: Any, data: str) -> RunState:
        """The counters of a checkpoint, refused where it belongs to another configuration or other text."""
        document = read_json(path / "state.json", "the checkpoint")
        if document.get("format") != FORMAT:
            raise CheckpointError(f"{path} has format {document.get('format')!r}; this version of graftmt reads {FORMAT}.")
        changed = [line for line in differences(document["config"], config) if line.partition(":")[0] not in MAY_CHANGE]
        if changed:
            raise ConfigError(
                f"the run in {self.folder.parent} was made with another configuration ({'; '.join(changed)}). "
                "Use the configuration it began with (its config.yaml), another run folder (run=…), or --fresh to start over."
            )
        if document["data"] != data:
            raise ConfigError(
                f"the run in {self.folder.parent} was trained on other text: the files of the corpus have changed since. "
                "Restore them, use another run folder (run=…), or --fresh to start over."
            )
        return RunState(**document["state"])

    def load_parameters(self, path: Path, parameters: Mapping[str, nn.Parameter]) -> None:
        """Copies the stored weights into these parameters."""
        tensors = read_tensors(path / "model.safetensors", "the checkpoint")
        wrong = sorted(tensors.keys() ^ parameters.keys())
        wrong += [name for name in tensors.keys() & parameters.keys() if tensors[name].shape != parameters[name].shape]
        if wrong:
            raise CheckpointError(f"{path} does not fit this model: {', '.join(wrong[:5])}; it is of another configuration.")
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(tensors[name])

    def load_optimizer(self, path: Path, parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
        tensors = read_tensors(path / "optimizer.safetensors", "the checkpoint")
        for name, parameter in parameters.items():
            prefix = f"{name}/"
            keys = [key for key in tensors if key.startswith(prefix)]
            if not keys:
                raise CheckpointError(f"{path}/optimizer.safetensors has nothing for {name}; it is of another configuration.")
            optimizer.state[parameter] = {key.removeprefix(prefix): tensors[key].to(parameter.device) for key in keys}

    def best(self, stage: int) -> Path:
        """Each stage has its own, so that the next one can begin from it again if it is killed early."""
        return self.folder / f"stage{stage + 1}-best"

    def save_best(self, stage: int, parameters: Mapping[str, nn.Parameter], facts: dict[str, Any]) -> None:
        with atomic_folder(self.best(stage)) as temporary:
            save_file({name: _stored(tensor) for name, tensor in parameters.items()}, temporary / "model.safetensors")
            write_json(temporary / "best.json", facts)

    def _all(self) -> list[Path]:
        return [path for path in self.folder.glob("stage*-step*") if NAME.fullmatch(path.name)] if self.folder.is_dir() else []

    @staticmethod
    def _order(path: Path) -> tuple[int, int]:
        match = NAME.fullmatch(path.name)
        assert match is not None
        return int(match[1]), int(match[2])


def _stored(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def _optimizer_tensors(parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments under the name of the parameter they belong to."""
    return {
        f"{name}/{key}": _stored(value)
        for name, parameter in parameters.items()
        for key, value in optimizer.state[parameter].items()
    }
