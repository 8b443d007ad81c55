"""The log of a run: what is damaged in it is left out, whatever it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from graftmt.errors import GraftError
from graftmt.folders import watched
from graftmt.training.journal import Journal, read_log

GOOD = {"event": "train", "stage": 0, "step": 1, "loss": 2.5, "en-fr/chrf": 30}


@pytest.mark.parametrize(
    "line",
    [
        b'{"event": "train", "st',
        b"[]",
        b"7",
        b"\xff\xfe",
        b'{"event": "train"}',
        b'{"event": 1, "stage": 0, "step": 1}',
        b'{"event": "train", "stage": "0", "step": 1}',
        b'{"event": "train", "stage": -1, "step": 1}',
        b'{"event": "train", "stage": 0, "step": true}',
        b'{"event": "train", "stage": 0, "step": 1, "loss": "2"}',
        b'{"event": "validation", "stage": 0, "step": 1, "en-fr/chrf": []}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_is_left_out(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n" + line + b"\n" + json.dumps(GOOD).encode() + b"\n")
    assert read_log(path) == [GOOD, GOOD]
    Journal(tmp_path, tensorboard=False, resume_at=(0, 5)).close()
    assert read_log(path) == [GOOD, GOOD]


@pytest.mark.parametrize("resume_at", [None, (0, 5)])
def test_a_link_in_place_of_the_log_is_replaced_and_leads_nowhere(tmp_path: Path, resume_at: tuple[int, int] | None) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.jsonl").symlink_to(tmp_path / "outside.jsonl")
    with watched(tmp_path / "run"):
        journal = Journal(tmp_path / "run", tensorboard=False, resume_at=resume_at)
        journal.write("train", 0, 1, loss=2.5)
        journal.close()
    assert not (tmp_path / "outside.jsonl").exists()
    assert [event["step"] for event in read_log(tmp_path / "run" / "log.jsonl")] == [1]


def test_a_pipe_in_place_of_the_log_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.jsonl")
    with pytest.raises(GraftError, match=r"log\.jsonl is a device\b"):
        Journal(tmp_path, tensorboard=False, resume_at=(0, 5))


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(GraftError, match=r"log\.jsonl"):
        read_log(tmp_path / "log.jsonl")
