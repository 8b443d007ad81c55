"""A request to translate, checked and carried out; both APIs ask for it. Layer 6."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from fastapi import Request

from graftmt.server.clients import Client
from graftmt.server.detection import Guess
from graftmt.server.fields import Fields
from graftmt.server.formats import TextFormat, format_named
from graftmt.server.service import Route, Way
from graftmt.server.world import World

AUTO = "auto"


@dataclass(frozen=True)
class Asked:
    """What a client wants to have translated."""

    texts: list[str]
    several: bool
    """It sent a list, and expects one."""
    source: str
    """A code, or auto."""
    target: str
    form: TextFormat
    alternatives: int
    pivot: str | None
    source_pack: str | None
    target_pack: str | None


def asked_of(world: World, fields: Fields) -> Asked:
    texts, several = fields.texts("q")
    world.check_texts(texts)
    return Asked(
        texts=texts,
        several=several,
        source=fields.text("source", longest=64),
        target=fields.text("target", longest=64),
        form=format_named(fields.text("format", "text")),
        alternatives=fields.number("alternatives", 0, 0, world.options.alternatives),
        pivot=fields.optional("pivot", longest=64),
        source_pack=fields.optional("source_pack"),
        target_pack=fields.optional("target_pack"),
    )


def route_for(world: World, asked: Asked, source: str) -> Route:
    return world.service.route(
        source, asked.target, pivot=asked.pivot, source_pack=asked.source_pack, target_pack=asked.target_pack
    )


async def translate_asked(world: World, client: Client, asked: Asked, request: Request) -> list[tuple[list[Way], Guess | None]]:
    """For each text its translations, best first, and the language that was detected where that was asked for."""
    service = world.service
    service.catalog.language(asked.target, "target")  # an error before anything is counted or detected
    if asked.source == AUTO:
        guesses = [await service.detect_source(text) for text in asked.texts]
        routes = [route_for(world, asked, guess.language) for guess in guesses]
    else:
        route = route_for(world, asked, asked.source)
        guesses, routes = [], [route] * len(asked.texts)
    world.clients.count_characters(client, sum(map(len, asked.texts)))
    started = time.monotonic()
    groups: dict[str, tuple[Route, list[int]]] = {}
    for row, route in enumerate(routes):
        groups.setdefault(route.source, (route, []))[1].append(row)
    work = [
        service.translate_texts(route, [asked.texts[row] for row in rows], asked.form, n_best=asked.alternatives + 1)
        for route, rows in groups.values()
    ]
    found: list[list[Way]] = [[] for _ in asked.texts]
    for (route, rows), ways in zip(groups.values(), await asyncio.gather(*work), strict=True):
        for row, way in zip(rows, ways, strict=True):
            found[row] = way
        labels = route.source, route.target
        world.metrics.direction_seconds.labels(*labels).observe(time.monotonic() - started)
        world.metrics.characters.labels(*labels).inc(sum(len(asked.texts[row]) for row in rows))
    directions = sorted({f"{route.source}-{route.target}" for route in routes})
    request.scope["facts"] = {
        "direction": ",".join(directions[:3]),
        "texts": len(asked.texts),
        "characters": sum(map(len, asked.texts)),
    }
    return [(ways, guesses[row] if guesses else None) for row, ways in enumerate(found)]
