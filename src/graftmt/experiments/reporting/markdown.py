"""A report's tables as Markdown, as GitHub shows it. Layer 7."""

from __future__ import annotations

import re

from graftmt.experiments.reporting.table_values import Block, Field, ReportTable


def markdown_table(table: ReportTable) -> str:
    """The file of one table: its blocks, each with its remarks and footnotes."""
    parts = [f"# Table {table.number}: {escape(table.title)}\n"]
    some_run = any(block.run for block in table.blocks)
    for block in table.blocks:
        if some_run and not block.run:  # a split that was not scored, say
            parts.append(f"## {block.title}: not run\n")
            continue
        parts += [f"## {block.title}\n"] if len(table.blocks) > 1 else []
        parts.append(markdown_block(block))
    return "\n".join(parts)


def markdown_block(block: Block) -> str:
    names = [f"{heading.group}<br>{heading.name}" if heading.group else heading.name for heading in block.headings]
    lines = [_row(names), _row([":---" if heading.text else "---:" for heading in block.headings])]
    for number, row in enumerate(block.rows):
        if number in block.rules:  # Markdown has no lines within a table
            lines.append(_row([""] * len(row)))
        lines.append(_row([_field(field) for field in row]))
    lines.append("")
    lines += [f"- {escape(remark)}" for remark in block.remarks]
    lines += [f"- <sup>{number}</sup> {escape(text)}" for number, text in enumerate(block.footnotes, 1)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _field(field: Field) -> str:
    text = escape(field.text)
    marks = f"<sup>{','.join(map(str, field.notes))}</sup>" if field.notes else ""
    return (f"**{text}**" if field.bold else text) + marks


def escape(text: str) -> str:
    """Text as it is: nothing of it is markup, nor the end of a cell."""
    return re.sub(r"[\\<*`|_]", r"\\\g<0>", " ".join(text.split()))
