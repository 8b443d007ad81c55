"""One base in memory, many users: threads that translate side by side, and a file that is changed under it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from robustness.cases import Finding, Tally
from robustness.isolation import Outcome, run_isolated
from robustness.world import World, surroundings

Say = Callable[[str], None]
THREADS, REQUESTS = 8, 64
DIRECTIONS = (
    *(("en", "fr", None, None), ("fr", "ru", None, None), ("ru", "en", None, None), ("el", "en", "el-source", None)),
    *(("el", "fr", "el-trained", None), ("en", "uk", None, "uk-target"), ("el", "uk", "el-source", "uk-target")),
    ("el", "uk", "el-trained", "uk-target"),
)
"""Source, target, and the packs for them."""


class Residents:
    """Cases with a translator that stays in memory."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder

    def thread(self, seed: int, number: int, say: Say) -> Tally:
        """Every translation of many threads is that of one, to the bit of its score."""
        case = f"threads:{seed}:{number}"
        outcome = self._run(lambda: translate_in_threads(self.world.folder, Random(case)))
        return self._judge(case, "threads", outcome, say)

    def edit(self, seed: int, number: int, say: Say) -> Tally:
        """What a file becomes after it was loaded does not matter."""
        case = f"residents:{seed}:{number}"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.world / "base", self.folder / "base")
        shutil.copytree(self.world / "packs", self.folder / "packs")
        outcome = self._run(lambda: translate_while_files_change(self.folder, Random(case)))
        return self._judge(case, "residents", outcome, say)

    def _run(self, action: Callable[[], None]) -> Outcome:
        return run_isolated(action, environment=surroundings(self.world), timeout=120)

    def _judge(self, case: str, kind: str, outcome: Outcome, say: Say) -> Tally:
        say(f"{kind}: {outcome.code}\n{outcome.stdout.decode()}\n{outcome.stderr}")
        tally = Tally(cases=1, runs=1)
        if outcome.code != 0:
            problem = "signal" if outcome.code < 0 else "traceback"
            tally.findings.append(Finding(problem, case, "base", "", kind, outcome.signature, outcome.stderr[-3000:]))
            return tally
        told = json.loads(outcome.stdout)
        tally.runs = tally.accepted = told["translations"]
        if told["different"]:
            damage = told.get("damage", "")
            tally.findings.append(
                Finding("not the same", case, "base", damage, kind, f"{kind}: other translations {damage}", str(told))
            )
        return tally


def _translator(folder: Path, dtype: str = "fp32") -> Any:
    from graftmt.translator import Translator

    packs = {name: folder / "packs" / name for name in ("el-source", "el-trained", "uk-target")}
    return Translator(folder / "base", packs, dtype=dtype)


def _answer(translator: Any, request: tuple[str, tuple[str, str, str | None, str | None]]) -> Any:
    from graftmt.decoding import SearchOptions
    from graftmt.translation_requests import Request

    line, (source, target, source_pack, target_pack) = request
    asked = Request(line, source, target, None, source_pack, target_pack)
    return translator.translate_requests([asked], SearchOptions(beam=2, max_length=8))


def _requests(chance: Random, folder: Path, count: int) -> list[tuple[str, tuple[str, str, str | None, str | None]]]:
    lines = {
        language: (folder / "corpus" / f"train.{language}.txt").read_text(encoding="utf-8").splitlines()
        for language in ("en", "fr", "ru", "el")
    }
    chosen = [chance.choice(DIRECTIONS) for _ in range(count)]
    return [(chance.choice(lines[direction[0]]), direction) for direction in chosen]


def translate_in_threads(folder: Path, chance: Random) -> None:
    requests = _requests(chance, folder, REQUESTS)
    alone = _translator(folder)
    expected = [_answer(alone, request) for request in requests]
    shared = _translator(folder)  # new: the threads also race to be the first in each direction
    order = chance.sample(range(len(requests)), len(requests))
    sys.setswitchinterval(1e-5)
    with ThreadPoolExecutor(THREADS) as pool:
        found = dict(zip(order, pool.map(lambda index: _answer(shared, requests[index]), order), strict=True))
    different = sum(found[index] != expected[index] for index in range(len(requests)))
    print(json.dumps({"translations": len(requests), "different": different}))


def translate_while_files_change(folder: Path, chance: Random) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    translator = _translator(folder, chance.choice(("fp32", "fp32", "bf16")))
    lines = ["bada kofe gelo", "lako fofe", "dalo"]
    requests = [(line, direction) for line in lines for direction in DIRECTIONS[:2] + DIRECTIONS[3:6]]
    expected = [_answer(translator, request) for request in requests]
    stop, done, different = threading.Event(), 0, 0
    damages: list[str] = []

    def damage() -> None:
        for _ in range(20):
            damages.append(_damage(chance, chance.choice([file for file in files if file.exists()] or [folder])))
            stop.wait(0.005)
        stop.set()

    thread = threading.Thread(target=damage)
    thread.start()
    while not stop.is_set() or done == 0:
        for request, before in zip(requests, expected, strict=True):
            different += _answer(translator, request) != before
            done += 1
    thread.join()
    different += sum(_answer(translator, request) != before for request, before in zip(requests, expected, strict=True))
    print(json.dumps({"translations": done + len(requests), "different": different, "damage": damages[0]}))


def _damage(chance: Random, file: Path) -> str:
    """In place: the file keeps its inode, so that whoever has it mapped sees it."""
    kind = chance.choice(("edit", "edit", "truncate", "zero", "remove"))
    if not file.is_file():
        return "nothing left"
    size = file.stat().st_size
    if kind == "remove":
        file.unlink()
    elif kind == "truncate":
        os.truncate(file, chance.randrange(size + 1))
    else:
        with file.open("r+b") as handle:
            handle.write(bytes(size) if kind == "zero" else chance.randbytes(size))
    return f"{kind} {file.name}"
