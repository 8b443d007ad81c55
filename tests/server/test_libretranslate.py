"""LibreTranslate's API: real clients unchanged, and every way in which they send what they send."""

from __future__ import annotations

import json
import urllib.error
from typing import Any

import httpx
import pytest
from server.conftest import LINES, Live


def test_libretranslatepy_talks_to_it(live: Live, offline: Any) -> None:
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(live.url)
    assert client.translate("πριν από 3 ημέρες", "el", "uk") == "3 дні тому"
    for line, wanted in zip(LINES["en"], offline.translate(LINES["en"], source="en", target="fr"), strict=True):
        assert client.translate(line, "en", "fr") == wanted
    assert client.detect("πριν από 3 ημέρες")[0]["language"] == "el"
    codes = {entry["code"]: entry["targets"] for entry in client.languages()}
    assert codes["el"] == ["de", "en", "es", "fr", "ru", "uk"] and codes["uk"] == []
    with pytest.raises(urllib.error.HTTPError) as error:
        client.translate("hi", "en", "xx")
    assert error.value.code == 400 and "xx" in json.load(error.value)["error"]


def test_deep_translator_talks_to_it(live: Live) -> None:
    from deep_translator import LibreTranslator

    client = LibreTranslator(source="en", target="fr", api_key="anything", custom_url=live.url + "/")
    assert client.translate("5 kilometers per hour") == "5 kilomètres par heure"
    assert client.translate_batch(["Monday", "3 days ago"]) == ["lundi", "il y a 3 jours"]


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"q": "Monday", "source": "en", "target": "fr"}},
        {"data": {"q": "Monday", "source": "en", "target": "fr"}},
        {"params": {"q": "Monday", "source": "en", "target": "fr"}},
        {"params": {"source": "en", "target": "fr"}, "data": {"q": "Monday"}},
        {"params": {"q": "Tuesday", "target": "fr"}, "json": {"q": "Monday", "source": "en"}},
        {"content": b"q=Monday&source=en&target=fr"},  # without a content type
        {
            "content": b'{"q":"Monday","source":"en","target":"fr"}',
            "headers": {"Content-Type": "application/json; charset=utf-8"},
        },
        {"json": {"q": "Monday", "source": "ENG", "target": "fra", "api_key": ""}},
        {"json": {"q": "Monday", "source": "English", "target": "fr-FR", "format": "text", "alternatives": 0}},
    ],
    ids=lambda sent: "+".join(sent),
)
def test_fields_come_as_json_form_or_query(live: Live, sent: dict[str, Any]) -> None:
    answer = live.post("/translate", **sent)
    assert (answer.status_code, answer.json()) == (200, {"translatedText": "lundi"})


def test_get_with_a_body_or_a_json_type_without_one(live: Live) -> None:
    plain = live.get("/languages").json()
    with httpx.Client() as client:
        form = client.request("GET", live.url + "/languages", data={"api_key": "x"})
        empty = client.request("GET", live.url + "/languages", headers={"Content-Type": "application/json"})
    assert plain == form.json() == empty.json()
    assert {"code": "el", "name": "Greek", "targets": ["de", "en", "es", "fr", "ru", "uk"]} in plain


def test_a_text_for_a_text_and_a_list_for_a_list(live: Live) -> None:
    assert live.translate(["Monday", "", "3 days ago"], "en", "fr") == ["lundi", "", "il y a 3 jours"]
    assert live.translate([], "en", "fr") == []
    assert live.translate("", "en", "fr") == ""
    assert live.translate("same 123", "en", "en") == "same 123"
    asked = {"q": ["Montag", "понедельник"], "source": "auto", "target": "fr", "alternatives": 2}
    answer = live.post("/translate", json=asked).json()
    assert answer["translatedText"] == ["lundi", "lundi"]
    assert [found["language"] for found in answer["detectedLanguage"]] == ["de", "ru"]
    assert [len(ways) for ways in answer["alternatives"]] == [2, 2]
    alone = live.post("/translate", json={**asked, "q": "понедельник"}).json()
    assert alone["detectedLanguage"]["language"] == "ru" and isinstance(alone["alternatives"][0], str)
    assert alone["translatedText"] not in alone["alternatives"]


