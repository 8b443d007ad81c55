"""What may name a language, and what a name says: language, script, region, variants, and the same in English. Layer 1.

Names come from bases, packs and file names that anyone may have made. One that passes can be part of a file name, a recipe, a
direction and a message on a terminal without harm.

Tags are BCP 47 and what models and corpora write instead (eng_Latn, pt_br, en_XX, sr@latin), read through `langcodes`: of the
libraries for ISO 639 it is the one that also knows CLDR's likely scripts, old and three-letter codes, and macrolanguages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from graftmt.errors import LanguageError

if TYPE_CHECKING:
    from langcodes import Language

LONGEST = 40
"""Characters: three times the longest tag in use."""
_NAME = re.compile(r"[A-Za-z0-9]+(?:[_@-][A-Za-z0-9]+)*")


def is_language_name(name: object) -> bool:
    """Whether this can name a language: en, pt_br, zh-Hans, eng_Latn, ca@valencia."""
    return isinstance(name, str) and len(name) <= LONGEST and _NAME.fullmatch(name) is not None


def check_language_names(names: Iterable[object], where: str) -> None:
    """An error for the first one that breaks the rule; `where` says what the names come from."""
    for name in names:
        if not is_language_name(name):
            shown = repr(name)
            shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
            raise LanguageError(
                f"{where}: {shown} cannot name a language. Expected ASCII letters and digits with single '_', '-' or '@' "
                f"between them, at most {LONGEST} characters, such as en, pt_br, zh-Hans, eng_Latn or ca@valencia."
            )


EXTRA = "pip install 'graftmt[languages]'"

LONGEST_WORDS = 100
"""Characters of a name in words."""

_MODIFIERS = {"latin": "Latn", "cyrillic": "Cyrl", "arabic": "Arab", "devanagari": "Deva", "hebrew": "Hebr"}
"""What stands after @ in gettext's names, and is a script."""
_NO_REGION = {"XX", "ZZ"}
"""mBART's codes have one: en_XX."""
_SCRIPT_BY_REGION = {"CN": "Hans", "SG": "Hans", "TW": "Hant"}
"""Of Chinese: zh_CN and zh_TW are how many corpora and models name the two scripts."""
_ONE_SCRIPT = {"Hang": "Kore", "Hira": "Jpan", "Kana": "Jpan", "Hrkt": "Jpan", "Aran": "Arab"}
"""Parts and styles of a script, which codes name for the whole: NLLB has kor_Hang."""
_DOMINANT = {"nb": "no", "pbt": "ps", "quy": "qu"}
"""Members of a macrolanguage that are meant by its code, besides those that CLDR has: `no` is Bokmål in most models, Pashto and
Quechua are these two in FLORES and NLLB."""
_WITH_DETAILS = re.compile(r"(.+?)\s*\(([^()]+)\)")


@dataclass(frozen=True, kw_only=True)
class Tag:
    """One language as it was named, in CLDR's spelling."""

    language: str
    script: str = ""
    """As it was named; empty where it was not."""
    region: str = ""
    variants: tuple[str, ...] = ()

    @property
    def markings(self) -> frozenset[str]:
        """All that it says besides the language."""
        return frozenset(part for part in (self.script, self.region, *self.variants) if part)

    @property
    def written_in(self) -> str:
        """The script that it names, or the likely one; empty where CLDR does not know."""
        script = self.script or _likely_script(self.language, self.region)
        return _ONE_SCRIPT.get(script, script)

    def may_be_written_as(self, other: Tag) -> bool:
        return not (self.written_in and other.written_in) or self.written_in == other.written_in

    @property
    def group(self) -> str:
        """The macrolanguage where its code means this language above all: zh for cmn, ar for arb."""
        return _dominant(self.language)

    @property
    def standard(self) -> str:
        """BCP 47, with _ for -, which would not do in a direction: pt_BR."""
        return "_".join((self.language, *(part for part in (self.script, self.region, *self.variants) if part)))


def is_installed() -> bool:
    try:
        import langcodes  # noqa: F401
        import language_data  # noqa: F401
    except ImportError:
        return False
    return True


def require_library(name: str) -> None:
    if not is_installed():
        raise LanguageError(f"{name!r}: names of languages and other codes than a base's own are understood after: {EXTRA}")


def tag_of(name: str) -> Tag | None:
    """What a code or a name in words means; None where it means no language that ISO 639 has."""
    return tag_of_code(name) or _tag_of_words(name)


@cache
def tag_of_code(code: str) -> Tag | None:
    """The same for codes alone: `en`, `eng_Latn`, `pt-br`, `ca@valencia`; private ones such as x-foo and qaa too."""
    found = _parsed(code)
    if found is None or not found.language or not found.is_valid():
        return None
    return _tag(found)


def code_of_words(name: str) -> str | None:
    """ca for `Catalan`; None of what is a code, means no language, or cannot be told as the library is missing."""
    if not is_installed() or not name.strip() or tag_of_code(name) is not None:
        return None
    tag = _tag_of_words(name.strip())
    return None if tag is None else tag.standard


