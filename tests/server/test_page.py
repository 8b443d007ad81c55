"""The page in a real browser: translated with mouse and keys, packs that appear, errors, right to left, phone width, axe."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from server.conftest import DEMO, Live

pytestmark = pytest.mark.slow

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """`open_page(url, width=…)`: the page when it is ready; whatever goes wrong in its scripts fails the test."""
    problems: list[str] = []
    contexts = []

    def open_(url: str, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": options.pop("width", 1100), "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text) if "Content Security Policy" in line.text else None)
        page.goto(url)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert problems == []


def translation(page: Any, wanted: str) -> None:
    page.wait_for_function("text => document.getElementById('target-text').textContent === text", arg=wanted)


def choose(page: Any, source: str, target: str) -> None:
    page.select_option("#source", source)
    page.select_option("#target", target)


def test_it_translates_swaps_and_copies(live: Live, open_page: Callable[..., Any]) -> None:
    page = open_page(live.url)
    choose(page, "en", "fr")
    page.fill("#source-text", "5 kilometers per hour")
    translation(page, "5 kilomètres par heure")
    assert page.input_value("#source") == "en"
    page.click("#swap")
    translation(page, "5 kilometers per hour")
    assert (page.input_value("#source"), page.input_value("#target")) == ("fr", "en")
    page.click("#copy")
    page.wait_for_function("() => document.getElementById('copy').textContent !== 'Copy'")


def test_languages_are_words_and_new_and_zero_shot_ones_are_marked(live: Live, open_page: Callable[..., Any]) -> None:
    page = open_page(live.url)
    sources = page.locator("#source option").all_inner_texts()
    assert "English" in sources and "Greek · Ελληνικά (new)" in sources and "Detect the language" in sources
    choose(page, "el", "uk")
    assert "Ukrainian · Українська (new, zero-shot)" in page.locator("#target option").all_inner_texts()
    page.fill("#source-text", "πριν από 3 ημέρες")
    translation(page, "3 дні тому")
    route = page.inner_text("#route")
    assert "Greek → Ukrainian" in route and "zero-shot" in route and "two packs" in route
    choose(page, "en", "fr")
    assert "zero-shot" not in page.inner_text("#route")


def test_it_detects_and_shows_alternatives(live: Live, open_page: Callable[..., Any]) -> None:
    page = open_page(live.url)
    choose(page, "auto", "en")
    page.check("#more")
    page.fill("#source-text", "πριν από 3 ημέρες")
    translation(page, "3 days ago")
    page.wait_for_selector("#alternative-list li")
    assert "Detected: Greek" in page.locator("#source option").first.inner_text()
    other = page.locator("#alternative-list button").first
    wanted = other.inner_text()
    other.click()
    translation(page, wanted)


def test_an_error_is_shown_and_goes_away(live: Live, open_page: Callable[..., Any]) -> None:
    page = open_page(live.url)
    choose(page, "el", "uk")
    page.click("#swap")
    assert "no pack reads Ukrainian" in page.inner_text("[role=alert]")
    page.route("**/translate", lambda route: route.abort())
    page.fill("#source-text", "πριν από 3 ημέρες")
    page.wait_for_function("() => document.getElementById('error').textContent.includes('cannot be reached')")
    page.unroute("**/translate")
    page.click("#go")
    translation(page, "3 дні тому")
    assert page.is_hidden("[role=alert]")


def test_a_new_pack_appears_and_goes_without_a_reload(
    start_server: Callable[..., Any], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "packs"
    folder.mkdir()
    with start_server(demo=False, base=DEMO / "base", packs=(folder,)) as live:
        page = open_page(live.url)
        assert page.locator("#source option[value=el]").count() == 0
        shutil.copy(DEMO / "packs" / "el-source.graftpack", folder)
        page.wait_for_selector("#source option[value=el]", state="attached", timeout=1000 * PATIENCE)
        assert "Greek" in page.inner_text("#news")
        choose(page, "el", "en")
        page.fill("#source-text", "Δευτέρα")
        translation(page, "Monday")
        (folder / "el-source.graftpack").unlink()
        page.wait_for_selector("#source option[value=el]", state="detached", timeout=1000 * PATIENCE)


def test_keys_alone_do_everything(live: Live, open_page: Callable[..., Any]) -> None:
    page = open_page(live.url)
    choose(page, "en", "fr")
    page.keyboard.press("Tab")
    page.locator("#source-text").focus()
    page.keyboard.type("Monday")
    page.keyboard.press("Control+Enter")
    translation(page, "lundi")
    page.keyboard.press("Alt+s")
    translation(page, "Monday")
    reached = set()
    page.locator("body").focus()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"view-translate", "view-packs", "theme", "source", "source-text", "swap", "target", "copy", "go", "more"} <= reached
    page.locator("#view-packs").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#matrix tbody tr")


def test_files_keep_their_layout(live: Live, open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page(live.url)
    choose(page, "en", "fr")
    head, other = "1\n00:00:01,000 --> 00:00:02,000\n", "\n2\n00:00:03,000 --> 00:00:04,500\n"
    (tmp_path / "a.srt").write_text(f"{head}Monday\n{other}3 days ago\n")
    page.set_input_files("#file", tmp_path / "a.srt")
    page.wait_for_selector("#download:not([hidden])")
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "a.fr.srt"
    text = Path(download.value.path()).read_text()
    assert text == f"{head}lundi\n{other}il y a 3 jours\n"


def test_long_text_comes_sentence_by_sentence(live: Live, open_page: Callable[..., Any]) -> None:
    page = open_page(live.url)
    choose(page, "en", "fr")
    page.fill("#source-text", "😀 Monday\n\n\t3 days ago\n" * 70)
    page.wait_for_function(
        "() => (document.getElementById('target-text').textContent.match(/il y a 3 jours/g) || []).length === 70"
    )
    assert page.inner_text("#target-text").count("\n\n\til y a 3 jours\n") >= 69


def test_right_to_left_languages_run_right_to_left(live: Live, open_page: Callable[..., Any]) -> None:
    """The demo has none: the server's answer is changed on its way, as if French were Hebrew."""
    page = open_page(live.url)
    page.close()

    def as_hebrew(route: Any) -> None:
        answer = route.fetch()
        routes = answer.json()
        for language in routes["languages"]:
            if language["code"] == "fr":
                language |= {"name": "Hebrew", "own_name": "עברית", "right_to_left": True}
        route.fulfill(response=answer, json=routes)

    context_page = open_page(live.url)
    context_page.route("**/v1/routes", as_hebrew)
    context_page.reload()
    context_page.wait_for_selector("html[data-ready=yes]")
    choose(context_page, "en", "fr")
    context_page.fill("#source-text", "Monday")
    translation(context_page, "lundi")
    output = context_page.locator("#target-text")
    assert output.get_attribute("dir") == "rtl" and output.get_attribute("lang") == "fr"
    assert context_page.evaluate("getComputedStyle(document.getElementById('target-text')).direction") == "rtl"
    context_page.click("#swap")
    assert context_page.locator("#source-text").get_attribute("dir") == "rtl"
    assert context_page.locator("#target-text").get_attribute("dir") == "ltr"


