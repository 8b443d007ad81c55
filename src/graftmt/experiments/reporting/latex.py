"""A report's tables as LaTeX, for documents that load booktabs and graphicx. Layer 7."""

from __future__ import annotations

import unicodedata
from itertools import groupby

from graftmt.experiments.reporting.table_values import Block, Field, ReportTable

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\to$",
    "←": r"$\leftarrow$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "≥": r"$\ge$",
    "<": "$<$",
    ">": "$>$",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
}


def latex_table(table: ReportTable) -> str:
    """One `table*` a block that has results; tables are shrunk to the width of the text where they are wider."""
    head = "% Needs \\usepackage{booktabs,graphicx}; written by `graftmt experiment report`.\n"
    shown = [block for block in table.blocks if block.run] or table.blocks
    return head + "\n".join(_block(table, block, number) for number, block in enumerate(shown))


def _block(table: ReportTable, block: Block, number: int) -> str:
    columns = "".join("l" if heading.text else "r" for heading in block.headings)
    title = escape(table.title + (f" ({block.title})" if len(table.blocks) > 1 else ""))
    lines = [
        r"\begin{table*}[t]",
        r"  \centering",
        r"  \resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        *(f"    {line}" for line in _headings(block)),
        r"    \midrule",
    ]
    for index, row in enumerate(block.rows):
        lines += [r"    \midrule"] if index in block.rules else []
        lines.append(f"    {' & '.join(_field(field) for field in row)} \\\\")
    notes = [*block.remarks, *(f"({n}) {text}" for n, text in enumerate(block.footnotes, 1))]
    caption = ". ".join([title, *(escape(note).rstrip(".") for note in notes)]) + "."
    lines += [
        r"    \bottomrule",
        r"  \end{tabular}}",
        rf"  \caption[{{{title}}}]{{{caption}}}",
        rf"  \label{{{table.label}{'-' + str(number + 1) if number else ''}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _headings(block: Block) -> list[str]:
    """The paper's columns above, what stands under each below, with a line between."""
    groups = [(name, len(list(members))) for name, members in groupby(block.headings, key=lambda heading: heading.group)]
    names = " & ".join(escape(heading.name) for heading in block.headings)
    if all(not name for name, _ in groups):
        return [rf"{names} \\"]
    above, rules, start = [], [], 1
    for name, size in groups:
        above.append(rf"\multicolumn{{{size}}}{{c}}{{{escape(name)}}}")
        if name:
            rules.append(rf"\cmidrule(lr){{{start}-{start + size - 1}}}")
        start += size
    return [rf"{' & '.join(above)} \\", " ".join(rules), rf"{names} \\"]


def _field(field: Field) -> str:
    text = escape(field.text)
    marks = f"$^{{{','.join(map(str, field.notes))}}}$" if field.notes else ""
    return (rf"\textbf{{{text}}}" if field.bold else text) + marks


def escape(text: str) -> str:
    """Commands for what LaTeX would read as one; letters that a font may lack without their accents, or as `?`."""
    return "".join(_SPECIAL.get(character) or _ascii(character) for character in " ".join(text.split()))


def _ascii(character: str) -> str:
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode("ascii") or "?"
