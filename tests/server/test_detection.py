"""Detection on large bases, with languages that py3langid does not know; and the codes that LibreTranslate's clients send."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from graftmt.server.catalog import Catalog, Language
from graftmt.server.detection import Detector
from graftmt.server.refusals import Refused


def catalog_of(codes: Sequence[str]) -> Catalog:
    """A catalog of a base that reads and writes these languages, without its weights."""
    facts: Any = {"name": "", "own_name": "", "new": False, "right_to_left": False, "reads": True, "writes": True}
    translator = SimpleNamespace(languages=tuple(codes), source_languages=tuple(codes), target_languages=tuple(codes))
    catalog = Catalog(cast(Any, translator))
    catalog.__dict__["languages"] = {code: Language(code=code, **facts) for code in codes}
    return catalog


NLLB = "eng_Latn fra_Latn wol_Latn twi_Latn ukr_Cyrl zho_Hans zho_Hant srp_Cyrl sr_Latn taq_Latn taq_Tfng nqo_Nkoo tir_Ethi "
NLLB += "arz_Arab"
FRENCH = "Les enfants jouent dans le jardin depuis ce matin."


def test_a_language_that_has_its_script_to_itself_is_told_by_it() -> None:
    detector = Detector(catalog_of(NLLB.split()))
    for text, code in (("ⴰⵣⵓⵍ ⴼⵍⵍⴰⵡⵏ", "taq_Tfng"), ("ߒߞߏ ߞߊ߲ߜߍ", "nqo_Nkoo"), ("ከመይ ኣለኻ", "tir_Ethi")):
        found = detector.guess(text)
        assert found.language == code and found.confidence > 90
    assert detector.guess(FRENCH).language == "fra_Latn"
    assert detector.guess("Діти грають у саду з самого ранку.").language == "ukr_Cyrl"


def test_a_language_that_shares_its_script_is_named_after_those_that_are_known() -> None:
    detector = Detector(catalog_of(["eng_Latn", "fra_Latn", "wol_Latn"]))
    guesses = detector.guesses("Na")
    assert "wol_Latn" in {guess.language for guess in guesses} and guesses[0].language != "wol_Latn"
    assert sum(guess.confidence for guess in guesses) == pytest.approx(100, abs=1)
    assert detector.guess(FRENCH).confidence > 90


def test_a_language_stands_for_its_macrolanguage_where_nothing_else_does() -> None:
    text = "الأولاد يلعبون في الحديقة منذ الصباح"
    assert Detector(catalog_of(NLLB.split())).guess(text).language == "arz_Arab"
    assert Detector(catalog_of([*NLLB.split(), "arb_Arab"])).guess(text).language == "arb_Arab"


def test_codes_of_one_language_are_told_apart_by_script() -> None:
    detector = Detector(catalog_of(NLLB.split()))
    assert detector.guess("Деца се играју у дворишту од јутрос, каже учитељица.").language == "srp_Cyrl"
    assert detector.guess("Deca se igraju u dvorištu od jutros, kaže učiteljica.").language == "sr_Latn"


def test_a_base_of_unknown_languages_alone_has_an_answer() -> None:
    detector = Detector(catalog_of(["wol_Latn", "taq_Tfng"]))
    assert detector.guess("ⴰⵣⵓⵍ ⴼⵍⵍⴰⵡⵏ").language == "taq_Tfng" and detector.guess("Na nga def").language == "wol_Latn"
    assert detector.guess("123").confidence == 0


@pytest.mark.parametrize(
    ("name", "known", "code"),
    [
        ("zh", "zh-Hans zh-Hant en", "zh-Hans"),
        ("ZH", "zho_Hans zho_Hant", "zho_Hans"),
        ("zt", "zho_Hans zho_Hant", "zho_Hant"),
        ("zt", "zh_CN zh_TW", "zh_TW"),
        ("zh", "zh_TW en", "zh_TW"),
        ("zh", "zh en", "zh"),
        ("pb", "pt pt_br", "pt_br"),
        ("pb", "por_Latn en", "por_Latn"),
        ("pt", "pt pt_br", "pt"),
    ],
)
def test_codes_of_libretranslate_choose_among_several(name: str, known: str, code: str) -> None:
    assert catalog_of(known.split()).language(name, "target") == code


def test_what_libretranslate_has_no_code_for_stays_an_error_with_the_choices() -> None:
    with pytest.raises(Refused, match=r"'kas_Arab'.*'kas_Deva'"):
        catalog_of(["kas_Arab", "kas_Deva"]).language("kas", "source")
    with pytest.raises(Refused, match="'zt' is not supported"):
        catalog_of(["en", "fr"]).language("zt", "source")
