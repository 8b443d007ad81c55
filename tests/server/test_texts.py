"""Whole texts: sentences translated, everything between them byte for byte; HTML, subtitles, placeholders; detection."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from server.conftest import LINES, Live

from graftmt.errors import GraftError
from graftmt.packs import load_pack
from graftmt.server.detection import Detector
from graftmt.server.formats import FORMATS, format_of_file
from graftmt.server.protected_spans import around, kept, placeholders, spliced
from graftmt.server.sentences import LONGEST_SENTENCE, joined, segments

MESSY = [
    "Hello Dr. Smith. How are you?\r\n\r\n\tIndented…  \n– dash\u2028para\x0b end ",
    "Τι κάνεις; Καλά. Εσύ;\n",
    "เขาไปตลาด แล้วก็กลับบ้าน",
    "यह पहला वाक्य है। यह दूसरा है।",
    "他来了。她走了！真的？",
    "مرحبا بك. كيف حالك؟",
    "😀 emoji 👩‍👩‍👧 first. Second 🇬🇷 one!",
    " \n\t ",
    "",
    "12345 — 67 %",
    "x" * 3000 + ". " + "word, " * 600,
]


@pytest.mark.parametrize("text", MESSY, ids=range(len(MESSY)))
@pytest.mark.parametrize("language", ["en", "el", "ell_Grek", "tyv", "x-none"])
def test_sentences_put_back_give_the_text(text: str, language: str) -> None:
    parts = segments(text, language)
    assert joined(text, parts, [part.text for part in parts]) == text
    assert all(part.text == part.text.strip() == text[part.start : part.end] for part in parts)
    assert all(len(part.text) <= LONGEST_SENTENCE for part in parts)
    assert all(one.end <= two.start for one, two in pairwise(parts))
    outside = joined(text, parts, [""] * len(parts))
    assert not any(map(str.isalpha, outside))  # nothing with letters is left untranslated


@settings(max_examples=25)
@given(st.text(max_size=100))
def test_any_text_is_put_back(text: str) -> None:
    for form in (FORMATS["text"], FORMATS["srt"]):
        parsed = form.parse(text)
        assert form.name == "srt" or parsed.rebuild(parsed.blocks) == text
    parts = segments(text, "en")
    assert joined(text, parts, [part.text for part in parts]) == text


def test_sentences_are_found_where_they_are() -> None:
    assert [part.text for part in segments("Hello Dr. Smith. How are  you?\n\n\tFine.", "en")] == [
        "Hello Dr. Smith.",
        "How are  you?",
        "Fine.",
    ]
    assert len(segments("यह पहला वाक्य है। यह दूसरा है।", "hin_Deva")) == 2


def upper(name: str, content: str) -> str:
    parsed = FORMATS[name].parse(content)
    return parsed.rebuild([block.upper() for block in parsed.blocks])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>one <b>two</b> three</p> four", "<p>ONE <b>TWO</b> THREE</p> FOUR"),
        ("a &lt;b&gt; &amp; c", "A &lt;B&gt; &amp; C"),
        ("<script>if (a<b) x()</script><style>p{}</style>go", "<script>if (a<b) x()</script><style>p{}</style>GO"),
        ("<code>keep</code><pre> keep\n</pre>go<!-- note -->on", "<code>keep</code><pre> keep\n</pre>GO<!-- note -->ON"),
        (
            '<p translate="no">keep</p><i class="x notranslate">keep</i>',
            '<p translate="no">keep</p><i class="x notranslate">keep</i>',
        ),
        (
            '<img alt="a dog" src="a.png"><a href="x?a=b" title="go">on</a>',
            '<img alt="A DOG" src="a.png"><a href="x?a=b" title="GO">ON</a>',
        ),
        ("  <li>a</li>\n\t<li>b</li>  ", "  <li>A</li>\n\t<li>B</li>  "),
        ("<td>cell</td>", "<td>CELL</td>"),
        ("", ""),
        ("Ελλάδα <br>и мир", "ΕΛΛΆΔΑ <br>И МИР"),
        (
            '<!DOCTYPE html>\n<html lang="en"><head><title>t</title></head><body><p>b</p></body></html>',
            '<!DOCTYPE html>\n<html lang="en"><head><title>T</title></head><body><p>B</p></body></html>',
        ),
    ],
)
def test_html_is_translated_by_its_text_nodes(before: str, after: str | None) -> None:
    assert upper("html", before) == (before if after is None else after)


@pytest.mark.parametrize("text", ["<div>" * 3000 + "x", "<graftmt-root>a</graftmt-root>"])
def test_html_that_would_lose_text_is_refused(text: str) -> None:
    with pytest.raises(GraftError):
        FORMATS["html"].parse(text)


def test_subtitles_keep_numbers_times_and_line_ends() -> None:
    text = "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\nhello there,\r\nyou\r\n\r\n2\n0:00:03.5 --> 0:00:04.0 X1:1\nbye"
    assert FORMATS["srt"].parse(text).blocks == ["hello there, you", "bye"]
    assert upper("srt", text) == text.replace("hello there,", "HELLO THERE,").replace("you", "YOU").replace("bye", "BYE")
    assert format_of_file("Film.SRT").name == "srt" and format_of_file("a.b.htm").name == "html"


def test_placeholders_are_found_and_put_back() -> None:
    text = "Hi {name}, {{count}} of %d at https://a.example/x?y=1. Mail me@example.org <b>now</b> 50 % sure, 100%done"
    found = ["{name}", "{{count}}", "%d", "https://a.example/x?y=1", "me@example.org", "<b>", "</b>"]
    assert placeholders(text) == found
    assert kept(text, " ".join(reversed(found))) and not kept(text, "Hi {nom}") and kept("no holders", "at all")
    parts, holders = around(text)
    assert spliced(parts, [part.strip() for part in parts], holders) == text
    assert placeholders("100 % sicher, 5 %de") == []


def test_placeholders_come_out_of_a_translation(live: Live) -> None:
    text = "3 days ago {name}: Monday %(day)s"
    found = live.translate(text, "en", "fr")
    assert placeholders(found) == ["{name}", "%(day)s"] and "jours" in found


def test_layout_is_kept_through_the_server(live: Live, offline: Any) -> None:
    lines = LINES["el"]
    text = f"  {lines[0]}\r\n\r\n\t{lines[1]}\n\n— {lines[2]}  \n123\n"
    wanted = [offline.translate([line], source="el", target="uk")[0] for line in lines[:3]]
    answer = live.translate(text, "el", "uk")
    assert answer.startswith(f"  {wanted[0]}\r\n\r\n\t{wanted[1]}\n\n") and answer.endswith("  \n123\n")
    page = live.translate(f"<p>{lines[0]}</p>\n<b>{lines[1]}</b>", "el", "uk", format="html")
    assert page == f"<p>{wanted[0]}</p>\n<b>{wanted[1]}</b>"


def test_a_stream_has_sentences_in_order_with_their_places(live: Live) -> None:
    import json

    text = "Monday\n\n\t3 days ago\n" * 40
    answer = live.post("/v1/translate/stream", json={"q": text, "source": "en", "target": "fr"})
    first, *lines, last = map(json.loads, answer.text.splitlines())
    assert first == {"source": "en", "target": "fr"} and last == {"done": True}
    assert [line["text"] for line in lines] == ["lundi", "il y a 3 jours"] * 40
    assert [text[line["start"] : line["end"]] for line in lines] == ["Monday", "3 days ago"] * 40


def test_own_api_has_scores_pivots_and_packs(live: Live, offline: Any) -> None:
    asked = {"q": ["Δευτέρα", "πριν από 3 ημέρες"], "source": "auto", "target": "uk", "alternatives": 2}
    answer = live.post("/v1/translate", json=asked).json()
    assert answer["kind"] == "composed" and answer["detected"]["language"] == "el"
    best = offline.translate(asked["q"], source="el", target="uk", n_best=3)
    for found, wanted in zip(answer["texts"], best, strict=True):
        for way, other in zip(found["translations"], wanted, strict=True):
            assert way["text"] == other.text and way["score"] == pytest.approx(other.score, abs=1e-4)
    pivot = live.post("/v1/translate", json=asked | {"source": "el", "pivot": "en", "alternatives": 0}).json()
    assert pivot["kind"] == "pivot"
    wanted = offline.translate(asked["q"], source="el", target="uk", pivot="en")
    assert [found["translations"][0]["text"] for found in pivot["texts"]] == wanted
    packs = {pack["name"]: pack for pack in live.get("/v1/packs").json()["packs"]}
    assert packs["el-source"]["fingerprint"] == offline.packs["el-source"].fingerprint
    assert live.get("/v1/packs/uk-target").json()["languages"] == ["uk"] and live.get("/v1/packs/no").status_code == 404
    routes = {(route["source"], route["target"]): route for route in live.get("/v1/routes").json()["routes"]}
    assert set(routes) == {(direction.source, direction.target) for direction in offline.directions}
    assert routes["el", "uk"]["zero_shot"] and routes["en", "uk"]["scores"]["chrf"] > 90


def test_detection_knows_languages_that_the_detector_does_not(demo_base: Any, offline: Any) -> None:
    """The Greek pack under a private code: told by its own statistics alone."""
    from server.conftest import DEMO

    from graftmt.server.catalog import Catalog, ServedPack
    from graftmt.translator import Translator

    pack = load_pack(DEMO / "packs" / "uk-target.graftpack")
    pack.languages = ("x-uk",)
    catalog = Catalog(Translator(demo_base, {"new": pack}), {"new": ServedPack("new", DEMO, pack, 0)})
    detector = Detector(catalog)
    for text in ("3 дні тому, п'ять кілометрів", "понеділок і вівторок", "французька та грецька"):
        assert detector.guess(text).language == "x-uk"
        assert detector.guess(text, "source").language != "x-uk"  # it is only written
    for text, code in (("il y a 3 jours et 5 heures", "fr"), ("понедельник и вторник", "ru"), ("vor 3 Tagen", "de")):
        found = detector.guess(text)
        assert found.language == code and found.confidence > 50
    assert detector.guess("123 !?").confidence == 0 and detector.guess("").confidence == 0


def test_aliases_find_a_bases_own_codes(live: Live) -> None:
    catalog = live.world.service.catalog
    for name, code in (("eng", "en"), ("en-US", "en"), ("Greek", "el"), ("ell_Grek", "el"), ("DE", "de")):
        assert catalog.language(name, "source") == code


def test_a_request_that_waits_is_cancelled_with_its_caller(live: Live) -> None:
    service = live.world.service

    async def leave() -> None:
        route = service.route("en", "fr")
        task = asyncio.create_task(service.translate_lines(route, [f"{number} days ago" for number in range(400)]))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert live.translate("Monday", "en", "fr") == "lundi"
    assert service.engine.waiting == 0
