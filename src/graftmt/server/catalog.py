"""What is served at one moment: the resident base, the packs on top of it, and what they open. An immutable value. Layer 6."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from graftmt.base import Base
from graftmt.errors import LanguageError
from graftmt.packs import Pack, Side
from graftmt.server.refusals import bad_request
from graftmt.text.aliases import find_language, nearest_language
from graftmt.text.languages import tag_of_code, words_for
from graftmt.translator import Translator

LONGEST_CODE = 64
MOST_NAMES = 1000
"""Names of languages that are remembered with what they mean."""
RIGHT_TO_LEFT = frozenset(["Adlm", "Arab", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"])

LIBRETRANSLATE = {"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR"}
"""Codes that LibreTranslate's clients send, with what its server takes them for."""

RouteKind = Literal["direct", "composed", "pivot"]


@dataclass(frozen=True)
class ServedPack:
    """A pack that is in service."""

    name: str
    path: Path
    pack: Pack
    bytes: int

    @property
    def version(self) -> int:
        found = self.pack.card.get("version", 1)
        return found if isinstance(found, int) else 1


@dataclass(frozen=True)
class Language:
    """A language that can be read, written or both."""

    code: str
    name: str
    own_name: str
    new: bool
    """A pack brings it."""
    right_to_left: bool
    reads: bool
    writes: bool


@dataclass(frozen=True, eq=False)
class Catalog:
    """An immutable view; what changes the packs makes another one, and requests keep the one they began with."""

    translator: Translator
    packs: Mapping[str, ServedPack] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    """What lies in the watched folders and cannot be served, with the reason."""
    version: int = 1
    places: tuple[Path, ...] = ()
    """Folders that are watched."""

    @property
    def base(self) -> Base:
        return self.translator.base

    @cached_property
    def languages(self) -> dict[str, Language]:
        """By code, in order: the base's, then those of packs."""
        reads, writes = self.translator.source_languages, self.translator.target_languages
        return {
            code: Language(
                code=code,
                name=words_for(code) or code,
                own_name=own_name(code),
                new=code not in self.base.languages,
                right_to_left=is_right_to_left(code),
                reads=code in reads,
                writes=code in writes,
            )
            for code in self.translator.languages
        }

    @cached_property
    def _names(self) -> dict[str, str]:
        return {}

    def language(self, name: str, side: Side) -> str:
        """The code that a client means; an unknown one is an error that names those there are and the nearest."""
        if name in self._names:
            code = self._names[name]
        elif name in self.languages:
            code = name
        else:
            code = self._resolve(name)
            if len(self._names) < MOST_NAMES:
                self._names[name] = code
        language = self.languages[code]
        if side == "source" and not language.reads:
            raise bad_request(f"{name} ({language.name}) can only be translated into here; there is no pack that reads it.")
        if side == "target" and not language.writes:
            raise bad_request(f"{name} ({language.name}) can only be translated from here; there is no pack that writes it.")
        return code

    def _resolve(self, name: str) -> str:
        known = tuple(self.languages)
        names = (LIBRETRANSLATE.get(name.lower(), name), name) if 0 < len(name) <= LONGEST_CODE else ()
        try:
            matches = (find_language(each, known, of="this server") for each in names)
            found = next((code for code in matches if code is not None), None)
        except LanguageError as error:  # it fits several
            raise bad_request(str(error)) from None
        if found is None:
            shown = repr(name[:LONGEST_CODE])
            hint = nearest_language(name[:LONGEST_CODE], known) or "."
            raise bad_request(f"{shown} is not supported{hint} Languages here: {', '.join(known)}.")
        return found

    def pack_for(self, language: str, side: Side) -> ServedPack | None:
        """The pack that reads or writes a language unless a request names one: the highest version, then the first name."""
        fitting = [one for one in self.packs.values() if one.pack.side == side and language in one.pack.languages]
        return min(fitting, key=lambda one: (-one.version, one.name), default=None)

    def chosen_pack(self, language: str, side: Side, name: str | None) -> str | None:
        """The name of that pack, or of the one a request names; None for the base's own languages."""
        if name is None:
            found = self.pack_for(language, side)
            return None if found is None else found.name
        pack = self.packs.get(name)
        if pack is None or pack.pack.side != side or language not in pack.pack.languages:
            raise bad_request(f"there is no {side} pack {name[:LONGEST_CODE]!r} for {language} here; see /v1/packs.")
        return name

    def kind_of(self, source: str, target: str) -> RouteKind:
        """Two packs that were made apart are composed; otherwise the direction is direct."""
        both = self.pack_for(source, "source") is not None and self.pack_for(target, "target") is not None
        return "composed" if both else "direct"

    def scores(self, source: str, target: str) -> dict[str, Any] | None:
        """What the packs' cards say of a direction: BLEU, chrF, whether it was trained, and the pivot's chrF if measured."""
        for pack in (self.pack_for(target, "target"), self.pack_for(source, "source")):
            entry = None if pack is None else (pack.pack.card.get("scores") or {}).get(f"{source}-{target}")
            if entry is not None:
                known = ("bleu", "chrf", "lines", "zero_shot", "few_lines", "pivot")
                return {key: entry[key] for key in known if entry.get(key) is not None}
        return None

    def is_zero_shot(self, source: str, target: str) -> bool:
        """Whether no pack of this direction was trained on it; the base's own directions are trained."""
        packs = self.pack_for(source, "source"), self.pack_for(target, "target")
        if all(packs):
            return True
        entry = self.scores(source, target)
        if entry is not None and "zero_shot" in entry:
            return bool(entry["zero_shot"])
        for pack, other in zip(packs, (target, source), strict=True):
            if pack is not None and pack.pack.partners:
                return other not in pack.pack.partners
        return False


def own_name(code: str) -> str:
    """What the language calls itself, such as Ελληνικά; its English name or its code where that is not known."""
    try:
        from langcodes import Language as Names
    except ImportError:
        return code
    tag = tag_of_code(code)
    if tag is None:
        return words_for(code) or code
    found = Names.make(language=tag.language, script=tag.script or None).autonym()
    return words_for(code) or code if "Unknown" in found else found[:1].upper() + found[1:]


def is_right_to_left(code: str) -> bool:
    try:
        tag = tag_of_code(code)
    except ImportError:
        return code.split("_")[0].split("-")[0] in ("ar", "fa", "he", "ur", "yi", "ps", "ckb", "dv", "ug", "sd")
    return tag is not None and tag.written_in in RIGHT_TO_LEFT
