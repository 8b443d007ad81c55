"""README.md of an exported folder: how to load the model, how text becomes tokens, what it was made of. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftmt.interop.export.target import ExportTarget, Job
from graftmt.interop.export.target_registry import text_form
from graftmt.interop.export.text_files import example_tokens, names_of_rows
from graftmt.text.protocol import SIDES


def page(target: ExportTarget, job: Job, about: Mapping[str, Any]) -> str:
    directions = ", ".join(f"{one.source} → {one.target}" for one in job.directions)
    lines = [
        f"# {directions}, for {target.title}",
        "",
        "A translation model, exported by graftmt: a multilingual base with its language packs folded in. graftmt is not "
        "needed to use it.",
        "",
        *target.usage(job, about),
        "",
        *_text(job, about),
        "",
        *_origin(job, about),
    ]
    return "\n".join(lines) + "\n"


def _text(job: Job, about: Mapping[str, Any]) -> list[str]:
    """How text becomes tokens."""
    kinds = {side: job.composition.codec.text_of(side).kind for side in SIDES}
    lines = ["## How text becomes tokens", ""]
    for kind in dict.fromkeys(kinds.values()):
        sides = " and ".join(side for side in SIDES if kinds[side] == kind)
        lines += [f"**{sides.capitalize()}.** {text_form(kind).description}", ""]
    tokens = " ".join(f"`{token}`" for token in example_tokens(job, about, names_of_rows(job)))
    first = job.directions[0]
    lines += [
        f"What stands around a sentence depends on the direction; `export.json` has it. {first.source} → {first.target}:",
        "",
        f"- `{job.example}` becomes {tokens}",
    ]
    if len(first.decoder) > 1:
        names = names_of_rows(job)["target"]
        lines.append(f"- the decoder starts from {' '.join(f'`{names[row]}`' for row in first.decoder)}")
    lines += ["- the tokens under `never` in `export.json` must not come out: they are suppressed in the search"]
    return lines


def _origin(job: Job, about: Mapping[str, Any]) -> list[str]:
    lines = ["## What it was made of", "", "| | |", "|---|---|", f"| weights | {job.quantization} |"]
    lines.append(f"| base | `{about['base']}` |")
    for pack in about["packs"]:
        name = f"{'+'.join(pack['languages'])} ({pack['side']})"
        lines.append(f"| pack {name} | `{pack['fingerprint']}`, recipe `{pack['recipe']}` |")
    return lines
