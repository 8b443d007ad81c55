"""What the commands of `graftmt prepare` that read a format share: files found, splits written, counts shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftmt.cli.output import json_text, plain
from graftmt.errors import ConfigError

if TYPE_CHECKING:
    from graftmt.prepare.readers import Limits, StoredFile
    from graftmt.prepare.source import Source


def find(inputs: list[str], wanted: Callable[[str], bool], what: str, max_ratio: float, max_size: str) -> list[StoredFile]:
    from graftmt.prepare.readers import find_files

    return find_files(inputs, wanted, what=what, limits=parse_limits(max_ratio, max_size))


def parse_limits(max_ratio: float, max_size: str) -> Limits:
    from graftmt.prepare.readers import Limits
    from graftmt.prepare.sizes import parse_size

    size = parse_size(max_size)
    if size is None:
        raise ConfigError(f"{max_size!r} is no size; write one such as 500MB or 200GB.")
    return Limits(ratio=max_ratio, size=size)


def parse_codes(languages: str | None) -> dict[str, str] | None:
    from graftmt.prepare.readers import parse_languages

    return parse_languages(languages)


def paths_of(files: Iterable[StoredFile]) -> list[Path]:
    return [path for file in files for path in file.parts]


def convert(format_name: str, splits: Mapping[str, Source], inputs: Iterable[Path], output: Path) -> dict[str, dict[str, Any]]:
    from graftmt.prepare.conversion import convert
    from graftmt.progress import progress

    with progress(f"lines into {output}", 0) as report:
        return convert(output, splits, format_name=format_name, inputs=inputs, progress=report)


def write_splits(format_name: str, splits: Mapping[str, Source], inputs: Iterable[Path], output: Path, as_json: bool) -> None:
    """Writes the corpus and says what came out; `inputs` is what the splits are read from."""
    report = convert(format_name, splits, inputs, output)
    if as_json:
        print(json_text({"corpus": str(output), "splits": report}, indent=2))
        return
    _show(str(output), report, "split")


def _show(title: str, report: Mapping[str, Mapping[str, Any]], first: str) -> None:
    """Lines and texts per language as a table: a row per split or pair."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=plain(title))
    table.add_column(first)
    table.add_column("lines", justify="right")
    table.add_column("left out: no text", justify="right")
    table.add_column("texts", overflow="fold")
    for name, counts in report.items():
        texts = ", ".join(f"{language} {count:,}" for language, count in counts["texts"].items())
        table.add_row(plain(name), f"{counts['lines']:,}", f"{counts['without_text']:,}", plain(texts))
    Console().print(table)
