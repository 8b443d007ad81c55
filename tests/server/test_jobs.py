"""Files as jobs: layout kept, shared by servers, begun again after an interruption, each owner's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import until
from server.conftest import Live

from graftmt.errors import GraftError
from graftmt.folders import claimed
from graftmt.server.background_jobs import Jobs
from graftmt.server.keys import new_key

TEXT = "Monday\n\n\t3 days ago\n" * 20
WANTED = "lundi\n\n\til y a 3 jours\n" * 20


def send(live: Live, name: str = "notes.txt", content: bytes = TEXT.encode(), path: str = "/v1/jobs", **fields: Any) -> Any:
    data = {"source": "en", "target": "fr", **fields}
    return live.post(path, files={"file": (name, content)}, data=data)


def finished(live: Live, identity: str, **options: Any) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        found: dict[str, Any] = live.get(f"/v1/jobs/{identity}", **options).json()
        return found if found["state"] in ("done", "failed") else None

    return until(over, every=0.05)


@pytest.mark.slow
def test_a_file_is_translated_fetched_and_deleted(start_server: Callable[..., Any], tmp_path: Path) -> None:
    from libretranslatepy import LibreTranslateAPI

    with start_server(jobs=tmp_path / "jobs") as live:
        job = send(live).json()
        assert job["state"] == "waiting" and live.get(f"/v1/jobs/{job['id']}").status_code == 200
        assert finished(live, job["id"])["state"] == "done"
        answer = live.get(f"/v1/jobs/{job['id']}/result")
        assert answer.text == WANTED and "notes.fr.txt" in answer.headers["Content-Disposition"]
        assert live.post("/translate", json={"q": "Monday", "source": "en", "target": "fr"}).status_code == 200
        file = send(live, "page.html", b"<p>Monday</p><code>Monday</code>", "/translate_file").json()["translatedFileUrl"]
        assert live.get(file.removeprefix(live.url)).text == "<p>lundi</p><code>Monday</code>"
        assert live.http("DELETE", f"/v1/jobs/{job['id']}").status_code == 200
        assert live.get(f"/v1/jobs/{job['id']}").status_code == 404
        assert not (tmp_path / "jobs" / job["id"]).exists()
        for name, content, words in (("a.docx", b"x", "docx"), ("a.txt", b"\xff\xfe", "UTF-8"), ("", b"x", "file is missing")):
            bad = send(live, name, content)
            assert bad.status_code == 400 and words in bad.json()["error"]
        assert send(live, target="xx").status_code == 400
        assert send(live, content=b"x" * 11_000_000).status_code == 413
        assert live.get("/v1/jobs/../../etc/result").status_code == 404
        assert LibreTranslateAPI(live.url).translate("Monday", "en", "fr") == "lundi"


def test_another_server_takes_what_one_left(start_server: Callable[..., Any], tmp_path: Path) -> None:
    """A job is stored while no server works; one that another process holds is left to it."""
    jobs = Jobs(tmp_path / "jobs", 1)
    held, free = (
        jobs.create("a.txt", text, source="en", target="fr", form="text", owner="") for text in ("Monday", "3 days ago")
    )
    with claimed(tmp_path / "jobs" / held.id / "lock") as mine:
        assert mine
        with start_server(jobs=tmp_path / "jobs") as live:
            assert finished(live, free.id)["state"] == "done"
            assert live.get(f"/v1/jobs/{held.id}").json()["state"] == "running"
            assert live.get(f"/v1/jobs/{held.id}/result").status_code == 404
    with start_server(jobs=tmp_path / "jobs") as live:
        assert finished(live, held.id)["state"] == "done"
        assert live.get(f"/v1/jobs/{held.id}/result").text == "lundi"


def test_jobs_are_their_owners(start_server: Callable[..., Any], tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    alice, bob = new_key(keys, "alice"), new_key(keys, "bob")
    with start_server(jobs=tmp_path / "jobs", keys=keys) as live:
        assert send(live).status_code == 400
        job = send(live, content=b"Monday", api_key=alice).json()
        assert live.get(f"/v1/jobs/{job['id']}", headers={"X-API-Key": bob}).status_code == 404
        assert finished(live, job["id"], headers={"X-API-Key": alice})["state"] == "done"


def test_old_jobs_are_forgotten_and_damaged_ones_do_no_harm(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "jobs", 1e-9)
    old, unfinished = (jobs.create("a.txt", "x", source="en", target="fr", form="text", owner="") for _ in range(2))
    jobs.result(old).write_text("y")
    broken = tmp_path / "jobs" / ("b" * 22)
    broken.mkdir()
    (broken / "job.json").write_text("{")
    jobs._forget_old()
    assert {path.name for path in (tmp_path / "jobs").iterdir()} == {"jobs.json", unfinished.id, broken.name}
    assert [job.id for job in jobs._unfinished()] == [unfinished.id]


def test_no_other_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(GraftError, match="folder of jobs"):
        Jobs(tmp_path, 1)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_without_a_folder_there_are_no_jobs(live: Live) -> None:
    assert send(live).status_code == 404 and live.get("/frontend/settings").json()["filesTranslation"] is False
