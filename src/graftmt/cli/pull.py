"""`graftmt pull`: a base or a pack from the Hugging Face Hub, a web folder or another folder."""

from __future__ import annotations

from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import json_text, tell
from graftmt.sharing.pull_options import PullOptions


@takes(PullOptions)
def pull(options: PullOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Download a base or a pack, check it, and store it. Sizes and the base
    that a pack is for are checked before the download, checksums and the
    fingerprint before the result gets its name. Rerun the command to resume.
    Private repositories of the Hub need a login: hf auth login.

    Examples:
      graftmt pull hf:OWNER/greek-packs el-source -o packs/el-source -b BASE
      graftmt pull https://example.org/packs el-source --max-size 200MB

    More: docs/sharing.md
    """
    from graftmt.sharing.pulling import pull as run

    result = run(options)
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
