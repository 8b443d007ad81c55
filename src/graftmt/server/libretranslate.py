"""LibreTranslate's API, as its clients use it: JSON, forms and query strings, also where they are unusual. Layer 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request

from graftmt.server.detection import Guess
from graftmt.server.fields import fields_of
from graftmt.server.formats import FORMATS
from graftmt.server.schemas import (
    CODE,
    TEXT,
    USUAL,
    DetectedLanguage,
    HealthAnswer,
    LanguageEntry,
    SettingsAnswer,
    TranslateAnswer,
    body,
    errors,
)
from graftmt.server.service import Way
from graftmt.server.translating import Asked, asked_of, translate_asked
from graftmt.server.world import World

router = APIRouter(tags=["LibreTranslate"])

_TRANSLATE = body(
    ["q", "source", "target"],
    q={**TEXT, "example": "3 days ago"},
    source={**CODE, "example": "en", "description": "A code, or auto."},
    target={**CODE, "example": "fr"},
    format={"type": "string", "enum": list(FORMATS), "default": "text"},
    alternatives={"type": "integer", "minimum": 0, "default": 0},
)
_DETECT = body(["q"], q={**TEXT, "example": "il y a 3 jours"})


def world_of(request: Request) -> World:
    world: World = request.app.state.world
    return world


@router.post(
    "/translate",
    response_model=TranslateAnswer,
    response_model_exclude_none=True,
    responses=USUAL,
    openapi_extra=_TRANSLATE,
    summary="Translate a text or a list of texts",
)
async def translate(request: Request) -> dict[str, Any]:
    world, fields = world_of(request), await fields_of(request)
    client = world.admit(request, fields)
    asked = asked_of(world, fields)
    found = await translate_asked(world, client, asked, request)
    return _translated(asked, found)


def _translated(asked: Asked, found: Sequence[tuple[list[Way], Guess | None]]) -> dict[str, Any]:
    """A text for a text, a list for a list, in each of the fields."""

    def shaped(values: list[Any]) -> Any:
        return values if asked.several else values[0]

    answer: dict[str, Any] = {"translatedText": shaped([ways[0].text for ways, _ in found])}
    if asked.source == "auto":
        answer["detectedLanguage"] = shaped([_guessed(guess) for _, guess in found if guess is not None])
    if asked.alternatives:
        answer["alternatives"] = shaped([[way.text for way in ways[1:]] for ways, _ in found])
    return answer


def _guessed(guess: Guess) -> dict[str, Any]:
    return {"confidence": guess.confidence, "language": guess.language}


@router.post(
    "/detect",
    response_model=list[DetectedLanguage] | list[list[DetectedLanguage]],
    responses=USUAL,
    openapi_extra=_DETECT,
    summary="Tell which of the languages here a text is in; for a list of texts, a list for each",
)
async def detect(request: Request) -> list[Any]:
    world, fields = world_of(request), await fields_of(request)
    client = world.admit(request, fields)
    texts, several = fields.texts("q")
    world.check_texts(texts)
    world.clients.count_characters(client, sum(map(len, texts)))
    found = [[_guessed(guess) for guess in await world.service.detect(text)] for text in texts]
    return found if several else found[0]


@router.get("/languages", response_model=list[LanguageEntry], responses=errors(408, 413, 500, 503))
async def languages(request: Request) -> list[dict[str, Any]]:
    """All languages that can be read or written; `targets` are those that a source can be translated into."""
    catalog = world_of(request).service.catalog
    writable = [language.code for language in catalog.languages.values() if language.writes]
    return [
        {
            "code": language.code,
            "name": language.name,
            "targets": writable if language.reads else [],
        }
        for language in catalog.languages.values()
    ]


@router.get("/health", response_model=HealthAnswer, responses=errors(408, 413, 500, 503))
async def health() -> dict[str, str]:
    """The process is alive; /ready says whether it takes requests."""
    return {"status": "ok"}


@router.get("/frontend/settings", response_model=SettingsAnswer, responses=errors(408, 413, 500, 503))
async def settings(request: Request) -> dict[str, Any]:
    """What a page has to know."""
    world = world_of(request)
    catalog, options = world.service.catalog, world.options
    keyed = options.keys is not None
    source = next(iter(catalog.translator.source_languages))
    target = next((code for code in catalog.translator.target_languages if code != source), source)
    named = {
        side: {"code": code, "name": catalog.languages[code].name} for side, code in (("source", source), ("target", target))
    }
    return {
        "apiKeys": keyed,
        "charLimit": options.characters,
        "filesTranslation": world.jobs is not None,
        "frontendTimeout": 500,
        "keyRequired": keyed,
        "language": named,
        "suggestions": False,
        "supportedFilesFormat": [ending for one in FORMATS.values() for ending in one.endings],
    }
