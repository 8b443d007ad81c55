"""The front of a server on Ray: takes requests within the limits, and hands each to a replica with its packs. Layer 6."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from starlette.applications import Starlette
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from graftmt.server.application import guard_options
from graftmt.server.guard import App, Guard, Message, Receive, Scope, Send
from graftmt.server.logs import JsonLog
from graftmt.server.on_ray import APPLICATION, REPLICAS
from graftmt.server.on_ray.pack_pairs import PackPairs
from graftmt.server.prometheus_metrics import Metrics
from graftmt.server.refusals import Refused
from graftmt.server.serve_options import ServeOptions

NEWS = 2.0
"""Seconds after which a replica is asked again which packs there are."""
KEPT = ("http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path", "headers", "client", "server")
"""What a replica needs of a request's scope."""


class Front:
    """An ASGI application whose answers come from replicas."""

    def __init__(self) -> None:
        self._pairs = PackPairs()
        self._asked = float("-inf")
        self._news: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive()).get("body", b"")  # the guard has read all of it
        replicas: Any = serve.get_deployment_handle(REPLICAS, APPLICATION).options(stream=True)
        self._ask_for_news(replicas)
        if pair := self._pairs.pair(scope, body):
            replicas = replicas.options(multiplexed_model_id=pair)
        kept = {name: scope[name] for name in KEPT if name in scope}
        headers = [(name, value) for name, value in scope["headers"] if name != b"x-request-id"]
        kept["headers"] = [*headers, (b"x-request-id", scope["request_id"].encode())]
        answer = replicas.respond.remote({"type": "http", **kept}, body)
        begun = False
        try:
            async for messages in answer:
                for message in messages:
                    await send(message)
                    begun = True
        except BackPressureError:
            raise Refused(429, "too many requests are waiting; try again in 1 s.", retry_after=1) from None
        except (RayError, DeploymentUnavailableError):
            if begun:
                raise
            raise Refused(503, "the replica that had this request is gone; try again.", retry_after=1) from None
        finally:
            answer.cancel()  # for a client that has left; nothing where the answer is complete

    def _ask_for_news(self, replicas: Any) -> None:
        """In the background: until the answer is there, and where none comes, the last one holds."""
        if time.monotonic() - self._asked < NEWS or (self._news is not None and not self._news.done()):
            return

        async def ask() -> None:
            with suppress(RayError, BackPressureError, DeploymentUnavailableError):
                self._pairs = await replicas.options(stream=False).pairs.remote()

        self._asked = time.monotonic()
        self._news = asyncio.create_task(ask())


def front_builder(options: ServeOptions) -> Callable[[], App]:
    """What Ray calls in the process of the front to have the application made."""

    def build() -> App:
        return make_front(options)

    return build


def make_front(options: ServeOptions) -> App:
    """Limits, request ids and headers as everywhere; the log has what did not get as far as a replica."""
    metrics = Metrics()
    log = JsonLog(options.log, metrics.lost_logs.inc)
    guard = Guard(Front(), replace(guard_options(options), only_refusals=True), metrics, log)
    app: Any = ProxyHeadersMiddleware(guard, list(options.proxies)) if options.proxies else guard  # type: ignore[arg-type]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield

    life = Starlette(lifespan=lifespan)

    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await life(scope, receive, send)
            return

        async def once(message: Message) -> None:
            """Ray adds the request's id itself."""
            if message["type"] == "http.response.start":
                message = {**message, "headers": [one for one in message["headers"] if one[0] != b"x-request-id"]}
            await send(message)

        await app(scope, receive, once)

    return whole
