"""Limits, keys, logs and headers: what a hostile or careless client meets, and what an operator sees of it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from server.conftest import Live

from graftmt.errors import ConfigError
from graftmt.server.keys import Keys, hash_of, new_key
from graftmt.server.logs import JsonLog
from graftmt.server.rates import Rates
from graftmt.server.refusals import Refused

MONDAY = {"q": "Monday", "source": "en", "target": "fr"}


def connect(live: Live) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", live.port), timeout=20)
    return found


# Time and size


def test_a_slow_head_and_a_slow_body_are_ended_and_others_are_served(start_server: Callable[..., Any]) -> None:
    with start_server(header_seconds=0.4) as live:
        heads = [connect(live) for _ in range(20)]
        bodies = [connect(live) for _ in range(5)]
        later = connect(live)
        later.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = b""
        while b'{"status":"ok"}' not in answer:  # head and body may come apart
            part = later.recv(4096)
            assert part, answer
            answer += part
        assert b"200 OK" in answer
        later.sendall(b"GET /he")  # the next request of a connection that was fine
        for head in heads:
            head.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        for body in bodies:
            body.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nq=")
        assert live.translate("Monday", "en", "fr") == "lundi"
        for body in bodies:
            assert b"408" in body.recv(4096).split(b"\r\n")[0]
        for head in (*heads, later):
            assert head.recv(4096) == b""  # closed
        for each in (*heads, *bodies, later):
            each.close()
        assert live.translate("Monday", "en", "fr") == "lundi"


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(live: Live) -> None:
    with closing(connect(live)) as client:
        client.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000)
        answer = b""
        try:
            for _ in range(100):
                client.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            answer = client.recv(4096)
        except ConnectionResetError:
            answer = b"HTTP/1.1 413"  # it was sent, and lost as the connection was reset
        assert b"413" in answer.split(b"\r\n")[0]


def test_a_client_that_leaves_takes_its_lines_with_it(live: Live) -> None:
    gone = live.world.metrics.gone
    before = gone._value.get()
    body = json.dumps({**MONDAY, "q": [f"{number} days ago" for number in range(400)]}).encode()
    client = connect(live)
    client.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n")
    client.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    waited = time.monotonic() + 20
    while live.world.service.engine.waiting == 0 and time.monotonic() < waited:
        time.sleep(0.005)
    assert live.world.service.engine.waiting > 0
    client.close()
    while gone._value.get() == before and time.monotonic() < waited:
        time.sleep(0.01)
    assert live.translate("Monday", "en", "fr") == "lundi"
    assert live.world.service.engine.waiting == 0
    assert gone._value.get() == before + 1


def test_garbage_is_answered_and_forgotten(live: Live) -> None:
    for content in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    ):
        with closing(connect(live)) as client:
            client.sendall(content)
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass
    assert live.get("/health").status_code == 200


def test_stopping_finishes_what_was_accepted(start_server: Callable[..., Any]) -> None:
    with start_server(grace=30.0) as live:
        lines = [f"{number} days ago" for number in range(60)]
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(live.translate(lines, "en", "fr")))
        thread.start()
        while live.world.service.engine.waiting == 0 and thread.is_alive():
            time.sleep(0.002)
        live.stop()
        thread.join(30)
        assert answers and len(answers[0]) == 60 and "il y a 42 jours" in answers[0]


def until_ready_says(live: Live, status: int) -> None:
    while live.get("/ready").status_code != status:
        assert live.thread.is_alive()


def test_a_server_that_stops_says_so_while_it_finishes(
    start_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    held, go = threading.Event(), threading.Event()
    with start_server(grace=600.0) as live:
        engine = live.world.service.engine
        translate = engine._translate

        def slowly(*arguments: Any) -> None:
            held.set()
            assert go.wait(60)
            translate(*arguments)

        monkeypatch.setattr(engine, "_translate", slowly)
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(live.translate("Monday", "en", "fr")))
        thread.start()
        assert held.wait(60)
        assert live.get("/ready").status_code == 200
        live.server.should_exit = True  # what uvicorn does on SIGTERM
        until_ready_says(live, 503)
        assert live.get("/health").status_code == 200
        refused = live.post("/translate", json=MONDAY)
        assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0 and "stopping" in refused.json()["error"]
        go.set()
        thread.join(60)
        assert answers == ["lundi"]
        live.thread.join(60)
        assert not live.thread.is_alive()


def test_a_server_that_drains_still_takes_requests(start_server: Callable[..., Any]) -> None:
    with start_server(drain=600.0) as live:
        live.server.should_exit = True
        until_ready_says(live, 503)
        assert live.translate("Monday", "en", "fr") == "lundi"
        live.server.force_exit = True  # what uvicorn does on a second Ctrl-C
        live.thread.join(60)
        assert not live.thread.is_alive()


# Keys and rates


def test_keys_are_needed_checked_and_revoked(start_server: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key, other = new_key(path, "alice", rate=1000), new_key(path, "bob")
    assert key not in path.read_text() and hash_of(key) in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="already"):
        new_key(path, "alice")
    with start_server(keys=path) as live:
        assert live.post("/translate", json=MONDAY).status_code == 400
        assert live.post("/translate", json={**MONDAY, "api_key": "gk_wrong"}).status_code == 403
        for sent in (
            {"json": {**MONDAY, "api_key": key}},
            {"data": {**MONDAY, "api_key": key}},
            {"json": MONDAY, "headers": {"X-API-Key": key}},
            {"json": MONDAY, "headers": {"Authorization": f"Bearer {key}"}},
        ):
            assert live.post("/translate", **sent).json() == {"translatedText": "lundi"}
        assert live.post("/detect", data={"q": "Monday"}).status_code == 400
        assert live.get("/languages").status_code == 200 and live.get("/frontend/settings").json()["keyRequired"] is True
        document = json.loads(path.read_text())
        del document["keys"]["alice"]
        path.write_text(json.dumps(document))
        assert live.post("/translate", json={**MONDAY, "api_key": key}).status_code == 403
        assert live.post("/translate", json={**MONDAY, "api_key": other}).status_code == 200


def test_a_file_of_keys_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--new-key"):
        Keys(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{"keys": {"a": 5}}')
    with pytest.raises(ConfigError, match="damaged"):
        Keys(tmp_path / "bad.json")


def test_rates_fill_up_again_and_say_when() -> None:
    now = [0.0]
    rates = Rates(lambda: now[0])
    for _ in range(6):
        rates.spend("a", "requests", 1, 6)
    with pytest.raises(Refused) as refused:
        rates.spend("a", "requests", 1, 6)
    assert refused.value.status == 429 and refused.value.retry_after is not None
    rates.spend("b", "requests", 1, 6)  # others are not concerned
    now[0] += refused.value.retry_after
    rates.spend("a", "requests", 1, 6)
    rates.spend("c", "characters", 50_000, 100)  # more than a minute's worth in one: taken once, and then waited for
    with pytest.raises(Refused):
        rates.spend("c", "characters", 1, 100)
    rates.spend("d", "requests", 1, 0)


def test_limits_for_an_address_are_kept(start_server: Callable[..., Any]) -> None:
    with start_server(rate=3) as live:
        answers = [live.post("/translate", json=MONDAY) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert int(answers[-1].headers["Retry-After"]) >= 1 and "slow down" in answers[-1].json()["error"]
        # Nobody is believed who says that they come from elsewhere.
        forged = live.post("/translate", json=MONDAY, headers={"X-Forwarded-For": "8.8.8.8"})
        assert forged.status_code == 429
        assert live.get("/languages").status_code == 200
    with start_server(rate_characters=20) as live:
        assert live.post("/translate", json={**MONDAY, "q": "3 days ago, Monday"}).status_code == 200
        assert live.post("/translate", json={**MONDAY, "q": "3 days ago, Monday"}).status_code == 429


# What is told, and to whom


def test_every_answer_has_an_id_and_what_browsers_heed(live: Live) -> None:
    for answer in (
        live.get("/"),
        live.get("/nothing"),
        live.post("/translate", json=MONDAY),
        live.post("/translate", content=b"x" * 3_000_000),
    ):
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy and "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["X-Request-ID"]
        assert "server" not in answer.headers and "Access-Control-Allow-Origin" not in answer.headers
    assert live.get("/health", headers={"X-Request-ID": "mine-1"}).headers["X-Request-ID"] == "mine-1"
    assert live.get("/health", headers={"X-Request-ID": "bad id\t{}"}).headers["X-Request-ID"] != "bad id\t{}"
    page = live.get("/").text
    assert "<script>" not in page and "onclick" not in page and "style=" not in page
    assert live.get("/page/..%2fguard.py").status_code == 404 and live.get("/page/main.js").headers["Content-Type"].startswith(
        "text/java"
    )


def test_other_origins_are_allowed_where_they_are_named(start_server: Callable[..., Any]) -> None:
    with start_server(cors=("https://example.org",)) as live:
        for origin, allowed in (("https://example.org", True), ("https://evil.example", False)):
            answer = live.post("/translate", json=MONDAY, headers={"Origin": origin})
            assert (answer.headers.get("Access-Control-Allow-Origin") == origin) is allowed


def test_the_log_has_each_request_and_no_text(live: Live) -> None:
    secret = "Unbelievablesecret"
    live.translate(f"{secret} 3 days ago", "en", "uk")
    live.post("/translate", json={"q": secret, "source": secret, "target": "fr"})
    live.get("/translate", params={"q": secret})
    text = live.world.options.log.read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    assert secret not in text
    found = [entry for entry in entries if entry.get("direction") == "en-uk"][-1]
    assert found["status"] == 200 and found["characters"] == len(secret) + 11 and found["id"] and found["ms"] > 0
    assert {"route": "/translate", "status": 400}.items() <= next(
        e for e in reversed(entries) if e.get("status") == 400
    ).items()


def test_a_full_disk_loses_log_lines_and_no_requests(start_server: Callable[..., Any], tmp_path: Path) -> None:
    full = tmp_path / "full.log"
    full.symlink_to("/dev/full")
    lost: list[int] = []
    log = JsonLog(None, lambda: lost.append(1))
    log.path = full
    log.write({"event": "a"})
    log.write({"event": "b"})
    assert len(lost) == 2
    log.path = tmp_path / "free.log"
    log.write({"event": "c"})
    assert [json.loads(line)["event"] for line in (tmp_path / "free.log").read_text().splitlines()] == ["c"]


def test_a_mistake_of_ours_is_a_500_without_insides(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*arguments: Any, **options: Any) -> None:
        raise KeyError("Monday is secret")

    monkeypatch.setattr(live.world.service, "translate_texts", broken)
    answer = live.post("/translate", json=MONDAY)
    assert answer.status_code == 500 and "log has more" in answer.json()["error"]
    assert "KeyError" not in answer.text and "secret" not in answer.text and answer.headers["X-Request-ID"] in answer.text
    time.sleep(0.1)
    entry = next(json.loads(line) for line in reversed(live.world.options.log.read_text().splitlines()) if "KeyError" in line)
    assert entry["failed"].startswith("KeyError at ") and "secret" not in json.dumps(entry)


def test_metrics_count_requests_batches_and_packs(live: Live) -> None:
    live.translate("Monday", "en", "fr")
    text = live.get("/metrics").text
    for name in (
        'graftmt_requests_total{route="/translate",status="200"}',
        'graftmt_translation_seconds_count{source="en",target="fr"}',
        "graftmt_batch_lines_count",
        "graftmt_queue_lines",
        'graftmt_pack{fingerprint="bbe841630fe7a5e8",name="el-source"} 1.0',
    ):
        assert name in text
