"""The page and what watches the server: static files of the package, /ready and /metrics. Layer 6."""

from __future__ import annotations

from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from graftmt.server.refusals import Refused
from graftmt.server.schemas import HealthAnswer, errors

router = APIRouter()

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@router.get("/ready", response_model=HealthAnswer, responses=errors(408, 413, 500, 503), tags=["operation"])
async def ready(request: Request) -> dict[str, Any]:
    """Whether requests should come; not since the server was told to stop. A balancer should ask here."""
    if not request.app.state.world.service.ready:
        raise Refused(503, "the server is stopping.", retry_after=5)
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse, responses=errors(408, 413, 500, 503), tags=["operation"])
async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    world = request.app.state.world
    return PlainTextResponse(world.metrics.text(world.service.engine))


def _files() -> dict[str, bytes]:
    folder = resources.files("graftmt.server") / "page"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.rpartition(".")[2] in KINDS}


_PAGE = _files()


@router.get("/", include_in_schema=False)
async def page() -> Response:
    return _file("index.html")


@router.get("/page/{name}", include_in_schema=False)
async def file(name: str) -> Response:
    return _file(name)


def _file(name: str) -> Response:
    if name not in _PAGE:
        raise Refused(404, "there is no such page.")
    return Response(_PAGE[name], media_type=KINDS[name.rpartition(".")[2]], headers={"Cache-Control": "no-cache"})
