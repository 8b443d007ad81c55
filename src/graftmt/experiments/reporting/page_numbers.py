"""Checks every number of a page against the reports that its comments name. Layer 7."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graftmt.errors import DataError, GraftError
from graftmt.experiments.reporting.cited_report import CitedReport
from graftmt.experiments.reporting.claim_kinds import Found, find
from graftmt.experiments.reporting.page_claims import Claim, Comment
from graftmt.experiments.reporting.page_text import Block, Page
from graftmt.experiments.reporting.printed_numbers import Printed
from graftmt.progress import progress


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A number that is wrong, or that nothing is known of."""

    file: str
    line: int
    page: str
    """What the page says."""
    results: str
    """What the results say."""
    advice: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.page}: {self.results} {self.advice}"


@dataclass
class Outcome:
    """What was checked, and what is wrong."""

    claims: int = 0
    stated: int = 0
    """Claims that no result was asked for."""
    numbers: int = 0
    """Decimal numbers that a reader sees."""
    not_checked: int = 0
    """Those of them in sections that a page exempts."""
    problems: list[Problem] = field(default_factory=list)


class Checker:
    """Opens each report once, however many pages cite it."""

    def __init__(self, *, recompute: bool = False) -> None:
        self.recompute = recompute
        self.outcome = Outcome()
        self._reports: dict[Path, CitedReport | GraftError] = {}

    def check(self, pages: Sequence[Path]) -> Outcome:
        read = [Page.read(path) for path in pages]
        total = sum(len(comment.claims) for page in read for block in page.blocks for comment in block.comments)
        with progress("checking numbers", total) as report:
            for page in read:
                found = [*self._wrong_comments(page)]
                for problem in self._page(page):
                    found.append(problem)
                    report.update(self.outcome.claims, "claims")
                self.outcome.problems += sorted(found, key=lambda problem: problem.line)
        return self.outcome

    def _wrong_comments(self, page: Page) -> Iterator[Problem]:
        for line, problem in page.problems:
            advice = "Correct the comment."
            yield Problem(file=str(page.path), line=line, page="a comment", results=str(problem), advice=advice)

    def _page(self, page: Page) -> Iterator[Problem]:
        default: str | None = None
        for block in page.blocks:
            for comment in block.comments:
                if comment.is_default:
                    default = comment.place
                yield from self._claims(page, comment, comment.place or default)
            yield from self._uncovered(page, block)

    def _claims(self, page: Page, comment: Comment, place: str | None) -> Iterator[Problem]:
        for claim in comment.claims:
            self.outcome.claims += 1
            try:
                found = find(claim, lambda: self._report(page.path, place))
            except GraftError as problem:
                advice = "Correct the claim, or what it cites."
                yield Problem(file=str(page.path), line=claim.line, page=claim.text, results=str(problem), advice=advice)
                continue
            if found is None:
                self.outcome.stated += 1
            else:
                yield from self._compare(page, claim, found, place or "")

    def _compare(self, page: Page, claim: Claim, found: Found, place: str) -> Iterator[Problem]:
        pairs = [(claim.relation, claim.printed, found.value)]
        pairs += [("=", printed, value) for printed, value in zip(claim.interval or (), found.interval or (), strict=True)]
        for relation, printed, value in pairs:
            if not _holds(relation, printed, value):
                says = "says" if relation == "=" else f"says {relation}"
                yield Problem(
                    file=str(page.path),
                    line=claim.line,
                    page=claim.text,
                    results=f"the page {says} {printed.text}, {place} says {printed.written(value)}.",
                    advice="Correct the number in the text and in the comment, or cite the results that it is of.",
                )

    def _uncovered(self, page: Page, block: Block) -> Iterator[Problem]:
        self.outcome.numbers += len(block.numbers)
        if block.exempt:
            self.outcome.not_checked += len(block.numbers)
            return
        claimed = [printed for comment in block.comments for claim in comment.claims for printed in claim.numbers]
        for line, number in block.numbers:
            if not any(one.covers(number) for one in claimed):
                yield Problem(
                    file=str(page.path),
                    line=line,
                    page=number.text,
                    results="no claim covers this number.",
                    advice="Add it to the comment after this paragraph, item or table, such as `chrf 12 el-en = 67.3`; or "
                    "exempt the section with `<!-- numbers not checked: REASON -->`.",
                )

    def _report(self, page: Path, place: str | None) -> CitedReport:
        if place is None:
            raise DataError(
                "no results are named; begin the comment with `from FOLDER:`, or put `<!-- numbers from FOLDER -->` before."
            )
        folder = _folder(page, place)
        if folder not in self._reports:
            try:
                self._reports[folder] = CitedReport(folder, recompute=self.recompute)
            except GraftError as problem:
                self._reports[folder] = problem
        found = self._reports[folder]
        if isinstance(found, GraftError):
            raise found
        return found


def _holds(relation: str, printed: Printed, value: float) -> bool:
    if relation == "=":
        return printed.agrees(value)
    return value < printed.value if relation == "<" else value > printed.value


def _folder(page: Path, place: str) -> Path:
    """Relative to the page, or to a folder above it up to the repository."""
    for above in _folders_above(page):
        if (above / place).is_dir():
            return above / place
    raise DataError(f"there is no folder {place}, neither next to {page} nor in its repository.")


def _folders_above(page: Path) -> Iterable[Path]:
    for folder in page.resolve().parents:
        yield folder
        if (folder / ".git").exists():
            return
