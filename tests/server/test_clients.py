"""Clients from npm, and schemathesis on the whole API: nothing fails, and every answer is as the schema says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from server.conftest import Live

pytestmark = pytest.mark.slow

SCRIPT = """
import translate from "translate";
import libre from "libretranslate";
const url = process.argv[2];
translate.engine = "libre";
translate.url = url + "/translate";
translate.key = "anything";
let found = { translate: [], libre: [] };
for (const text of ["Monday", "3 days ago"]) found.translate.push(await translate(text, { from: "en", to: "fr" }));
found.greek = await translate("Δευτέρα", { from: "el", to: "uk" });
for (const source of ["auto", "en"]) {
  found.libre.push(await libre.translate({ query: "5 kilometers per hour", source, target: "fr", apiurl: url }));
}
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def npm_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    made = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "translate", "libretranslate"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if made.returncode:
        pytest.skip(f"npm could not install the clients: {made.stderr[-200:]}")
    return folder


def run(folder: Path, script: str, *arguments: str) -> Any:
    (folder / "client.mjs").write_text(script)
    done = subprocess.run(["node", "client.mjs", *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_npm_clients_talk_to_it(live: Live, npm_folder: Path) -> None:
    found = run(npm_folder, SCRIPT, live.url)
    assert found["translate"] == ["lundi", "il y a 3 jours"] and found["greek"] == "понеділок"
    assert found["libre"] == ["5 kilomètres par heure"] * 2


def test_schemathesis_finds_no_failure(live: Live) -> None:
    """Every route with what its schema allows and with what it does not: no 5xx, no undocumented status, no other shape."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    done = subprocess.run(
        [
            str(Path(__import__("sys").executable).with_name("schemathesis")),
            *(
                "run",
                live.url + "/openapi.json",
                "--max-examples",
                "12",
                "--no-color",
                "--seed",
                "1",
                "--phases",
                "examples,fuzzing",
            ),
            *("--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"),
            *("--exclude-path", "/metrics", "--suppress-health-check", "all", "--request-timeout", str(PATIENCE)),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "/translate" in done.stdout and schemathesis.__name__
    assert done.returncode == 0, done.stdout[-6000:]
