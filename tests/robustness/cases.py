"""One case: a sound thing is copied into a sandbox, damaged, and read by some of its readers; each outcome is judged."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from graftmt.errors import UNPRINTABLE
from robustness import archives, documents, members, mutations, subword_models, tensors
from robustness.isolation import Outcome, command_line, run_isolated
from robustness.leavings import snapshot
from robustness.readers import Case, Reader, Thing
from robustness.signing import INDEX, sign
from robustness.things import things
from robustness.world import World, surroundings

MEGABYTE = 1 << 20
MOST_MEMORY = 200 * MEGABYTE
"""A refusal may take so much more than `graftmt inspect` of a sound base."""
PATIENCE = 60.0
"""Seconds; sound commands take one or two, and many times that where other programs have the processors."""
READERS = 2
"""Of each damaged thing, so many."""
DOCUMENTS = (".json", ".jsonl", ".yaml")
SIGNED = ("base.json", "pack.json", INDEX)
"""Documents that say how all that they describe hashes."""
UNTOUCHED = (".lock", ".png")
Say = Callable[[str], None]


WITHOUT_WEIGHTS = {"retrain --dry-run"}
"""Readers that look at the documents of a base alone."""


@dataclass(frozen=True)
class Finding:
    """Something that must not happen."""

    problem: str
    """traceback, signal, no end, accepted, outside, memory, control characters."""
    case: str
    """KIND:SEED:NUMBER, to replay it."""
    thing: str
    damage: str
    reader: str
    signature: str
    """The same for findings that have the same cause."""
    details: str = ""

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass
class Tally:
    """What was done and found."""

    cases: int = 0
    runs: int = 0
    refused: int = 0
    accepted: int = 0
    memory: int = 0
    """Bytes that a refusal took more than `inspect` of a sound base, at most."""
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.runs += other.runs
        self.refused += other.refused
        self.accepted += other.accepted
        self.memory = max(self.memory, other.memory)
        self.findings += other.findings


@dataclass(frozen=True)
class Damaged:
    """A thing that is no longer sound."""

    thing: Thing
    path: Path
    damage: str
    forged: bool = False
    """Its fingerprint was made anew: another thing, rather than the same one with something wrong."""
    not_finite: bool = False


class Attack:
    """Makes and judges cases in a sandbox folder of its own."""

    def __init__(self, world: World, sandbox: Path) -> None:
        self.world, self.sandbox = world, sandbox
        self.inside = sandbox / "one" / "two" / "case"
        self.outside = sandbox / "outside"
        self.cache = sandbox.with_name(sandbox.name + "-cache")
        self.things = things()
        self._sound: dict[tuple[str, str], Any] = {}

    @cached_property
    def sound_memory(self) -> int:
        """What `graftmt inspect` of a sound base takes, forked from this process."""
        runs = [
            run_isolated(command_line("inspect", str(self.world / "base")), environment=self._environment()) for _ in range(3)
        ]
        assert all(outcome.code == 0 for outcome in runs), runs
        return max(outcome.memory for outcome in runs)

    def run(self, kind: str, seed: int, number: int, say: Say = lambda text: None) -> Tally:
        """The case KIND:SEED:NUMBER."""
        case, chance = f"{kind}:{seed}:{number}", Random(f"{kind}:{seed}:{number}")
        tally = Tally(cases=1)
        damaged = self.make(kind, chance)
        for reader in self.choose(chance, damaged.thing):
            if tally.runs:  # the one before may have changed it
                damaged = self.make(kind, Random(case))
            tally.runs += 1
            outcome, findings = self.read(damaged, reader, case)
            say(f"{damaged.thing.name}, {damaged.damage}; {reader.name}: exit code {outcome.code}\n{outcome.stderr}")
            tally.findings += findings
            tally.accepted += outcome.code == 0
            tally.refused += outcome.code != 0
            if outcome.code in (1, 2):
                tally.memory = max(tally.memory, outcome.memory - self.sound_memory)
        return tally

    def choose(self, chance: Random, thing: Thing) -> list[Reader]:
        every = [reader for reader in thing.readers for _ in range(reader.weight)]
        first = chance.choice(every)
        others = [reader for reader in every if reader is not first]
        return [first, *([chance.choice(others)] if others else [])][:READERS]

    def make(self, kind: str, chance: Random) -> Damaged:
        """A fresh sandbox with one damaged thing in it."""
        chosen = [thing for thing in self.things.values() for _ in range(thing.weight) if suits(kind, thing)]
        thing = chance.choice(chosen)
        path = self.place(thing)
        if kind == "archives":
            damage, content = archives.mutate_archive(chance, path.read_bytes(), str(self.outside / "evil"))
            path.write_bytes(content)
            return Damaged(thing, path, damage)
        if kind == "members":
            file = chance.choice(self.files(thing, path))
            damage = members.mutate_member(chance, file, self.outside / "moved")
            return Damaged(thing, path, f"{self._name(path, file)}: {damage}")
        files = self.contents(path)
        names = [name for name in files if fits(kind, name)]
        name = chance.choice(names)
        damage, content = damage_to(kind, chance, name, files[name], str(self.outside / "evil"))
        before = {one: files.get(one) for one in SIGNED}
        files[name] = content
        forged = thing.signed and kind != "bytes" and chance.random() < 0.5 and sign(files)
        forged = forged and _mark(files) != _mark(before)
        self.store(path, files, {name, *SIGNED})
        hint = " (fingerprint made anew)" if forged else ""
        checked = forged or thing.foreign
        not_finite = kind == "tensors" and checked and damage.endswith((" nan", " inf", " -inf"))
        return Damaged(thing, path, f"{name}: {damage}{hint}", forged, not_finite)

    def place(self, thing: Thing) -> Path:
        """The sound thing, in a sandbox that holds nothing else but a file outside of the case's folder."""
        shutil.rmtree(self.sandbox, ignore_errors=True)
        self.inside.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "bystander.txt").write_bytes(b"untouched\n")
        source = self.world / thing.path
        path = self.inside / source.name
        shutil.copytree(source, path, symlinks=True) if source.is_dir() else shutil.copy(source, path)
        (self.inside / "output").mkdir()
        (self.inside / "temporary").mkdir()
        return path

    def files(self, thing: Thing, path: Path) -> list[Path]:
        found = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.endswith(UNTOUCHED))
        return found if path.is_dir() else [path]

    def contents(self, path: Path) -> dict[str, bytes]:
        """Files of a folder, members of an archive, or one file."""
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.endswith(UNTOUCHED))
            return {self._name(path, file): file.read_bytes() for file in found}
        if path.suffix == ".graftpack":
            return {**archives.read_members(path.read_bytes()), path.name: path.read_bytes()}
        return {path.name: path.read_bytes()}

    def store(self, path: Path, files: dict[str, bytes], changed: set[str]) -> None:
        if path.is_dir():
            for name in changed & files.keys():
                (path / name).write_bytes(files[name])
        elif path.name in changed:
            path.write_bytes(files[path.name])
        else:
            inside = [(name, content) for name, content in files.items() if name != path.name]
            path.write_bytes(archives.write_archive(inside))  # type: ignore[arg-type]

    def read(self, damaged: Damaged, reader: Reader, case: str) -> tuple[Outcome, list[Finding]]:
        place = Case(self.world, damaged.path, self.inside / "output")
        own = (damaged.path,) if reader.resumes or reader.cache else ()
        allowed = (self.inside / "output", *own)
        before = snapshot(self.sandbox, allowed)
        outcome = self.perform(place, reader)
        after = snapshot(self.sandbox, allowed)
        judged = self.judge(damaged, reader, place, outcome, sorted(_differences(before, after)))
        return outcome, [
            Finding(problem, case, damaged.thing.name, damaged.damage, reader.name, signature, details)
            for problem, signature, details in judged
        ]

    def perform(self, place: Case, reader: Reader) -> Outcome:
        cache = place.thing if reader.cache else self.cache
        if not cache.is_dir() and cache == self.cache:
            shutil.copytree(self.world.cache, cache)
        return run_isolated(
            reader.action(place),
            stdin=reader.stdin.encode(),
            timeout=PATIENCE,
            environment=self._environment(cache),
            folder=self.inside,
        )

    def judge(
        self, damaged: Damaged, reader: Reader, place: Case, outcome: Outcome, changed: list[str]
    ) -> Iterator[tuple[str, str, str]]:
        """Problem, signature and details of each thing that is wrong."""
        tail = outcome.stderr[-3000:]
        if outcome.timed_out:
            yield "no end", f"{reader.name} of {damaged.thing.name}: {damaged.damage.rpartition(': ')[2]}", tail
        elif outcome.crashed:
            yield ("signal" if outcome.code < 0 else "traceback"), outcome.signature, tail
        elif outcome.code == 0 and reader.result is not None and not damaged.forged:
            found, sound = reader.result(place, outcome), self.sound_result(damaged.thing, reader)
            if found != sound:
                file = damaged.damage.partition(": ")[0]
                yield "accepted", f"{reader.name} of {damaged.thing.name} with other {file}", f"{found}\nsound: {sound}"[-2000:]
        if outcome.code == 0 and damaged.not_finite and reader.name not in WITHOUT_WEIGHTS:
            yield "accepted", f"{reader.name} of {damaged.thing.name} with a value that is no number", ""
        if changed:
            names = ", ".join(str(Path(name).relative_to(self.sandbox)) for name in changed[:5])
            yield "outside", f"{reader.name} of {damaged.thing.name} writes {names}", tail
        over = outcome.memory - self.sound_memory
        if outcome.code != 0 and over > MOST_MEMORY:
            yield "memory", f"{reader.name} of {damaged.thing.name}: {damaged.damage}", f"{over / MEGABYTE:.0f} MB more; {tail}"
        if shown := commands_of_terminals(outcome):
            yield "control characters", f"{reader.name} of {damaged.thing.name}: {damaged.damage}", shown

    def sound_result(self, thing: Thing, reader: Reader) -> Any:
        """What the reader gives where nothing is damaged."""
        key = (thing.name, reader.name)
        if key not in self._sound:
            kept = self.sandbox.with_name(self.sandbox.name + "-kept")
            self.sandbox.rename(kept)
            place = Case(self.world, self.place(thing), self.inside / "output")
            outcome = self.perform(place, reader)
            assert outcome.code == 0 and reader.result is not None, f"{key}: {outcome.stderr}"
            self._sound[key] = reader.result(place, outcome)
            shutil.rmtree(self.sandbox)
            kept.rename(self.sandbox)
        return self._sound[key]

    def _environment(self, cache: Path | None = None) -> dict[str, str]:
        return {**surroundings(self.world, cache), "TMPDIR": str(self.inside / "temporary")}

    @staticmethod
    def _name(path: Path, file: Path) -> str:
        return str(file.relative_to(path)) if file != path else file.name


