"""`graftmt prepare clean`: repair and filter a corpus, and say what was dropped and why."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from graftmt.cli.cleaning_report import show, warn_of_losses
from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import json_text
from graftmt.prepare.clean_options import CleanOptions
from graftmt.prepare.cleaning_rules import CleaningConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graftmt.prepare.cleaning import Chunk, ChunkMapper, CleaningState, Counts


@takes(CleanOptions, CleaningConfig)
def clean(options: CleanOptions, limits: CleaningConfig, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Repair and filter a corpus: a bad text is emptied, a line with fewer
    than two texts left is dropped. Lines that do not belong together are an
    error. Rules: encoding, control_characters, markup, normalisation,
    whitespace, invalid, empty, too_long, copies, placeholders, length_ratio,
    scripts, language_id, duplicates.

    Examples:
      graftmt prepare clean corpus --preview
      graftmt prepare clean corpus -o clean --processes 2
      graftmt prepare clean corpus -o clean --trusted szl=silesian.txt

    More: docs/corpora.md
    """
    from graftmt.prepare.cleaned_folder import clean_folder

    report = clean_folder(options, options.applied_to(limits), with_engine(options))
    warn_of_losses(report)
    if as_json:
        print(json_text(report, indent=2))
    else:
        show(report, None if options.preview else options.output)


def with_engine(options: CleanOptions) -> ChunkMapper:
    """Chunks in this process, in several of this machine, or on workers of a Ray cluster."""
    from graftmt.augmentation.chunk_workers import ChunkEngine, map_chunks
    from graftmt.prepare.cleaning import clean_chunk, in_processes, in_this_process

    on_ray = options.engine == "ray"
    engine = ChunkEngine(name=options.engine, address=options.ray_address, workers=options.processes if on_ray else None)
    if not on_ray:
        return in_this_process if options.processes in (None, 1) else in_processes(options.processes)

    def run(chunks: Iterator[Chunk], config: CleaningConfig, state: CleaningState) -> Iterator[tuple[Chunk, Counts]]:
        return map_chunks(partial(clean_chunk, config=config, state=state), chunks, engine)

    return run
