"""The engine: lines of all users in common batches, each translated by its own composition; bounded, cancelled, closed."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest
from patience import PATIENCE
from server.conftest import DIRECTIONS, LINES

from graftmt.decoding import SearchOptions
from graftmt.errors import LanguageError
from graftmt.server.engine import BatchFacts, Engine, EngineOptions
from graftmt.server.refusals import Refused
from graftmt.translation_requests import LONGEST_SOURCE, LongLine, Request, Translation
from graftmt.translator import Translator

SEARCH = SearchOptions(beam=2, n_best=2)


def requests(source: str, target: str) -> list[Request]:
    return [Request(line, source, target) for line in LINES[source]]


def check_same(one: list[list[Translation]], other: list[list[Translation]]) -> None:
    """The same text, or another one whose score is within 1e-4: what else is in a batch may change the last bits."""
    for found, wanted in zip(one, other, strict=True):
        for left, right in zip(found, wanted, strict=True):
            assert left.score == pytest.approx(right.score, abs=1e-4)
        if found[0].text != wanted[0].text:
            assert found[0].score == pytest.approx(wanted[0].score, abs=1e-4)


@pytest.fixture(scope="module")
def alone(offline: Translator) -> dict[tuple[str, str], list[list[Translation]]]:
    """Each direction translated by itself, in one thread."""
    return {pair: offline.translate_requests(requests(*pair), SEARCH) for pair in DIRECTIONS}


def test_interleaved_directions_never_see_each_others_packs(offline: Translator, alone: Any) -> None:
    """Many threads, all directions at once, in whatever batches come of it."""
    batches: list[BatchFacts] = []
    engine = Engine(EngineOptions(wait=0.02, workers=2), batches.append)
    order = [pair for pair in DIRECTIONS for _ in range(6)]
    random.Random(1).shuffle(order)
    with ThreadPoolExecutor(16) as pool:
        tickets = list(pool.map(lambda pair: engine.submit(offline, requests(*pair), SEARCH), order))
    found = [ticket.result.result(PATIENCE) for ticket in tickets]
    engine.close(5)
    for pair, each in zip(order, found, strict=True):
        check_same(each, alone[pair])
    assert any(len(set(batch.directions)) > 1 for batch in batches), "no batch had two directions: this test proves nothing"
    for batch in batches:
        first, *others = (offline.composition(*pair) for pair in batch.directions)
        assert all(other is first for other in others)


def test_in_equal_batches_the_result_is_bit_equal(offline: Translator, alone: Any) -> None:
    """One thread after the other, a request a batch, other directions in between: nothing is left behind by them."""
    engine = Engine(EngineOptions(wait=0.0))
    for pair in [*DIRECTIONS, *reversed(DIRECTIONS)]:
        for request in requests(*pair)[:2]:
            (found,) = engine.submit(offline, [request], SEARCH).result.result(PATIENCE)
            (wanted,) = offline.translate_requests([request], SEARCH)
            assert found == wanted  # text, score and length, to the last bit
    engine.close(5)


def test_directions_of_one_composition_share_a_batch(offline: Translator) -> None:
    batches: list[BatchFacts] = []
    engine = Engine(EngineOptions(wait=0.3), batches.append)
    pairs = [("en", "fr"), ("de", "en"), ("fr", "de"), ("ru", "en")]  # all by the base alone
    tickets = [engine.submit(offline, [Request(LINES[pair[0]][0], *pair)], SEARCH) for pair in pairs]
    for ticket in tickets:
        ticket.result.result(PATIENCE)
    engine.close(5)
    assert [sorted(batch.directions) for batch in batches] == [sorted(pairs)]


def test_a_line_alone_does_not_wait_longer_than_the_bound(offline: Translator) -> None:
    engine = Engine(EngineOptions(wait=0.01))
    ticket = engine.submit(offline, [Request("Monday", "en", "fr")], SEARCH)
    assert ticket.result.result(PATIENCE)[0][0].text == "lundi"
    engine.close(5)


def test_empty_lines_and_empty_requests_cost_nothing(offline: Translator) -> None:
    engine = Engine()
    assert engine.submit(offline, [], SEARCH).result.result(0) == []
    found = engine.submit(offline, [Request("", "en", "fr"), Request("  ", "el", "uk")], SEARCH).result.result(1)
    assert [each[0].text for each in found] == ["", ""]
    engine.close(5)


def test_errors_of_a_request_are_its_own(offline: Translator) -> None:
    engine = Engine()
    with pytest.raises(LanguageError, match="xx"):
        engine.submit(offline, [Request("a", "xx", "fr")], SEARCH)
    with pytest.raises(LongLine):
        engine.submit(offline, [Request("a " * (LONGEST_SOURCE + 1), "en", "fr")], SEARCH)
    assert engine.waiting == 0
    assert engine.submit(offline, [Request("Monday", "en", "fr")], SEARCH).result.result(PATIENCE)[0][0].text == "lundi"
    engine.close(5)


class Slow:
    """Holds the engine's only thread in a batch until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from graftmt.server import engine

        self.begun, self.go = threading.Event(), threading.Event()
        self.real = engine.translate_encoded
        monkeypatch.setattr(engine, "translate_encoded", self)

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.begun.set()
        assert self.go.wait(PATIENCE)
        return self.real(*arguments, **more)


