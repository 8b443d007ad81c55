"""Options that nobody means: numbers out of range, names that are none, files and folders of somebody else."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import yaml

from robustness.cases import MOST_MEMORY, Attack, Finding, Tally, commands_of_terminals
from robustness.documents import EVIL
from robustness.isolation import Outcome, command_line, run_isolated
from robustness.leavings import snapshot
from robustness.members import make_device
from robustness.values import INTEGERS, NUMBERS, OVERRIDE_VALUES, OVERRIDES, PATHS, TEXTS
from robustness.world import QUICK_ADD, World, surroundings, work_arguments

Say = Callable[[str], None]
PATIENCE = 60.0
LEFT_OUT = {"processes", "workers", "ray", "ray_address", "engine", "debug", "help", "version", "host"}
"""Options that start programs, ask other machines, or say nothing of robustness."""


class Arguments:
    """Runs sound commands with one argument changed, beside folders that are somebody's own."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.inside, self.outside = folder / "one" / "two" / "case", folder / "outside"
        self.sound_memory: int | None = None

    def run(self, seed: int, number: int, say: Say) -> Tally:
        case = f"arguments:{seed}:{number}"
        chance = Random(case)
        self.place()
        name, arguments = chance.choice(list(self.commands().items()))
        changed, damage = self._change(chance, name, arguments)
        allowed = (self.inside / "output", self.inside / "cache", self.inside / "runs")
        before = snapshot(self.folder, allowed)
        outcome = run_isolated(
            command_line(*changed), stdin=b"bada kofe\n", timeout=PATIENCE, environment=self.environment(), folder=self.inside
        )
        after = snapshot(self.folder, allowed)
        say(
            f"graftmt {' '.join(map(repr, changed))}: {outcome.code}\n{outcome.stdout.decode(errors='replace')}{outcome.stderr}"
        )
        tally = Tally(cases=1, runs=1, accepted=outcome.code == 0, refused=outcome.code != 0)
        # What was there stays as it is; a new file with a name that was asked for is in order.
        lost = sorted(name for name, mark in before.items() if after.get(name) != mark)
        new = after.keys() - before.keys()
        lost += sorted(name for name in new if name.startswith(str(self.outside)) and not self._is_asked_for(name, damage))
        self._judge(case, name, damage, outcome, lost, tally)
        return tally

    def _judge(self, case: str, name: str, damage: str, outcome: Outcome, lost: list[str], tally: Tally) -> None:
        def found(problem: str, signature: str, details: str = "") -> None:
            told = details or outcome.stderr[-3000:]
            tally.findings.append(Finding(problem, case, name, damage, name, signature, told))

        if outcome.timed_out:
            if not re.search(r"\d{6}", damage):  # who asks for a billion lines gets them
                found("no end", f"{name} with {damage[:80]}")
        elif outcome.crashed:
            found("signal" if outcome.code < 0 else "traceback", outcome.signature)
        if lost:
            found(
                "outside",
                f"{name} with {damage[:60]} changes {', '.join(str(Path(one).relative_to(self.folder)) for one in lost[:3])}",
            )
        if self.sound_memory is None:
            self.sound_memory = Attack(self.world, self.folder / "memory").sound_memory
        over = outcome.memory - self.sound_memory
        if outcome.code in (1, 2):
            tally.memory = max(0, over)
            if over > MOST_MEMORY:
                found("memory", f"{name} with {damage[:80]}", f"{over >> 20} MB more")
        if shown := commands_of_terminals(outcome, self.inside):
            found("control characters", f"{name} with {damage[:60]}", shown)

    def commands(self) -> dict[str, list[str]]:
        """Sound ones, short, by the names of their verbs."""
        short = ["--beam", "1", "--max-length", "6", "--device", "cpu"]
        output = Path("output")
        found = {name: work_arguments(self.world, name, output) for name in ("train", "retrain", "add", "augment", "evaluate")}
        for name in ("train", "retrain", "add"):
            found[name] += ["--minutes", "0.01"]
        found["translate"] = ["translate", "-b", "base", "-s", "en", "-t", "fr", *short]
        found["translate files"] = work_arguments(self.world, "translate", output)
        found["translate packs"] = ["translate", "-b", "base", "-p", "pack", "-s", "el", "-t", "fr", *short]
        found["verify"] = ["verify", "-b", "base", "-p", "pack", "-n", "1", "--beam", "1"]
        found["inspect"] = ["inspect", "base"]
        found["compare"] = [
            "compare",
            str(self.world / "evaluate/scores"),
            str(self.world / "evaluate/scores"),
            "-n",
            "5",
            "-q",
        ]
        found["recipes"] = ["recipes"]
        found |= self._shared()
        found["stats"] = ["prepare", "stats", "corpus", "-q"]
        found["clean"] = ["prepare", "clean", "corpus", "-o", "output/clean", "-q", "--no-language-id"]
        found["split"] = ["prepare", "split", "corpus", "-o", "output/split", "--valid", "4", "--test", "4", "-q"]
        found["list"] = ["experiment", "list", "demo", "--output", str(self.world / "experiment/experiments"), "--tables", "4"]
        found["report"] = [
            "experiment",
            "report",
            "demo",
            "--results",
            str(self.world / "experiment/experiments"),
            "-o",
            "output/report",
            "-f",
            "none",
        ]
        found["check"] = ["experiment", "check", str(self.world / "published/page.md"), "-q", "--recompute"]
        found["dry-run"] = [*work_arguments(self.world, "experiment", output), "--dry-run"]
        return found

    def _shared(self) -> dict[str, list[str]]:
        """Those that exchange models with others."""
        return {
            "import": ["import", str(self.world / "foreign-m2m-100"), "-o", "output/imported", "-q"],
            "export": [
                *("export", "-b", "base", "-p", "pack", "-s", "el", "-t", "fr"),
                *("--to", "hugging-face", "-o", "output/exported", "-q"),
            ],
            "push": ["push", "pack", "output/shop", "-q"],
            "pull": ["pull", str(self.world / "shop"), "el-source", "-o", "output/pulled", "-q"],
            "packs list": ["packs", "list", str(self.world / "shop")],
            "packs index": ["packs", "index", "output"],
            "join": ["prepare", "join", "corpus", str(self.world / "corpus"), "-o", "output/joined", "-q"],
            "serve": ["serve", "-b", "base", "-p", "pack", "--port", "0"],
        }

    def _is_asked_for(self, name: str, damage: str) -> bool:
        """Where a link is named as the output, what it leads to is made."""
        return damage in ("-o 'dead'", "--output 'dead'") and name.startswith(str(self.outside / "nothing"))

    def _change(self, chance: Random, name: str, arguments: list[str]) -> tuple[list[str], str]:
        overridable = name in ("train", "retrain", "add", "dry-run")
        if overridable and chance.random() < 0.4:
            override = chance.choice(OVERRIDES) if chance.random() < 0.3 else self._override(chance, name)
            return [*arguments, override], override
        positional = [
            place
            for place, text in enumerate(arguments[1:], 1)
            if not text.startswith("-") and not arguments[place - 1].startswith("-")
        ]
        if chance.random() < 0.15 and positional:
            place = chance.choice(positional)
            value = chance.choice(PATHS + TEXTS).replace(EVIL, str(self.outside / "evil"))
            return [*arguments[:place], value, *arguments[place + 1 :]], f"argument {place} {value!r}"
        option = chance.choice([one for one in options_of(arguments) if one.name not in LEFT_OUT])
        flag = chance.choice(option.opts + option.secondary_opts)
        if option.is_flag:
            return [*arguments, flag], flag
        value = chance.choice(_values(str(option.type_descriptor.annotation))).replace(EVIL, str(self.outside / "evil"))
        return [*arguments, flag, value], f"{flag} {value!r}"

    def _override(self, chance: Random, name: str) -> str:
        if name == "add":
            keys = [
                *(text.partition("=")[0] for text in QUICK_ADD),
                "stages.0.learning_rate",
                "stages.0.steps",
                "run",
                "recipe",
                "subwords.merges",
            ]
        elif name == "dry-run":
            keys = list(_keys(yaml.safe_load((self.world / "profile.yaml").read_text(encoding="utf-8"))))
        else:
            keys = list(_keys(yaml.safe_load((self.world / f"{name}.yaml").read_text(encoding="utf-8"))))
        return f"{chance.choice(keys)}={chance.choice(OVERRIDE_VALUES)}"

    def place(self) -> None:
        """A user's folder: things of graftmt's, files of their own, and some that are no files."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.inside.mkdir(parents=True)
        self.outside.mkdir()
        shutil.copytree(self.world / "base", self.inside / "base")
        shutil.copytree(self.world / "packs/el-source", self.inside / "pack")
        shutil.copy(self.world / "packs/el-source.graftpack", self.inside / "pack.graftpack")
        shutil.copytree(self.world / "corpus", self.inside / "corpus")
        for folder in ("mine", "output", "cache", "temporary", "runs"):
            (self.inside / folder).mkdir()
        shutil.copy(self.world / "train.yaml", self.inside / "mine" / "config.yaml")
        (self.inside / "mine" / "log.jsonl").write_text("mine\n", encoding="utf-8")
        (self.inside / "notes.txt").write_text("mine\n", encoding="utf-8")
        os.mkfifo(self.inside / "pipe")
        (self.inside / "circle").symlink_to("circle")
        (self.inside / "dead").symlink_to(self.outside / "nothing")
        for name, minor in (("null-device", 3), ("endless-device", 5)):
            make_device(self.inside / name, minor)

    def environment(self) -> dict[str, str]:
        return {**surroundings(self.world, self.inside / "cache"), "TMPDIR": str(self.inside / "temporary")}


def options_of(arguments: list[str]) -> list[Any]:
    """The options of the command that these arguments name."""
    from graftmt.cli import app

    command: Any = app.app
    for text in arguments:
        if not hasattr(command, "commands"):
            break
        command = command.commands[text]
    return [one for one in command.params if one.param_type_name == "option"]


def _values(annotation: str) -> tuple[str, ...]:
    """Values for an option of the type that this names."""
    if "int" in annotation:
        return INTEGERS
    if "float" in annotation:
        return NUMBERS
    return PATHS if "Path" in annotation else TEXTS + PATHS


def _keys(mapping: Any, before: str = "") -> list[str]:
    """Dotted names of all values."""
    items = mapping.items() if isinstance(mapping, dict) else enumerate(mapping) if isinstance(mapping, list) else ()
    found = []
    for key, value in items:
        found += [f"{before}{key}", *_keys(value, f"{before}{key}.")]
    return found
