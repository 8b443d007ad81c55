"""`graftmt serve`: an HTTP API and a page for one base and many packs."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import json_text
from graftmt.errors import ConfigError
from graftmt.progress import say
from graftmt.server.serve_options import ServeOptions

NEEDED = ("fastapi", "uvicorn", "sentencex", "lxml", "prometheus_client", "py3langid", "python_multipart")


@takes(ServeOptions)
def serve(
    options: ServeOptions,
    new_key: Annotated[
        str | None, typer.Option("--new-key", metavar="NAME", help="Add an API key to the file of --keys, print it, and end.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Serve translations over HTTP: LibreTranslate's API, graftmt's own under
    /v1, and a web page. One base stays in memory. Put a pack into a folder of
    --packs, and its language is served a moment later; remove it, and it is
    no longer offered. Requests of all users are translated in batches.

    Examples:
      graftmt serve --demo
      graftmt serve -b BASE --packs packs/ --port 8080
      graftmt serve -b BASE --packs packs/ --host 0.0.0.0 --keys keys.json
      graftmt serve --keys keys.json --new-key alice --demo
      graftmt serve -b /models/base --packs /models/packs --ray --replicas 1-4

    More: docs/serving.md
    """
    if new_key is not None:
        from graftmt.server.keys import new_key as add_key

        if options.keys is None:
            raise ConfigError("--new-key needs --keys FILE: the file that the key's hash is added to.")
        key = add_key(options.keys, new_key)
        print(json_text({"name": new_key, "key": key}) if as_json else key)
        say(f"this is the only time that the key is shown; {options.keys} has its hash.")
        return
    check_installed()
    if options.ray:
        from graftmt.server.on_ray.deployment import serve_on_ray

        serve_on_ray(options)
        return
    from graftmt.server.running import serve as run

    run(options)


def check_installed() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"serve needs {', '.join(missing)}: pip install 'graftmt[server]'.")
