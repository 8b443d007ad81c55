"""HTTP connections to servers that may be anybody's: web addresses only, also by redirects, and with time limits. Layer 5."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from graftmt.errors import GraftError

SCHEMES = ("http", "https")
MOST_REDIRECTS = 5
SECRET_HEADERS = ("authorization", "cookie")
"""Not sent on to another server by a redirect."""


class SharingError(GraftError):
    """A base or a pack that could not be had from where it is, or not be put there."""


class Refused(SharingError):
    """What a server gave cannot be meant; asking again does not help."""


class StatusError(SharingError):
    """A server that answered with an error."""

    def __init__(self, url: str, status: int, reason: str) -> None:
        advice = {
            401: "it is not open to everyone: log in (hf auth login), or ask its owner",
            403: "it is not open to everyone: log in (hf auth login), or ask its owner",
            404: "check the address",
            429: "it has had too many requests; wait and run the same command again",
        }.get(status, "run the same command again later")
        super().__init__(f"{url}: the server answered {status} {reason[:80]}; {advice}.")
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a server may take."""

    connect: float = 30.0
    """Seconds for a connection, and for each read."""
    window: float = 30.0
    """Seconds in which at least `least` bytes must come …"""
    least: int = 1024
    """… or the connection is closed."""
    document: float = 120.0
    """Seconds for an index or the like, in all."""


PATIENCE = Patience()


class Watch:
    """Closes a connection over which too little comes, or that has a deadline. A timeout of the socket alone is not enough: one
    byte a second never meets it, nor do headers without an end."""

    def __init__(self, patience: Patience, deadline: float | None = None) -> None:
        self.patience, self.bytes, self.fired = patience, 0, ""
        self.connection: socket.socket | None = None
        self.deadline = None if deadline is None else time.monotonic() + deadline
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, name="graftmt-watch", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        since, seen = time.monotonic(), 0
        while not self.over.wait(min(1.0, self.patience.window / 4)):
            now = time.monotonic()
            if self.deadline is not None and now > self.deadline:
                return self._close("it did not come to an end in time")
            if self.bytes - seen >= self.patience.least:
                since, seen = now, self.bytes
            elif now - since > self.patience.window:
                return self._close(f"fewer than {self.patience.least:,} bytes came in {self.patience.window:.0f} seconds")

    def _close(self, why: str) -> None:
        self.fired = why
        if self.connection is not None:
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self.over.set()


class _WebRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects lead to web addresses only, and from https to nothing less; what is secret stays with its server."""

    max_redirections = MOST_REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        check_url(newurl, f"{req.full_url} leads to it")
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if old.scheme == "https" and new.scheme != "https":
            raise Refused(f"{req.full_url} leads from https to {newurl}; not followed.")
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and (old.scheme, old.netloc) != (new.scheme, new.netloc):
            for name in [name for name in following.headers if name.lower() in SECRET_HEADERS]:
                del following.headers[name]
        return following


class _WatchedHTTP(urllib.request.HTTPHandler):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_watched(http.client.HTTPConnection, self.watch), req)


class _WatchedHTTPS(urllib.request.HTTPSHandler):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_watched(http.client.HTTPSConnection, self.watch), req)


def _watched(kind: type[http.client.HTTPConnection], watch: Watch) -> Any:
    """A class of connections whose socket a watch may close."""

    class Connection(kind):  # type: ignore[misc, valid-type]
        def connect(self) -> None:
            super().connect()
            watch.connection = self.sock

    return Connection


class Reply:
    """A server's answer: its status, its headers, and its content a piece at a time."""

    def __init__(self, url: str, response: Any, watch: Watch) -> None:
        self.url, self.response, self.watch = url, response, watch
        self.status: int = response.status
        self.headers: Message = response.headers

    def read(self, most: int) -> bytes:
        """Some bytes, at most `most`; none at the end."""
        try:
            content: bytes = self.response.read1(most)
        except (http.client.HTTPException, OSError, ValueError, AttributeError) as error:
            raise _broken(self.url, self.watch, error) from None
        if self.watch.fired:
            raise _broken(self.url, self.watch, None)
        self.watch.bytes += len(content)
        return content


@contextmanager
def request(
    url: str, headers: Mapping[str, str] | None = None, *, patience: Patience = PATIENCE, deadline: float | None = None
) -> Iterator[Reply]:
    """A GET of a web address. Any status but 200 and 206 is a StatusError."""
    check_url(url)
    watch = Watch(patience, deadline)
    handlers = (urllib.request.ProxyHandler(), _WatchedHTTP(watch), _WatchedHTTPS(watch), _WebRedirects())
    opener = urllib.request.OpenerDirector()  # without those for file:, ftp: and data:
    for handler in (*handlers, urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor()):
        opener.add_handler(handler)
    asked = urllib.request.Request(url, headers={"User-Agent": "graftmt", "Accept-Encoding": "identity", **(headers or {})})
    try:
        try:
            response = opener.open(asked, timeout=patience.connect)
        except urllib.error.HTTPError as error:
            error.close()
            raise _status(url, error) from None
        except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError, AttributeError) as error:
            raise _broken(url, watch, error) from None
        if response is None:
            raise Refused(f"{url}: there was no answer that can be read.")
        with response:
            if response.status not in (200, 206):
                raise StatusError(url, response.status, response.reason)
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise Refused(
                    f"{url}: the server sent {response.headers['Content-Encoding']!r:.40} content that was not asked for."
                )
            yield Reply(url, response, watch)
    finally:
        watch.stop()


def check_url(url: str, why: str = "") -> None:
    """Web addresses only, without a password in them."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError as error:
        raise Refused(f"{url!r:.300} is no web address ({error}).") from None
    reason = f" ({why})" if why else ""
    if parts.scheme not in SCHEMES or not host:
        raise Refused(f"{url!r:.300} is no web address (http or https){reason}; not opened.")
    if parts.username is not None or parts.password is not None:
        raise Refused(f"the address of {host} has a name or a password in it{reason}, which would end up in logs; not opened.")
    if not url.isprintable() or " " in url:
        raise Refused(f"{url!r:.300} has characters that a web address cannot have{reason}; not opened.")


def _status(url: str, error: urllib.error.HTTPError) -> SharingError:
    if error.code in (301, 302, 303, 307, 308):
        location = str(error.headers.get("Location", "nowhere"))
        return Refused(f"{url} leads to {location!r:.200}: that is no web address, or there is no end to it; not followed.")
    return StatusError(url, error.code, str(error.reason))


def _broken(url: str, watch: Watch, error: Exception | None) -> SharingError:
    reason = watch.fired or str(getattr(error, "reason", error)) or type(error).__name__
    return SharingError(f"{url}: the connection failed ({reason[:200]}). Run the same command again to resume.")
