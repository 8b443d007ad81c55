"""`graftmt push`: a base or a pack to the Hugging Face Hub, or into a folder that a web server gives out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import AsJson, Quiet, json_text, tell


def push(
    thing: Annotated[Path, typer.Argument(help="A base's folder, or a pack: its folder or its .graftpack file.")],
    destination: Annotated[str, typer.Argument(help="hf:OWNER/NAME[@BRANCH], or a folder, whose index is updated.")],
    name: Annotated[
        str | None,
        typer.Option("--name", help="Its name there. Default: on the Hub the repository itself, in a folder its own."),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", help="The licence to state, by its short name, such as cc-by-4.0."),
    ] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="Hub: the branch to push to.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Hub: what the commit says.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Hub: if the repository has to be made, make it private.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and describe; put nothing anywhere.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Share a base or a pack: upload it to a repository of the Hugging Face Hub, or copy it into a folder and update its index.

    It is read and checked first. On the Hub it is one commit, with a model card; the repository is made if there is none.
    You need a login for the Hub: hf auth login.

    For a web folder, push to a folder on your disk and give that to any web server, index included.

    Example: graftmt push packs/el-source hf:OWNER/el-source --licence cc-by-4.0

    Example: graftmt push packs/el-source hf:OWNER/greek-packs --name el-source --dry-run

    Example: graftmt push packs/el-source public/packs
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
