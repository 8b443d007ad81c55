"""Wrong lines are found where the detector can tell, and where it cannot it says why."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from graftmt.prepare.language_id import EXAMPLES, detector_code, wrong_language_share

GREEK = [f"Η γρήγορη καφέ αλεπού πηδά πάνω από το τεμπέλικο σκυλί αριθμός {number}" for number in range(80)]
FRENCH = [f"Le chien paresseux regarde passer le renard dans la forêt numéro {number}" for number in range(20)]
PORTUGUESE = [f"O cachorro preguiçoso não viu a raposa que passou pela floresta {number} vezes" for number in range(30)]


def test_the_share_is_that_of_the_lines_in_another_language() -> None:
    check = wrong_language_share([*GREEK, *FRENCH], "el")
    assert check.share == pytest.approx(0.2)
    assert check.reason == ""
    assert check.examples == [f"fr: {line}" for line in FRENCH[:EXAMPLES]]


def test_clean_text_has_no_wrong_lines() -> None:
    assert wrong_language_share(GREEK, "el").share == 0
    assert wrong_language_share(PORTUGUESE, "pt_br").share == 0


def test_a_sample_is_spread_over_the_whole_text() -> None:
    check = wrong_language_share([*GREEK, *FRENCH] * 10, "el", limit=100)
    assert check.share == pytest.approx(0.2, abs=0.1)


@pytest.mark.parametrize(
    ("written", "detected"),
    [
        ("el", "el"),
        ("pt_br", "pt"),
        ("pt-BR", "pt"),
        ("zh_cn", "zh"),
        ("zh_tw", "zh"),
        ("zh-Hant", "zh"),
        ("nb", "no"),
        ("no", "no"),
        ("nn", "nn"),
        ("fra_Latn", "fr"),
        ("zho_Hans", "zh"),
        ("fr_XX", "fr"),
        ("kab", "kab"),
    ],
)
def test_codes_are_those_of_the_detector(written: str, detected: str) -> None:
    assert detector_code(written) == detected


def test_codes_are_renamed_to_those_the_detector_knows_and_its_own_stay() -> None:
    from graftmt.prepare.language_id import _OTHER_NAMES, _detector

    labels = set(_detector().labels)
    assert {name for name in _OTHER_NAMES.values() if name not in labels} == set()
    # A name of the detector's own must stay as it is.
    assert not labels & _OTHER_NAMES.keys()


def test_short_lines_are_left_out_and_too_few_lines_say_nothing() -> None:
    short = ["Oui !", "C'est ça.", "12 345 678 901 234 567 890"] * 100
    assert wrong_language_share([*GREEK, *short], "el").share == 0
    check = wrong_language_share([*GREEK[:19], *short], "el")
    assert check.share is None
    assert "too few lines of 20 letters or more to tell: 19" in check.reason
    assert wrong_language_share([], "el").share is None


def test_a_language_the_detector_does_not_know_is_said_to_be_so() -> None:
    check = wrong_language_share(GREEK, "tlh")
    assert check.share is None
    assert check.reason == "the language detector does not know tlh"


def test_without_the_detector_the_reason_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from graftmt.adding import language_id

    language_id._detector.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    check = wrong_language_share(GREEK, "el")
    assert check.share is None
    assert "pip install 'graftmt[prepare]'" in check.reason


def test_threads_and_other_users_of_the_library_do_not_disturb_it() -> None:
    import py3langid

    alone = wrong_language_share([*GREEK, *FRENCH], "el")
    py3langid.set_languages(["de", "en"])
    try:
        with ThreadPoolExecutor(4) as pool:
            checks = list(pool.map(lambda _: wrong_language_share([*GREEK, *FRENCH], "el"), range(8)))
    finally:
        py3langid.set_languages(None)
    assert checks == [alone] * 8
