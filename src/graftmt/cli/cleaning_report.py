"""What `graftmt prepare clean` shows at its end: figures, examples of what each rule did, and a warning where that was much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graftmt.cli.output import plain

MUCH = 0.1
"""Share of a language's texts that a rule may drop without a warning."""
EXAMPLES_SHOWN = 3
LONGEST_EXAMPLE = 100


def losses(report: dict[str, Any]) -> list[str]:
    """In words: the rules that dropped more than a tenth of the texts in a language."""
    found = []
    for split, document in report["splits"].items():
        for rule, counts in document["dropped"].items():
            for language, number in counts.items():
                read = document["texts"][language]["read"]
                if rule == "alone" or number <= MUCH * read:
                    continue
                example = next((item for item in document["examples"].get(rule, []) if item["language"] == language), None)
                shown = f", such as «{cut(example['text'])}»" if example else ""
                why = f" ({example['why']})" if example and "why" in example else ""
                found.append(
                    f"{split}: the rule {rule} dropped {number / read:.0%} of the texts in {language} ({number:,} of {read:,})"
                    f"{shown}{why}. If these are good, leave it out with --rules=-{rule}" + HINTS.get(rule, "") + "."
                )
    return found


HINTS = {
    "language_id": ", name the languages that wrong text may be in with --candidates, or raise --margin",
    "too_long": ", or raise --max-length and --max-words",
    "length_ratio": ", or raise --max-ratio",
    "scripts": ", or raise --max-foreign",
}


def warn_of_losses(report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True)
    for loss in losses(report):
        console.print(plain(f"warning: {loss}"), style="bold yellow")


def cut(text: str) -> str:
    return text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + "…"


def show_examples(document: dict[str, Any], console: Any) -> None:
    """A few of the texts that each rule dropped or repaired."""
    for rule, examples in document["examples"].items():
        if rule == "alone":
            continue
        for example in examples[:EXAMPLES_SHOWN]:
            after = f" → {cut(example['becomes'])}" if "becomes" in example else ""
            why = f"  ({example['why']})" if "why" in example else ""
            console.print(plain(f"{rule}, {example['language']}: {cut(example['text'])}{after}{why}"))


def show(report: dict[str, Any], output: Path | None) -> None:
    """A table a split, then how the languages were judged."""
    from rich.console import Console

    console = Console()
    for name, document in report["splits"].items():
        console.print(table_of(name, document))
        show_examples(document, console)
        judged: dict[str, list[str]] = {}
        for language, note in document["language_id"].items():
            judged.setdefault(note, []).append(language)
        for note, languages in judged.items():
            console.print(plain(f"language ID of {', '.join(languages)}: {note}"))
    if report["copied"]:
        console.print(plain(f"copied: {', '.join(report['copied'])}"))
    if output is None:
        console.print(plain("nothing was written: this was a preview; give --output FOLDER to clean the corpus"))
        return
    console.print(plain(f"{output}: the clean corpus; report.json in it has all figures, with examples of what each rule did"))


def table_of(name: str, document: dict[str, Any]) -> Any:
    """Texts by rule, and the languages with most of them: all languages would not fit a terminal."""
    from rich.table import Table

    lines = document["lines"]
    read, kept = ({language: counts[key] for language, counts in document["texts"].items()} for key in ("read", "kept"))
    total = sum(read.values())
    table = Table(title=plain(f"{name}: {lines['kept']:,} of {lines['read']:,} lines kept"))
    table.add_column("texts", no_wrap=True)
    for column in ("number", "share"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("most in", overflow="fold")

    def add(label: str, counts: dict[str, int], style: str = "") -> None:
        number = sum(counts.values())
        most = sorted((language for language in counts if counts[language]), key=lambda language: -counts[language])[:4]
        listed = ", ".join(f"{language} {counts[language]:,}" for language in most)
        table.add_row(plain(label), f"{number:,}", f"{number / max(1, total):.2%}", plain(listed), style=style)

    add("read", read)
    for what in ("repaired", "dropped"):
        for rule, counts in document[what].items():
            add(f"{what}: {rule}", counts)
    add("kept", kept, "bold")
    return table
