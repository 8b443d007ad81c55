"""Wrong lines are found where the detector can tell, and where it cannot it says why."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from graftmt.errors import ConfigError
from graftmt.prepare import detector as detector_module
from graftmt.prepare.detector import detector
from graftmt.prepare.language_id import EXAMPLES, LanguageCheck, LanguageFilter, detector_code, foreign_lines

GREEK = [f"Η γρήγορη καφέ αλεπού πηδά πάνω από το τεμπέλικο σκυλί αριθμός {number}" for number in range(80)]
FRENCH = [f"Le chien paresseux regarde passer le renard dans la forêt numéro {number}" for number in range(20)]
PORTUGUESE = [f"O cachorro preguiçoso não viu a raposa que passou pela floresta {number} vezes" for number in range(30)]


def check_of(lines: list[str], language: str, *, candidates: tuple[str, ...] = (), limit: int = 2_000) -> LanguageCheck:
    return foreign_lines({language: lines}, candidates=candidates, limit=limit)[language]


def test_the_share_is_that_of_the_lines_in_another_language() -> None:
    check = check_of([*GREEK, *FRENCH], "el")
    assert check.share == pytest.approx(0.2)
    assert check.reason == ""
    assert check.examples == [f"fr: {line}" for line in FRENCH[:EXAMPLES]]


def test_clean_text_has_no_wrong_lines() -> None:
    assert check_of(GREEK, "el").share == 0
    assert check_of(PORTUGUESE, "pt_br").share == 0


def test_a_sample_is_spread_over_the_whole_text() -> None:
    check = check_of([*GREEK, *FRENCH] * 10, "el", limit=100)
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
    from graftmt.prepare.detector import _OTHER_NAMES, detector

    labels = set(detector().labels)
    assert {name for name in _OTHER_NAMES.values() if name not in labels} == set()
    # A name of the detector's own must stay as it is.
    assert not labels & _OTHER_NAMES.keys()


def test_numbers_are_left_out_and_too_few_lines_say_nothing() -> None:
    numbers = ["OK!", "12 345 678 901 234 567 890", ""] * 100
    assert check_of([*GREEK, *numbers], "el").share == 0
    check = check_of([*GREEK[:19], *numbers], "el")
    assert check.share is None
    assert "too few lines of 4 letters or more to tell: 19" in check.reason
    assert check_of([], "el").share is None


def test_a_language_the_detector_does_not_know_is_said_to_be_so() -> None:
    check = check_of(GREEK, "tlh")
    assert check.share is None
    assert check.reason == "the language detector does not know tlh"


def test_without_the_detector_the_reason_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.setattr(detector_module, "_whole_detector", detector_module._whole_detector.__wrapped__)  # read once else
    monkeypatch.setattr(detector_module, "detector", detector_module.detector.__wrapped__)
    for candidates in ((), ("el", "fr")):
        check = check_of(GREEK, "el", candidates=candidates)
        assert check.share is None
        assert "pip install 'graftmt[prepare]'" in check.reason


def test_candidates_are_all_that_it_chooses_among() -> None:
    # Among these Portuguese is nearest to Spanish; Greek, which is none of them, is still itself.
    assert check_of(PORTUGUESE, "pt").share == 0
    check = check_of([*PORTUGUESE, *FRENCH], "fr", candidates=("es", "el"))
    assert check.share == pytest.approx(0.6)
    assert all(example.startswith("es: ") for example in check.examples)
    assert check_of(GREEK, "el", candidates=("fr", "pt_br")).share == 0


def test_a_language_unknown_to_the_detector_stays_so_among_candidates() -> None:
    assert check_of(GREEK, "tlh", candidates=("el", "fr")).reason == "the language detector does not know tlh"
    # Candidates it does not know are left out; too few are no choice, and it chooses among all.
    assert check_of([*GREEK, *FRENCH], "el", candidates=("tlh",)).share == pytest.approx(0.2)


def test_threads_and_other_users_of_the_library_do_not_disturb_it() -> None:
    import py3langid

    alone = check_of([*GREEK, *FRENCH], "el")
    py3langid.set_languages(["de", "en"])
    try:
        with ThreadPoolExecutor(4) as pool:
            checks = list(pool.map(lambda _: check_of([*GREEK, *FRENCH], "el"), range(8)))
    finally:
        py3langid.set_languages(None)
    assert checks == [alone] * 8


FILTER_LINES = {
    "en": "The lazy dog did not see the fox that went through the forest",
    "fr": "Le chien paresseux regarde passer le renard dans la forêt",
    "pt_br": "O cachorro preguiçoso não viu a raposa que passou pela floresta",
    "el": "Η γρήγορη καφέ αλεπού πηδά πάνω από το τεμπέλικο σκυλί",
}


@pytest.mark.parametrize("open_set", [False, True])
def test_a_line_is_judged_by_which_language_wins(open_set: bool) -> None:
    judge = LanguageFilter.make(list(FILTER_LINES), open_set=open_set)
    for language, text in FILTER_LINES.items():
        for expected in FILTER_LINES:
            assert judge.other_language(text, expected) == ("" if expected == language else detector_code(language))


def test_short_lines_and_code_are_not_judged() -> None:
    judge = LanguageFilter.make(["el", "en"], open_set=True)
    for text in ("OK", "12 345 678 901", "", "Linux", "日本"):
        assert judge.other_language(text, "el") == ""
    assert judge.other_language("日本語の文", "el") == "ja"  # five characters say as much as a long word


def test_close_languages_need_a_clear_winner() -> None:
    text = "Menu principal do sistema operacional"
    wide = replace(LanguageFilter.make(["es", "pt"]), detector_margin=100.0)
    assert wide.other_language(text, "es") == ""
    assert LanguageFilter.make(["es", "pt"]).other_language(PORTUGUESE[0], "es") == "pt"


def test_how_each_language_is_judged_is_said() -> None:
    notes = LanguageFilter.make(["en", "fr", "pt", "pt_br", "tlh"]).notes
    assert notes["en"] == "py3langid, among en, fr, pt"
    assert "cannot tell it from pt_br" in notes["pt"]
    assert "not checked" in notes["tlh"] and "--trusted tlh=FILE" in notes["tlh"]
    # Among two, a line in a third language would have to be one of them.
    assert "among all" in LanguageFilter.make(["en", "fr"]).notes["en"]


def test_trusted_text_is_taken_instead_of_the_detector_and_helps_with_other_languages() -> None:
    judge = LanguageFilter.make(["fr", "zan"], trusted={"zan": ZAN, "en": [FILTER_LINES["en"]] * 50}, sample={"fr": FRENCH * 5})
    assert judge.classifier is not None and judge.classifier.languages == ("zan", "en", "fr")
    assert judge.other_language(ZAN[0], "zan") == ""
    assert judge.other_language(FRENCH[0], "zan") == "fr"
    assert judge.other_language(FILTER_LINES["en"], "zan") == "en"
    assert judge.other_language(ZAN[0], "fr") != ""


ZAN = ["zanu kelimo vata pori sunat merik polu zanu vata kelimo sunat pori"] * 50


def test_trusted_text_needs_something_to_be_told_from() -> None:
    with pytest.raises(ConfigError, match="Give trusted text for qaa too"):
        LanguageFilter.make(["zan", "qaa"], trusted={"zan": ZAN})


def test_filtering_without_the_detector_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(languages: tuple[str, ...] = ()) -> None:
        raise ImportError

    monkeypatch.setattr("graftmt.prepare.detector.detector", missing)
    with pytest.raises(ConfigError, match="--no-language-id"):
        LanguageFilter.make(["en", "fr"])
    everything = LanguageFilter.make(["zan", "fr"], trusted={"zan": ZAN, "fr": FRENCH * 5})
    assert everything.other_language(FRENCH[0], "zan") == "fr"  # with trusted text for all, nobody asks the detector


def test_detectors_of_some_languages_share_the_tables_of_all() -> None:
    whole, some = detector(), detector(("el", "fr"))
    assert detector(()) is whole, "75 MB are read once"
    assert some.tk_nextmove is whole.tk_nextmove and some.nb_ptc.shape[1] < whole.nb_ptc.shape[1]
    assert set(some.labels) == {"el", "fr"} and {"el", "fr", "pt", "ja"} < set(whole.labels)
    for line in (GREEK[0], FRENCH[0]):
        assert some.classify(line)[0] == whole.classify(line)[0]
    assert some.classify(PORTUGUESE[0])[0] == "fr", "the nearest of those that it has"
