"""What a thing to damage is, and what a command that reads it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustness.isolation import Outcome, command_line
from robustness.world import World

SHORT = ("--beam", "2", "--max-length", "8", "--device", "cpu")


@dataclass(frozen=True)
class Case:
    """Where one reader finds the damaged thing, and where it may write."""

    world: World
    thing: Path
    output: Path


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One command, or one function of the library, that reads a thing."""

    name: str
    action: Callable[[Case], Callable[[], None]]
    stdin: str = ""
    resumes: bool = False
    """It goes on with the work in the thing itself, and so changes it."""
    cache: bool = False
    """The thing is the folder that graftmt keeps things in for later."""
    result: Callable[[Case, Outcome], Any] | None = None
    """What must be the same whether the thing is sound or damaged, where the reader accepts it."""
    weight: int = 1


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A file or folder of the world."""

    name: str
    path: str
    readers: tuple[Reader, ...]
    signed: bool = False
    """It has a fingerprint: what decides translations cannot change unnoticed."""
    weight: int = 1
    text: bool = False
    """It is people's own text: all of it is read, however long."""
    foreign: bool = False
    """A model of another program: it has no fingerprint, but its numbers are checked."""
    kinds: tuple[str, ...] = ()
    """How it can be damaged, where its name and its fingerprint do not say that."""


def command(name: str, arguments: Callable[[Case], list[str]], **options: Any) -> Reader:
    return Reader(name=name, action=lambda case: command_line(*arguments(case)), **options)


def output_of(case: Case, outcome: Outcome) -> bytes:
    return outcome.stdout
