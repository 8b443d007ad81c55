"""Other names of languages: the right code, an error with choices, or an error with a hint; never another language."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.errors import LanguageError
from graftmt.text import aliases
from graftmt.text.aliases import english_in, find_language, match_names, nearest_language, new_language, resolve_language
from graftmt.text.languages import is_language_name, tag_of, tag_of_code, words_for

NLLB = tuple(
    re.findall(
        r"\w+",
        """
        ace_Arab ace_Latn aka_Latn als_Latn amh_Ethi arb_Arab ary_Arab arz_Arab asm_Beng azb_Arab azj_Latn bak_Cyrl
        bod_Tibt bul_Cyrl cat_Latn ckb_Arab deu_Latn dzo_Tibt ell_Grek eng_Latn est_Latn fra_Latn fuv_Latn gaz_Latn
        grn_Latn heb_Hebr hin_Deva hye_Armn ibo_Latn ind_Latn jpn_Jpan kas_Arab kas_Deva kat_Geor kaz_Cyrl khk_Cyrl
        khm_Khmr kmr_Latn knc_Arab knc_Latn kor_Hang lao_Laoo lvs_Latn mya_Mymr nno_Latn nob_Latn npi_Deva ory_Orya
        pbt_Arab pes_Arab plt_Latn por_Latn prs_Arab quy_Latn rus_Cyrl sat_Beng shn_Mymr sin_Sinh som_Latn spa_Latn
        srp_Cyrl swh_Latn tam_Taml taq_Latn taq_Tfng tel_Telu tgl_Latn tha_Thai tir_Ethi twi_Latn uig_Arab ukr_Cyrl
        urd_Arab uzn_Latn vie_Latn wol_Latn ydd_Hebr yor_Latn yue_Hant zho_Hans zho_Hant zsm_Latn zul_Latn
        """,
    )
)
M2M = tuple(
    re.findall(
        r"\w+",
        "af am ar bg ca de el en es et fa ff fr ha hi id ja ka ko lv mn ms my ne no or pt ru sq sr sw th tl uk ur uz vi yi zh",
    )
)
MBART = tuple(
    re.findall(r"\w+", "ar_AR cs_CZ de_DE en_XX es_XX et_EE fa_IR fr_XX hi_IN ja_XX ko_KR my_MM pt_XX sw_KE ur_PK zh_CN")
)
BASES = {"NLLB": NLLB, "M2M-100": M2M, "mBART-50": MBART}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ("en eng English english EN ENG_LATN eng-Latn en-US en_GB en_XX anglais 英語", "eng_Latn"),
        ("zh-Hans zh_cn zho-hans zh_CN cmn_Hans", "zho_Hans"),
        ("zh_tw zh-Hant zh-HK zh_Hant_HK", "zho_Hant"),
        ("yue Cantonese", "yue_Hant"),
        ("ar ara arb Arabic ar_SA العربية", "arb_Arab"),
        ("ary ar-ary", "ary_Arab"),
        ("fa fas per pes Persian Farsi", "pes_Arab"),
        ("prs Dari fa_AF", "prs_Arab"),
        ("no nb nob nb_NO Norwegian norsk", "nob_Latn"),
        ("nn nno nynorsk", "nno_Latn"),
        ("ak aka Akan", "aka_Latn"),
        ("tw twi Twi", "twi_Latn"),
        ("tl fil Tagalog Filipino", "tgl_Latn"),
        ("sw swa swh Swahili Kiswahili", "swh_Latn"),
        ("ko kor Korean 한국어", "kor_Hang"),
        ("ja jpn Japanese 日本語", "jpn_Jpan"),
        ("he iw heb Hebrew", "heb_Hebr"),
        ("th Thai ไทย", "tha_Thai"),
        ("am Amharic አማርኛ", "amh_Ethi"),
        ("ne npi nep Nepali नेपाली", "npi_Deva"),
        ("ps pus Pashto", "pbt_Arab"),
        ("qu Quechua", "quy_Latn"),
        ("pt_br pt-BR por Portuguese", "por_Latn"),
        ("sr srp sr-Cyrl sr_RS Serbian", "srp_Cyrl"),
        ("ca cat Catalan ca@valencia català", "cat_Latn"),
        ("ku Kurdish kmr", "kmr_Latn"),
        ("om Oromo", "gaz_Latn"),
        ("yo Yoruba", "yor_Latn"),
        ("bo Tibetan tib", "bod_Tibt"),
        ("Tamasheq", "taq_Latn"),
    ],
)
def test_names_mean_the_code_of_the_base(names: str, code: str) -> None:
    assert {resolve_language(name, NLLB) for name in names.split()} == {code}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Simplified Chinese", "zho_Hans"),
        ("Chinese (Traditional)", "zho_Hant"),
        ("Brazilian Portuguese", "por_Latn"),
        ("Egyptian Arabic", "arz_Arab"),
        ("Acehnese (Arabic)", "ace_Arab"),
        ("Kashmiri (Devanagari)", "kas_Deva"),
        ("Norwegian Bokmål", "nob_Latn"),
        (" french ", "fra_Latn"),
    ],
)
def test_names_of_several_words(name: str, code: str) -> None:
    assert resolve_language(name, NLLB) == code


def test_bases_with_other_codes_behave_alike() -> None:
    for names, codes in [
        ("English eng_Latn en eng en_XX", ("eng_Latn", "en", "en_XX")),
        ("German de deu ger deu_Latn de_DE", ("deu_Latn", "de", "de_DE")),
        ("Arabic ar arb_Arab", ("arb_Arab", "ar", "ar_AR")),
        ("Korean ko kor_Hang", ("kor_Hang", "ko", "ko_KR")),
        ("zh_cn zh-Hans zho_Hans", ("zho_Hans", "zh", "zh_CN")),
        ("Burmese my mya_Mymr", ("mya_Mymr", "my", "my_MM")),
    ]:
        for name in names.split():
            assert tuple(resolve_language(name, known) for known in BASES.values()) == codes, name


@pytest.mark.parametrize(
    ("name", "known", "choices"),
    [
        ("zh", NLLB, ["zho_Hans", "zho_Hant"]),
        ("Chinese", NLLB, ["zho_Hans", "zho_Hant"]),
        ("kas", NLLB, ["kas_Arab", "kas_Deva"]),
        ("Central Kanuri", NLLB, ["knc_Arab", "knc_Latn"]),
        ("pt", ["en", "pt_BR", "pt_PT"], ["pt_BR", "pt_PT"]),
        ("srp", ["sr_Latn", "sr_Cyrl"], ["sr_Latn", "sr_Cyrl"]),
        ("ZH_HANS", ["zh-Hans", "zh_Hans"], ["zh-Hans", "zh_Hans"]),
    ],
)
def test_a_name_that_fits_several_is_an_error_with_the_choices(name: str, known: Sequence[str], choices: list[str]) -> None:
    with pytest.raises(LanguageError, match="several") as error:
        resolve_language(name, known)
    assert all(repr(choice) in str(error.value) for choice in choices)
    assert str(error.value).count("'") == 2 * len(choices) + 2


@pytest.mark.parametrize(
    ("name", "known", "code"),
    [
        ("por", ["pt", "pt_br"], "pt"),
        ("pt-PT", ["pt", "pt_br"], "pt"),
        ("pt_BR", ["pt", "pt_br"], "pt_br"),
        ("Brazilian Portuguese", ["pt", "pt_br"], "pt_br"),
        ("srp", ["sr", "sr_Latn"], "sr"),
        ("sr@latin", ["sr", "sr_Latn"], "sr_Latn"),
        ("sr_RS@latin", ["sr", "sr_Latn"], "sr_Latn"),
        ("ca-valencia", ["ca", "ca@valencia"], "ca@valencia"),
        ("cat", ["ca", "ca@valencia"], "ca"),
        ("uz-Cyrl", ["uzn_Latn", "uz_Cyrl"], "uz_Cyrl"),
        ("tyv", ["tyv", "rus_Cyrl"], "tyv"),
        ("Tuvan", ["tyv", "rus_Cyrl"], "tyv"),
        ("zh-Hant", ["zh_CN", "zh_TW"], "zh_TW"),
        ("x-mine", ["en", "x-mine"], "x-mine"),
        ("X_MINE", ["en", "x-mine"], "x-mine"),
    ],
)
def test_script_region_and_variant_choose(name: str, known: Sequence[str], code: str) -> None:
    assert resolve_language(name, known) == code


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("sr-Latn", NLLB, "srp_Cyrl"),
        ("zh-Hant", ["en", "zh"], "zh"),
        ("pt_PT", ["en", "pt_BR"], "pt_BR"),
        ("ff", NLLB, "fuv_Latn"),
        ("yue", ["en", "zh"], "zh"),
        ("Ukrrainnian", NLLB, "ukr_Cyrl"),
        ("eng_Lat", NLLB, "eng_Latn"),
    ],
)
def test_another_script_or_region_is_not_taken_but_suggested(name: str, known: Sequence[str], nearest: str) -> None:
    with pytest.raises(LanguageError) as error:
        resolve_language(name, known, "--with")
    assert str(error.value).startswith("--with: ") and f"did you mean {nearest!r}" in str(error.value)


@pytest.mark.parametrize(
    "name", ["tyv", "Tuvan", "xx", "qaa", "x-other", "", " ", "en,fr", "../en", "\x1b[31m", "12", "e" * 300]
)
def test_what_is_not_there_is_an_error_that_names_what_is(name: str) -> None:
    assert find_language(name, ["en", "fr"]) is None
    with pytest.raises(LanguageError, match=r"Known: en, fr\."):
        resolve_language(name, ["fr", "en"])


def test_many_languages_are_not_all_listed() -> None:
    with pytest.raises(LanguageError, match=r"ace_Arab, ace_Latn.* and [0-9]+ more"):
        resolve_language("tyv", NLLB)


def test_what_was_resolved_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    aliases._tell.cache_clear()
    with caplog.at_level(logging.INFO, logger="graftmt"):
        for name in ("English", "English", "eng_Latn"):
            resolve_language(name, NLLB)
    assert [record.getMessage() for record in caplog.records] == ["'English' is eng_Latn in this base"]


# New languages


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("tyv", "tyv"),
        ("Tuvan", "tyv"),
        ("Kabyle", "kab"),
        ("cat", "cat_Latn"),
        ("Catalan", "cat_Latn"),
        ("English", "eng_Latn"),
        ("nv", "nv"),
        ("Navajo", "nv"),
        ("kl", "kl"),
        ("gn_Latn", "grn_Latn"),
        ("Cherokee", "chr"),
        ("pt_br", "pt_br"),
        ("Brazilian Portuguese", "pt_BR"),
        ("ca@valencia", "ca@valencia"),
        ("sr-Latn", "sr-Latn"),
        ("x-mine", "x-mine"),
        ("x_mine", "x_mine"),
        ("qaa", "qaa"),
        ("xx", "xx"),
        ("xa", "xa"),
    ],
)
def test_new_languages_keep_their_code_or_get_the_standard_one(name: str, code: str) -> None:
    assert new_language(name, NLLB) == code
    assert is_language_name(code)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("jp", ["Japan", "ja (Japanese)", "x-jp"]),
        ("cz", ["Czech", "cs"]),
        ("Catlan", ["did you mean 'ca' (Catalan)", "x-catlan"]),
        ("Elvish", ["ISO 639", "x-elvish"]),
        ("a b", ["ISO 639", "x-ab"]),
        ("", ["ISO 639"]),
        ("日本", ["ISO 639", "x-mine"]),
    ],
)
def test_what_is_no_language_is_an_error_with_a_way_out(name: str, facts: list[str]) -> None:
    with pytest.raises(LanguageError) as error:
        new_language(name, ["en"])
    assert all(fact in str(error.value) for fact in facts), error.value


def test_an_unknown_code_warns_and_a_private_one_does_not(caplog: pytest.LogCaptureFixture) -> None:
    new_language("xx", ["en"])
    assert [record.levelno for record in caplog.records] == [logging.WARNING] and "x-xx" in caplog.text
    caplog.clear()
    new_language("x-xx", ["en"])
    new_language("qab", ["en"])
    assert not caplog.records


def test_a_relative_in_the_base_is_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="graftmt"):
        assert new_language("pt_br", ["en", "pt"]) == "pt_br"
    assert "the base has 'pt' (Portuguese)" in caplog.text


# Files and columns


def test_files_are_matched_with_the_same_language_only() -> None:
    files = ["en", "fr", "zh", "zh_tw", "ar", "fa", "pt_br", "el", "no", "xx", "sr", "ko", "sw"]
    assert match_names(files, NLLB) == {
        "en": "eng_Latn",
        "fr": "fra_Latn",
        "zh": "zho_Hans",
        "zh_tw": "zho_Hant",
        "ar": "arb_Arab",
        "fa": "pes_Arab",
        "el": "ell_Grek",
        "no": "nob_Latn",
        "sr": "srp_Cyrl",
        "ko": "kor_Hang",
        "sw": "swh_Latn",
    }
    assert match_names(["pt", "de", "zh", "ar"], MBART) == {"pt": "pt_XX", "de": "de_DE", "zh": "zh_CN", "ar": "ar_AR"}
    assert match_names(["pt_br"], ["pt"]) == {}, "text in a variety is not the base's text"
    assert match_names(["pt_br", "pt"], ["pt"]) == {"pt": "pt"}
    assert match_names(["aka", "twi"], ["ak"]) == {"aka": "ak"}
    assert match_names(["en", "eng"], ["eng_Latn"]) == {}, "two files for one language: neither is chosen"


@given(st.lists(st.sampled_from([*NLLB, *M2M, *MBART, "xx", "x-a", "pt_br"]), unique=True), st.sampled_from(list(BASES)))
def test_matching_is_one_to_one(names: list[str], base: str) -> None:
    known = BASES[base]
    found = match_names(names, known)
    assert set(found) <= set(names) and set(found.values()) <= set(known)
    assert len(set(found.values())) == len(found)
    assert all(found[name] == name for name in names if name in known)


# For all names


@given(st.sampled_from(NLLB), st.sampled_from([str.upper, str.lower, str.title, lambda name: name.replace("_", "-")]))
def test_spelling_does_not_matter(code: str, spelt: object) -> None:
    assert resolve_language(spelt(code), NLLB) == code  # type: ignore[operator]


@given(st.sampled_from(NLLB))
def test_words_lead_back_to_the_code_or_are_ambiguous(code: str) -> None:
    words = words_for(code)
    assert words is not None
    try:
        assert resolve_language(words, NLLB) == code
    except LanguageError as error:
        assert "several" in str(error) and repr(code) in str(error)


@given(st.sampled_from([*NLLB, *M2M, *MBART, "tyv", "pt_br", "sr-Latn", "ca@valencia"]), st.sampled_from(list(BASES)))
def test_a_language_is_never_taken_for_another(name: str, base: str) -> None:
    try:
        code = resolve_language(name, BASES[base])
    except LanguageError:
        return
    asked, found = tag_of(name), tag_of_code(code)
    assert asked is not None and found is not None
    assert asked.group == found.group
    if asked.script or asked.region:
        assert asked.may_be_written_as(found)


@given(st.text(max_size=30))
def test_any_text_gives_a_code_or_a_language_error(name: str) -> None:
    for known in BASES.values():
        with suppress(LanguageError):
            assert resolve_language(name, known) in known
    with suppress(LanguageError):
        assert is_language_name(new_language(name, M2M))


# Without the library


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langcodes", None)


@pytest.mark.usefixtures("without_library")
def test_exact_codes_need_no_library() -> None:
    assert resolve_language("eng_Latn", NLLB) == "eng_Latn"
    assert resolve_language("ENG-latn", NLLB) == "eng_Latn"
    assert new_language("tyv", NLLB) == "tyv"
    assert new_language("xx", NLLB) == "xx"
    assert match_names(["eng_Latn", "en"], NLLB) == {"eng_Latn": "eng_Latn"}
    assert words_for("en") is None


@pytest.mark.usefixtures("without_library")
def test_other_names_are_errors_that_say_what_to_install() -> None:
    for known in (NLLB, ["en"]):
        with pytest.raises(LanguageError, match=r"graftmt\[languages\]"):
            resolve_language("English", known)
    with pytest.raises(LanguageError, match=r"graftmt\[languages\]"):
        new_language("Norwegian Bokmål", ["en"])


@pytest.mark.usefixtures("without_library")
def test_english_is_found_without_it() -> None:
    assert [english_in(known) for known in BASES.values()] == ["eng_Latn", "en", "en_XX"]
    assert english_in(["fr", "enm"]) is None
    assert english_in(["en_US", "en_GB"]) is None
    assert english_in(["en", "en_GB"]) == "en"


def test_the_nearest_is_none_where_nothing_is_near() -> None:
    assert nearest_language("tyv", ["en", "fr"]) == ""
