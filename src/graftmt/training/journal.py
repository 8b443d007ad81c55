"""What a run writes down while it goes: a log of losses, scores and pace, TensorBoard, and curves of the log. Layer 4."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from graftmt.data import Batch, PackedBatch
from graftmt.documents import parse_json
from graftmt.errors import GraftError
from graftmt.evaluation import plot_curves
from graftmt.files import read_limited, write_text
from graftmt.folders import check_watched, could_not_write, make_folder
from graftmt.places import FILES, check_place
from graftmt.training.checkpoints import RunState

OnStep: TypeAlias = Callable[[dict[str, Any]], None]
"""Hears each event of a run as it is written down: {"event": "train", "stage": 0, "step": 50, "loss": 4.2, …}."""


class Journal:
    """`log.jsonl`, one event a line, and TensorBoard next to it. A resumed run forgets what it will do again."""

    def __init__(
        self,
        folder: Path,
        *,
        tensorboard: bool,
        resume_at: tuple[int, int] | None,
        silent: bool = False,
        on_step: OnStep | None = None,
    ) -> None:
        """`silent`: writes nothing, for all but the first of several processes."""
        self.path = folder / "log.jsonl"
        self.on_step = on_step
        self.writer: Any = None
        self.handle: Any = None
        self.note = ""
        if silent:
            return
        make_folder(self.path.parent)
        # Always a new file: a link or a pipe of this name may lead anywhere, or be waited for without end.
        before = read_log(self.path) if resume_at is not None and self.path.is_file() else []
        kept = [event for event in before if resume_at is not None and (event["stage"], event["step"]) <= resume_at]
        write_text(self.path, "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in kept))
        try:
            self.handle = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise could_not_write(self.path, error) from error
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter

                self.writer = SummaryWriter(str(folder / "tensorboard"))
            except ImportError:
                self.note = "TensorBoard is not installed (pip install 'graftmt[plots]'): curves go to log.jsonl only."

    def write(self, event: str, stage: int, step: int, **values: Any) -> None:
        if self.handle is None:
            return
        check_watched(self.path)
        record = {"event": event, "stage": stage, "step": step, **values}
        if self.on_step is not None:
            self.on_step(record)
        try:
            self.handle.write(json.dumps(record, ensure_ascii=False) + "\n")
            self.handle.flush()
            if self.writer is not None:
                for name, value in values.items():
                    if isinstance(value, int | float):
                        self.writer.add_scalar(f"stage{stage + 1}/{event}/{name}", value, step)
        except OSError as error:
            raise GraftError(
                f"could not write to {self.path} or the TensorBoard files next to it: {error.strerror or error}. "
                "Free some space, then rerun the command: it resumes at the last checkpoint."
            ) from error

    def close(self) -> None:
        # What could not be written was an error before; closing tries once more, and must not hide that error.
        with suppress(OSError):
            if self.handle is not None:
                self.handle.close()
        with suppress(OSError):
            if self.writer is not None:
                self.writer.close()


LARGEST_LOG = 64 * 2**20
"""Bytes: some hundred thousand events."""


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a log; a last line cut off by a kill is left out, and so are lines that are damaged."""
    try:
        lines = read_limited(path, LARGEST_LOG).splitlines()
    except ValueError as error:
        raise GraftError(f"the log {path} cannot be read: {error}.") from None
    except OSError as error:
        raise GraftError(f"the log {path} cannot be read: {error.strerror}.") from None
    events = []
    for line in lines:
        try:
            event = parse_json(line)
        except ValueError:
            continue
        if is_event(event):
            events.append(event)
    return events


def is_event(event: Any) -> bool:
    """Whether it has a name, a stage and a step; losses and scores are numbers."""
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return False
    if not all(type(event.get(key)) is int and event[key] >= 0 for key in ("stage", "step")):
        return False
    figures = [value for key, value in event.items() if key in ("loss", "bleu", "chrf") or key.endswith(("/bleu", "/chrf"))]
    return all(type(value) in (int, float) for value in figures)


class Pace:
    """How fast it goes: tokens and padding since the last log, validation and saving left out."""

    def __init__(self, state: RunState) -> None:
        self.before, self.started = state.seconds, time.monotonic()
        self._reset()

    def _reset(self) -> None:
        self.since, self.target, self.source, self.padded, self.waited = time.monotonic(), 0, 0, 0, 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around the wait for data: what it takes is no good to anyone."""
        started = time.monotonic()
        yield
        self.waited += time.monotonic() - started

    def count(self, update: Sequence[Batch | PackedBatch]) -> None:
        for batch in update:
            self.target += batch.target_tokens
            self.source += batch.source_tokens
            self.padded += batch.size

    def exclude(self, seconds: float) -> None:
        self.since += seconds

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started

    def rates(self, state: RunState) -> dict[str, float]:
        elapsed = max(1e-9, time.monotonic() - self.since)
        rates = {
            "target_tokens_per_second": self.target / elapsed,
            "padding_share": 1 - (self.target + self.source) / max(1, self.padded),
            "waiting_for_data": self.waited / elapsed,
            "seconds": self.seconds(),
            "target_tokens": state.target_tokens,
        }
        self._reset()
        return rates


def draw_if_possible(folder: Path) -> None:
    """loss.png and chrf.png in the run's folder, where matplotlib is installed and something was logged."""
    if find_spec("matplotlib") is not None and (folder / "log.jsonl").is_file():
        plot_run(folder, folder)


def plot_run(folder: Path, output: Path) -> list[Path]:
    """The run's log as curves; the updates of later stages are counted on from those before."""
    log = folder / "log.jsonl"
    if not log.is_file():
        raise GraftError(f"{folder} has no log.jsonl to plot; --plot takes the folder of a run (train, add).")
    check_place(output, FILES)
    events = read_log(log)
    lengths: dict[int, int] = {}
    for event in events:
        lengths[event["stage"]] = max(lengths.get(event["stage"], 0), event["step"])

    def curve(kind: str, name: str) -> list[tuple[float, float]]:
        chosen = [event for event in events if event["event"] == kind and name in event]
        return [(sum(lengths.get(s, 0) for s in range(e["stage"])) + e["step"], e[name]) for e in chosen]

    losses = {"training": curve("train", "loss"), "validation": curve("validation", "loss")}
    plot_curves(output / "loss.png", losses, title="Loss", x_label="update", y_label="label-smoothed loss")
    names = sorted({name for event in events if event["event"] == "validation" for name in event if name.endswith("/chrf")})
    if not names:
        return [output / "loss.png"]
    scores = {name.removesuffix("/chrf"): curve("validation", name) for name in names}
    plot_curves(output / "chrf.png", scores, title="Validation chrF, greedy", x_label="update", y_label="chrF")
    return [output / "loss.png", output / "chrf.png"]
