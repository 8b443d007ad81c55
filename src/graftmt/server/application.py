"""The application: routes, guard and page put together; the same for uvicorn, tests and Ray Serve. Layer 6."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from importlib.metadata import version
from pathlib import Path

import torch
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from graftmt.base import Base
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.devices import choose_device
from graftmt.errors import ConfigError, DataError, GraftError, LanguageError
from graftmt.interop.ctranslate2_engine import CTranslate2Engine
from graftmt.server import jobs_api, libretranslate, own_api, page_routes
from graftmt.server.background_jobs import Jobs
from graftmt.server.clients import Clients
from graftmt.server.engine import Engine, EngineOptions
from graftmt.server.fast_models import FastModels
from graftmt.server.guard import Guard, GuardOptions
from graftmt.server.keys import Keys
from graftmt.server.logs import JsonLog, LogHandler
from graftmt.server.prometheus_metrics import Metrics
from graftmt.server.refusals import Refused
from graftmt.server.serve_options import ServeOptions
from graftmt.server.service import Service
from graftmt.server.shelf import Shelf
from graftmt.server.world import World
from graftmt.translator import INT8

MB = 1_000_000


def make_world(options: ServeOptions, metrics: Metrics | None = None) -> World:
    """Loads base and packs and starts the engine."""
    metrics = metrics or Metrics()
    device = choose_device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    batch_tokens = options.batch_tokens or batch_tokens_for(device)
    search = SearchOptions(beam=options.beam, batch_tokens=max(batch_tokens, options.beam))
    engine_options = EngineOptions(
        wait=options.wait_ms / 1000, batch_tokens=batch_tokens, queue=options.queue, workers=options.workers
    )
    folder, packs = places_of(options)
    fast = FastModels(lambda: CTranslate2Engine.open(device, options.dtype), options.ctranslate2)
    loaded_as = "fp32" if options.dtype == INT8 else options.dtype
    shelf = Shelf(Base.load(folder, device=device, dtype=loaded_as), packs, dtype=options.dtype)
    for listener in (metrics.hear_catalog, fast.hear_catalog):
        shelf.listen(listener)
        listener(shelf.catalog)
    service = Service(shelf, Engine(engine_options, metrics.hear_batch, fast.searcher), search, seconds=options.timeout)
    keys = Keys(options.keys) if options.keys is not None else None
    clients = Clients(keys, options.rate, options.rate_characters)
    jobs = Jobs(options.jobs, options.job_days) if options.jobs is not None else None
    return World(options, service, clients, metrics, fast, jobs)


def places_of(options: ServeOptions) -> tuple[Path, tuple[Path, ...]]:
    """The base's folder and where packs are; those of the demo are files of the package."""
    if options.demo == (options.base is not None):
        raise ConfigError("serve needs one base: give --base FOLDER, or --demo for the one that comes with graftmt.")
    if options.base is not None:
        return options.base, options.packs
    inside = Path(str(resources.files("graftmt") / "demo"))
    if not (inside / "base" / "base.json").is_file() or not (inside / "packs").is_dir():
        raise DataError("this copy of graftmt has no demo inside; install it from a wheel or a checkout.")
    return inside / "base", (inside / "packs", *options.packs)


def make_app(world: World, log: JsonLog | None = None) -> FastAPI:
    """The ASGI application of one world."""
    options = world.options
    log = log or JsonLog(options.log, world.metrics.lost_logs.inc)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        handler = LogHandler(log)
        logging.getLogger("graftmt").addHandler(handler)
        logging.getLogger("graftmt").setLevel(logging.INFO)
        world.service.shelf.watch()
        work = asyncio.create_task(world.jobs.work(world.service)) if world.jobs is not None else None
        try:
            yield
        finally:
            if work is not None:
                work.cancel()
            await asyncio.to_thread(world.service.close, options.grace)
            logging.getLogger("graftmt").removeHandler(handler)

    app = FastAPI(
        title="graftmt",
        version=version("graftmt"),
        summary="One resident base, many language packs: LibreTranslate's API, and our own under /v1.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.world = world
    app.include_router(libretranslate.router)
    app.include_router(own_api.router)
    app.include_router(jobs_api.router)
    app.include_router(page_routes.router)
    _add_errors(app)
    app.add_middleware(Guard, options=guard_options(options), metrics=world.metrics, log=log)
    if options.cors:
        from starlette.middleware.cors import CORSMiddleware

        kinds = ["Content-Type", "Authorization", "X-API-Key", "X-Request-ID"]
        app.add_middleware(
            CORSMiddleware, allow_origins=list(options.cors), allow_methods=["GET", "POST", "DELETE"], allow_headers=kinds
        )
    return app


def guard_options(options: ServeOptions) -> GuardOptions:
    """The limits on what comes in."""
    return GuardOptions(
        body_bytes=int(options.body_mb * MB),
        file_bytes=int(options.file_mb * MB) + 10_000,
        file_paths=jobs_api.PATHS if options.jobs is not None else frozenset(),
        body_seconds=options.header_seconds,
    )


def _add_errors(app: FastAPI) -> None:
    """Every error is {"error": …}, as LibreTranslate's clients expect."""

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return JSONResponse({"error": str(error)}, error.status, error.headers)

    @app.exception_handler(GraftError)
    async def graft_error(request: Request, error: GraftError) -> Response:
        """What a text or a language causes is the client's to mend; the rest may name files, and is not for it."""
        if isinstance(error, DataError | LanguageError):
            return JSONResponse({"error": str(error)}, 400)
        logging.getLogger("graftmt.server").error("%s", type(error).__name__)
        return JSONResponse({"error": "this could not be done; the server's log has more."}, 500)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)
