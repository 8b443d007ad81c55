"""The comments of a page that say where its numbers come from, as claims that can be checked. Layer 7.

    <!-- from docs/results/NAME: chrf 12 el-en = 67.3; difference 12 7 el-en = +1.0 [+0.7, +1.4] -->
    <!-- numbers from docs/results/NAME -->         the results of all comments that follow, which are then
    <!-- numbers: chrf 12 el-en seed 2 = 67.3 -->
    <!-- numbers not checked: REASON -->            up to the next heading

`claim_kinds` has what stands before the equals sign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graftmt.errors import DataError
from graftmt.experiments.reporting.printed_numbers import Printed

_OURS = re.compile(r"\s*(?:from|numbers)\b")
_FROM = re.compile(r"\s*from\s+(?P<place>[^\s;=]+?)\s*:\s(?P<claims>.*)", re.DOTALL)
_DEFAULT = re.compile(r"\s*numbers\s+from\s+(?P<place>[^\s;:=]+)\s*")
_NUMBERS = re.compile(r"\s*numbers\s*:\s(?P<claims>.*)", re.DOTALL)
_EXEMPT = re.compile(r"\s*numbers\s+not\s+checked\s*:\s*(?P<reason>\S.*)", re.DOTALL)
_CLAIM = re.compile(
    r"(?P<kind>[a-z][a-z-]*)\s+(?P<subject>[^=<>]*?)\s*(?P<relation>[=<>])\s*(?P<value>[^=<>\[\]]+)(?P<interval>\[.*\])?"
)
_INTERVAL = re.compile(r"\[\s*([^,\s]+)\s*,\s+([^,\s]+)\s*\]")
_MODIFIER = re.compile(r"\s(?:seed\s+(?P<seed>\d{1,9})|on\s+(?P<split>[\w.-]+))$")

EXPECTED = (
    "`<!-- from FOLDER: KIND WHAT = NUMBER; … -->`, `<!-- numbers: … -->`, `<!-- numbers from FOLDER -->` or "
    "`<!-- numbers not checked: REASON -->`"
)


class ClaimError(DataError):
    """A claim that cannot be understood, or whose results are not there."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One number and what it stands for."""

    text: str
    kind: str
    arguments: tuple[str, ...]
    seed: int | None
    """None: the mean of all."""
    split: str
    """The test set."""
    relation: str
    """`=` at the printed precision, `<` or `>`."""
    printed: Printed
    interval: tuple[Printed, Printed] | None
    line: int

    @property
    def numbers(self) -> tuple[Printed, ...]:
        return (self.printed, *(self.interval or ()))


@dataclass(frozen=True, kw_only=True)
class Comment:
    """What one of these comments says."""

    line: int
    place: str | None = None
    """The folder of results that it names."""
    claims: tuple[Claim, ...] = ()
    exempts: bool = False
    is_default: bool = False


def parse_comment(text: str, line: int) -> tuple[Comment | None, list[tuple[int, ClaimError]]]:
    """The comment, None where it is about something else; and its claims that are not understood, with their lines."""
    if not _OURS.match(text):
        return None, []
    if _EXEMPT.fullmatch(text):
        return Comment(line=line, exempts=True), []
    if found := _DEFAULT.fullmatch(text):
        return Comment(line=line, place=found["place"], is_default=True), []
    found = _FROM.fullmatch(text) or _NUMBERS.fullmatch(text)
    if found is None:
        return None, [(line, ClaimError(f"the comment {_short(text)!r} is not understood; expected {EXPECTED}."))]
    claims: list[Claim] = []
    problems: list[tuple[int, ClaimError]] = []
    position = found.start("claims")
    for part in found["claims"].split(";"):
        place = line + text[: position + len(part) - len(part.lstrip())].count("\n")
        position += len(part) + 1
        if part.strip():
            try:
                claims.append(_claim(" ".join(part.split()), place))
            except ClaimError as problem:
                problems.append((place, problem))
    if not claims and not problems:
        problems.append((line, ClaimError(f"the comment {_short(text)!r} has no claim; expected {EXPECTED}.")))
    return Comment(line=line, place=found.groupdict().get("place"), claims=tuple(claims)), problems


def _claim(text: str, line: int) -> Claim:
    found = _CLAIM.fullmatch(text)
    printed = None if found is None else Printed.parse(found["value"])
    if found is None or printed is None:
        raise ClaimError(f"the claim {_short(text)!r} is not understood; expected such as `chrf 12 el-en = 67.3`.")
    interval = None
    if found["interval"]:
        ends = _INTERVAL.fullmatch(found["interval"])
        low, high = (Printed.parse(end) for end in ends.groups()) if ends else (None, None)
        if low is None or high is None:
            raise ClaimError(f"the interval {_short(found['interval'])!r} is not understood; expected such as [+0.7, +1.4].")
        interval = (low, high)
    subject, seed, split = found["subject"], None, "test"
    while found["kind"] != "stated" and (modifier := _MODIFIER.search(subject)):
        subject = subject[: modifier.start()]
        seed = int(modifier["seed"]) if modifier["seed"] else seed
        split = modifier["split"] or split
    return Claim(
        text=text,
        kind=found["kind"],
        arguments=tuple(subject.split()),
        seed=seed,
        split=split,
        relation=found["relation"],
        printed=printed,
        interval=interval,
        line=line,
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) < 80 else f"{text[:79]}…"
