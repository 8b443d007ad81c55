"""`graftmt serve --ray`: the same clients and the same answers from two replicas on a real Ray cluster of this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from patience import until
from server.conftest import DEMO, LINES, Asked, process
from server.test_clients import (  # noqa: F401  (the same tests, against the `live` of this file)
    npm_folder,
    test_schemathesis_finds_no_failure,
    test_the_npm_clients_talk_to_it,
)
from server.test_faults import Load
from server.test_libretranslate import (  # noqa: F401
    test_a_text_for_a_text_and_a_list_for_a_list,
    test_deep_translator_talks_to_it,
    test_detection_of_one_text_and_of_several,
    test_fields_come_as_json_form_or_query,
    test_get_with_a_body_or_a_json_type_without_one,
    test_libretranslatepy_talks_to_it,
    test_mistakes_are_told_in_a_sentence,
    test_unknown_paths_and_methods_are_json_too,
    test_what_a_page_asks_first,
    test_what_is_only_written_is_told,
)
from server.test_texts import test_a_stream_has_sentences_in_order_with_their_places  # noqa: F401

pytest.importorskip("ray.serve", reason="the extra graftmt[ray-serve] is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


class OnRay(Asked):
    """`graftmt serve --ray` as a process."""

    def __init__(self, url: str, errors: Path) -> None:
        self.url, self.errors = url, errors


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, packs: Path) -> Iterator[OnRay]:
    folder = tmp_path_factory.mktemp("ray")
    arguments = ["--ray", "--demo", "--packs", str(packs), "--replicas", "2", "--log", str(folder / "log")]
    with process(*arguments, errors=folder / "errors") as (url, started):
        yield OnRay(url, folder / "errors")
    assert started.returncode == 0 and "Traceback" not in (folder / "errors").read_text()
    until(lambda: not replicas())


def replicas() -> list[int]:
    """Process numbers of the replicas that translate."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and b"ServeReplica:graftmt:translator" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def test_two_replicas_say_where_they_are(live: OnRay) -> None:
    assert len(replicas()) == 2
    until(lambda: f"2 replicas at {live.url}/ on Ray" in live.errors.read_text())
    answer = live.get("/health", headers={"X-Request-ID": "mine"})
    assert answer.headers.get_list("x-request-id") == ["mine"] and "content-security-policy" in answer.headers


def test_a_pack_that_is_put_into_the_folder_is_served(live: OnRay, packs: Path) -> None:
    packs.joinpath("el-second.graftpack").write_bytes((DEMO / "packs" / "el-source.graftpack").read_bytes())

    def is_served() -> bool:
        sent = {"q": "Δευτέρα", "source": "el", "target": "uk", "source_pack": "el-second"}
        answers = [live.post("/v1/translate", json=sent) for _ in range(6)]
        return all(answer.status_code == 200 for answer in answers)

    until(is_served, every=0.5)


def test_a_client_that_leaves_takes_its_lines_along(live: OnRay) -> None:
    port = int(live.url.rpartition(":")[2])
    body = json.dumps({"q": [f"{n} days ago" for n in range(500)], "source": "en", "target": "uk"}).encode()
    head = b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    for _ in range(6):
        leaving = socket.create_connection(("127.0.0.1", port))
        leaving.sendall(head % len(body) + body)
        time.sleep(0.3)
        leaving.close()

    def queues() -> list[float]:
        lines = [line for _ in range(4) for line in live.get("/metrics").text.splitlines()]
        return [float(line.split()[1]) for line in lines if line.startswith("graftmt_queue_lines ")]

    until(lambda: max(queues()) == 0)
    assert live.translate("Monday", "en", "fr") == "lundi"


def test_load_is_answered_right_and_a_killed_replica_takes_only_its_own_along(live: OnRay, offline: Any) -> None:
    load = Load([live.url], offline, clients=8)
    try:
        time.sleep(5)
        assert load.wrong == [] and load.errors == [] and load.answers > 10
        os.kill(replicas()[0], signal.SIGKILL)
        time.sleep(5)
    finally:
        load.end()
    assert {status for _, status, _ in load.wrong} <= {503} and len(load.wrong) <= 8 and load.errors == []
    until(lambda: len(replicas()) == 2)  # Ray starts another one
    assert live.translate(LINES["en"], "en", "fr") == offline.translate(LINES["en"], source="en", target="fr")


def test_what_cannot_be_served_is_an_error_before_a_cluster_is_started(tmp_path: Path, graftmt: Any) -> None:
    found = graftmt("serve", "--ray", "-b", str(tmp_path))
    assert found.code == 1 and str(tmp_path) in found.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        found = graftmt("serve", "--demo", "--ray", "--port", str(taken.getsockname()[1]))
    assert found.code == 1 and "cannot listen" in found.stderr
