"""What is known of where a model comes from: its licence, for the cards of the base and its packs. Layer 5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from graftmt.files import LARGEST_TEXT, read_limited

_LONGEST = 200


def front_matter(folder: Path) -> dict[str, Any]:
    """The YAML at the beginning of a model card; {} where there is none that can be read."""
    try:
        text = read_limited(folder / "README.md", LARGEST_TEXT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return {}
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return {}
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return {}
    try:
        found = yaml.safe_load("\n".join(lines[1:end]))
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def licence_in(folder: Path) -> str | None:
    """The licence that the model's own card names."""
    found = front_matter(folder)
    named = found.get("license", found.get("licence"))
    if isinstance(named, list) and named:
        named = ", ".join(str(one) for one in named)
    if named == "other" and isinstance(found.get("license_name"), str):
        named = found["license_name"]
    return " ".join(named.split())[:_LONGEST] if isinstance(named, str) and named.strip() else None
