"""Languages by other names: `English`, `eng` and `en-US` for a base's `eng_Latn`. Layer 1.

What is stored and computed with is always a base's or a pack's own code. Where a person names a language, or a file does,
`resolve_language` says which code is meant. Exact codes need no library; other names need `langcodes`, an extra.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from graftmt.errors import LanguageError, first_few, nearest
from graftmt.text.languages import (
    EXTRA,
    Tag,
    check_language_names,
    is_installed,
    is_language_name,
    is_private,
    member_of,
    region_hint,
    require_library,
    tag_of,
    tag_of_code,
    words_for,
)

logger = logging.getLogger(__name__)

MOST_LISTED = 40
"""Codes in an error; NLLB has over two hundred."""
ENGLISH = ("en", "eng")


def resolve_language(name: str, known: Iterable[str], where: str = "", *, of: str = "this base") -> str:
    """The code among `known` that a name means: itself, or the one that `English`, `eng` or `en-US` stands for.

    A name that fits several codes is an error with the choices, one that fits none an error with the nearest. Script and region
    are respected: `zh-Hant` is never `zho_Hans`. `where` begins the error, such as "--with"; `of` says what has the codes.
    """
    codes = tuple(known)
    found = find_language(name, codes, where, of=of)
    if found is None:
        raise LanguageError(
            f"{_begin(where)}{name!r} is not a language of {of}{nearest_language(name, codes) or '.'} Known: {listed(codes)}."
        )
    return found


def find_language(name: str, known: Iterable[str], where: str = "", *, of: str = "this base") -> str | None:
    """The same, but None where it fits no code; what was resolved is told once."""
    codes = tuple(dict.fromkeys(known))
    if name in codes:
        return name
    fitting = _spelt_alike(name, codes)
    if not fitting and is_installed():
        fitting = _fitting(name, codes)
    if len(fitting) > 1:
        raise LanguageError(
            f"{_begin(where)}{name!r} fits several languages of {of}: {', '.join(map(described, fitting))}. Name one of them."
        )
    if not fitting:
        return None
    _tell(name, fitting[0], of)
    return fitting[0]


def match_names(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """name → the code of `known` that is the same language, for names of files and columns, each code at most once.

    Nothing is guessed: `en` is `eng_Latn` or `en_XX`, but `pt_br` is not `pt`, which it could only stand for. Names without a
    code are left out.
    """
    codes = tuple(dict.fromkeys(known))
    found = {name: name for name in names if name in codes}
    rest = [name for name in dict.fromkeys(names) if name not in found]
    passes: list[Callable[[str, str], bool]] = [lambda name, code: _form(name) == _form(code)]
    if is_installed():
        passes += [
            lambda name, code: _same(tag_of_code(name), tag_of_code(code), exact=True),
            lambda name, code: _same(tag_of_code(name), tag_of_code(code), exact=False),
            lambda name, code: _general(tag_of_code(name), tag_of_code(code)),
        ]
    for is_same in passes:
        free = [code for code in codes if code not in found.values()]
        if not rest or not free:
            break
        claims = {name: [code for code in free if is_same(name, code)] for name in rest}
        for name, claimed in claims.items():
            if len(claimed) == 1 and sum(claimed[0] in other for other in claims.values()) == 1:
                found[name] = claimed[0]
        rest = [name for name in rest if name not in found]
    return found


def same_language(name: str, code: str) -> bool:
    """Whether a name, in words too, is this very language: `Catalan` and `cat_Latn` for ca."""
    if _form(name) == _form(code):
        return True
    return bool(name) and is_installed() and _same(tag_of(name), tag_of_code(code), exact=False)


def variants_of(chosen: Iterable[str], names: Iterable[str]) -> dict[str, list[str]]:
    """Name → those of the other names that are its language in its script, of some region or variant: en_us and en_gb for en.

    None where a name could be of several, and for languages that are asked for themselves.
    """
    chosen = list(chosen)
    found: dict[str, list[str]] = {}
    if not is_installed():
        return found
    tags = {name: tag for name in chosen if (tag := tag_of_code(name)) is not None}
    for name in dict.fromkeys(names):
        tag = tag_of_code(name) if name not in tags and name not in chosen else None
        if tag is not None:
            fitting = [one for one, other in tags.items() if tag.language == other.language and tag.may_be_written_as(other)]
            if len(fitting) == 1:
                found.setdefault(fitting[0], []).append(name)
    return found


def new_language(name: str, known: Iterable[str] = ()) -> str:
    """The code under which a new language is stored: the one given, the standard one for a name in words.

    Where it is one of `known` by another name, that one's code. What is no language is an error with a suggestion. A code of
    the right shape that ISO 639 does not have is kept, with a warning.
    """
    codes = tuple(dict.fromkeys(known))
    if name in codes:
        return name
    if not is_installed():
        if not is_language_name(name):
            require_library(name)
        return name
    tag = tag_of(name)
    if tag is None or is_private(name):
        _check_unknown(name)
        return name
    if same := [code for code in codes if _same(tag, tag_of_code(code), exact=True)]:
        _tell(name, same[0], "this base")
        return same[0]
    code = name if is_language_name(name) and tag_of_code(name) is not None else tag.standard
    if code != name:
        _tell(name, code, "ISO 639")
    if alike := [described(one) for one in codes if (other := tag_of_code(one)) and other.group == tag.group]:
        logger.info("%s is added as a language of its own; the base has %s", described(code), first_few(alike))
    return code


def _check_unknown(name: str) -> None:
    """Of what is not a language of ISO 639: an error, or a warning for what may be somebody's own code."""
    if is_private(name):
        check_language_names([name], "languages to add")
        return
    letters = "".join(character for character in name.lower() if character.isascii() and character.isalnum())
    way_out = f"For a language without a code, use a private one: x-{letters[:8] or 'mine'}."
    if hint := region_hint(name):
        raise LanguageError(f"{name!r} is not the code of a language: {hint}. {way_out}")
    if not is_language_name(name) or not _shaped_like_a_code(name):
        raise LanguageError(
            f"{name!r} is not a language that ISO 639 has{nearest_name(name) or '.'} Expected a code such as tyv, or a name "
            f"such as Tuvan. {way_out}"
        )
    logger.warning("%r is not a code of ISO 639; it is used as it is. %s", name, way_out)


