"""A pack's card: the facts that are stored with it for people, what programs read of them, and its README.md. Layer 3.

None of it is part of the fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from graftmt.base import Base
from graftmt.base_card import in_table, licence_front_matter
from graftmt.text.languages import words_for


class _ChrF(TypedDict):
    chrf: float


class _Score(_ChrF):
    bleu: float


class _PivotScore(_ChrF):
    through: str


class ScoreEntry(_Score, total=False):
    """One direction of a card's scores."""

    lines: int
    zero_shot: bool
    few_lines: bool
    route: str | None
    pivot: _PivotScore | None


class _Parent(TypedDict):
    fingerprint: str


class ParentEntry(_Parent, total=False):
    """The pack that this one continues."""

    version: int
    scores: dict[str, ScoreEntry] | None
    scores_here: dict[str, _ChrF] | None


class SampleEntry(TypedDict):
    direction: str
    source: str
    translation: str
    reference: str


class BaseEntry(TypedDict, total=False):
    """The base in words; its fingerprint is pack.json's own."""

    name: str
    family: str
    revision: str
    licence: str


class PackCard(TypedDict, total=False):
    """What programs read of a pack's card, which is checked when the pack is read; the rest may be anything."""

    made_for: BaseEntry
    language_names: dict[str, str]
    licence: str
    author: str
    trained_on: list[str]
    initialisation: dict[str, int]
    version: int
    parent: ParentEntry | None
    scores: dict[str, ScoreEntry] | None
    samples: list[SampleEntry] | None
    partners: list[str]
    few: list[str]
    steps: int
    training_seconds: float


ORIGIN = ("name", "family", "revision", "licence")
"""What a card repeats of a base's origin."""


def provenance(base: Base, languages: Sequence[str]) -> dict[str, Any]:
    """What a pack's card says of its base and its languages: codes, and their names where a library knows them."""
    origin = base.card.get("origin") or {}
    found = {key: origin[key] for key in ORIGIN if isinstance(origin.get(key), str)}
    if "name" not in found and base.folder is not None:
        found["name"] = folder_name(base.folder.resolve().parts)
    return {"made_for": found, "language_names": {code: words_for(code) or code for code in languages}}


def folder_name(parts: Sequence[str]) -> str:
    """The end of a path that tells a base from others: demo/base rather than base."""
    names = [part for part in parts if part.strip("/\\")]
    return "/".join(names[-2:] if names[-1:] == ["base"] else names[-1:])


def in_words(card: Mapping[str, Any], code: str) -> str:
    """`Greek (el)`; the code alone where it has no name."""
    name = (card.get("language_names") or {}).get(code, code)
    return code if name == code else f"{name} ({code})"


def pack_card(document: Mapping[str, Any]) -> str:
    """README.md of a pack: what a person who finds it wants to know first."""
    card = document["card"]
    languages = ", ".join(in_words(card, code) for code in document["languages"])
    option = f"--packs {'+'.join(document['languages'])}-{document['side']}"
    lines = [
        *licence_front_matter(card),
        f"# A graftmt language pack: {languages} as {document['side']}",
        "",
        "It adds what a multilingual base needs to translate "
        f"{'from' if document['side'] == 'source' else 'into'} {languages}, and changes nothing in the base.",
        "",
        "| | |",
        "|---|---|",
        *_provenance_lines(card),
        f"| fingerprint of its base | `{document['base']}` |",
        f"| fingerprint | `{document['fingerprint']}` |",
        f"| recipe | `{document['recipe']}` |",
        f"| parameters | {document['parameters']:,} ({document['dtype']}), {document['bytes'] / 1e6:.1f} MB |",
        f"| vocabulary rows | {document['rows']:,} |",
    ]
    counts = card.get("initialisation") or {}
    if counts:
        lines.append("| rows began as | " + ", ".join(f"{rule} {count:,}" for rule, count in counts.items()) + " |")
    shown = ("licence", "author")
    facts = {key: value for key, value in card.items() if isinstance(value, str | int | float) and key not in shown}
    lines += [f"| {key.replace('_', ' ')} | {f'{value:,}' if type(value) is int else value} |" for key, value in facts.items()]
    if parent := card.get("parent"):
        lines.append(f"| continues | `{parent['fingerprint']}` (version {parent.get('version', 1)}) |")
    lines += _score_lines(card)
    if samples := card.get("samples"):
        lines += ["", "## Samples", ""]
        for sample in samples:
            lines += [f"- {sample['direction']}: {sample['source']}", f"  → {sample['translation']}"]
            if sample["translation"] != sample["reference"]:
                lines.append(f"  (reference: {sample['reference']})")
    lines += ["", f"Use it: `graftmt translate --base BASE {option} --source XX --target YY < input > output`.", ""]
    return "\n".join(lines)


def _provenance_lines(card: Mapping[str, Any]) -> list[str]:
    """Rows of the table on where a pack comes from; earlier versions wrote none."""
    base, facts = card.get("made_for") or {}, []
    if base.get("name"):
        details = [base[key] for key in ("family", "revision") if base.get(key)]
        facts.append(("for the base", base["name"] + (f" ({', '.join(details)})" if details else "")))
    facts.append(("licence of the base", base.get("licence")))
    facts += [("licence", card.get("licence")), ("author", card.get("author"))]
    facts.append(("trained on", ", ".join(card.get("trained_on") or ())))
    return [f"| {what} | {in_table(value)} |" for what, value in facts if value]


def kind_of(entry: Mapping[str, Any]) -> str:
    """Of an entry of a card's scores: how its direction was trained, or which way was taken."""
    trained = "zero-shot" if entry.get("zero_shot") else "few lines" if entry.get("few_lines") else "trained"
    return entry.get("route") or trained


def _score_lines(card: Mapping[str, Any]) -> list[str]:
    scores = card.get("scores")
    if not scores:
        return []
    before = (card.get("parent") or {}).get("scores_here") or {}
    pivot = next((entry["pivot"]["through"] for entry in scores.values() if entry.get("pivot")), None)
    columns = ["direction", "", "BLEU", "chrF", "lines"]
    columns += [f"chrF through {pivot}"] * (pivot is not None) + ["chrF before"] * bool(before)
    lines = ["", "## Scores", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for direction, entry in scores.items():
        cells = [direction, kind_of(entry), f"{entry['bleu']:.1f}", f"{entry['chrf']:.1f}", str(entry.get("lines", ""))]
        if pivot is not None:
            cells.append(f"{entry['pivot']['chrf']:.1f}" if entry.get("pivot") else "")
        if before:
            cells.append(f"{before[direction]['chrf']:.1f}" if direction in before else "")
        lines.append(f"| {' | '.join(cells)} |")
    return lines
