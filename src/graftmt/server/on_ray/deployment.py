"""`graftmt serve --ray`: replicas on a Ray cluster, as many as the load needs, until the server is told to stop. Layer 6."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from graftmt.base import read_base_document
from graftmt.errors import GraftError
from graftmt.progress import say
from graftmt.ray_cluster import connected, import_ray
from graftmt.server.application import places_of
from graftmt.server.on_ray import APPLICATION, REPLICAS
from graftmt.server.running import KEEP_ALIVE, listening_socket, url_of
from graftmt.server.serve_options import ServeOptions
from graftmt.training.stopping import stop_on_signals

EXTRA = "graftmt[ray-serve]"
BUSY, FULL = 16, 64
"""Requests under way in one replica: from which on another one is started, and beyond which others get what comes."""
LOOK = 0.5
TRIES = 3


def serve_on_ray(options: ServeOptions) -> None:
    """Starts the replicas, serves until SIGINT or SIGTERM, and ends them when they have finished what they accepted."""
    ray, serve = import_ray("serve --ray", EXTRA), import_ray("serve --ray", EXTRA, "ray.serve")
    folder, _ = places_of(options)
    read_base_document(folder)  # an error now, rather than from a replica
    with listening_socket(options) as free:  # so is an address in use
        host, port = free.getsockname()[:2]
        url = url_of(free)
    options = replace(_absolute(options), port=port)
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")  # 5 by default, too few where cores are busy
    with connected(ray, options.ray_address), stop_on_signals() as stop:  # in this order: Ray sets handlers too
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        _start(ray, serve, host, port)
        try:
            _run(serve, options)
            least, most = options.replica_range
            replicas = f"{least} replica{'s' * (least != 1)}" if least == most else f"{least} to {most} replicas"
            say(f"{replicas} at {url} on Ray (Ctrl-C stops)")
            while not stop.asked:
                time.sleep(LOOK)
            say("stopping: what was accepted is finished first.")
        finally:
            serve.delete(APPLICATION)


def application(serve: Any, options: ServeOptions) -> Any:
    """Front and replicas, as Ray deploys them."""
    from graftmt.server.on_ray.front import front_builder
    from graftmt.server.on_ray.replica import Replica

    least, most = options.replica_range
    needs = {"num_cpus": max(1, options.threads)} | ({"num_gpus": 1} if options.device.startswith("cuda") else {})
    common = {"graceful_shutdown_timeout_s": options.grace, "graceful_shutdown_wait_loop_s": LOOK}
    count: dict[str, Any] = {"num_replicas": least}
    if least < most:
        count = {"autoscaling_config": {"min_replicas": least, "max_replicas": most, "target_ongoing_requests": BUSY}}
    replicas = serve.deployment(
        Replica,
        name=REPLICAS,
        ray_actor_options=needs,
        max_ongoing_requests=FULL,
        max_queued_requests=options.connections,
        health_check_period_s=5,
        **count,
        **common,
    )
    front = serve.deployment(
        serve.ingress(front_builder(options))(),
        name="front",
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=options.connections,
        **common,
    )
    return front.bind(replicas.bind(options))


def _start(ray: Any, serve: Any, host: str, port: int) -> None:
    """Ray's own processes. Where they take long, Ray gives up the first of them and starts another."""
    for turn in range(TRIES):
        try:
            serve.start(http_options={"host": host, "port": port, "keep_alive_timeout_s": KEEP_ALIVE})
            return
        except (ray.exceptions.RayError, TimeoutError) as error:
            if turn == TRIES - 1:
                reason = str(error).strip().partition("\n")[0]
                raise GraftError(f"Ray's proxy does not start ({reason}); the machine may be too busy. Try again.") from None


def _run(serve: Any, options: ServeOptions) -> None:
    try:
        serve.run(application(serve, options), name=APPLICATION, route_prefix="/")
    except RuntimeError as error:
        reason = next((line.strip() for line in reversed(str(error).splitlines()) if "Error: " in line), "")
        reason = reason.partition("Error: ")[2] or str(error).strip().partition("\n")[0]
        raise GraftError(f"the replicas could not be started: {reason}") from None


def _absolute(options: ServeOptions) -> ServeOptions:
    """Replicas run in other folders, perhaps on other machines, where the same paths must be."""

    def full(path: Path) -> Path:
        return path.expanduser().absolute()

    return replace(
        options,
        base=options.base and full(options.base),
        packs=tuple(map(full, options.packs)),
        keys=options.keys and full(options.keys),
        jobs=options.jobs and full(options.jobs),
        log=options.log and full(options.log),
    )
