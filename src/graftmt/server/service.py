"""What every route works with: the packs in service, the engine, detection, and texts translated with their layout. Layer 6."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from graftmt.decoding import SearchOptions
from graftmt.packs import Side
from graftmt.server.catalog import Catalog
from graftmt.server.detection import Detector, Guess
from graftmt.server.engine import Engine
from graftmt.server.formats import TextFormat, format_named
from graftmt.server.protected_spans import around, kept, spliced
from graftmt.server.refusals import Refused, bad_request
from graftmt.server.sentences import Segment, joined, segments
from graftmt.server.shelf import Shelf
from graftmt.translation_requests import Request, Translation

SURE = 80.0
"""Confidence from which a detected language that cannot be read here is an error, rather than taken for the next one."""
STREAM_WINDOW, WINDOW = 32, 128
"""Sentences of one streamed document, and of one job, that are in the queue at a time."""

MOST_WARM = 10_000
LONG_WORK = 20_000
"""Characters from which a text is taken apart in a thread."""

Given = TypeVar("Given")
Made = TypeVar("Made")
OnDone = Callable[[int], None]
"""Hears how many more sentences are done, in the thread of the event loop."""


@dataclass(frozen=True)
class Route:
    """From what into what, and by which packs of which catalog: resolved once, at the start of a request."""

    catalog: Catalog
    source: str
    target: str
    pivot: str | None = None
    source_pack: str | None = None
    target_pack: str | None = None

    @property
    def key(self) -> tuple[int, str, str, str | None, str | None]:
        """What its composition depends on."""
        return self.catalog.version, self.source, self.target, self.source_pack, self.target_pack

    def requests(self, lines: Sequence[str]) -> list[Request]:
        packs = {"source_pack": self.source_pack, "target_pack": self.target_pack}
        return [Request(line, self.source, self.target, None, **packs) for line in lines]

    def hops(self) -> list[Route]:
        """Itself, or the two ways through the pivot."""
        if self.pivot is None:
            return [self]
        packs = [self.catalog.chosen_pack(self.pivot, side, None) for side in _SIDES]
        return [
            replace(self, target=self.pivot, pivot=None, target_pack=packs[1]),
            replace(self, source=self.pivot, pivot=None, source_pack=packs[0]),
        ]


_SIDES: tuple[Side, Side] = ("source", "target")


@dataclass(frozen=True)
class Way:
    """One way to translate a text; `score` is the mean of its sentences', None where there are none."""

    text: str
    score: float | None


@dataclass(frozen=True)
class Sentence:
    """One sentence of a document, and its translation."""

    segment: Segment
    text: str


