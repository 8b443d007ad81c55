"""Directions, and sets of them as views of a corpus: English-centric, multi-parallel, or a list. Layer 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graftmt.errors import ConfigError, LanguageError, nearest
from graftmt.text.aliases import english_in, find_language


class Direction(NamedTuple):
    """From one language to another; written `en-fr`."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def find(name: str, languages: Sequence[str]) -> str | None:
    """The code of a language that may have another name, `eng_Latn` for en; None for an unknown one."""
    if name in languages:
        return name
    return (english_in(languages) if name == "en" else None) or find_language(name, languages)


def parse_direction(text: str, languages: Sequence[str], lacking: Mapping[str, str] | None = None) -> Direction:
    """`en-fr`, where both are among `languages`; codes may hold hyphens themselves (`zh-hant-en`).

    `lacking`: other languages → why nothing can be done with them here, for those who name them nevertheless.
    """
    parts = text.split("-")
    splits = [("-".join(parts[:cut]), "-".join(parts[cut:])) for cut in range(1, len(parts))]
    for source, target in splits:
        if source in languages and target in languages:
            if source == target:
                raise LanguageError(f"direction {text!r} goes from a language to itself.")
            return Direction(source, target)
    anywhere = {*languages, *(lacking or ())}
    if text in anywhere:
        raise LanguageError(f"direction {text!r} is one language, and two were expected: SOURCE-TARGET, such as en-fr.")
    for source, target in splits:
        if lacking and {source, target} <= anywhere:
            raise LanguageError(f"direction {text!r}: {lacking[source if source in lacking else target]}")
    named = {(first, second) for one, other in splits if (first := find(one, languages)) and (second := find(other, languages))}
    if len(named) == 1 and len(set(pair := named.pop())) == 2:
        return Direction(*pair)
    known = ", ".join(sorted(languages))
    # The other side of a known language is what is meant to be one.
    likely = [code for pair in splits for code, other in (pair, pair[::-1]) if other in anywhere]
    unknown = next((code for code in [*likely, *(code for pair in splits for code in pair)] if code not in anywhere), text)
    raise LanguageError(
        f"direction {text!r}: {unknown!r} is not a language here{nearest(unknown, languages) or '.'} "
        f"Write SOURCE-TARGET with two of: {known}."
    )


def select_directions(
    view: str | Sequence[str], languages: Sequence[str], pivot: str = "en", lacking: Mapping[str, str] | None = None
) -> list[Direction]:
    """The directions a view means.

    `english-centric` (or `PIVOT-centric`): the pivot with each other language, both ways; `multi-parallel`: every pair;
    `to-en`, `from-en`: one way; otherwise a list of `source-target`, or one string of them with commas. `lacking` is as for
    `parse_direction`.
    """
    if not isinstance(view, str) and len(view) == 1:
        view = view[0]  # a list of one names a view or a direction, as the string alone does
    if isinstance(view, str):
        centre = {"english-centric": pivot}.get(view) or (view.removesuffix("-centric") if view.endswith("-centric") else None)
        if view == "multi-parallel":
            return [Direction(a, b) for a in languages for b in languages if a != b]
        if centre is not None:
            centre = find(centre, languages) or centre
            _require(centre, languages, view, lacking)
            others = [language for language in languages if language != centre]
            return [d for other in others for d in (Direction(centre, other), Direction(other, centre))]
        way, _, centre = view.partition("-")
        if way in ("to", "from") and way not in languages:
            centre = find(centre, languages) or centre
            _require(centre, languages, view, lacking)
            others = [language for language in languages if language != centre]
            return [Direction(other, centre) if way == "to" else Direction(centre, other) for other in others]
        view = [item.strip() for item in view.split(",") if item.strip()]
    if not view:
        raise ConfigError("no directions were given; write for instance english-centric, multi-parallel or [en-fr, fr-en].")
    return list(dict.fromkeys(parse_direction(item, languages, lacking) for item in view))


def _require(language: str, languages: Sequence[str], view: str, lacking: Mapping[str, str] | None) -> None:
    if lacking and language in lacking:
        raise LanguageError(f"{view}: {lacking[language]}")
    if language not in languages:
        known = ", ".join(sorted(languages))
        raise LanguageError(f"{view}: {language!r} is not a language here{nearest(language, languages) or '.'} Known: {known}.")
