"""A job's scores on one test set, as result files have them: rows of the long table, written by direction. Layer 7."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graftmt.evaluation import METRICS, Score, Scores, grouped
from graftmt.evaluation.matrix import label

DIGITS = {"bleu": 3, "chrf": 3, "off_target": 4}


def to_document(scores: Scores, pivot: str, new: Sequence[str]) -> dict[str, Any]:
    """Figures by direction, the averages by the paper's names, and the signatures."""
    directions, signatures = {}, {}
    for (source, target), rows in scores.by_pair().items():
        (signature,) = rows.signatures("bleu")
        tokenize = tokenizer_in(signature)
        signatures[tokenize] = signature
        figures = {"off_target": None, **rows.figures(DIGITS)}
        directions[f"{source}-{target}"] = {"source": source, "target": target, **figures, "tokenize": tokenize}
    return {
        "averages": averages(scores, pivot, new),
        "directions": directions,
        "signatures": {"bleu": signatures, "chrf": next(iter(scores.signatures("chrf")), "")},
    }


def averages(scores: Scores, pivot: str, new: Sequence[str]) -> dict[str, dict[str, float]]:
    """By the paper's names: →EN, X→/EN …; over all directions there are."""
    return {
        label(group, pivot): {
            **{metric: round(some.mean(metric), DIGITS[metric]) for metric in METRICS},
            "directions": len(some.pairs),
        }
        for group, some in grouped(scores, pivot, new).items()
        if group != "all"
    }


def from_document(document: Mapping[str, Any], set_name: str, job: str, part: str = "directions") -> Scores:
    """The rows of a set's figures; of its averages, each in the place of a direction, with the average's name as its source."""
    return Scores(_rows(document, set_name, job, part))


def _rows(document: Mapping[str, Any], set_name: str, job: str, part: str) -> Iterator[Score]:
    signatures = document.get("signatures") or {}
    for name, entry in (document.get(part) or {}).items():
        source, _, target = name.partition("-") if part == "directions" else (name, "", "")
        place: dict[str, Any] = {"source": source, "target": target, "set": set_name, "job": job}
        bleu = (signatures.get("bleu") or {}).get(entry.get("tokenize"), "")
        yield Score(metric="bleu", value=_number(entry["bleu"]), signature=bleu, **place)
        yield Score(metric="chrf", value=_number(entry["chrf"]), signature=signatures.get("chrf") or "", **place)
        if part == "directions":
            rate = entry.get("off_target")
            rate = rate.get("rate") if isinstance(rate, Mapping) else rate
            yield Score(metric="off_target", value=None if rate is None else _number(rate), **place)
            lines = entry.get("lines")
            yield Score(metric="lines", value=None if lines is None else _number(lines), **place)


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def tokenizer_in(signature: str) -> str:
    """What stands after `tok:` in sacreBLEU's signature."""
    found = re.search(r"\btok:([^|]+)", signature)
    return found[1] if found else ""
