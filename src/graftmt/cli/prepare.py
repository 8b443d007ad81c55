"""`graftmt prepare`: from downloaded files to a corpus folder; a command per format, then clean, align, split, stats."""

from __future__ import annotations

import typer

from graftmt.cli import (
    prepare_align,
    prepare_clean,
    prepare_fetch,
    prepare_join,
    prepare_read,
    prepare_segment,
    prepare_split,
    prepare_stats,
)

app = typer.Typer(
    help="Make a corpus folder for `train` and `add` from downloads: read, clean, align, split, count.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_READ = "Read a format"
for name, read in prepare_read.COMMANDS.items():
    app.command(name, rich_help_panel=_READ)(read)
app.command("fetch", rich_help_panel=_READ)(prepare_fetch.fetch)

_WORK = "Work on a corpus"
app.command("clean", rich_help_panel=_WORK)(prepare_clean.clean)
app.command("join", rich_help_panel=_WORK)(prepare_join.join)
app.command("align", rich_help_panel=_WORK)(prepare_align.align)
app.command("split", rich_help_panel=_WORK)(prepare_split.split)
app.command("segment", rich_help_panel=_WORK)(prepare_segment.segment)
app.command("stats", rich_help_panel=_WORK)(prepare_stats.stats)
