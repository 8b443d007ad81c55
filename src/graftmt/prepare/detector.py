"""The language detector, py3langid, with 139 languages: which codes it knows, and its tables as arrays. Layer 4.

It is naive Bayes over runs of bytes, its *features*: a text's score in a language is the sum of the log-probabilities of the
features found in it, so a column of log-probabilities learnt in another way can be compared with the detector's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graftmt.errors import ConfigError

Floats: TypeAlias = NDArray[np.float32]
Features: TypeAlias = tuple[NDArray[np.intp], Floats]
"""Which features a text has, and log(1 + how often) for each."""

NO_LANGUAGE = "zxx"  # the detector's word for code, numbers and the like


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


def detector_languages() -> frozenset[str]:
    """The codes that the detector knows; an error says how to install it where it is missing."""
    try:
        return frozenset(detector().labels) - {NO_LANGUAGE}
    except ImportError:
        raise ConfigError(
            "language-ID filtering needs py3langid: pip install 'graftmt[prepare]', or leave it out with --no-language-id."
        ) from None


def detector_code(language: str) -> str:
    """The detector's code for a language: `pt` for pt_br, `zh` for zh-Hans, `no` for nb, `fr` for fra_Latn."""
    primary = language.lower().replace("-", "_").split("_")[0]
    return _OTHER_NAMES.get(primary, primary)


@cache
def _whole_detector() -> Any:
    """One of our own, read from the wheel in half a second: py3langid's shared one can be changed by others."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


@cache
def detector(languages: tuple[str, ...] = ()) -> Any:
    """The detector, choosing among these of its languages or all that it knows.

    Its tables take 75 MB, and all choices share them. Classifying only reads them, so threads may share a detector.
    """
    if not languages:
        return _whole_detector()
    chosen = copy(_whole_detector())
    known = [name for name in languages if name in chosen.labels]
    if len(known) > 1:
        chosen.set_languages(known)
    return chosen


def language_detector(codes: Iterable[str] = ()) -> Any:
    """The detector, choosing among these of its codes or all that it knows; None where it is not installed."""
    try:
        return detector(tuple(sorted(codes)))
    except ImportError:
        return None


def features_of(text: str) -> Features | None:
    """None for a text in which the detector finds nothing to go by."""
    from py3langid.langid import visit_counts

    model = detector()
    visits = visit_counts(model.tk_nextmove, model._rowbase, model.tk_output, model._encode(text))
    if not visits:
        return None
    places = np.fromiter(visits.keys(), dtype=np.intp, count=len(visits))
    return places, np.log1p(np.fromiter(visits.values(), dtype=np.float32, count=len(visits)))


@cache
def columns_of(codes: tuple[str, ...]) -> tuple[tuple[str, ...], Floats, Floats]:
    """(code of each column, log-probabilities by feature and column, first value of each column's score).

    A language that is written in two scripts has two columns.
    """
    model = detector()
    places = [place for place, code in enumerate(model.nb_classes) if code in codes]
    table = np.ascontiguousarray(model.nb_ptc[:, places], dtype=np.float32)
    return tuple(model.nb_classes[place] for place in places), table, np.asarray(model.nb_pc[places], dtype=np.float32)
