"""Text in the right language has a rate near 0, in another one near 1; what cannot be told is said."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence

import pytest

from graftmt.assessment import off_target
from graftmt.assessment.off_target import Judge, floors

TEXTS = {
    "en": [f"The lazy dog watches the fox that passes through the forest {number} times" for number in range(40)],
    "fr": [f"Le chien paresseux regarde passer le renard dans la forêt numéro {number}" for number in range(40)],
    "pt_br": [f"O cachorro preguiçoso não viu a raposa que passou pela floresta {number} vezes" for number in range(40)],
    "el": [f"Η γρήγορη καφέ αλεπού πηδά πάνω από το τεμπέλικο σκυλί αριθμός {number}" for number in range(40)],
}


def made_up(consonants: str, vowels: str, seed: int) -> list[str]:
    """Two hundred lines of a language that no detector knows."""
    chance = random.Random(seed)

    def word() -> str:
        return "".join(chance.choice(consonants) + chance.choice(vowels) for _ in range(chance.randint(1, 4)))

    return [" ".join(word() for _ in range(8)) for _ in range(200)]


UNKNOWN = {"xqa": made_up("zvptk", "aiu", 1), "xqb": made_up("mlngd", "eoy", 2)}


@pytest.fixture(scope="module", autouse=True)
def _detector() -> None:
    pytest.importorskip("py3langid")


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge.make(tuple(TEXTS), TEXTS)


@pytest.mark.parametrize("language", TEXTS)
def test_the_right_language_is_not_off_target_and_every_other_one_is(judge: Judge, language: str) -> None:
    assert judge.judge(TEXTS[language], language).rate == 0
    for other, lines in TEXTS.items():
        if other != language:
            found = judge.judge(lines, language)
            assert (found.rate, found.judged, found.into) == (1, 40, {other: 40}), "named as it is here, not by the detector"


def test_the_rate_is_the_share_of_the_lines_that_can_be_judged(judge: Judge) -> None:
    found = judge.judge([*TEXTS["fr"][:15], *TEXTS["en"][:4], *TEXTS["el"][:1], "", " ", "42", "OK"], "fr")
    assert (found.rate, found.judged, found.empty) == (0.25, 20, 2)
    assert list(found.into.items()) == [("en", 4), ("el", 1)]
    assert judge.judge(["", "42"], "fr").rate is None


def test_floors_are_rates_of_the_references(judge: Judge) -> None:
    texts = {**TEXTS, "fr": [*TEXTS["fr"][:30], *TEXTS["en"][:10]]}
    assert floors(judge, ["en", "fr"], texts) == {"en": 0, "fr": 0.25}


def rates(judge: Judge, texts: Mapping[str, Sequence[str]]) -> dict[str, float | None]:
    return {f"{text}, should be {language}": judge.judge(texts[text], language).rate for text in texts for language in texts}


def test_a_language_that_no_detector_knows_is_learned_from_the_test_set() -> None:
    texts = {**TEXTS, **UNKNOWN}
    judge = Judge.make(tuple(texts), {name: lines * (1 if name in UNKNOWN else 2) for name, lines in texts.items()})
    for name, rate in rates(judge, texts).items():
        text, _, language = name.partition(", should be ")
        assert rate == pytest.approx(float(text != language), abs=0.1), name
    assert judge.how["xqa"].startswith("n-gram classifier") and judge.how["xqa"].endswith("learned from the test set")
    found = floors(judge, list(texts), texts)
    assert all(rate is not None and rate < 0.1 for rate in found.values())


def test_the_floor_of_what_was_learned_is_that_of_lines_it_was_not_learned_from() -> None:
    """Every other line of xqa is in a third language. Learned from, it is xqa; judged by the lines between, it is not."""
    third = made_up("bfwjs", "aou", 3)
    mixed = [line for pair in zip(UNKNOWN["xqa"], third, strict=True) for line in pair]
    texts = {**TEXTS, "xqa": mixed, "xqb": UNKNOWN["xqb"]}
    judge = Judge.make(tuple(texts), texts)
    assert judge.judge(mixed, "xqa").rate == 0
    found = floors(judge, ["xqa", "xqb"], texts)
    assert found["xqa"] is not None and found["xqa"] > 0.2
    assert found["xqb"] == 0


def test_what_cannot_be_told_is_said() -> None:
    judge = Judge.make(("en", "fr", "xqa"), {**TEXTS, "xqa": UNKNOWN["xqa"][:3]})
    assert not judge.judges("xqa") and judge.judges("fr")
    found = judge.judge(["", *TEXTS["en"]], "xqa")
    assert (found.rate, found.judged, found.empty) == (None, 0, 1)
    assert judge.how["xqa"].startswith("cannot be told: py3langid does not know it")


def test_one_unknown_language_with_nothing_to_tell_it_from_is_said_too() -> None:
    judge = Judge.make(("xqa",), UNKNOWN)
    assert not judge.judges("xqa")
    assert judge.how["xqa"].startswith("cannot be told")


def test_without_a_detector_all_is_learned_from_the_test_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_target.importlib.util, "find_spec", lambda name: None)
    texts = {**UNKNOWN, "fr": TEXTS["fr"], "en": TEXTS["en"]}
    judge = Judge.make((*texts, "de"), texts)
    assert not judge.filter.detected
    for name, rate in rates(judge, texts).items():
        text, _, language = name.partition(", should be ")
        assert rate == (text != language), name
    assert "not installed" in judge.how["de"]


def test_a_judge_travels_to_other_processes(judge: Judge) -> None:
    copy = pickle.loads(pickle.dumps(judge))
    assert copy.judge(TEXTS["en"], "fr") == judge.judge(TEXTS["en"], "fr")
