"""Text that is out of step, or in another language, stops the work, unless it is forced. Layer 4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from graftmt.errors import DataError
from graftmt.prepare.detector import NO_LANGUAGE
from graftmt.prepare.language_id import LanguageFilter
from graftmt.prepare.misalignment import Alignment, check_alignment
from graftmt.prepare.source import Source
from graftmt.progress import say
from graftmt.text.languages import words_for

WAY_OUT = {
    "shifted": "Put the missing line back, or an empty one, or take the extra one out, in that language's file; then both need "
    "equally many lines",
    "unrelated": "Give both files as they came, in one order",
    "exchanged": "Give each text its own language's name",
    "same language": "Give the right file for each language",
}


def check_source(source: Source, reference: str, others: Sequence[str] | None = None) -> list[Alignment]:
    """Each of the other languages, all unless named, with the reference."""
    languages = source.languages
    place = languages.index(reference)
    chosen = [name for name in languages if name != reference and (others is None or name in others)]
    return [check_alignment(_pairs(source, languages.index(name), place), (name, reference)) for name in chosen]


def _pairs(source: Source, first: int, second: int) -> Iterable[tuple[str, str]]:
    for line in source:
        yield line[first], line[second]


def refuse(found: Iterable[Alignment], where: str, *, force: bool, origin: Callable[[int], str] = lambda line: "") -> None:
    """An error about text that should not be used; with `force`, and where little of it is out of step, a warning.

    `origin` says where a line came from, for text that was joined of several sources.
    """
    bad = [alignment for alignment in found if alignment.is_bad]
    if bad and not force:
        worst = max(bad, key=lambda alignment: alignment.share)
        said = "; ".join(str(alignment) for alignment in bad[:3])
        advice = WAY_OUT.get(worst.kind, "")
        first = worst.stretches[0].first if worst.stretches else 0
        came = f" Line {first:,} there came from {source}." if first and (source := origin(first)) else ""
        raise DataError(f"{where} is not aligned: {said}.{came} {advice}. To use it as it is: --force.")
    for alignment in found:
        if alignment.stretches:
            say(f"warning: {where}: {alignment}. {WAY_OUT.get(alignment.kind, '')}.")
        elif alignment.kind == "too little" and alignment.pairs:
            say(f"note: {where}: {alignment}.")


def refuse_another_language(judge: LanguageFilter, where: str, *, force: bool) -> None:
    """An error where most of a language's text is in another one: cleaning would drop the good lines with the others.

    With `force` a warning.
    """
    found = judge.evidence.own if judge.evidence is not None else {}
    for language, own in found.items():
        if not own.instead:
            continue
        name = words_for(language) or language
        others = ["no language at all" if code == NO_LANGUAGE else words_for(code) or code for code in own.instead]
        problem = (
            f"{where}: most of the text in {name} seems to be in {', '.join(others)}. So little is in {name} that language ID "
            "cannot learn from it, and would drop good lines too"
        )
        if not force:
            raise DataError(
                f"{problem}. Give the right file, or the language its right name; or text in {name} that you trust "
                f"(--trusted {language}=FILE). To judge no languages: --no-language-id. To clean it as it is: --force."
            )
        say(f"warning: {problem}.")
