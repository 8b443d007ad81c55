"""A web server for a folder, with ranges, that can also be made to misbehave."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

Misbehaviour = Callable[["Handler", bytes], None]


@dataclass
class WebFolder:
    """A folder that is given out, what was asked for, and which paths are answered otherwise."""

    folder: Path
    address: str = ""
    asked: list[tuple[str, str | None, dict[str, str]]] = field(default_factory=list)
    """Path, Range and all headers of each request."""
    odd: dict[str, Misbehaviour] = field(default_factory=dict)
    """By the end of a path."""

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: WebFolder

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        path = unquote(urlsplit(self.path).path)
        self.web.asked.append((path, self.headers.get("Range"), dict(self.headers)))
        file = self.web.folder / path.lstrip("/")
        content = file.read_bytes() if file.is_file() else None
        try:
            for ending, misbehave in self.web.odd.items():
                if path.endswith(ending):
                    misbehave(self, content or b"")
                    return
            self.give(content)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def give(self, content: bytes | None) -> None:
        """As a server should."""
        if content is None:
            self.send_error(404)
            return
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start = int(found[1]) if found else 0
        self.send_response(206 if found else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if found:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(content[start:])


@contextmanager
def serve(folder: Path) -> Iterator[WebFolder]:
    web = WebFolder(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"web": web})) as server:
        web.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield web
        finally:
            server.shutdown()
