"""What Prometheus is told: requests, queue, batches, latency by direction, packs. Layer 6."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from graftmt.server.catalog import Catalog
from graftmt.server.engine import BatchFacts, Engine

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
LINES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one server. Labels have few values: routes, statuses, directions that were served."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.requests = Counter("graftmt_requests", "Requests answered", ["route", "status"], registry=registry)
        self.seconds = Histogram("graftmt_request_seconds", "Time to answer", ["route"], buckets=SECONDS, registry=registry)
        self.characters = Counter("graftmt_characters", "Characters translated", ["source", "target"], registry=registry)
        self.direction_seconds = Histogram(
            "graftmt_translation_seconds",
            "Time to translate a request",
            ["source", "target"],
            buckets=SECONDS,
            registry=registry,
        )
        self.batch_lines = Histogram("graftmt_batch_lines", "Lines in a batch", buckets=LINES, registry=registry)
        self.batch_seconds = Histogram("graftmt_batch_seconds", "Time of a batch", buckets=SECONDS, registry=registry)
        self.batch_directions = Histogram(
            "graftmt_batch_directions", "Directions in a batch", buckets=LINES[:5], registry=registry
        )
        self.lines = Counter("graftmt_lines", "Lines translated", registry=registry)
        self.queue = Gauge("graftmt_queue_lines", "Lines that wait", registry=registry)
        self.refused = Counter("graftmt_refused", "Requests refused", ["status"], registry=registry)
        self.gone = Counter("graftmt_clients_gone", "Clients that left before their answer", registry=registry)
        self.lost_logs = Counter("graftmt_log_lines_lost", "Log lines that could not be written", registry=registry)
        self.packs = Gauge("graftmt_pack", "1 for each pack in service", ["name", "fingerprint"], registry=registry)
        self.pack_problems = Gauge("graftmt_pack_problems", "Packs that cannot be served", registry=registry)
        self.changes = Counter("graftmt_catalog_changes", "Times that the packs in service changed", registry=registry)

    def hear_batch(self, facts: BatchFacts) -> None:
        self.batch_lines.observe(facts.lines)
        self.batch_seconds.observe(facts.seconds)
        self.batch_directions.observe(len(set(facts.directions)))
        self.lines.inc(facts.lines)

    def hear_catalog(self, catalog: Catalog) -> None:
        self.packs.clear()
        for name, served in catalog.packs.items():
            self.packs.labels(name, served.pack.fingerprint[:16]).set(1)
        self.pack_problems.set(len(catalog.problems))
        self.changes.inc()

    def text(self, engine: Engine) -> bytes:
        self.queue.set(engine.waiting)
        return generate_latest(self.registry)
