"""Faults under load: packs that come, go and break, clients that leave, a killed replica. The rest goes on, and is right."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from patience import PATIENCE
from server.conftest import DEMO, DIRECTIONS, LINES, process

pytestmark = pytest.mark.slow


class Load:
    """Clients that ask until they are stopped; what they hear is compared with the offline translation."""

    def __init__(self, urls: list[str], offline: Any, clients: int = 6) -> None:
        self.urls, self.stop = urls, threading.Event()
        pairs = [pair for pair in DIRECTIONS if "el" not in pair]  # the Greek pack comes and goes
        self.right = {
            (line, *pair): offline.translate([line], source=pair[0], target=pair[1])[0]
            for pair in pairs
            for line in LINES[pair[0]]
        }
        self.answers, self.wrong = 0, list[Any]()
        self.errors: list[tuple[str, str]] = []
        self.threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def _ask(self, number: int) -> None:
        chance, url = random.Random(number), self.urls[number % len(self.urls)]
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            while not self.stop.is_set():
                each = chance.choice(list(self.right))
                try:
                    answer = client.post("/translate", json=dict(zip(("q", "source", "target"), each, strict=True)))
                except httpx.HTTPError as error:
                    self.errors.append((url, type(error).__name__))
                    self.stop.wait(0.1)
                    continue
                self.answers += 1
                if answer.status_code != 200 or answer.json()["translatedText"] != self.right[each]:
                    self.wrong.append((each, answer.status_code, answer.text))

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(PATIENCE + 10)
            assert not thread.is_alive(), "a request hangs"


def test_faults_under_load_concern_nobody_else(offline: Any, pack_folder: Path, tmp_path: Path) -> None:
    places = "--base", str(DEMO / "base"), "--packs", str(pack_folder), "--log", str(tmp_path / "log")
    with process(*places, "--header-seconds", "2") as (url, server):
        load = Load([url], offline)
        greek = pack_folder / "el-source.graftpack"
        port = int(url.rpartition(":")[2])
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        for client in slow:
            client.sendall(b"POST /translate HTTP/1.1\r\nX-Slow: ")
        body = json.dumps({"q": ["3 days ago"] * 300, "source": "en", "target": "uk"}).encode()
        for turn in range(4):
            greek.unlink()
            (pack_folder / f"bad{turn}.graftpack").write_bytes(os.urandom(5000))
            leaving = socket.create_connection(("127.0.0.1", port))
            leaving.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n")
            leaving.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            assert httpx.post(url + "/translate", content=b"x" * 10_000_000, timeout=PATIENCE).status_code == 413
            leaving.close()
            if turn == 1:  # as if the disk were full from here on
                size = (tmp_path / "log").stat().st_size
                resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, size))
            time.sleep(2.5)
            shutil.copy(DEMO / "packs" / greek.name, greek)
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            for number in range(1000):
                assert client.post("/translate", data={"q": "a", "source": "en", "target": f"q{number}"}).status_code == 400
        load.end()
        assert load.answers > 20 and load.wrong == [] and load.errors == []
        for _ in range(200):
            if "el" in {entry["code"] for entry in httpx.get(url + "/languages").json()}:
                break
            time.sleep(0.1)
        found = httpx.post(url + "/translate", data={"q": "Δευτέρα", "source": "el", "target": "uk"}, timeout=PATIENCE)
        assert found.json()["translatedText"] == "понеділок"  # it has recovered by itself
        assert len(httpx.get(url + "/v1/packs").json()["problems"]) == 4
        lost = [
            line for line in httpx.get(url + "/metrics").text.splitlines() if line.startswith("graftmt_log_lines_lost_total ")
        ]
        assert float(lost[0].split()[1]) > 1000  # those of the unknown languages alone
        assert server.poll() is None


def test_a_replica_that_is_killed_takes_only_its_own_requests_along(offline: Any) -> None:
    with process("--demo") as (one, first), process("--demo") as (two, second):
        load = Load([one, two], offline)
        time.sleep(4)
        first.kill()
        time.sleep(4)
        load.end()
        assert load.wrong == [] and load.errors and {url for url, _ in load.errors} == {one}
        assert httpx.get(two + "/ready").status_code == 200 and second.poll() is None