def test_what_is_only_written_is_told(live: Live) -> None:
    answer = live.post("/translate", json={"q": "3 дні тому", "source": "uk", "target": "fr"})
    assert answer.status_code == 400 and "only be translated into" in answer.json()["error"]
    answer = live.post("/translate", json={"q": "3 дні тому, п'ять кілометрів", "source": "auto", "target": "fr"})
    assert answer.status_code == 400 and "Ukrainian" in answer.json()["error"]
    answer = live.post("/translate", json={"q": "Monday", "source": "en", "target": "el"})
    assert answer.status_code == 400 and "only be translated from" in answer.json()["error"]


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ({"json": {"source": "en", "target": "fr"}}, 400, "q is missing"),
        ({"json": {"q": "a", "target": "fr"}}, 400, "source is missing"),
        ({"json": {"q": "a", "source": "en"}}, 400, "target is missing"),
        ({"json": {"q": "a", "source": "en", "target": "auto"}}, 400, "auto"),
        ({"json": {"q": "a", "source": "en", "target": "fr", "format": "docx"}}, 400, "format 'docx' is not known"),
        ({"json": {"q": 5, "source": "en", "target": "fr"}}, 400, "a text or a list"),
        ({"json": {"q": ["a", None], "source": "en", "target": "fr"}}, 400, "a text or a list"),
        ({"json": {"q": "a", "source": ["en"], "target": "fr"}}, 400, "source has to be a text"),
        ({"json": {"q": "a", "source": "en", "target": "x" * 5000}}, 400, "target has to be a text"),
        ({"json": {"q": "a", "source": "en", "target": "fr", "alternatives": -1}}, 400, "alternatives has to be"),
        ({"json": {"q": "a", "source": "en", "target": "fr", "alternatives": 1e9}}, 400, "alternatives has to be"),
        ({"json": {"q": "a", "source": "en", "target": "uk", "pivot": "en"}}, 400, "pivot"),
        ({"json": {"q": "a", "source": "en", "target": "uk", "target_pack": "el-source"}}, 400, "no target pack"),
        ({"json": ["a"]}, 400, "JSON object"),
        ({"content": b"{", "headers": {"Content-Type": "application/json"}}, 400, "not JSON"),
        ({"content": b'{"q": "\\ud800"}', "headers": {"Content-Type": "application/json"}}, 400, "surrogate"),
        ({"content": b"q=%ff%fe&source=en&target=fr"}, 400, "UTF-8"),
        ({"json": {"q": "word " * 20_000, "source": "en", "target": "fr"}}, 400, "characters; at most 50,000"),
        ({"json": {"q": ["a"] * 501, "source": "en", "target": "fr"}}, 400, "501 texts"),
        ({"content": b"x" * 10_000_000}, 413, "larger than 2,000,000 bytes"),
        ({"json": {"q": "<p>" + "<b>" * 3000 + "x", "source": "en", "target": "fr", "format": "html"}}, 400, "nested"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_told_in_a_sentence(live: Live, sent: dict[str, Any], status: int, words: str) -> None:
    answer = live.post("/translate", **sent)
    assert answer.status_code == status
    assert words in answer.json()["error"] and "Traceback" not in answer.text
    assert live.translate("Monday", "en", "fr") == "lundi"  # and the server goes on


def test_unknown_codes_are_refused_and_nothing_grows(live: Live) -> None:
    with httpx.Client(base_url=live.url) as client:
        for number in range(100):
            answer = client.post("/translate", data={"q": "a", "source": "en", "target": f"q{number:04d}"})
            assert answer.status_code == 400 and f"q{number:04d}" in answer.json()["error"]
    assert len(live.world.service.catalog._names) < 50
    labels = live.get("/metrics").text
    assert "q0050" not in labels


def test_unknown_paths_and_methods_are_json_too(live: Live) -> None:
    assert live.get("/nothing").json() == {"error": "Not Found"}
    assert live.get("/translate").status_code == 405 and "error" in live.get("/translate").json()


def test_what_a_page_asks_first(live: Live) -> None:
    settings = live.get("/frontend/settings").json()
    assert settings["charLimit"] == 50_000 and settings["keyRequired"] is False
    assert settings["language"]["source"]["code"] != settings["language"]["target"]["code"]
    assert live.get("/health").json() == {"status": "ok"} and live.get("/ready").json() == {"status": "ready"}
    paths = live.get("/openapi.json").json()["paths"]
    assert {"/translate", "/detect", "/languages", "/health", "/frontend/settings", "/v1/packs", "/v1/routes"} <= paths.keys()
    assert "example" in json.dumps(paths["/translate"])


def test_detection_of_one_text_and_of_several(live: Live) -> None:
    one = live.post("/detect", data={"q": "il y a 3 jours et 5 heures"}).json()
    assert one[0]["language"] == "fr" and 50 < one[0]["confidence"] <= 100
    many = live.post("/detect", json={"q": ["vor 3 Tagen und Stunden", "3 дні тому, п'ять кілометрів", "123"]}).json()
    assert [found[0]["language"] for found in many][:2] == ["de", "uk"]
    assert many[2][0]["confidence"] == 0
