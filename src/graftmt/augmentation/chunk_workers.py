"""One function over many chunks, in this process or on the machines of a Ray cluster, with the same results. Layer 5.

For what is alike for every chunk and needs no other: translation here, cleaning in `prepare`. Anything that Ray brings is
imported when it is asked for.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeVar

from graftmt.errors import ConfigError, GraftError, nearest

T = TypeVar("T")
R = TypeVar("R")

ENGINES = ("local", "ray")
CONNECT_SECONDS = 10.0
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
    ray = _import_ray()
    with _cluster(ray, engine):
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


@contextmanager
def _cluster(ray: Any, engine: ChunkEngine) -> Iterator[None]:
    """The one this process is connected to already, else that of the address, else one for the time being."""
    if ray.is_initialized():
        yield
        return
    address = engine.address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"include_dashboard": False, "num_cpus": engine.workers if engine.workers and not engine.gpu else None}
    try:
        _knock(address)
        ray.init(address=address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise GraftError(
            f"no Ray cluster answers at {address!r} ({reason}). Check --ray-address and that `ray status` works here, or leave "
            "it out: a cluster on this machine alone is started then."
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Where nobody listens at HOST:PORT, Ray itself takes minutes to say so."""
    host, colon, port = address.rpartition(":")
    if colon and "//" not in host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise GraftError("the engine ray needs Ray: pip install 'graftmt[ray]', on every machine of the cluster.") from None
    return ray
