"""The server as a process: uvicorn with a time limit on heads of requests, and an orderly end. Layer 6."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from graftmt.errors import GraftError
from graftmt.progress import say
from graftmt.server.application import make_app, make_world
from graftmt.server.serve_options import ServeOptions
from graftmt.server.world import World

KEEP_ALIVE = 75
"""Seconds that a connection may be idle between requests; clients that pool connections expect no less."""
LARGEST_HEAD = 32 * 1024
LOOK = 0.05
"""Seconds between two looks at whether a server that is stopping has anything left to do."""


class TimedProtocol(H11Protocol):
    """Closes a connection whose client takes too long over the head of a request; uvicorn itself waits for ever."""

    header_seconds = 10.0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        if self._head_timer is None and (before is None or before.response_complete):
            self._expect_head()
        super().data_received(data)
        if self.cycle is not before:  # a head is complete
            self._unset_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_head_timer()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.header_seconds, self._too_slow)

    def _unset_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """Answers until it has finished what it accepted; uvicorn itself closes its sockets first, and nobody could ask /ready."""

    def __init__(self, world: World, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.world = world

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """After the signal /ready says 503. Requests are taken for `drain` more seconds, then finished within `grace`."""
        options, service = self.world.options, self.world.service
        service.ready = False
        await self._wait(options.drain, lambda: False)
        service.accepting = False
        started = time.monotonic()
        await self._wait(options.grace, lambda: not self.server_state.tasks)
        left = options.grace - (time.monotonic() - started)
        self.config.timeout_graceful_shutdown = max(1, round(left))
        await super().shutdown(sockets)

    async def _wait(self, seconds: float, done: Callable[[], bool]) -> None:
        """A second Ctrl-C ends it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not done() and not self.force_exit:
            await asyncio.sleep(LOOK)


def serve(options: ServeOptions) -> None:
    """Loads, listens and serves until it is told to stop (SIGINT, SIGTERM); then finishes what it accepted."""
    sock = listening_socket(options)
    with sock:
        world = make_world(options)
        catalog = world.service.catalog
        say(f"base {catalog.base.fingerprint[:16]}…: {', '.join(catalog.base.languages)}")
        for served in catalog.packs.values():
            say(f"pack {served.name}: {', '.join(served.pack.languages)} as {served.pack.side}")
        for file, problem in catalog.problems.items():
            say(f"not served: {file}: {problem}")
        for model in world.fast.state.models.values():
            say(f"{world.fast.how}: {', '.join(model.directions)}, {model.searcher.bytes / 1e6:,.0f} MB")
        for name, problem in world.fast.state.problems.items():
            say(f"not by {world.fast.how}: {name}: {problem}")
        say(f"{len(catalog.translator.directions)} directions at {url_of(sock)} (Ctrl-C stops)")
        if options.host not in ("127.0.0.1", "::1", "localhost") and options.keys is None:
            say("anybody who reaches this address may translate; --keys FILE asks for keys.")
        Server(world, uvicorn_config(make_app(world), options)).run(sockets=[sock])


def url_of(sock: socket.socket) -> str:
    """Where it listens, for browsers."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def uvicorn_config(app: Any, options: ServeOptions) -> uvicorn.Config:
    protocol = type("Protocol", (TimedProtocol,), {"header_seconds": options.header_seconds})
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # of bad requests the guard's log has a line each
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies) or None,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(options.grace)),
        limit_concurrency=options.connections,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )


def listening_socket(options: ServeOptions) -> socket.socket:
    """Bound before the base is loaded: an address in use is an error at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        return sock
    except (OSError, UnicodeError) as error:  # a name that no host could have
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise GraftError(
            f"cannot listen on {options.host} port {options.port}: {reason}. Choose another with --host and --port."
        ) from None
