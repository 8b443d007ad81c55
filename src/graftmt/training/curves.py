"""The curves of a run as figures: losses, and scores of what was validated. Layer 4."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from graftmt.errors import GraftError
from graftmt.evaluation import plot_curves
from graftmt.places import FILES, check_place
from graftmt.training.journal import read_log


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
