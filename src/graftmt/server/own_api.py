"""Our own API under /v1: packs with their cards, routes with scores, alternatives, long documents as a stream. Layer 6."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from graftmt.server.catalog import Catalog, ServedPack
from graftmt.server.fast_models import FastModel
from graftmt.server.fields import fields_of
from graftmt.server.formats import FORMATS
from graftmt.server.refusals import Refused, bad_request
from graftmt.server.schemas import (
    CODE,
    TEXT,
    USUAL,
    OwnTranslateAnswer,
    PackAnswer,
    PacksAnswer,
    RoutesAnswer,
    VersionAnswer,
    body,
    errors,
)
from graftmt.server.service import Route
from graftmt.server.translating import AUTO, Asked, asked_of, route_for, translate_asked
from graftmt.server.world import World

router = APIRouter(prefix="/v1", tags=["graftmt"])

QUIET = errors(408, 413, 500, 503)
_OPTIONS: dict[str, Any] = {
    "source": {**CODE, "example": "el", "description": "A code, or auto."},
    "target": {**CODE, "example": "uk"},
    "format": {"type": "string", "enum": list(FORMATS), "default": "text"},
    "pivot": {**CODE, "description": "Go through this language, in two hops."},
    "source_pack": {"type": "string", "description": "Which pack reads, where several could."},
    "target_pack": {"type": "string", "description": "Which pack writes, where several could."},
}
_TRANSLATE = body(
    ["q", "source", "target"],
    q={**TEXT, "example": "πριν από 3 ημέρες"},
    **_OPTIONS,
    alternatives={"type": "integer", "minimum": 0, "default": 0},
)
_STREAM = body(["q", "source", "target"], q={"type": "string", "example": "in 3 days. 5 kilometers."}, **_OPTIONS)


def world_of(request: Request) -> World:
    world: World = request.app.state.world
    return world


@router.get("/version", response_model=VersionAnswer, responses=QUIET)
async def version(request: Request) -> dict[str, int]:
    """A number that rises with each change of the packs in service; cheap to ask for often."""
    return {"version": world_of(request).service.catalog.version}


@router.get("/packs", response_model=PacksAnswer, responses=QUIET)
async def packs(request: Request) -> dict[str, Any]:
    """The base and the packs in service, with their cards, and what could not be served."""
    world = world_of(request)
    catalog, fast = world.service.catalog, world.fast.state
    base = catalog.base
    return {
        "version": catalog.version,
        "base": {
            "fingerprint": base.fingerprint,
            "languages": list(base.languages),
            "parameters": sum(parameter.numel() for parameter in base.model.parameters()),
            "bytes": sum(parameter.numel() * parameter.element_size() for parameter in base.model.parameters()),
        },
        "packs": [_pack(catalog, served) for served in catalog.packs.values()],
        "problems": [{"file": file, "problem": _without_places(catalog, text)} for file, text in catalog.problems.items()],
        "models": [_model(world.fast.how, model) for model in fast.models.values()],
        "model_problems": [{"direction": name, "problem": text} for name, text in fast.problems.items()],
    }


@router.get("/packs/{name}", response_model=PackAnswer, responses=QUIET | errors(404))
async def pack(request: Request, name: str) -> dict[str, Any]:
    """One pack with its card."""
    catalog = world_of(request).service.catalog
    if name not in catalog.packs:
        raise Refused(404, f"there is no pack {name[:100]!r}; see /v1/packs.")
    return _pack(catalog, catalog.packs[name])


def _pack(catalog: Catalog, served: ServedPack) -> dict[str, Any]:
    pack = served.pack
    card = {key: value for key, value in pack.card.items() if key not in ("scores", "config", "text")}
    return {
        "name": served.name,
        "side": pack.side,
        "languages": list(pack.languages),
        "recipe": str(pack.recipe),
        "fingerprint": pack.fingerprint,
        "base": pack.base,
        "parameters": pack.size,
        "bytes": served.bytes,
        "default": any(catalog.pack_for(language, pack.side) is served for language in pack.languages),
        "scores": pack.card.get("scores") or {},
        "card": card,
    }


def _model(how: str, model: FastModel) -> dict[str, Any]:
    return {
        "engine": how,
        "directions": list(model.directions),
        "source_pack": model.source_pack,
        "target_pack": model.target_pack,
        "bytes": model.searcher.bytes,
    }


def _without_places(catalog: Catalog, text: str) -> str:
    """Clients learn what is wrong with a file, and not where on the machine it is."""
    for path in {served.path.parent for served in catalog.packs.values()} | set(catalog.places):
        text = text.replace(f"{path}/", "").replace(str(path), path.name)
    return text


@router.get("/routes", response_model=RoutesAnswer, responses=QUIET)
async def routes(request: Request) -> dict[str, Any]:
    """All languages, and every direction with how it is done, its packs, and the scores on their cards."""
    catalog = world_of(request).service.catalog
    return {
        "languages": [vars(language) for language in catalog.languages.values()],
        "routes": [_route(catalog, *direction) for direction in catalog.translator.directions],
    }


def _route(catalog: Catalog, source: str, target: str) -> dict[str, Any]:
    packs = catalog.pack_for(source, "source"), catalog.pack_for(target, "target")
    both = set(catalog.translator.source_languages) & set(catalog.translator.target_languages)
    return {
        "source": source,
        "target": target,
        "kind": catalog.kind_of(source, target),
        "zero_shot": catalog.is_zero_shot(source, target),
        "source_pack": None if packs[0] is None else packs[0].name,
        "target_pack": None if packs[1] is None else packs[1].name,
        "pivots": sorted(both - {source, target}),
        "scores": catalog.scores(source, target),
    }


@router.post(
    "/translate",
    response_model=OwnTranslateAnswer,
    responses=USUAL,
    openapi_extra=_TRANSLATE,
    summary="Translate texts, with alternatives, scores, pivots and a choice of packs",
)
async def translate(request: Request) -> dict[str, Any]:
    world, fields = world_of(request), await fields_of(request)
    client = world.admit(request, fields)
    asked = asked_of(world, fields)
    found = await translate_asked(world, client, asked, request)
    guess = found[0][1] if found else None
    source = guess.language if guess is not None else asked.source
    route = route_for(world, asked, source)
    return {
        "source": route.source,
        "target": route.target,
        "kind": "pivot" if route.pivot else route.catalog.kind_of(route.source, route.target),
        "pivot": route.pivot,
        "detected": None if guess is None else vars(guess),
        "texts": [{"translations": [vars(way) for way in ways]} for ways, _ in found],
    }


@router.post(
    "/translate/stream",
    response_class=StreamingResponse,
    responses={
        **USUAL,
        200: {
            "description": 'A JSON object a line: sentences in order, each with its place in the text, then {"done": true}',
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        },
    },
    openapi_extra=_STREAM,
    summary="Translate a long plain text sentence by sentence, each sent as soon as it is there",
)
async def stream(request: Request) -> StreamingResponse:
    world, fields = world_of(request), await fields_of(request)
    client = world.admit(request, fields)
    asked = asked_of(world, fields)
    if len(asked.texts) != 1 or asked.form.name != "text":
        raise bad_request("a stream takes one plain text.")
    source = asked.source
    if source == AUTO:
        source = (await world.service.detect_source(asked.texts[0])).language
    route = route_for(world, asked, source)
    world.clients.count_characters(client, len(asked.texts[0]))
    request.scope["facts"] = {"direction": f"{route.source}-{route.target}", "characters": len(asked.texts[0])}
    return StreamingResponse(_lines(world, route, asked), media_type="application/x-ndjson")


async def _lines(world: World, route: Route, asked: Asked) -> AsyncIterator[str]:
    """An error after the first line can no longer be a status: it is the last line."""
    yield _line({"source": route.source, "target": route.target})
    try:
        async for sentence in world.service.stream(route, asked.texts[0]):
            part = sentence.segment
            yield _line({"start": part.start, "end": part.end, "text": sentence.text})
        yield _line({"done": True})
    except Refused as refusal:
        yield _line({"error": str(refusal)})


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
