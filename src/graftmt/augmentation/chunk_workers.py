"""One function over many chunks, in this process or on the machines of a Ray cluster, with the same results. Layer 5.

For what is alike for every chunk and needs no other: translation here, cleaning in `prepare`. Anything that Ray brings is
imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeVar

from graftmt.errors import ConfigError, GraftError, nearest
from graftmt.ray_cluster import connected, import_ray

T = TypeVar("T")
R = TypeVar("R")

ENGINES = ("local", "ray")
AHEAD = 4
"""Chunks for each worker that may be finished before the one that is next in order."""
RETRIES = 3
"""So often a worker that was lost, with its machine or for want of memory, is started again."""


@dataclass(frozen=True, kw_only=True)
class ChunkEngine:
    """Where the work is done."""

    name: Literal["local", "ray"] = "local"
    address: str | None = None
    """Of a Ray cluster that is running, such as `auto` or `ray://host:10001`; else $RAY_ADDRESS, else one on this machine."""
    workers: int | None = None
    """Default: as many as the cluster has CPUs (with `gpu`: GPUs)."""
    gpu: bool = False
    """Each worker has a GPU to itself."""

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ConfigError(f"engine is {self.name!r}{nearest(self.name, ENGINES) or ';'} expected local or ray.")
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"workers is {self.workers}; at least 1 is needed.")
        if self.name == "local" and (self.address or self.workers):
            raise ConfigError("an address and a number of workers are for the engine ray; add --engine ray.")


LOCAL = ChunkEngine()


def map_chunks(function: Callable[[T], R], chunks: Iterable[T], engine: ChunkEngine = LOCAL) -> Iterator[R]:
    """function(chunk) for each chunk, in order, as they come; few are held at a time, so that chunks may be read on the fly.

    With Ray every worker has a copy of `function` of its own for as long as it lives: what is costly to load is loaded by
    the function when first called and kept on it. Function, chunks and results must be picklable, chunks independent.
    """
    if engine.name == "local":
        return map(function, chunks)
    return _map_with_ray(function, chunks, engine)


def _map_with_ray(function: Callable[[T], R], chunks: Iterable[T], engine: ChunkEngine) -> Iterator[R]:
    waiting = iter(chunks)
    try:
        first = next(waiting)  # a cluster takes seconds to start, for nothing where there is nothing to do
    except StopIteration:
        return
    ray = import_ray("the engine ray", "graftmt[ray]")
    with connected(ray, engine.address, cpus=None if engine.gpu else engine.workers):
        workers = _start_workers(ray, function, engine)
        numbered = enumerate(chain([first], waiting))
        # A worker gets a chunk when it is ready, so that one still waiting for a place in the cluster holds up nothing.
        running: dict[Any, tuple[Any, int | None]] = {worker.ready.remote(): (worker, None) for worker in workers}
        idle: list[Any] = []
        finished: dict[int, R] = {}
        following, exhausted = 0, False
        while True:
            while idle and not exhausted and len(finished) < AHEAD * len(workers):
                position, chunk = next(numbered, (None, None))
                if position is None:
                    exhausted = True
                else:
                    worker = idle.pop()
                    running[worker.run.remote(chunk)] = (worker, position)
            if exhausted and all(position is None for _, position in running.values()):
                break
            (done, *_), _ = ray.wait(list(running), num_returns=1)
            worker, position = running.pop(done)
            result = _get(ray, done)
            idle.append(worker)
            if position is not None:
                finished[position] = result
            while following in finished:
                yield finished.pop(following)
                following += 1


def _start_workers(ray: Any, function: Callable[[T], R], engine: ChunkEngine) -> list[Any]:
    class Worker:
        def __init__(self, function: Callable[[T], R]) -> None:
            self.function = function

        def ready(self) -> None:
            """Answered once the worker has a place to run."""

        def run(self, chunk: T) -> R:
            return self.function(chunk)

    kind = "GPU" if engine.gpu else "CPU"
    places = int(ray.cluster_resources().get(kind, 0))
    if not places:
        raise GraftError(f"the Ray cluster has no {kind}s; it has {dict(ray.cluster_resources())}. Use another device.")
    remote = ray.remote(num_cpus=1, num_gpus=int(engine.gpu), max_restarts=RETRIES, max_task_retries=RETRIES)(Worker)
    return [remote.remote(function) for _ in range(min(engine.workers or places, places))]


def _get(ray: Any, reference: Any) -> Any:
    """A result; our own errors come out as they were raised, without Ray's tracebacks."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, GraftError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        reason = str(error).strip().partition("\n")[0]
        raise GraftError(
            f"a Ray worker was lost {RETRIES + 1} times ({reason}); perhaps it ran out of memory: use fewer --workers or "
            "smaller batches. What was finished is kept: rerun the command to resume."
        ) from None
