"""How much one key or address may ask for in a minute. Counted in this process: replicas count each for themselves. Layer 6."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from graftmt.server.refusals import Refused

MOST_CLIENTS = 20_000
"""Clients that are remembered; beyond that, those not heard of for longest are forgotten."""
MINUTE = 60.0


class Rates:
    """Token buckets: an allowance for a minute that fills up evenly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spent: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        """(client, what) → how much is spent, and when that was so."""

    def spend(self, client: str, what: str, amount: float, limit: int) -> None:
        """Counts `amount` of the limit, or refuses with 429 and says when it will do. A limit of 0 is none."""
        if not limit:
            return
        now = self._clock()
        key = client, what
        spent, then = self._spent.pop(key, (0.0, now))
        spent = max(0.0, spent - (now - then) * limit / MINUTE)
        if spent and spent + amount > limit:
            self._spent[key] = spent, now
            wait = (min(spent, spent + amount - limit)) * MINUTE / limit
            retry = max(1, round(wait + 0.5))
            raise Refused(429, f"slow down: {limit:,} {what} a minute; try again in {retry} s.", retry_after=retry)
        self._spent[key] = spent + amount, now
        while len(self._spent) > MOST_CLIENTS:
            self._spent.popitem(last=False)
