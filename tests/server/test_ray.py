"""The same application as two replicas on Ray Serve: clients talk to it, and every answer is right."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from server.conftest import DIRECTIONS, LINES

pytestmark = pytest.mark.slow


def test_two_replicas_answer_like_one(offline: Any, tmp_path: Path) -> None:
    pytest.importorskip("ray.serve", reason="ray[serve] is not installed")
    from libretranslatepy import LibreTranslateAPI

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "graftmt", "serve", "--demo", "--ray", "2", "--port", str(port), "--device", "cpu"]
    with (tmp_path / "ray.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "RAY_DISABLE_DASHBOARD": "1"})
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                if httpx.get(url + "/ready", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            assert process.poll() is None, (tmp_path / "ray.log").read_text()[-3000:]
            time.sleep(1)
        assert LibreTranslateAPI(url).translate("πριν από 3 ημέρες", "el", "uk") == "3 дні тому"
        wanted = [(line, *pair) for pair in DIRECTIONS for line in LINES[pair[0]]] * 2

        def ask(each: tuple[str, str, str]) -> str:
            answer = httpx.post(url + "/translate", json=dict(zip(("q", "source", "target"), each, strict=True)), timeout=120)
            assert answer.status_code == 200, answer.text
            return str(answer.json()["translatedText"])

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, wanted))
        for each, text in zip(wanted, found, strict=True):
            assert text == offline.translate([each[0]], source=each[1], target=each[2])[0]
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