def commands_of_terminals(outcome: Outcome, folder: Path | None = None) -> str:
    """What was printed, if a terminal would obey a part of it: controls, and what turns the direction of text.

    A line of standard output that is a path in `folder`, where the command ran, is for programs: in a pipe it is as it is.
    """
    lines = outcome.stdout.decode(errors="replace").split("\n")
    if folder is not None:
        lines = [line for line in lines if not os.path.lexists(folder / line.replace("\0", ""))]
    shown = "\n".join(lines) + outcome.stderr
    return repr(shown[-1500:]) if UNPRINTABLE.search(shown.replace("\r", "").replace("\ufffd", "")) else ""


def suits(kind: str, thing: Thing) -> bool:
    """Whether a thing can be damaged in this way."""
    if thing.kinds:
        return kind in thing.kinds
    if kind == "archives":
        return thing.name.endswith(".graftpack")
    if kind in ("subwords", "tensors"):
        return thing.signed or (
            kind == "tensors" and thing.name in ("unfinished-train", "unfinished-add", "unfinished-retrain")
        )
    if kind == "documents":
        return thing.name not in ("corpus",)
    if kind == "members":
        return not thing.text
    return kind == "bytes"


def fits(kind: str, name: str) -> bool:
    """Whether a file can be damaged in this way."""
    endings = {"documents": DOCUMENTS, "tensors": (".safetensors",), "subwords": ("subwords.model",)}
    return name.endswith(endings.get(kind, ("",)))


def damage_to(kind: str, chance: Random, name: str, data: bytes, evil: str) -> tuple[str, bytes]:
    if kind == "tensors":
        return tensors.mutate_tensors(chance, data)
    if kind == "subwords":
        return subword_models.mutate_subwords(chance, data)
    if kind == "documents":
        by_ending = {".yaml": documents.mutate_yaml, ".jsonl": documents.mutate_lines}
        return by_ending.get(Path(name).suffix, documents.mutate_json)(chance, data, evil)
    return mutations.mutate(chance, data)


def _mark(files: dict[str, Any]) -> Any:
    """The fingerprint that a base's or pack's document states."""
    try:
        document = json.loads(next((files[name] for name in SIGNED if files.get(name)), b"{}"))
        return document.get("fingerprint", document.get("revision"))
    except (ValueError, AttributeError, RecursionError):
        return None


def _differences(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
