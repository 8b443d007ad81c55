"""A base's card: what programs read of it, and the README.md that people read. Layer 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict


class CardConfig(TypedDict, total=False):
    subwords: dict[str, Any]


class _Named(TypedDict):
    name: str


class Origin(_Named, total=False):
    """Where a base comes from that was imported; cards of its packs repeat it."""

    family: str
    revision: str
    licence: str


class BaseCard(TypedDict, total=False):
    """What programs read of a base's card; the rest is for people."""

    config: CardConfig
    steps: int | None
    training_seconds: float
    curve: list[dict[str, Any]]
    stages: list[Any]
    origin: Origin


def model_card(document: Mapping[str, Any]) -> str:
    """README.md of a base folder: what a person who finds it wants to know first."""
    shape = document["architecture"]
    origin: Mapping[str, str] = document["card"].get("origin") or {}
    facts = {"origin": origin.get("name"), **{key: value for key, value in origin.items() if key != "name"}}
    lines = [
        *licence_front_matter(origin),
        "# A graftmt base",
        "",
        f"A multilingual Transformer for {len(document['languages'])} languages: {', '.join(document['languages'])}.",
        "",
        "| | |",
        "|---|---|",
        f"| fingerprint | `{document['fingerprint']}` |",
        f"| parameters | {document['parameters']:,} ({document['dtype']}) |",
        f"| vocabulary rows | {document['rows']:,} |",
        f"| layers | {shape['encoder_layers']} encoder, {shape['decoder_layers']} decoder, {shape['norm']}-norm |",
        f"| width | {shape['model_dim']}, FFN {shape['ffn_dim']}, {shape['heads']} heads |",
    ]
    facts |= {key: value for key, value in document["card"].items() if isinstance(value, str | int | float)}
    lines += [f"| {key} | {in_table(value)} |" for key, value in facts.items() if value is not None]
    lines += ["", "Translate with it: `graftmt translate --base FOLDER --source XX --target YY < input > output`.", ""]
    return "\n".join(lines)


def licence_front_matter(origin: Mapping[str, str]) -> list[str]:
    """The head of a README that hubs read a licence from; nothing where none is known."""
    licence = origin.get("licence")
    return ["---", f"license: {json.dumps(licence, ensure_ascii=False)}", "---", ""] if licence else []


def in_table(value: object) -> str:
    """A fact that came from anyone's file, in a cell of a table."""
    return " ".join(str(value).split()).replace("|", "\\|")
