"""Options that several commands share, declared once."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graftmt.errors import UNPRINTABLE, ConfigError, printable
from graftmt.progress import announce, silence

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from graftmt.prepare.source import Source


def finite(value: float | None) -> float | None:
    """For options that are numbers: `nan` passes every comparison, and decides nothing."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number that can be meant.")
    return value


BaseFolder = Annotated[Path, typer.Option("--base", "-b", help="Folder of the base, such as runs/demo/base.")]
Beam = Annotated[
    int, typer.Option("--beam", help="Hypotheses kept at each step; 1 is greedy search, quicker and a little worse.")
]
LengthPenalty = Annotated[
    float,
    typer.Option(
        "--length-penalty", callback=finite, help="Scores are divided by length^penalty: above 1 favours longer output."
    ),
]
MaxLength = Annotated[int, typer.Option("--max-length", help="At most so many tokens come out for a line.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto: a GPU where there is one.")]
Precision = Annotated[
    str,
    typer.Option(
        "--dtype", help="fp32, bf16 or fp16: the precision in which the model runs. On a CPU int8 too: large models run faster."
    ),
]
SearchEngine = Annotated[
    str,
    typer.Option(
        "--engine",
        help="native, or ctranslate2: faster on a CPU for much text (exports each model once into the cache; fp32 or int8).",
    ),
]
BatchTokens = Annotated[
    int, typer.Option("--batch-tokens", min=0, help="Source tokens × beam at once; less where memory runs out. 0: chosen here.")
]
SourcePack = Annotated[
    str | None, typer.Option("--source-pack", help="Which pack reads the input, where several could (NAME of --packs).")
]
TargetPack = Annotated[
    str | None, typer.Option("--target-pack", help="Which pack writes the output, where several could (NAME of --packs).")
]
Packs = Annotated[
    list[str] | None,
    typer.Option(
        "--packs",
        "-p",
        help="Language packs, folders or .graftpack files; several with commas or by repeating. NAME=PATH gives one a name.",
    ),
]
Tokenize = Annotated[
    str | None,
    typer.Option(
        "--tokenize",
        help="BLEU's tokeniser: 13a, intl, zh, ja-mecab, ko-mecab, char; none for text that is tokenised already, as TED is; "
        "spm:PATH for spBLEU with a SentencePiece model, such as that of FLORES. Unless given: zh for Chinese, ja-mecab for "
        "Japanese (char where MeCab is not installed), 13a for the rest.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def silenced(context: typer.Context, quiet: bool) -> bool:
    """--quiet: nobody hears what the command says on the way."""
    if quiet:
        context.with_resource(silence())
    return quiet


Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=silenced, help="No progress.")]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes",
        min=0,
        callback=finite,
        help="Stop cleanly after so many minutes, with exit code 0; the same command goes on from there.",
    ),
]
FreshRun = Annotated[bool, typer.Option("--fresh", help="Start over; an earlier run in the same folder is moved aside.")]
PrintConfig = Annotated[
    bool, typer.Option("--dry-run", help="Check the configuration and which files are there, and print it; train nothing.")
]


def items(*texts: str) -> list[str]:
    """What stands between the commas of one text or several."""
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]


def numbers(text: str, option: str) -> list[int]:
    """The same, where each item is a number from 0; `option` is where it was given."""
    for item in (found := items(text)):
        if not (item.isascii() and item.isdecimal() and len(item) < 10):
            raise ConfigError(f"{option} {text!r}: {item!r} is no number; write numbers with commas, such as 2,3.")
    return list(map(int, found))


def parse_packs(values: list[str] | None) -> dict[str, Path] | list[Path]:
    """What --packs means: paths, or names with paths where any has a name."""
    given = items(*(values or ()))
    if not any("=" in item and not Path(item).exists() for item in given):
        paths = [Path(item) for item in given]
        _check_no_folder_of_packs(paths)
        return paths
    named: dict[str, Path] = {}
    for item in given:
        name, equals, path = item.partition("=")
        has_name = bool(equals) and not Path(item).exists()
        path = path if has_name else item
        if path:
            _check_no_folder_of_packs([Path(path)])
            name = name if has_name else _own_name(Path(path))
        if not path or name in named:
            problem = "has no path" if not path else f"is the second pack with the name {name!r}"
            raise ConfigError(f"--packs: {item!r} {problem}; write NAME=PATH, each name once.")
        named[name] = Path(path)
    return named


def _own_name(pack: Path) -> str:
    """What a translator calls a pack that is given no name: el-source, by languages and side."""
    from graftmt.packs import read_pack_document

    document = read_pack_document(pack)
    return f"{'+'.join(document['languages'])}-{document['side']}"


def _check_no_folder_of_packs(paths: Iterable[Path]) -> None:
    """Packs are named one by one: of those in a folder, several may be for the same language, or for another base."""
    for folder in paths:
        inside = _packs_in(folder) if folder.is_dir() else []
        if not inside or inside == [Path("pack")]:  # the folder of a run, whose pack the reader of packs will name
            continue
        count, them = (f"{len(inside)} packs", "them") if len(inside) > 1 else ("1 pack", "it")
        raise ConfigError(
            f"--packs: {folder} is no pack; it holds {count}: {', '.join(map(str, inside))}. "
            f"Name {them}: -p {','.join(str(folder / one) for one in inside[:2])}"
        )


def _packs_in(folder: Path) -> list[Path]:
    """The packs, archives and packs of runs in a folder that is no pack itself."""
    from graftmt.packs.archive import ARCHIVE, DOCUMENT, TENSORS

    if (folder / DOCUMENT).exists() or (folder / TENSORS).exists():  # a pack, or what is left of one
        return []
    places = [one for child in folder.iterdir() for one in (child, child / "pack")]
    found = [one for one in places if (one / DOCUMENT).is_file() or (one.suffix == ARCHIVE and one.is_file())]
    return sorted(one.relative_to(folder) for one in found)


def plain(text: object) -> Text:
    """For rich, which would read a string as markup and hand control characters to the terminal."""
    from rich.text import Text

    return Text(printable(text))


def json_text(document: Any, indent: int | None = None) -> str:
    """JSON in which what would command a terminal is escaped; a program reads the same from it."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def tell(*lines: object) -> None:
    """Lines of the result, on standard output: as they are for a file or a pipe, safe to look at on a terminal."""
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
            announce(f"graftmt: {stop.reason}; everything is saved. The same command goes on from here.")
            if as_json:
                nothing = {} if made is None else {made: None}
                print(json_text({"stopped": stop.reason, **nothing, **stop.standing}))
        raise typer.Exit(stop.exit_code) from None


def counted(source: Source, name: str) -> Source:
    """The same lines, with their number on standard error while they are written."""
    from graftmt.prepare.source import Line, Source
    from graftmt.progress import progress

    def read() -> Iterator[Line]:
        with progress(f"{name}: lines written", 0) as bar:
            for number, line in enumerate(source, 1):
                yield line
                if number % 1000 == 0:
                    bar.update(number)

    return Source(source.name, source.languages, read)


def show_samples(console: Console, samples: list[dict[str, str]]) -> None:
    """Source, translation and, where it differs, the reference."""
    for sample in samples:
        right = sample["translation"] == sample["reference"]
        heading = plain(sample["direction"])
        heading.stylize("bold")
        console.print(heading.append(f"  {'as the reference' if right else 'differs from the reference'}", "not bold"))
        lines = [sample["source"], sample["translation"], *([] if right else [f"reference: {sample['reference']}"])]
        for line in lines:
            console.print(plain(f"  {line}"), soft_wrap=True)
