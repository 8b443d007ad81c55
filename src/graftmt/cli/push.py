"""`graftmt push`: a base or a pack to the Hugging Face Hub, or into a folder that a web server gives out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet
from graftmt.cli.output import json_text, tell


def push(
    thing: Annotated[Path, typer.Argument(help="A base, or a pack (folder or .graftpack file)")],
    destination: Annotated[str, typer.Argument(help="hf:OWNER/NAME[@BRANCH], or a folder")],
    name: Annotated[
        str | None,
        typer.Option("--name", help="Its name there (default: the repository, or its own name)"),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", help="Licence to state, such as cc-by-4.0"),
    ] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="Hub: branch to push to")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Hub: message of the commit")] = None,
    private: Annotated[bool, typer.Option("--private", help="Hub: make a new repository private")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and describe; upload nothing")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Share a base or a pack: upload it to the Hugging Face Hub, or copy it into
    a folder and update the folder's index. It is read and checked first. On
    the Hub it becomes one commit with a model card; the repository is made if
    needed. Log in first with: hf auth login. Any web server can serve a
    folder with its index.

    Examples:
      graftmt push packs/el-source hf:OWNER/el-source --licence cc-by-4.0
      graftmt push packs/el-source hf:OWNER/greek-packs --name el --dry-run
      graftmt push packs/el-source public/packs

    More: docs/sharing.md
    """
    from graftmt.sharing.pushing import PushOptions
    from graftmt.sharing.pushing import push as run

    result = run(
        PushOptions(
            thing=thing,
            destination=destination,
            name=name,
            licence=licence,
            revision=revision,
            message=message,
            private=private,
            dry_run=dry_run,
        ),
    )
    if as_json:
        print(json_text(result.to_dict()))
    elif result.revision is None:
        tell(f"{thing} would go to {result.destination}: {result.offer.kind}, {result.offer.size:,} bytes")
    else:
        tell(f"{result.destination}: revision {result.revision[:16]}, fingerprint {result.offer.fingerprint[:16]}…")
