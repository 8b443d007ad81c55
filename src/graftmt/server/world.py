"""All that the routes of one server share. Layer 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request

from graftmt.server.background_jobs import Jobs
from graftmt.server.clients import Client, Clients
from graftmt.server.fast_models import FastModels
from graftmt.server.fields import Fields
from graftmt.server.prometheus_metrics import Metrics
from graftmt.server.refusals import Refused, bad_request
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

    def admit(self, request: Request, fields: Fields | None = None) -> Client:
        """Who asks, counted; refused where a key is missing or wrong, there is too much of it, or the server is stopping."""
        if not self.service.accepting:
            raise Refused(503, "the server is stopping; try again.", retry_after=5)
        return self.clients.admit(request, fields)

    def check_texts(self, texts: Sequence[str]) -> None:
        """Not too many, and not too much of them."""
        if len(texts) > self.options.texts:
            raise bad_request(f"{len(texts):,} texts; at most {self.options.texts:,} at once.")
        characters = sum(map(len, texts))
        if characters > self.options.characters:
            raise bad_request(
                f"{characters:,} characters; at most {self.options.characters:,} at once. Send less, or files as jobs."
            )
