"""Averages over a matrix of directions, grouped as the paper does: →EN, ←EN, /EN, and X→EN … for new languages X. Layer 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from graftmt.errors import DataError
from graftmt.evaluation.scores import Scores, joined

GROUPS = {
    "to_pivot": "→EN",
    "from_pivot": "←EN",
    "non_pivot": "/EN",
    "new_to_pivot": "X→EN",
    "new_to_others": "X→/EN",
    "pivot_to_new": "EN→X",
    "others_to_new": "/EN→X",
    "new_to_new": "X→X",
}
"""Name → how the paper writes it. "all" comes last."""

_GROUP_OF = {
    ("other", "pivot"): "to_pivot",
    ("pivot", "other"): "from_pivot",
    ("other", "other"): "non_pivot",
    ("new", "pivot"): "new_to_pivot",
    ("new", "other"): "new_to_others",
    ("pivot", "new"): "pivot_to_new",
    ("other", "new"): "others_to_new",
    ("new", "new"): "new_to_new",
}


def groups(
    directions: Iterable[tuple[str, str]], pivot: str = "en", new: Collection[str] = ()
) -> dict[str, list[tuple[str, str]]]:
    """The paper's groups of (source, target); one without directions is left out.

    Without new languages: into the pivot, out of it, without it, and all. With new ones, X, these are over the others alone,
    and X→EN, X→/EN, EN→X, /EN→X and X→X are groups of their own.
    """
    if pivot in new:
        raise DataError(f"{pivot!r} is the pivot and cannot be one of the new languages too: {', '.join(sorted(new))}.")
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, "all")}
    for source, target in directions:
        found[_GROUP_OF[_kind(source, pivot, new), _kind(target, pivot, new)]].append((source, target))
        found["all"].append((source, target))
    return {name: members for name, members in found.items() if members}


def label(group: str, pivot: str = "en") -> str:
    """The paper's name for a group: →EN, X→/EN …"""
    return GROUPS.get(group, group).replace("EN", pivot.upper())


def _kind(language: str, pivot: str, new: Collection[str]) -> str:
    return "pivot" if language == pivot else "new" if language in new else "other"


def grouped(scores: Scores, pivot: str = "en", new: Collection[str] = ()) -> dict[str, Scores]:
    """The rows of each group of directions, of which the averages are taken."""
    repeated = [name for name, count in Counter((row.direction, row.metric) for row in scores).items() if count > 1]
    if repeated:
        raise DataError(
            f"{', '.join(dict.fromkeys(direction for direction, _ in repeated))}: scored more than once, which would weigh it "
            "more in the averages; give each direction once."
        )
    of = scores.by_pair()
    return {name: joined(of[member] for member in members) for name, members in groups(of, pivot, new).items()}
