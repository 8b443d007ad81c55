"""The batching engine: lines of all users wait in one queue; those that share a composition are translated together. Layer 6.

Any thread may submit. Workers take the line that is due first, wait for company within the latency bound, and fill a batch with
lines of like length, whoever sent them and whatever their direction, as long as base and packs are the same.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from graftmt.decoding import SearchOptions
from graftmt.engines import Searcher
from graftmt.errors import ConfigError
from graftmt.packs import Composition
from graftmt.server.refusals import Refused
from graftmt.translation_requests import Request, Translation, encoded_line, translate_encoded
from graftmt.translator import Translator

logger = logging.getLogger(__name__)

NEXT_LINE = 0.005
"""Seconds by which each further line of one request is due later: a long document lets short requests of others pass."""
LIKE_LENGTH, SHORT = 2.0, 8
"""A batch takes lines at most this many times as long or as short as its first, and `SHORT` tokens more."""
LONGEST_RETRY = 30

Key = tuple[int, SearchOptions]
SearcherOf = Callable[[Translator, Composition], Searcher]
"""What searches with a composition of a translator."""
OnLine = Callable[[int, list[Translation]], None]
"""Hears the translations of a line as soon as they are there, by its number; from a thread of the engine."""


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How requests are put together into batches."""

    wait: float = 0.005
    """Seconds that the first line of a batch waits for others, if the engine has nothing else to do."""
    batch_tokens: int = 4096
    """Source tokens × beam in one batch; 1 translates each line by itself."""
    queue: int = 2000
    """Lines that may wait. A request beyond that is refused; one alone may have more."""
    workers: int = 1
    """Threads that translate, each one batch at a time."""

    def __post_init__(self) -> None:
        if min(self.batch_tokens, self.queue, self.workers) < 1 or not 0 <= self.wait <= 10:
            raise ConfigError("batch_tokens, queue and workers must be at least 1, and the wait between 0 and 10 seconds.")


@dataclass(frozen=True)
class BatchFacts:
    """What a batch was, for whoever counts."""

    lines: int
    tokens: int
    seconds: float
    directions: tuple[tuple[str, str], ...]


