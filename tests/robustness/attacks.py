"""The kinds of attacks, how many cases each has when all are run, and what runs one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from robustness.arguments import Arguments
from robustness.cases import Attack, Tally
from robustness.interruptions import Interruptions
from robustness.leavings import snapshot
from robustness.orphans import Orphans
from robustness.residents import Residents
from robustness.streams import Streams
from robustness.world import World

COUNTS = {
    "bytes": (4500, 40),
    "documents": (3600, 50),
    "tensors": (700, 30),
    "subwords": (400, 15),
    "archives": (400, 20),
    "members": (600, 20),
    "arguments": (1200, 40),
    "streams": (36, 4),
    "kills": (400, 9),
    "disks": (120, 9),
    "threads": (20, 1),
    "residents": (60, 3),
    "orphans": (8, 2),
}
"""Kind → cases in all, and of a sample that takes minutes."""
MUTATIONS = ("bytes", "documents", "tensors", "subwords", "archives", "members")
"""Kinds in which something sound is damaged."""

Say = Callable[[str], None]


class Attacks:
    """All kinds, in sandboxes below one folder."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.mutations = Attack(world, folder / "sandbox")
        arguments, residents = Arguments(world, folder / "arguments"), Residents(world, folder / "residents")
        interruptions = Interruptions(world, folder / "work")
        self.others = {
            "arguments": arguments.run,
            "streams": Streams(arguments).run,
            "kills": interruptions.kill,
            "disks": interruptions.fill,
            "threads": residents.thread,
            "residents": residents.edit,
            "orphans": Orphans(world, folder / "orphans").run,
        }

    def run(self, kind: str, seed: int, number: int, say: Say = lambda text: None) -> Tally:
        """The case KIND:SEED:NUMBER; `say` hears what happens in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if kind in self.others:
            return self.others[kind](seed, number, say)
        return self.mutations.run(kind, seed, number, say)

    def world_mark(self) -> dict[str, tuple[int, ...]]:
        """Tells whether somebody wrote to the sound things; the cache of the world is read by nobody but its maker."""
        return snapshot(self.world.folder, (self.world.cache, self.world / "home"))
