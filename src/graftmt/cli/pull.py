"""`graftmt pull`: a base or a pack from the Hugging Face Hub, a web folder or another folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import AsJson, Quiet, json_text, tell
from graftmt.errors import ConfigError

SOURCE_HELP = "hf:OWNER/NAME[@REVISION], the address of a web folder that has an index, or a folder."


def pull(
    source: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    name: Annotated[
        str | None, typer.Argument(help="Which base or pack; `graftmt packs list` shows them. Not needed if there is only one.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to make, or a .graftpack file. Default: its name, here.")
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option("--base", "-b", help="The base that a pack must fit, checked before the download."),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", help="Hub: a branch, a tag or a commit. Elsewhere: the revision that `packs list` printed."),
    ] = None,
    fingerprint: Annotated[
        str | None, typer.Option("--fingerprint", help="The fingerprint it must have, or its first digits (8 at least).")
    ] = None,
    max_size: Annotated[
        str, typer.Option("--max-size", help="Refuse what is larger, such as 500MB, before the download.")
    ] = "10GB",
    replace: Annotated[bool, typer.Option("--replace", help="Replace another base or pack that is at the output.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Download a base or a pack, check it, and store it.

    Sizes, the base that a pack is for and your limits are checked before anything large is downloaded; checksums and the
    fingerprint before the result gets its name. If the connection breaks, rerun the command to resume. What is there
    already is not downloaded again.

    Private and gated repositories of the Hub need a login: hf auth login.

    Example: graftmt pull hf:OWNER/greek-packs el-source -o packs/el-source -b BASE

    Example: graftmt pull https://example.org/packs el-source -o el-source.graftpack --max-size 200MB
    """
    from graftmt.prepare.sizes import parse_size
    from graftmt.sharing import PullOptions
    from graftmt.sharing import pull as run

    limit = parse_size(max_size)
    if limit is None:
        raise ConfigError(f"--max-size is {max_size!r}; expected a size, such as 500MB or 2GB.")
    result = run(
        PullOptions(
            source=source,
            name=name,
            output=output,
            base=base,
            revision=revision,
            fingerprint=fingerprint,
            limit=limit,
            replace=replace,
        ),
    )
    if as_json:
        print(json_text(result.to_dict()))
        return
    offer = result.offer
    licence = offer.licence or "none stated"
    tell(
        f"{result.path}: {'already there, ' if result.there else ''}{offer.kind}, {', '.join(offer.languages)}"
        f"{f' as {offer.side}' if offer.side else ''}; fingerprint {offer.fingerprint[:16]}…; licence: {licence}"
    )
    if offer.base is not None:
        tell(f"for the base {offer.base[:16]}…")