class Ticket:
    """One request's lines on their way through the engine; `result` has the translations of each, in order."""

    def __init__(self, lines: int, deadline: float | None, on_line: OnLine | None) -> None:
        self.result: Future[list[list[Translation]]] = Future()
        self.deadline, self.on_line = deadline, on_line
        self._found: list[list[Translation] | None] = [None] * lines
        self._left = lines
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Nobody waits for it any more: it was cancelled, failed or is done."""
        return self.result.done()

    def cancel(self) -> None:
        """The client has gone. Lines that have not begun are dropped; a batch under way ends as it would."""
        with self._lock:
            self.result.cancel()

    def fail(self, error: Exception) -> None:
        with self._lock:
            if not self.result.done():
                self.result.set_exception(error)

    def give(self, index: int, translations: list[Translation]) -> None:
        with self._lock:
            if self.result.done():
                return
            self._found[index] = translations
            self._left -= 1
            if self._left == 0 and self.result.set_running_or_notify_cancel():
                self.result.set_result([found for found in self._found if found is not None])
        if self.on_line is not None:
            self.on_line(index, translations)


@dataclass(frozen=True, eq=False)
class Waiting:
    """One line in the queue."""

    ticket: Ticket
    index: int
    request: Request
    model: Composition
    searcher: Searcher
    tokens: list[int]
    since: float
    due: float


@dataclass
class Group:
    """Lines that one search can translate: they share a composition, what searches with it, and the options of the search."""

    model: Composition
    searcher: Searcher
    options: SearchOptions
    lines: list[Waiting] = field(default_factory=list)

    def first(self) -> Waiting:
        return min(self.lines, key=lambda line: line.due)

    def fitting(self, batch_tokens: int) -> list[Waiting]:
        """The line that is due first and those nearest to it in length, as many as a batch holds."""
        first = self.first()
        size = len(first.tokens)
        least, most = (size - SHORT) / LIKE_LENGTH, size * LIKE_LENGTH + SHORT
        near = [line for line in self.lines if line is not first and least <= len(line.tokens) <= most]
        near.sort(key=lambda line: (abs(len(line.tokens) - size), line.due))
        chosen, longest = [first], size
        for line in near:
            longest = max(longest, len(line.tokens))
            if (len(chosen) + 1) * longest * self.options.beam > batch_tokens:
                break
            chosen.append(line)
        return chosen


class Engine:
    """Translates what is submitted; `close` finishes what was accepted."""

    def __init__(
        self,
        options: EngineOptions | None = None,
        on_batch: Callable[[BatchFacts], None] | None = None,
        searcher_of: SearcherOf = Translator.searcher,
    ) -> None:
        self.options = options or EngineOptions()
        self._on_batch, self._searcher_of = on_batch, searcher_of
        self._changed = threading.Condition()
        self._groups: dict[Key, Group] = {}
        self._waiting = 0
        self._closing = False
        self._rate = 0.0
        """Lines a second, lately."""
        self._threads = [
            threading.Thread(target=self._work, name=f"graftmt-engine-{number}", daemon=True)
            for number in range(self.options.workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Lines in the queue."""
        return self._waiting

    @property
    def is_alive(self) -> bool:
        """Its threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def submit(
        self,
        translator: Translator,
        requests: Sequence[Request],
        options: SearchOptions,
        *,
        seconds: float | None = None,
        on_line: OnLine | None = None,
    ) -> Ticket:
        """Accepts all lines, or refuses them at once with 429. Pivots are for the caller: each hop is a request of its own.

        After `seconds` without a result the ticket fails with 503, and lines that have not begun are dropped.
        """
        now = time.monotonic()
        ticket = Ticket(len(requests), None if seconds is None else now + seconds, on_line)
        if not requests:
            ticket.result.set_result([])
            return ticket
        self._check_room(len(requests))
        lines: list[Waiting] = []
        empty: list[int] = []
        for index, request in enumerate(requests):
            packs = {"source_pack": request.source_pack, "target_pack": request.target_pack}
            model = translator.composition(request.source, request.target, **packs)
            tokens = encoded_line(model, request, index)
            if tokens:
                due = now + len(lines) * NEXT_LINE
                searcher = self._searcher_of(translator, model)
                lines.append(Waiting(ticket, index, request, model, searcher, tokens, now, due))
            else:
                empty.append(index)
        with self._changed:
            self._check_room(len(lines))
            for line in lines:
                group = self._groups.setdefault((id(line.searcher), options), Group(line.model, line.searcher, options))
                group.lines.append(line)
            self._waiting += len(lines)
            self._changed.notify_all()
        for index in empty:
            ticket.give(index, [Translation("", 0.0, True)])
        return ticket

    def close(self, seconds: float | None = None) -> None:
        """Takes nothing more, finishes what waits, and ends the threads; after `seconds` what is left fails."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(seconds)
        with self._changed:
            for line in (line for group in self._groups.values() for line in group.lines):
                line.ticket.fail(Refused(503, "the server is shutting down; try again."))
            self._groups.clear()
            self._waiting = 0

    def _check_room(self, lines: int) -> None:
        if self._closing:
            raise Refused(503, "the server is shutting down; try again.", retry_after=5)
        # A request larger than the queue is taken when nothing else waits, for otherwise it never would be.
        if self._waiting and self._waiting + lines > self.options.queue:
            seconds = self._waiting / self._rate if self._rate else 1.0
            retry = max(1, min(LONGEST_RETRY, round(seconds)))
            raise Refused(429, f"too many requests are waiting; try again in {retry} s.", retry_after=retry)

    def _work(self) -> None:
        while (group := self._next()) is not None:
            lines = group.lines
            started = time.monotonic()
            self._translate(group, lines)
            seconds = time.monotonic() - started
            self._rate = 0.8 * self._rate + 0.2 * len(lines) / max(seconds, 1e-6) if self._rate else len(lines) / seconds
            if self._on_batch is not None:
                directions = tuple((line.request.source, line.request.target) for line in lines)
                self._on_batch(BatchFacts(len(lines), sum(len(line.tokens) for line in lines), seconds, directions))

    def _next(self) -> Group | None:
        """Waits for lines and takes a batch of them out of the queue; None when the engine is closed and empty."""
        with self._changed:
            while True:
                self._drop_dead()
                if not self._groups:
                    if self._closing:
                        return None
                    self._changed.wait()
                    continue
                key, group = min(self._groups.items(), key=lambda item: item[1].first().due)
                chosen = group.fitting(self.options.batch_tokens)
                patience = group.first().since + self.options.wait - time.monotonic()
                if patience > 0 and len(chosen) == len(group.lines) and not self._closing and self.options.batch_tokens > 1:
                    self._changed.wait(patience)
                    continue
                taken = set(map(id, chosen))
                group.lines = [line for line in group.lines if id(line) not in taken]
                if not group.lines:
                    del self._groups[key]
                self._waiting -= len(chosen)
                return Group(group.model, group.searcher, group.options, chosen)

    def _drop_dead(self) -> None:
        """Lines whose client has gone, or whose time is up, make room."""
        now = time.monotonic()
        for key, group in list(self._groups.items()):
            for line in group.lines:
                if line.ticket.deadline is not None and line.ticket.deadline < now:
                    line.ticket.fail(Refused(503, "it took too long; try less text, or try again later.", retry_after=5))
            alive = [line for line in group.lines if not line.ticket.over]
            self._waiting -= len(group.lines) - len(alive)
            group.lines = alive
            if not alive:
                del self._groups[key]

    def _translate(self, group: Group, lines: list[Waiting]) -> None:
        """One batch; where it fails, its halves, so that one bad line fails alone."""
        try:
            requests, tokens = [line.request for line in lines], [line.tokens for line in lines]
            found = translate_encoded(group.model, requests, tokens, group.options, searcher=group.searcher)
        except Exception as error:  # whatever it is, the thread has to serve others
            if len(lines) == 1:
                logger.error("a line of %s tokens failed: %s", len(lines[0].tokens), type(error).__name__)
                lines[0].ticket.fail(Refused(500, "this text could not be translated; the server's log has more."))
                return
            half = len(lines) // 2
            self._translate(group, lines[:half])
            self._translate(group, lines[half:])
            return
        for line, translations in zip(lines, found, strict=True):
            line.ticket.give(line.index, translations)
