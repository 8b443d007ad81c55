"""A server for tests: the demo's base and packs, which come with the package, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from patience import PATIENCE, until

pytest.importorskip("fastapi", reason="the extra graftmt[server] is not installed")

DEMO = Path(__file__).parents[2] / "src" / "graftmt" / "demo"
LINES = {
    "en": ["3 days ago", "5 kilometers per hour", "French and Greek", "Monday", "in 12 weeks: Rome and Athens"],
    "fr": ["il y a 3 jours", "5 kilomètres par heure", "lundi", "Athènes et Rome"],
    "de": ["vor 3 Tagen", "Montag", "5 Kilometer pro Stunde"],
    "ru": ["3 дня назад", "понедельник", "5 километров в час"],
    "el": ["πριν από 3 ημέρες", "Δευτέρα", "5 χιλιόμετρα ανά ώρα", "Ρώμη και Αθήνα"],
}
DIRECTIONS = [
    *[("en", "fr"), ("en", "uk"), ("el", "en"), ("el", "uk"), ("fr", "de"), ("ru", "uk"), ("el", "fr"), ("de", "en")],
]


class Asked:
    """A running server, as its clients see it."""

    url: str

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=60, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return httpx.post(self.url + path, timeout=60, **options)

    def http(self, method: str, path: str, **options: Any) -> httpx.Response:
        return httpx.request(method, self.url + path, timeout=60, **options)

    def translate(self, q: Any, source: str, target: str, **fields: Any) -> Any:
        answer = self.post("/translate", json={"q": q, "source": source, "target": target, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()["translatedText"]


class Live(Asked):
    """One in this process."""

    def __init__(self, app: Any, options: Any) -> None:
        from graftmt.server.running import Server, listening_socket, uvicorn_config

        self.app, self.world = app, app.state.world
        self.socket = listening_socket(options)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = Server(self.world, uvicorn_config(app, options))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive(), "the server did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        self.socket.close()


@contextmanager
def process(*arguments: str, errors: Path | None = None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`graftmt serve` as a process of its own: its address, and the process. What it says goes to `errors`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "graftmt", "serve", "--port", str(port), "--device", "cpu", *arguments]
    with (errors or Path(os.devnull)).open("wb") as said:
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
    url = f"http://127.0.0.1:{port}"
    try:

        def is_ready() -> bool:
            assert started.poll() is None, errors and errors.read_text()
            with suppress(httpx.HTTPError):
                return httpx.get(url + "/ready", timeout=PATIENCE).status_code == 200
            return False

        until(is_ready, every=0.1)
        yield url, started
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(PATIENCE)


@contextmanager
def serving(**changes: Any) -> Iterator[Live]:
    """A live server of the demo, or of other options."""
    from graftmt.server.application import make_app, make_world
    from graftmt.server.serve_options import ServeOptions

    values: dict[str, Any] = {"demo": True, "port": 0, "device": "cpu", "grace": 5.0} | changes
    options = ServeOptions(**values)
    live = Live(make_app(make_world(options)), options)
    try:
        yield live
    finally:
        live.stop()


@pytest.fixture(scope="session")
def start_server() -> Callable[..., Any]:
    """`with start_server(queue=1) as live: …`"""
    return serving


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One for all tests that change nothing about it."""
    folder = tmp_path_factory.mktemp("server")
    with serving(log=folder / "server.log") as server:
        yield server


@pytest.fixture(scope="session")
def demo_base() -> Any:
    from graftmt.base import Base

    return Base.load(DEMO / "base")


@pytest.fixture(scope="session")
def offline(demo_base: Any) -> Any:
    """The façade on the same base and packs: what every answer is compared with."""
    from graftmt.translator import Translator

    return Translator(demo_base, sorted((DEMO / "packs").iterdir()))


@pytest.fixture
def pack_folder(tmp_path: Path) -> Path:
    """A folder with the demo's two packs, to be changed."""
    folder = tmp_path / "packs"
    shutil.copytree(DEMO / "packs", folder)
    return folder
