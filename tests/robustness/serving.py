"""`graftmt serve` without a socket that waits: it starts, answers a few requests through its own application, and ends."""

from __future__ import annotations

import json
import sys
from typing import Any

LINES = (("en", "fr", "bada kofe gelo"), ("el", "en", "καλο μενα ροπε"), ("en", "uk", "lako"))
"""Asked where the server has the direction."""


def answer_and_end() -> None:
    """From now on in this process, a server answers some requests where it would wait for them for ever."""
    import uvicorn

    uvicorn.Server.run = _answer  # type: ignore[method-assign, assignment]


def _answer(server: Any, sockets: Any = None) -> None:
    from starlette.testclient import TestClient

    app: Any = server.config.app
    with TestClient(app, client=("127.0.0.1", 50000)) as client:
        offered = client.get("/languages").json()
        targets = {one["code"]: one["targets"] for one in offered} if isinstance(offered, list) else {}
        for source, target, line in LINES:
            if target in targets.get(source, ()):
                answer = client.post("/translate", json={"q": line, "source": source, "target": target})
                _check(answer, (200, 400, 401, 403, 413, 429, 503))
                print(json.dumps(answer.json(), ensure_ascii=False, sort_keys=True))
        _check(client.get("/v1/packs"), (200, 401, 403, 413, 429, 503))
    if app.state.world.service.catalog.problems:  # said at the start; for a program here, a refusal
        sys.exit(1)


def _check(answer: Any, known: tuple[int, ...]) -> None:
    """Anything else, such as 500, is an error of ours."""
    assert answer.status_code in known, f"{answer.status_code}: {answer.text}"
