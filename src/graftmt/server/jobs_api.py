"""Routes for files: jobs under /v1, and LibreTranslate's /translate_file, which waits for one. Layer 6."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse
from python_multipart.exceptions import MultipartParseError
from starlette.datastructures import UploadFile

from graftmt.server.background_jobs import Job, Jobs, Standing, media_type_of
from graftmt.server.clients import Client
from graftmt.server.fields import Fields
from graftmt.server.formats import format_named, format_of_file
from graftmt.server.refusals import Refused, bad_request
from graftmt.server.schemas import USUAL, FileAnswer, JobAnswer, errors
from graftmt.server.world import World

router = APIRouter()

PATHS = frozenset({"/v1/jobs", "/translate_file"})
LOOK = 0.1
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "source": {"type": "string"},
        "target": {"type": "string"},
        "api_key": {"type": "string"},
    },
    "required": ["file", "source", "target"],
}
_UPLOAD = {"requestBody": {"content": {"multipart/form-data": {"schema": _FORM}}}}
_ANSWERS = USUAL | errors(404)


def _jobs(request: Request) -> tuple[World, Jobs]:
    world: World = request.app.state.world
    if world.jobs is None:
        raise Refused(404, "files as jobs are off here; the server needs --jobs FOLDER.")
    return world, world.jobs


@router.post("/v1/jobs", response_model=JobAnswer, status_code=202, responses=_ANSWERS, openapi_extra=_UPLOAD, tags=["graftmt"])
async def create(request: Request) -> dict[str, Any]:
    """Takes a file (txt, md, html, srt; UTF-8) to be translated; ask for it under its id."""
    world, jobs = _jobs(request)
    job, _ = await _created(request, world, jobs)
    return _answer(Standing(job, "waiting"))


@router.get("/v1/jobs/{identity}", response_model=JobAnswer, responses=_ANSWERS, tags=["graftmt"])
async def find(request: Request, identity: str) -> dict[str, Any]:
    """Where a job is, and how many of its sentences are done."""
    world, jobs = _jobs(request)
    return _answer(jobs.find(identity, world.admit(request).owner))


@router.get("/v1/jobs/{identity}/result", response_class=FileResponse, responses=_ANSWERS, tags=["graftmt"])
async def result(request: Request, identity: str) -> FileResponse:
    """The translated file; 404 until it is done."""
    world, jobs = _jobs(request)
    standing = jobs.find(identity, world.admit(request).owner)
    if standing.state != "done":
        raise Refused(404, f"this job is {standing.state}; its result is not there.")
    job = standing.job
    stem, dot, ending = job.name.rpartition(".")
    name = f"{stem or ending}.{job.target}{dot}{ending if dot else ''}"
    return FileResponse(jobs.result(job), media_type=media_type_of(job), filename=name)


@router.delete("/v1/jobs/{identity}", response_model=JobAnswer, responses=_ANSWERS, tags=["graftmt"])
async def delete(request: Request, identity: str) -> dict[str, Any]:
    """Deletes a job with its file and its result."""
    world, jobs = _jobs(request)
    standing = jobs.find(identity, world.admit(request).owner)
    jobs.delete(standing.job)
    return _answer(standing)


@router.post("/translate_file", response_model=FileAnswer, responses=_ANSWERS, openapi_extra=_UPLOAD, tags=["LibreTranslate"])
async def translate_file(request: Request) -> dict[str, str]:
    """Takes a file, waits until it is translated, and says where the result is."""
    world, jobs = _jobs(request)
    job, client = await _created(request, world, jobs)
    until = time.monotonic() + world.options.timeout
    while (standing := jobs.find(job.id, client.owner)).state in ("waiting", "running"):
        if time.monotonic() > until:
            raise Refused(503, f"it takes longer; ask for the job {job.id} later.", retry_after=30)
        await asyncio.sleep(LOOK)
    if standing.state == "failed":
        raise bad_request(standing.error or "the file could not be translated.")
    return {"translatedFileUrl": str(request.url_for("result", identity=job.id))}


async def _created(request: Request, world: World, jobs: Jobs) -> tuple[Job, Client]:
    try:
        form = await request.form(max_files=1, max_fields=20)
    except MultipartParseError:
        raise bad_request("the form cannot be read; send multipart/form-data.") from None
    fields = Fields({name: value for name, value in form.multi_items() if isinstance(value, str)})
    client = world.admit(request, fields)
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise bad_request("file is missing: send multipart/form-data with a file that has a name.")
    named = fields.optional("format")
    kind = format_named(named) if named else format_of_file(file.filename)
    try:
        content = (await file.read()).decode("utf-8")
    except UnicodeDecodeError:
        raise bad_request("the file is not UTF-8 text.") from None
    source = fields.text("source", longest=64)
    if source == "auto":
        source = (await world.service.detect_source(content[:2000])).language
    route = world.service.route(source, fields.text("target", longest=64))
    world.clients.count_characters(client, len(content))
    name = file.filename.replace("\\", "/").rpartition("/")[2]
    job = await asyncio.to_thread(
        jobs.create, name, content, source=route.source, target=route.target, form=kind.name, owner=client.owner
    )
    return job, client


def _answer(standing: Standing) -> dict[str, Any]:
    job = standing.job
    return {
        "id": job.id,
        "state": standing.state,
        "source": job.source,
        "target": job.target,
        "name": job.name,
        "done": standing.done,
        "total": standing.total,
        "error": standing.error,
    }