class Service:
    """Translates texts by way of the engine. One for each process; its methods are for the event loop's thread."""

    def __init__(self, shelf: Shelf, engine: Engine, search: SearchOptions, *, seconds: float = 120.0) -> None:
        self.shelf, self.engine, self.search, self.seconds = shelf, engine, search, seconds
        self.ready = True
        """Balancers may send requests here; not since the server was told to stop."""
        self.accepting = True
        """Requests are taken; those that were taken before are finished all the same."""
        self._detector: tuple[Catalog, Detector] | None = None
        self._lock = threading.Lock()
        self._warm: set[tuple[int, str, str, str | None, str | None]] = set()

    @property
    def catalog(self) -> Catalog:
        return self.shelf.catalog

    # Languages

    def detector(self) -> Detector:
        """The one for the current catalog."""
        catalog = self.catalog
        with self._lock:
            if self._detector is None or self._detector[0] is not catalog:
                self._detector = catalog, Detector(catalog)
            return self._detector[1]

    async def detect(self, text: str) -> list[Guess]:
        return await asyncio.to_thread(self.detector().guesses, text)

    async def detect_source(self, text: str) -> Guess:
        """The language of a text that is to be translated: one that can be read here."""
        catalog, guesses = self.catalog, await self.detect(text)
        first = guesses[0]
        if not catalog.languages[first.language].reads and first.confidence >= SURE:
            name = catalog.languages[first.language].name
            raise bad_request(f"the text seems to be {name} ({first.language}), which cannot be read here, only written.")
        readable = (guess for guess in guesses if catalog.languages[guess.language].reads)
        return next(readable, Guess(catalog.translator.source_languages[0], 0.0))

    def route(
        self,
        source: str,
        target: str,
        *,
        pivot: str | None = None,
        source_pack: str | None = None,
        target_pack: str | None = None,
    ) -> Route:
        """The way between two languages; what is not known or not possible is an error for the client."""
        catalog = self.catalog
        source, target = catalog.language(source, "source"), catalog.language(target, "target")
        source_pack = catalog.chosen_pack(source, "source", source_pack)
        target_pack = catalog.chosen_pack(target, "target", target_pack)
        if pivot is not None:
            pivot = catalog.language(pivot, "target")
            catalog.language(pivot, "source")
            if pivot in (source, target):
                raise bad_request(f"pivot is {pivot!r}, one of the two languages; leave it out.")
        return Route(catalog, source, target, pivot, source_pack, target_pack)

    # Lines

    async def translate_lines(
        self, route: Route, lines: Sequence[str], *, n_best: int = 1, on_done: OnDone | None = None, patient: bool = False
    ) -> list[list[Translation]]:
        """The best translations of each line. If the caller is cancelled, so are the lines. `patient`: 429 is waited out."""
        if route.source == route.target:
            return [[Translation(line, 0.0, True)] for line in lines]
        if patient and len(lines) > WINDOW:  # work without hurry leaves room in the queue for others
            windows = [lines[start : start + WINDOW] for start in range(0, len(lines), WINDOW)]
            parts = [
                await self.translate_lines(route, window, n_best=n_best, on_done=on_done, patient=True) for window in windows
            ]
            return [each for part in parts for each in part]
        *first, last = route.hops()
        for hop in first:
            found = await self._hop(hop, lines, 1, None, patient)
            lines = [translations[0].text for translations in found]
        return await self._hop(last, lines, n_best, on_done, patient)

    async def _hop(
        self, route: Route, lines: Sequence[str], n_best: int, on_done: OnDone | None, patient: bool
    ) -> list[list[Translation]]:
        options = replace(self.search, n_best=n_best, beam=max(self.search.beam, n_best))
        loop = asyncio.get_running_loop()

        def hear(index: int, translations: list[Translation]) -> None:
            if on_done is not None:
                loop.call_soon_threadsafe(on_done, 1)

        requests, translator = route.requests(lines), route.catalog.translator
        seconds = None if patient else self.seconds
        while True:
            try:
                submit = partial(self.engine.submit, translator, options=options, seconds=seconds, on_line=hear)
                # A direction's first request makes its composition, which may take a while: not on the loop.
                size = sum(map(len, lines)) if route.key in self._warm else LONG_WORK
                ticket = await _aside(submit, requests, size)
                if len(self._warm) < MOST_WARM:
                    self._warm.add(route.key)
                break
            except Refused as refusal:
                if not patient or refusal.status != 429:
                    raise
                await asyncio.sleep(refusal.retry_after or 1)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(ticket.result), seconds)
        except TimeoutError:
            raise Refused(503, "it took too long; try less text, or try again later.", retry_after=5) from None
        finally:
            ticket.cancel()

    # Texts

    async def translate_text(
        self,
        route: Route,
        text: str,
        form: TextFormat | str = "text",
        *,
        n_best: int = 1,
        on_done: OnDone | None = None,
        patient: bool = False,
    ) -> list[Way]:
        """The whole text translated, its layout kept: up to `n_best` ways, the best first, all different."""
        (found,) = await self.translate_texts(route, [text], form, n_best=n_best, on_done=on_done, patient=patient)
        return found

    async def translate_texts(
        self,
        route: Route,
        texts: Sequence[str],
        form: TextFormat | str = "text",
        *,
        n_best: int = 1,
        on_done: OnDone | None = None,
        patient: bool = False,
    ) -> list[list[Way]]:
        """The same for several texts at once."""
        form = format_named(form) if isinstance(form, str) else form
        parsed = [await _aside(form.parse, text, len(text)) for text in texts]
        blocks = [(document, block) for document in parsed for block in document.blocks]
        split = partial(segments, language=route.source)
        parts = [await _aside(split, block, len(block)) for _, block in blocks]
        lines = [part.text for found in parts for part in found]
        found = await self.translate_lines(route, lines, n_best=n_best, on_done=on_done, patient=patient)
        best = await self._keep_placeholders(route, lines, found, patient)
        ways: list[list[Way]] = [[] for _ in texts]
        for rank in range(n_best):
            chosen = iter([each[min(rank, len(each) - 1)] for each in best])
            picked = [[next(chosen) for _ in part] for part in parts]
            block = iter(
                (joined(text, part, [way.text for way in ways]), [way.score for way in ways])
                for (_, text), part, ways in zip(blocks, parts, picked, strict=True)
            )
            for way, document in zip(ways, parsed, strict=True):
                pieces = [next(block) for _ in document.blocks]
                translated = [text for text, _ in pieces]
                text = await _aside(document.rebuild, translated, sum(map(len, translated)))
                scores = [score for _, each in pieces for score in each]
                if all(text != other.text for other in way):
                    way.append(Way(text, sum(scores) / len(scores) if scores else None))
        return ways

    async def _keep_placeholders(
        self, route: Route, lines: Sequence[str], found: Sequence[Sequence[Translation]], patient: bool
    ) -> list[list[Translation]]:
        """The translations that have all placeholders; where there is none, what is around them is translated by itself."""
        best: list[list[Translation]] = []
        for line, each in zip(lines, found, strict=True):
            good = [translation for translation in each if kept(line, translation.text)]
            if not good:
                parts, holders = around(line)
                again = await self.translate_lines(route, parts, patient=patient)
                good = [replace(each[0], text=spliced(parts, [one[0].text for one in again], holders))]
            best.append(good)
        return best

    def count_sentences(self, route: Route, text: str, form: str) -> int:
        return sum(len(segments(block, route.source)) for block in format_named(form).parse(text).blocks)

    async def stream(self, route: Route, text: str) -> AsyncIterator[Sentence]:
        """The sentences of a long plain text, in order, each as soon as it is translated."""
        parts = await _aside(partial(segments, language=route.source), text, len(text))
        for start in range(0, len(parts), STREAM_WINDOW):
            window = parts[start : start + STREAM_WINDOW]
            lines = [part.text for part in window]
            found = await self.translate_lines(route, lines, patient=start > 0)
            best = await self._keep_placeholders(route, lines, found, True)
            for part, each in zip(window, best, strict=True):
                yield Sentence(part, each[0].text)

    def close(self, grace: float) -> None:
        """Finishes what was accepted, within `grace` seconds."""
        self.ready = self.accepting = False
        self.shelf.close()
        self.engine.close(grace)


async def _aside(function: Callable[[Given], Made], given: Given, size: int) -> Made:
    """Short work stays on the loop; that with long texts goes to a thread, so that others are served meanwhile."""
    if size < LONG_WORK:
        return function(given)
    return await asyncio.to_thread(function, given)
