"""Chinese words are found, and the way back is exact but for spaces that were between Chinese characters before."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graftmt.errors import GraftError, LanguageError
from graftmt.prepare import segmentation
from graftmt.prepare.segmentation import desegment, desegmented, is_chinese, normalise, segment, segmented
from graftmt.prepare.source import Source

CHINESE = "我们在学习机器翻译的时候，发现它其实很有意思。"
BETWEEN = re.compile(f"(?<=[{segmentation._CJK}])\\s+(?=[{segmentation._CJK}])")


def test_words_are_separated_and_joined_again() -> None:
    assert segment("我们在学习机器翻译。") == "我们 在 学习 机器翻译 。"
    assert segment(CHINESE).count(" ") > 8
    assert desegment(segment(CHINESE)) == CHINESE


@pytest.mark.parametrize(
    "text",
    [
        "他有2台iPhone手机",
        "他有 2 台 iPhone 手机",
        "GDP增长6.5%，达到3,000亿元（2021年）",
        "“你好”，他说……",
        "https://example.org/中文?q=1 和 user@example.org",
        "𠀀𠀁㐀 ｆｕｌｌ　ｗｉｄｔｈ！ＡＢＣ",
        "English only, no Chinese",
        "日本語のテキスト 한국어 텍스트",
        "",
        "   ",
    ],
)
def test_mixed_text_comes_back_as_it_was(text: str) -> None:
    assert desegment(segment(text)) == desegment(normalise(text))
    if not BETWEEN.search(normalise(text)):
        assert desegment(segment(text)) == normalise(text)


def test_spaces_beside_latin_letters_and_figures_are_neither_made_nor_lost() -> None:
    assert segment("我有iPhone手机") == "我 有iPhone手机"
    assert desegment("我 有 iPhone 手机 3 台 。") == "我有 iPhone 手机 3 台。"
    assert desegment("New York 2021") == "New York 2021"


def test_spaces_that_the_author_put_between_chinese_characters_are_lost() -> None:
    assert desegment(segment("中国 人民")) == "中国人民"


han = st.text(st.sampled_from("我们在学习机器翻译的时候发现它其实很有意思中国人民大会，。！（）"), min_size=1, max_size=12)
other = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(han, other, st.sampled_from(["iPhone", "2021", " a ", "\t", "3.5%", "-"])), max_size=8).map("".join))
def test_round_trip(text: str) -> None:
    text = BETWEEN.sub("", normalise(text))  # the one thing that cannot come back
    assert desegment(segment(text)) == normalise(text)
    assert segment(text).replace(" ", "") == text.replace(" ", "")
    assert segment(desegment(segment(text))) == segment(text)


def test_a_source_is_changed_in_its_chinese_alone_and_can_be_read_twice() -> None:
    source = Source("a corpus", ("en", "zh_cn", "fr"), lambda: iter([("we study", "我们在学习", "on étudie"), ("x", "", "y")]))
    changed = segmented(source)
    assert list(changed) == list(changed) == [("we study", "我们 在 学习", "on étudie"), ("x", "", "y")]
    assert changed.languages == source.languages
    assert list(desegmented(changed)) == list(source)


def test_what_cannot_be_segmented_is_refused() -> None:
    source = Source("a corpus", ("en", "fr"), lambda: iter([("a", "b")]))
    with pytest.raises(LanguageError, match=r"no Chinese.* en, fr"):
        segmented(source)
    with pytest.raises(LanguageError, match="no language 'zh'"):
        segmented(source, ["zh"])


@pytest.mark.parametrize(
    ("code", "expected"), [("zh", True), ("zh-Hant", True), ("zho_Hans", True), ("cmn", True), ("ja", False)]
)
def test_codes_of_chinese(code: str, expected: bool) -> None:
    assert is_chinese(code) is expected


def test_without_jieba_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    segmentation._jieba.cache_clear()
    with pytest.raises(GraftError, match=r"graftmt\[chinese\]"):
        segment("我们")
    segmentation._jieba.cache_clear()