def _shaped_like_a_code(name: str) -> bool:
    first = name.replace("-", "_").replace("@", "_").split("_")[0]
    return len(first) <= 3


def english_in(known: Iterable[str]) -> str | None:
    """The code for English, which defaults are about; it needs no library. None where there is none, or several."""
    codes = tuple(known)
    found = [code for code in codes if code in ENGLISH] or [code for code in codes if _form(code).split("_")[0] in ENGLISH]
    return found[0] if len(found) == 1 else None


def nearest_language(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: ``; did you mean 'fra_Latn' (French)?``, or how to have names understood."""
    codes = tuple(known)
    if not is_installed():
        return nearest(name, codes) or f"; names such as English are understood after: {EXTRA}."
    tag = tag_of(name)
    if tag is not None:
        related = [code for code in codes if (other := tag_of_code(code)) and _related(tag, other)]
        if related:
            return f"; did you mean {' or '.join(map(described, related[:3]))}?"
    if hint := nearest(name, codes):
        return hint
    words = {text.casefold(): code for code in codes if (text := words_for(code))}
    close = difflib.get_close_matches(name.casefold(), words, n=1, cutoff=0.75)
    return f"; did you mean {described(words[close[0]])}?" if close else ""


def nearest_name(name: str) -> str:
    """The same among all languages that CLDR has."""
    from langcodes.language_lists import CLDR_LANGUAGES

    words = {text.casefold(): code for code in CLDR_LANGUAGES if (text := words_for(code))}
    close = difflib.get_close_matches(name.casefold(), words, n=1, cutoff=0.75)
    return f"; did you mean {described(words[close[0]])}?" if close else ""


def described(code: str) -> str:
    """A code with the language in words: `'fra_Latn' (French)`."""
    words = words_for(code)
    return f"{code!r} ({words})" if words and words.casefold() != code.casefold() else repr(code)


def listed(codes: Sequence[str]) -> str:
    return first_few(sorted(codes), MOST_LISTED) or "none"


def resolved_names(names: Mapping[str, str]) -> None:
    """Tells of names of files or columns that were matched with codes."""
    for name, code in names.items():
        if name != code:
            _tell(name, code, "this base")


@cache
def _tell(name: str, code: str, of: str) -> None:
    logger.info("%r is %s in %s", name, code, of)


def _begin(where: str) -> str:
    return f"{where}: " if where else ""


def _form(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace("@", "_")


def _spelt_alike(name: str, codes: Sequence[str]) -> list[str]:
    return [code for code in codes if _form(code) == _form(name)]


def _same(one: Tag | None, other: Tag | None, *, exact: bool) -> bool:
    """Whether both are one language in one script; `exact`: also without CLDR's view of macrolanguages (cmn is zh)."""
    if one is None or other is None:
        return False
    languages = (one.language, other.language) if exact else (one.group, other.group)
    said = [(tag.region, tag.variants) for tag in (one, other)]
    return languages[0] == languages[1] and said[0] == said[1] and one.may_be_written_as(other)


def _general(one: Tag | None, other: Tag | None) -> bool:
    """Whether the one leaves out the region that the other has: `de` for mBART's `de_DE`."""
    if one is None or other is None or one.group != other.group:
        return False
    return one.markings < other.markings and one.variants == other.variants and one.may_be_written_as(other)


def _related(one: Tag, other: Tag) -> bool:
    return member_of(one.group) == member_of(other.group)


def _fitting(name: str, codes: Sequence[str]) -> list[str]:
    """The codes that a name means: those that say most of what it says and then, of these, those that say least else."""
    asked = tag_of(name)
    by_words = [code for code in codes if (words_for(code) or "").casefold() == name.strip().casefold()]
    if asked is None:
        return by_words
    tags = {code: tag for code in codes if (tag := tag_of_code(code)) is not None and _fits(asked, tag)}
    said = {code: len(asked.markings & tag.markings) for code, tag in tags.items()}
    best = [code for code in tags if said[code] == max(said.values())]
    more = {code: tags[code].markings - asked.markings for code in best}
    least = [code for code in best if not any(more[other] < more[code] for other in best)]
    exact = [code for code in least if tags[code].language == asked.language]
    return exact or least or by_words


def _fits(asked: Tag, known: Tag) -> bool:
    """Whether `known` may be meant: nothing that was asked for is contradicted."""
    if asked.group != known.group:
        return False
    if (asked.script or asked.region) and not asked.may_be_written_as(known):
        return False
    if asked.region and known.region and asked.region != known.region:
        return False
    return not asked.variants or set(known.variants) <= set(asked.variants)
