"""`graftmt serve`: what is wrong is told before anything is loaded, and what is typed is what is served."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra graftmt[server] is not installed")

DEMO = Path(__file__).parents[2] / "src" / "graftmt" / "demo"


def test_packs_and_addresses_of_the_command_line_are_served(
    graftmt: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import uvicorn

    served: list[Any] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: served.append((self.config, sockets[0].getsockname())))
    packs = f"{tmp_path},{DEMO / 'packs' / 'uk-target.graftpack'}"
    found = graftmt(
        "serve", "-b", str(DEMO / "base"), "--packs", packs, "--port", "0", "--cors", "https://a.example,https://b.example"
    )
    assert found.code == 0, found.stderr
    ((config, address),) = served
    assert "pack uk-target: uk as target" in found.stderr and f"http://127.0.0.1:{address[1]}/" in found.stderr
    assert config.server_header is False and config.timeout_keep_alive >= 75


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--base FOLDER, or --demo"),
        (("--demo", "--base", "x"), "one base"),
        (("--base", "nowhere"), "nowhere"),
        (("--demo", "--packs", "nowhere"), "there is no nowhere"),
        (("--demo", "--keys", "nowhere.json"), "--new-key"),
        (("--demo", "--proxies", "*"), "--proxies"),
        (("--demo", "--host", "300.0.0.1"), "cannot listen on 300.0.0.1"),
        (("--new-key", "alice"), "--keys FILE"),
    ],
)
def test_mistakes_are_told(graftmt: Callable[..., Any], arguments: tuple[str, ...], words: str) -> None:
    found = graftmt("serve", "--port", "0", *arguments)
    assert found.code == 1 and words in found.stderr and "Traceback" not in found.stderr


def test_a_port_in_use_is_told(graftmt: Callable[..., Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = graftmt("serve", "--demo", "--port", str(taken.getsockname()[1]))
    assert found.code == 1 and "cannot listen" in found.stderr


def test_a_key_is_made_and_shown_once(graftmt: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    found = graftmt("serve", "--keys", str(path), "--new-key", "alice", "--json")
    key = json.loads(found.stdout)["key"]
    assert key.startswith("gk_") and key not in path.read_text() and "alice" in path.read_text()
