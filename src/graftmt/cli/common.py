"""Options that several commands share, declared once."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graftmt.errors import UNPRINTABLE, ConfigError, printable
from graftmt.options import items
from graftmt.progress import announce, silence

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from graftmt.translation_options import ModelOptions
    from graftmt.translator import Translator


def finite(value: float | None) -> float | None:
    """For options that are numbers: `nan` passes every comparison, and decides nothing."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number that can be meant.")
    return value


BaseFolder = Annotated[Path, typer.Option("--base", "-b", help="Folder of the base")]
Beam = Annotated[int, typer.Option("--beam", help="Hypotheses kept; 1: greedy, faster")]
Device = Annotated[str, typer.Option("--device", metavar="NAME", help="cpu, cuda, cuda:1 or auto")]
Precision = Annotated[str, typer.Option("--dtype", metavar="TYPE", help="fp32, bf16 or fp16; on a CPU also int8")]
SearchEngine = Annotated[str, typer.Option("--engine", metavar="NAME", help="native or ctranslate2 (faster on a CPU)")]
BatchTokens = Annotated[int, typer.Option("--batch-tokens", min=0, help="Source tokens × beam at once (default: by device)")]
Packs = Annotated[
    list[str] | None, typer.Option("--packs", "-p", metavar="PACKS", help="Packs, with commas; NAME=PATH names one")
]
Tokenize = Annotated[
    str | None,
    typer.Option("--tokenize", metavar="NAME", help="BLEU's tokeniser (default: by language)"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]


def silenced(context: typer.Context, quiet: bool) -> bool:
    """--quiet: nobody hears what the command says on the way."""
    if quiet:
        context.with_resource(silence())
    return quiet


Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=silenced, help="No progress messages")]
Minutes = Annotated[
    float | None,
    typer.Option("--minutes", metavar="N", min=0, callback=finite, help="Stop cleanly after N minutes; rerun to resume"),
]
FreshRun = Annotated[bool, typer.Option("--fresh", help="Start over; an earlier run is moved aside")]
PrintConfig = Annotated[bool, typer.Option("--dry-run", help="Check and print the configuration; train nothing")]


def numbers(text: str, option: str) -> list[int]:
    """The same, where each item is a number from 0; `option` is where it was given."""
    for item in (found := items(text)):
        if not (item.isascii() and item.isdecimal() and len(item) < 10):
            raise ConfigError(f"{option} {text!r}: {item!r} is no number; write numbers with commas, such as 2,3.")
    return list(map(int, found))


def open_translator(options: ModelOptions) -> Translator:
    """Base and packs as they were named, run by the engine that was named; `options.device` is chosen already."""
    from graftmt.interop.engine_registry import open_translator
    from graftmt.packs.named_packs import parse_packs

    packs = parse_packs(options.packs)
    return open_translator(options.engine, options.base, packs, device=options.device, dtype=options.dtype)


def plain(text: object) -> Text:
    """For rich, which would read a string as markup and hand control characters to the terminal."""
    from rich.text import Text

    return Text(printable(text))


def json_text(document: Any, indent: int | None = None) -> str:
    """JSON in which what would command a terminal is escaped; a program reads the same from it."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def tell(*lines: object) -> None:
    """Sentences about the result, on standard output, without what would command a terminal."""
    for line in lines:
        print(printable(line))


def hand_over(*lines: object) -> None:
    """Paths, translations and YAML, for other programs: as they are in a file or a pipe, safe to look at on a terminal."""
    for line in lines:
        print(printable(line) if sys.stdout.isatty() else line)


@contextmanager
def stoppable(*, as_json: bool = False, made: str | None = None) -> Iterator[None]:
    """Around training: a run that was asked to stop says so and ends with the code the shell expects.

    `made` is what the result would be called in JSON. Of several processes the first one speaks.
    """
    from graftmt.training import Stopped
    from graftmt.training.distribution import is_first_process

    try:
        yield
    except Stopped as stop:
        if is_first_process():
            announce(f"graftmt: {stop.reason}; everything is saved. Rerun the command to resume.")
            if as_json:
                nothing = {} if made is None else {made: None}
                print(json_text({"stopped": stop.reason, **nothing, **stop.standing}))
        raise typer.Exit(stop.exit_code) from None


def show_samples(console: Console, samples: list[dict[str, str]]) -> None:
    """Source, translation and, where it differs, the reference."""
    for sample in samples:
        right = sample["translation"] == sample["reference"]
        heading = plain(sample["direction"])
        heading.stylize("bold")
        console.print(heading.append(f"  {'same as the reference' if right else 'differs from the reference'}", "not bold"))
        lines = [sample["source"], sample["translation"], *([] if right else [f"reference: {sample['reference']}"])]
        for line in lines:
            console.print(plain(f"  {line}"), soft_wrap=True)
