"""How much of a text is in another language than it should be, by py3langid, a detector of 139 languages. Layer 4."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

FEWEST_LETTERS = 20
"""In a line; the detector guesses at shorter ones."""
FEWEST_LINES = 20
"""Below which a share says nothing."""
EXAMPLES = 5

_NO_LANGUAGE = "zxx"  # the detector's word for code, numbers and the like

# Codes that the detector writes otherwise: old ones, macrolanguages, and those of three letters that NLLB and others use.
_OTHER_NAMES: dict[str, str] = dict(
    re.findall(
        r"(\w+):(\w+)",
        """
        nb:no nob:no fil:tl tgl:tl iw:he in:id cmn:zh mo:ro sh:sr jw:jv
        afr:af als:sq amh:am ara:ar arb:ar arg:an asm:as aze:az azj:az bak:ba bel:be ben:bn bos:bs bre:br bul:bg cat:ca ces:cs
        cym:cy dan:da deu:de dzo:dz ekk:et ell:el eng:en epo:eo est:et eus:eu fao:fo fas:fa fin:fi fra:fr fry:fy gaz:om gla:gd
        gle:ga glg:gl guj:gu hat:ht hau:ha heb:he hin:hi hrv:hr hun:hu hye:hy ibo:ig ind:id isl:is ita:it jav:jv jpn:ja kan:kn
        kat:ka kaz:kk khk:mn khm:km ki:kik kin:rw kir:ky kmr:ku kor:ko kur:ku lao:lo lat:la lav:lv lin:ln lit:lt ltz:lb lug:lg
        lvs:lv mal:ml mar:mr mkd:mk mlg:mg mlt:mt mon:mn msa:ms mya:my nep:ne nld:nl nno:nn nor:no npi:ne oci:oc ori:or orm:om
        ory:or pan:pa pbt:ps pes:fa plt:mg pol:pl por:pt prs:fa pus:ps que:qu quy:qu ron:ro rus:ru san:sa sin:si slk:sk slv:sl
        sme:se sna:sn som:so sot:st spa:es sqi:sq srp:sr swa:sw swe:sv swh:sw tam:ta tat:tt tel:te tgk:tg tha:th tuk:tk tur:tr
        uig:ug ukr:uk urd:ur uzb:uz uzn:uz vie:vi vol:vo wln:wa xho:xh yor:yo zho:zh zsm:ms zul:zu
        """,
    )
)


@dataclass(frozen=True)
class LanguageCheck:
    """What the detector says of a text; it takes close languages for each other, so a share is an estimate."""

    share: float | None
    """Of the lines checked, those in another language; None where it is not known."""
    reason: str
    """Why it is not known; empty where it is."""
    examples: list[str]
    """Some of the lines in another language, each after the detector's code for it."""


def wrong_language_share(
    lines: Sequence[str], language: str, *, candidates: Sequence[str] = (), limit: int = 500
) -> LanguageCheck:
    """Asks the detector about `limit` of the lines, evenly spread, that have at least twenty letters.

    `candidates`: the languages it chooses among, all it knows unless given; fewer mean fewer false alarms.
    """
    try:
        detector = _detector(tuple(sorted({detector_code(name) for name in (*candidates, language)})) if candidates else ())
    except ImportError:
        return LanguageCheck(None, "the language detector is not installed: pip install 'graftmt[prepare]'", [])
    name = detector_code(language)
    if name not in detector.labels:
        return LanguageCheck(None, f"the language detector does not know {language}", [])
    long_enough = [line for line in lines if sum(map(str.isalpha, line)) >= FEWEST_LETTERS]
    count = min(limit, len(long_enough))
    sample = [long_enough[index * len(long_enough) // count] for index in range(count)]
    found = [(code, line) for line in sample if (code := detector.classify(line)[0]) != _NO_LANGUAGE]
    if len(found) < FEWEST_LINES:
        reason = f"too few lines of {FEWEST_LETTERS} letters or more to tell: {len(found)}, at least {FEWEST_LINES} are needed"
        return LanguageCheck(None, reason, [])
    wrong = [f"{code}: {line}" for code, line in found if code != name]
    return LanguageCheck(len(wrong) / len(found), "", wrong[:EXAMPLES])


def detector_code(language: str) -> str:
    """The detector's code for a language: `pt` for pt_br, `zh` for zh-Hans, `no` for nb, `fr` for fra_Latn."""
    primary = language.lower().replace("-", "_").split("_")[0]
    return _OTHER_NAMES.get(primary, primary)


@cache
def _detector(languages: tuple[str, ...] = ()) -> Any:
    """One of our own, read from the wheel in half a second: py3langid's shared one can be changed by others.

    Classifying only reads it, so threads may share it.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    detector = LanguageIdentifier.from_model_file(MODEL_FILE)
    known = [name for name in languages if name in detector.labels]
    if len(known) > 1:
        detector.set_languages(known)
    return detector