def is_private(code: str) -> bool:
    """Whether BCP 47 leaves the meaning of this code to its users: x-…, qaa to qtz."""
    first = re.split("[-_@]", code.lower())[0]
    return first == "x" or re.fullmatch("q[a-t][a-z]", first) is not None


def words_for(code: str) -> str | None:
    """The language in English: `Chinese (Traditional)` for zho_Hant; None where it is not known, or the library is missing."""
    return _words(code) if is_installed() else None


@cache
def _words(code: str) -> str | None:
    tag = tag_of_code(code)
    if tag is None or is_private(code):
        return None
    from langcodes import Language

    own = _parsed(code, normalize=False)  # prs is Dari, and in CLDR's spelling Persian of Afghanistan
    merged = own is None or "Unknown language" in own.language_name()
    plain = Language.make(language=tag.language).language_name() if merged or own is None else own.language_name()
    name = plain.replace(" (individual language)", "").replace(" (macrolanguage)", "")
    described = Language.make(language=tag.language, script=tag.script or None, territory=tag.region or None)
    details = []
    usual = Tag(language=tag.language, region=tag.region).written_in
    if tag.script and (tag.group == "zh" or tag.written_in != usual) and not name.endswith(described.script_name()):
        details.append(described.script_name())
    if tag.region and own is not None and own.territory:
        details.append(described.territory_name())
    details += tag.variants
    return f"{name} ({', '.join(details)})" if details else name


def region_hint(code: str) -> str:
    """For a country's code in the place of a language's: `cz is the region Czechia; its language is cs (Czech)`."""
    if not re.fullmatch("[A-Za-z]{2}", code) or code[0] in "xXqQzZ":
        return ""
    from langcodes import Language

    region = Language.make(territory=code.upper())
    likely = region.maximize()
    if not region.is_valid() or likely.language in (None, "und") or "Unknown" in region.territory_name():
        return ""
    return f"{code} is the region {region.territory_name()}; its language may be {likely.language} ({likely.language_name()})"


def _parsed(code: str, *, normalize: bool = True) -> Language | None:
    from langcodes import Language
    from langcodes.tag_parser import LanguageTagError

    head, _, modifier = code.strip().partition("@")
    script = _MODIFIERS.get(modifier.lower())
    written = head if script or not modifier else f"{head}-{modifier}"
    try:
        found = Language.get(written.replace("_", "-"), normalize=normalize)
    except (LanguageTagError, LookupError, ValueError):
        return None
    if found.extlangs:  # ar-ary is ary; en-lat is nothing
        if member_of(found.extlangs[0]) != found.language or len(found.extlangs) > 1:
            return None
        found = Language.make(found.extlangs[0], None, found.script, found.territory, found.variants)
    return found.update_dict({"script": script}) if script else found


def _tag(found: Language) -> Tag:
    language, script, region = found.language or "und", found.script or "", found.territory or ""
    if region in _NO_REGION:
        region = ""
    if _dominant(language) == "zh" and region in _SCRIPT_BY_REGION and script in ("", _SCRIPT_BY_REGION[region]):
        script, region = _SCRIPT_BY_REGION[region], ""
    variants = tuple(str(one) for one in (*(found.variants or ()), *((found.private,) if found.private else ())))
    return Tag(language=language, script=script, region=region, variants=variants)


@cache
def _tag_of_words(name: str) -> Tag | None:
    """`Tuvan`, `Brazilian Portuguese`, `Serbian (Latin)`, `français`: names in any language that CLDR has them in."""
    from langcodes import Language, find, find_name

    if not name.isprintable() or len(name) > LONGEST_WORDS:  # the library's tables are not for any bytes
        return None
    head, details = name, []
    if match := _WITH_DETAILS.fullmatch(name.strip()):
        head, details = match[1], [part.strip() for part in match[2].split(",")]
    try:
        found = find(head)
    except LookupError:
        return None
    for detail in details:
        for kind, key in (("script", "script"), ("territory", "territory")):
            try:
                part = find_name(kind, detail, "en")
            except LookupError:
                continue
            found = found.update_dict({key: getattr(part, key)})
            break
        else:
            variant = Language.get(f"{found.to_tag()}-{detail}") if re.fullmatch("[a-z0-9]{5,8}", detail) else None
            if variant is None:
                return None
            found = variant
    return _tag(Language.get(found.to_tag()))


@cache
def _likely_script(language: str, region: str) -> str:
    from langcodes import Language
    from langcodes.data_dicts import LIKELY_SUBTAGS

    if language not in LIKELY_SUBTAGS and f"{language}-{region}" not in LIKELY_SUBTAGS:
        dominant = _dominant(language)
        return _likely_script(dominant, region) if dominant != language else ""  # `maximize` would take it for English
    return Language.make(language=language, territory=region or None).maximize().script or ""


def _dominant(language: str) -> str:
    from langcodes import Language

    if language in _DOMINANT:
        return _DOMINANT[language]
    return Language.make(language=language).prefer_macrolanguage().language or language


def member_of(language: str) -> str:
    """The macrolanguage that a language belongs to, or itself."""
    from langcodes.data_dicts import MACROLANGUAGES

    return str(MACROLANGUAGES.get(language, language))
