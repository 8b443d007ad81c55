"""One replica of the server on Ray: the whole application in a process of its own, asked through the front. Layer 6."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

from ray import serve

from graftmt.errors import GraftError
from graftmt.server.application import make_app, make_world
from graftmt.server.guard import Message, Scope, replayed
from graftmt.server.on_ray.pack_pairs import PackPairs
from graftmt.server.refusals import Refused
from graftmt.server.serve_options import ServeOptions

MOST_PAIRS = 64
"""Pairs of packs that Ray knows a replica by; beyond that the one used longest ago is forgotten."""


class Replica:
    """Loads base and packs once; then answers requests that come as an ASGI scope and a body."""

    def __init__(self, options: ServeOptions) -> None:
        self.world = make_world(options)
        self.app = make_app(self.world)
        self._life = AsyncExitStack()
        self._lives = asyncio.Lock()
        self._alive = False

    async def _begin(self) -> None:
        """Watches the packs and works on jobs, from the first moment that there is an event loop."""
        async with self._lives:
            if not self._alive:
                await self._life.enter_async_context(self.app.router.lifespan_context(self.app))
                self._alive = True

    async def __del__(self) -> None:
        """Ray calls it when the replica ends, and waits for it."""
        await self._life.aclose()

    async def check_health(self) -> None:
        """Ray asks every few seconds, and replaces a replica in which this fails."""
        await self._begin()
        if not self.world.service.engine.is_alive:
            raise RuntimeError("the engine's threads have ended.")

    async def pairs(self) -> PackPairs:
        """Which packs there are now."""
        return PackPairs.of(self.world.service.catalog)

    @serve.multiplexed(max_num_models_per_replica=MOST_PAIRS)  # type: ignore[untyped-decorator]
    async def load(self, pair: str) -> str:
        """Makes the composition of two packs before the first request needs it; Ray notes that it is here."""
        source, _, target = pair.partition("+")
        catalog = self.world.service.catalog
        packs = [catalog.packs.get(name) for name in (source, target)]
        reads = packs[0].pack.languages if packs[0] is not None else catalog.base.source_languages
        writes = packs[1].pack.languages if packs[1] is not None else catalog.base.target_languages
        with suppress(GraftError, Refused):  # what is wrong with the request is said when it is answered
            await asyncio.to_thread(
                catalog.translator.composition, reads[0], writes[0], source_pack=source or None, target_pack=target or None
            )
        return pair

    async def respond(self, scope: Scope, body: bytes) -> AsyncIterator[list[Message]]:
        """The messages of the application's answer, those together that are there at the same time."""
        await self._begin()
        if pair := serve.get_multiplexed_model_id():
            await self.load(pair)
        made: asyncio.Queue[Message | None] = asyncio.Queue()
        receive = replayed(body, asyncio.Event())  # never set: that the client has left comes as a cancellation

        async def work() -> None:
            try:
                await self.app(scope, receive, made.put)
            finally:
                made.put_nowait(None)

        working = asyncio.create_task(work())
        try:
            while (message := await made.get()) is not None:
                messages: list[Message | None] = [message]
                while not made.empty():
                    messages.append(made.get_nowait())
                yield [one for one in messages if one is not None]
                if messages[-1] is None:
                    break
            await working
        finally:
            working.cancel()