def test_a_full_queue_refuses_and_says_when_to_come_back(offline: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, engine = Slow(monkeypatch), Engine(EngineOptions(wait=0.0, queue=5))
    first = engine.submit(offline, requests("en", "fr")[:1], SEARCH)
    assert slow.begun.wait(PATIENCE)
    second = engine.submit(offline, requests("fr", "de"), SEARCH)
    with pytest.raises(Refused) as refused:
        engine.submit(offline, requests("de", "en"), SEARCH)
    assert refused.value.status == 429 and (refused.value.retry_after or 0) >= 1
    slow.go.set()
    assert len(first.result.result(PATIENCE)) == 1 and len(second.result.result(PATIENCE)) == 4  # what was accepted is done
    assert len(engine.submit(offline, requests("de", "en"), SEARCH).result.result(PATIENCE)) == 3
    engine.close(5)


def test_a_request_larger_than_the_queue_is_taken_when_nothing_waits(offline: Translator) -> None:
    engine = Engine(EngineOptions(queue=2))
    assert len(engine.submit(offline, requests("en", "fr"), SEARCH).result.result(PATIENCE)) == 5
    engine.close(5)


def test_lines_of_a_client_that_left_are_dropped(offline: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[BatchFacts] = []
    slow, engine = Slow(monkeypatch), Engine(EngineOptions(wait=0.0), batches.append)
    first = engine.submit(offline, requests("en", "fr")[:1], SEARCH)
    assert slow.begun.wait(PATIENCE)
    gone, stays = engine.submit(offline, requests("el", "en"), SEARCH), engine.submit(offline, requests("de", "en"), SEARCH)
    gone.cancel()
    slow.go.set()
    assert len(stays.result.result(PATIENCE)) == 3 and len(first.result.result(PATIENCE)) == 1
    with pytest.raises(CancelledError):
        gone.result.result(0)
    engine.close(5)
    assert all(("el", "en") not in batch.directions for batch in batches)
    assert engine.waiting == 0


def test_time_runs_out_in_the_queue(offline: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, engine = Slow(monkeypatch), Engine(EngineOptions(wait=0.0))
    engine.submit(offline, requests("en", "fr")[:1], SEARCH)
    assert slow.begun.wait(PATIENCE)
    late = engine.submit(offline, requests("de", "en"), SEARCH, seconds=0.01)
    time.sleep(0.02)
    slow.go.set()
    with pytest.raises(Refused) as refused:
        late.result.result(PATIENCE)
    assert refused.value.status == 503
    engine.close(5)


def test_closing_finishes_what_was_accepted_and_takes_no_more(offline: Translator) -> None:
    engine = Engine(EngineOptions(wait=5.0))  # a long wait, which closing cuts short
    tickets = [engine.submit(offline, requests(*pair), SEARCH) for pair in DIRECTIONS[:4]]
    engine.close(60)
    assert all(ticket.result.done() and ticket.result.exception() is None for ticket in tickets)
    with pytest.raises(Refused) as refused:
        engine.submit(offline, requests("en", "fr"), SEARCH)
    assert refused.value.status == 503


def test_one_bad_line_of_a_batch_fails_alone(offline: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    from graftmt.server import engine as module

    real = module.translate_encoded

    def fails(model: Any, wanted: Any, encoded: Any, options: Any, **more: Any) -> Any:
        if any(request.line == "Monday" for request in wanted):
            raise RuntimeError("no memory for this one")
        return real(model, wanted, encoded, options, **more)

    monkeypatch.setattr(module, "translate_encoded", fails)
    engine = Engine(EngineOptions(wait=0.2))
    good = [engine.submit(offline, [Request(line, "en", "fr")], SEARCH) for line in ("3 days ago", "in 3 days")]
    bad = engine.submit(offline, [Request("Monday", "en", "fr")], SEARCH)
    assert [ticket.result.result(PATIENCE)[0][0].text for ticket in good] == ["il y a 3 jours", "dans 3 jours"]
    with pytest.raises(Refused) as refused:
        bad.result.result(PATIENCE)
    assert refused.value.status == 500 and "Monday" not in str(refused.value)
    engine.close(5)


def test_a_long_document_lets_others_pass(offline: Translator) -> None:
    """Lines of one request are due one after the other, so that a short request need not wait for all of them."""
    heard: list[str] = []
    engine = Engine(EngineOptions(wait=0.0, batch_tokens=60))
    long = engine.submit(
        offline,
        [Request(f"{number} days ago", "en", "fr") for number in range(80)],
        SEARCH,
        on_line=lambda *_: heard.append("long"),
    )
    short = engine.submit(offline, [Request("Monday", "en", "fr")], SEARCH, on_line=lambda *_: heard.append("short"))
    short.result.result(PATIENCE)
    assert "short" in heard and heard.count("long") < 80
    long.result.result(PATIENCE)
    engine.close(5)
