"""The same results wherever chunks are worked on, in order, and errors as they were raised."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graftmt.augmentation.chunk_workers import ChunkEngine, map_chunks
from graftmt.errors import ConfigError, DataError, GraftError


def test_the_local_engine_takes_a_chunk_at_a_time() -> None:
    taken: list[int] = []

    def chunks() -> Iterator[int]:
        for number in range(5):
            taken.append(number)
            yield number

    results = map_chunks(lambda chunk: chunk * 2, chunks())
    assert next(results) == 0
    assert taken == [0]
    assert list(results) == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "rai"}, "did you mean 'ray'"),
        ({"name": "ray", "workers": 0}, "at least 1"),
        ({"address": "auto"}, "add --engine ray"),
        ({"workers": 2}, "add --engine ray"),
    ],
)
def test_engines_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ChunkEngine(**options)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(GraftError, match=r"graftmt\[ray\]"):
        list(map_chunks(str, [1], ChunkEngine(name="ray")))
    assert list(map_chunks(str, [], ChunkEngine(name="ray"))) == []  # nothing to do needs nothing


def test_a_cluster_that_does_not_answer_is_said_soon() -> None:
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # a port that nobody listens at
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(GraftError, match=f"no Ray cluster answers at '{address}'.*Check --ray-address"):
            list(map_chunks(str, [1], ChunkEngine(name="ray", address=address)))


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of this machine alone, with two CPUs."""
    found = pytest.importorskip("ray")
    found.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield found
    found.shutdown()


def counting(workers: Path | None = None) -> Callable[[int], tuple[int, int, int]]:
    """A function with something costly of its own; inside another, so that Ray sends it whole.

    With a folder the first chunk takes until a second worker has come, however long that one needs to start.
    """

    class Counting:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, chunk: int) -> tuple[int, int, int]:
            import os
            import time

            self.calls += 1
            if workers is not None:
                (workers / str(os.getpid())).touch()
                until = time.monotonic() + 120
                while chunk == 0 and len(list(workers.iterdir())) < 2 and time.monotonic() < until:
                    time.sleep(0.05)
            time.sleep(0.02 * (3 - chunk % 4))  # so that later chunks overtake earlier ones
            return chunk * chunk, os.getpid(), self.calls

    return Counting()


@pytest.mark.slow
def test_ray_gives_what_this_process_gives_in_order_from_workers_that_keep_what_they_have(ray: Any, tmp_path: Path) -> None:
    drawn: list[int] = []

    def chunks() -> Iterator[int]:
        for number in range(40):
            drawn.append(number)
            yield number

    results = map_chunks(counting(tmp_path), chunks(), ChunkEngine(name="ray"))
    first = next(results)
    assert len(drawn) < 40  # the rest is read when it is needed
    found = [first, *results]
    assert [square for square, _, _ in found] == [n * n for n in range(40)] == [r[0] for r in map_chunks(counting(), range(40))]
    processes = {process for _, process, _ in found}
    assert len(processes) == 2
    assert max(calls for _, _, calls in found) > 10  # one function for each worker, not for each chunk
    assert ray.is_initialized()  # a cluster that was there stays


@pytest.mark.slow
def test_errors_of_rays_workers_are_ours(ray: Any) -> None:
    def refuse(chunk: int) -> int:
        from graftmt.errors import DataError

        if chunk == 3:
            raise DataError("line 3 is broken; mend it.")
        return chunk

    with pytest.raises(DataError, match=r"^line 3 is broken; mend it\.$"):
        list(map_chunks(refuse, range(6), ChunkEngine(name="ray", workers=1)))


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again(ray: Any, tmp_path: Any) -> None:
    marker = tmp_path / "died"

    def die_once(chunk: int) -> int:
        import os
        import signal

        if chunk == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return chunk

    assert list(map_chunks(die_once, range(5), ChunkEngine(name="ray", workers=1))) == list(range(5))
    assert marker.exists()


@pytest.mark.slow
def test_a_cluster_without_gpus_says_so(ray: Any) -> None:
    with pytest.raises(GraftError, match="the Ray cluster has no GPUs"):
        list(map_chunks(str, [1], ChunkEngine(name="ray", gpu=True)))
