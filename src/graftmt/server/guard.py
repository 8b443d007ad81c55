"""Around every request: its id, limits on size and time, headers for browsers, a log line, errors without insides. Layer 6."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from graftmt.server.logs import JsonLog
from graftmt.server.prometheus_metrics import Metrics
from graftmt.server.refusals import Refused

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SLOWEST_BODY = 20_000
"""Bytes a second that a body must come with, after its first seconds."""
MOST_BUFFERED = 256 * 2**20
"""Bytes of bodies that are held at the same time, of all clients."""
GONE = 499
"""What the log says of a client that left before its answer."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
}


@dataclass(frozen=True, kw_only=True)
class GuardOptions:
    body_bytes: int
    file_bytes: int
    """The limit on the paths that take files."""
    file_paths: frozenset[str]
    body_seconds: float
    only_refusals: bool = False
    """The application has a guard of its own, which writes of what gets there."""


@dataclass
class Outcome:
    """What became of a request so far."""

    request_id: str
    started: float
    status: int = 0
    failed: str = ""
    went_in: bool = False
    """The application has had it."""


class Guard:
    """ASGI middleware; the outermost but for CORS. It reads the body, so that from then on it can hear the client leave."""

    def __init__(self, app: App, options: GuardOptions, metrics: Metrics, log: JsonLog) -> None:
        self.app, self.options, self.metrics, self.log = app, options, metrics, log
        self._buffered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        outcome = Outcome(given if _REQUEST_ID.match(given) else secrets.token_hex(8), time.monotonic())
        scope["request_id"] = outcome.request_id
        body = b""
        try:
            body = await self._body(scope, receive)
            await self._answer(scope, body, receive, _marked(send, outcome), outcome)
        except Refused as refusal:
            # The rest of the body is not read: the connection has to end.
            headers = {**refusal.headers, "Connection": "close"}
            await _send_error(_marked(send, outcome), refusal.status, str(refusal), headers)
        except ClientGone:
            outcome.status = GONE
        finally:
            self._buffered -= len(body)
            self._record(scope, outcome)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, within the limits of size and time."""
        options = self.options
        limit = options.file_bytes if scope["path"] in options.file_paths else options.body_bytes
        length = dict(scope["headers"]).get(b"content-length", b"")
        too_large = Refused(413, f"the body is larger than {limit:,} bytes; send less at once.")
        if length.isdigit() and int(length) > limit:
            raise too_large
        content = bytearray()
        started = time.monotonic()
        while True:
            left = started + options.body_seconds + len(content) / SLOWEST_BODY - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, left))
            except TimeoutError:
                raise Refused(408, "the body came too slowly.") from None
            if message["type"] == "http.disconnect":
                raise ClientGone
            content += message.get("body", b"")
            if len(content) > limit:
                raise too_large
            if self._buffered + len(content) > MOST_BUFFERED:
                raise Refused(503, "the server is busy with large requests; try again soon.", retry_after=5)
            if not message.get("more_body", False):
                self._buffered += len(content)
                return bytes(content)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send, outcome: Outcome) -> None:
        """Runs the application until it is done or the client leaves; then it is cancelled, and with it its lines."""
        gone = asyncio.Event()

        async def listen() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        outcome.went_in = True
        work = asyncio.ensure_future(self.app(scope, replayed(body, gone), send))
        listening = asyncio.ensure_future(listen())
        try:
            await asyncio.wait({work, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await work
                raise ClientGone
            await self._conclude(work, send, outcome)
        finally:
            for task in (work, listening):
                task.cancel()

    async def _conclude(self, work: asyncio.Future[None], send: Send, outcome: Outcome) -> None:
        error = work.exception() if not work.cancelled() else asyncio.CancelledError()
        if error is None:
            return
        if isinstance(error, Refused) and outcome.status == 0:
            await _send_error(send, error.status, str(error), error.headers)
            return
        outcome.failed = described(error)
        if outcome.status == 0:
            message = f"the server made a mistake; its log has more under request {outcome.request_id}."
            await _send_error(send, 500, message, {})

    def _record(self, scope: Scope, outcome: Outcome) -> None:
        seconds = time.monotonic() - outcome.started
        route = getattr(scope.get("route"), "path", None) or "other"
        self.metrics.requests.labels(route, str(outcome.status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if outcome.status == GONE:
            self.metrics.gone.inc()
        elif outcome.status in (408, 413, 429, 503):
            self.metrics.refused.labels(str(outcome.status)).inc()
        if self.options.only_refusals and outcome.went_in and not outcome.failed:
            return
        facts = scope.get("facts") or {}
        entry = {"event": "request", "id": outcome.request_id, "method": scope["method"], "route": route, **facts}
        entry |= {"status": outcome.status, "ms": round(1000 * seconds, 1)}
        self.log.write(entry | ({"failed": outcome.failed} if outcome.failed else {}))


def replayed(body: bytes, gone: asyncio.Event) -> Receive:
    """For an application: the body, which has been read already, and then nothing until the client is gone."""
    unread = True

    async def replay() -> Message:
        nonlocal unread
        if unread:
            unread = False
            return {"type": "http.request", "body": body, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    return replay


class ClientGone(Exception):
    """The client closed the connection before it had its answer."""


def described(error: BaseException) -> str:
    """Kind and places of an error, without its message, which may hold users' text."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    places = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__} at {places}"


def _marked(send: Send, outcome: Outcome) -> Send:
    """Adds the request's id and what browsers have to heed to the head of the answer."""

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            outcome.status = message["status"]
            extra = {**_HEADERS, b"x-request-id": outcome.request_id.encode()}
            present = {name.lower() for name, _ in message.get("headers", ())}
            added = [(name, value) for name, value in extra.items() if name not in present]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        with suppress(OSError):
            await send(message)

    return marked


async def _send_error(send: Send, status: int, message: str, headers: dict[str, str]) -> None:
    content = json.dumps({"error": message}, ensure_ascii=False).encode()
    lines = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    head = [(name.lower().encode(), value.encode()) for name, value in lines.items()]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": content})