def test_it_fits_a_phone(live: Live, open_page: Callable[..., Any]) -> None:
    page = open_page(live.url, width=360)
    page.fill("#source-text", "Monday")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    panes = page.locator(".pane")
    first, second = panes.nth(0).bounding_box(), panes.nth(1).bounding_box()
    assert second["y"] >= first["y"] + first["height"]  # one below the other
    page.click("#view-packs")
    page.wait_for_selector("#matrix tbody tr")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_key_is_asked_for_where_one_is_needed(
    start_server: Callable[..., Any], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    from graftmt.server.keys import new_key

    key = new_key(tmp_path / "keys.json", "page")
    with start_server(keys=tmp_path / "keys.json") as live:
        page = open_page(live.url)
        page.fill("#source-text", "Monday")
        page.wait_for_function("() => document.getElementById('error').textContent.includes('API key')")
        choose(page, "en", "fr")
        page.fill("#key", key)
        page.keyboard.press("Tab")
        translation(page, "lundi")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 360])
def test_axe_finds_nothing_serious(live: Live, open_page: Callable[..., Any], scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = open_page(live.url, width=width, color_scheme=scheme, bypass_csp=True)  # axe is put into the page
    choose(page, "el", "uk")
    page.check("#more")
    page.fill("#source-text", "πριν από 3 ημέρες")
    page.wait_for_selector("#alternative-list li")
    page.click("#swap")  # an error is shown
    for view in ("translate", "packs"):
        page.click(f"#view-{view}")
        if view == "packs":
            page.wait_for_selector("#matrix tbody tr")
        page.wait_for_timeout(250)
        found = axe.run(page).response["violations"]
        serious = [
            (one["id"], [node["html"][:120] for node in one["nodes"]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == []
