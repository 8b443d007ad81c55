"""A Ray cluster: found, joined, or started on this machine for the time being. Layer 0.

Ray is imported when it is asked for, since most installations do not have it.
"""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graftmt.errors import GraftError

CONNECT_SECONDS = 10.0


def import_ray(what: str, extra: str, module: str = "ray") -> Any:
    """The module `ray`, or one of its parts; without it an error names the extra that `what` needs."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise GraftError(f"{what} needs Ray: pip install '{extra}', on every machine of the cluster.") from None


@contextmanager
def connected(ray: Any, address: str | None, *, cpus: int | None = None) -> Iterator[None]:
    """The cluster that this process is connected to already, else that of the address or $RAY_ADDRESS, else a new one.

    A new one has `cpus`, or as many as this machine; it ends with the context.
    """
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"include_dashboard": False, "num_cpus": cpus or None}
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
