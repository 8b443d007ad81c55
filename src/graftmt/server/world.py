"""All that the routes of one server share. Layer 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graftmt.server.background_jobs import Jobs
from graftmt.server.clients import Clients
from graftmt.server.fast_models import FastModels
from graftmt.server.prometheus_metrics import Metrics
from graftmt.server.refusals import bad_request
from graftmt.server.serve_options import ServeOptions
from graftmt.server.service import Service


@dataclass(frozen=True)
class World:
    options: ServeOptions
    service: Service
    clients: Clients
    metrics: Metrics
    fast: FastModels
    jobs: Jobs | None = None

    def check_texts(self, texts: Sequence[str]) -> None:
        """Not too many, and not too much of them."""
        if len(texts) > self.options.texts:
            raise bad_request(f"{len(texts):,} texts; at most {self.options.texts:,} at once.")
        characters = sum(map(len, texts))
        if characters > self.options.characters:
            raise bad_request(
                f"{characters:,} characters; at most {self.options.characters:,} at once. Send less, or files as jobs."
            )
