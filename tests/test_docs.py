"""The pages are true and readable: commands and options exist, links and anchors lead somewhere, sentences are short."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from graftmt.cli.app import app

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*GUIDES, *sorted((ROOT / "docs" / "results").rglob("*.md"))]
MOST_WORDS = 25
LONGEST_LINE = 128
RIDDLES = re.compile(
    r"\b(?:(?:goes|go|going|went) on|unless given|beside|so many|elsewhere|(?:lies|lie) there|(?:is|are|was) said|of ours)\b",
    re.IGNORECASE,
)
"""Better: resumes, continues; "Default: …"; next to; N lines; "in other languages"; is there; is reported; our."""


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def code_blocks(text: str) -> list[str]:
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [*fenced, *re.findall(r"(?:^ {4}\S.*\n)+", text, flags=re.MULTILINE)]


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of each `graftmt …`, from blocks of code and from within sentences, without pipes and comments."""
    lines = [line for block in code_blocks(text) for line in re.sub(r"\\\n\s*", " ", block).splitlines()]
    found = [
        line[start.end() :] for line in lines if (start := re.search(r"^\s*(?:.*?[|] |torchrun .* -m |\$ )?graftmt ", line))
    ]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found += re.findall(r"`graftmt ([^`]+)`", prose)
    for line in found:
        line = re.split(r"\s[<>|&]", f" {line}")[0]
        line = re.sub(r"\s#.*", "", line)
        if line.count('"') % 2 == 0 and line.count("'") % 2 == 0:
            yield shlex.split(line)


COMMANDS: Any = get_command(app)


def problem_of(words: list[str]) -> str | None:
    """What a command line has that the program does not."""
    command = COMMANDS
    while words[:1] == ["--debug"]:
        words = words[1:]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        name, *words = words
        if name not in command.commands:
            return None if name == "…" else f"there is no command {name!r}"
        command = command.commands[name]
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}
    unknown = [word for word in words if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]
    return f"{command.name} has no {', '.join(unknown)}" if unknown else None


def sentences(text: str) -> Iterator[str]:
    """Prose alone: no code, no tables, no headings; code and links within a sentence count as one word each."""
    text = re.sub(r"^```.*?^```", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:\||#| {4}\S|!\[).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]+`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text):
        yield from re.split(r"(?<=[.!?])[)*\"]*\s+|\s·\s", paragraph.replace("\n", " "))


def anchors(page: Path) -> set[str]:
    """The ids that headings get: lower case, no punctuation, hyphens for spaces."""
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        plain = re.sub(r"\]\([^)]*\)", "", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_commands_and_options_exist(page: Path) -> None:
    problems = [
        f"graftmt {' '.join(words)}: {problem}" for words in command_lines(text_of(page)) if (problem := problem_of(words))
    ]
    assert not problems, "\n".join(problems)


def helps(command: Any) -> Iterator[str]:
    yield command.help or ""
    for one in getattr(command, "commands", {}).values():
        yield from helps(one)


def test_examples_in_help_exist() -> None:
    lines = list(command_lines("".join(f"```\n{text}\n```\n" for text in helps(COMMANDS))))
    assert len(lines) > 40
    assert not [problem for words in lines if (problem := problem_of(words))]


def test_a_wrong_command_line_is_found() -> None:
    assert problem_of(["add", "el", "-b", "BASE", "--side", "source"]) is None
    assert problem_of(["experiment", "run", "docs", "--tables=2"]) is None
    assert problem_of(["ad", "el"]) and problem_of(["add", "--sides=both"]) and problem_of(["prepare", "cleanse"])
    assert list(command_lines("See `graftmt add el --side x` or\n```\n$ graftmt verify \\\n  -b BASE > out # why\n```\n")) == [
        ["verify", "-b", "BASE"],
        ["add", "el", "--side", "x"],
    ]


def test_links_and_anchors_lead_somewhere() -> None:
    known = {page.resolve(): anchors(page) for page in PAGES}
    lost = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
            if "://" in link:
                continue
            place, _, anchor = link.partition("#")
            file = (page.parent / place).resolve() if place else page.resolve()
            if not file.exists() or (anchor and file.suffix == ".md" and anchor not in known[file]):
                lost.append(f"{page.relative_to(ROOT)}: {link}")
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    long = [sentence for sentence in sentences(text_of(page)) if len(sentence.split()) > MOST_WORDS]
    assert not long, "\n".join(long)


def test_pages_use_the_words_of_the_field() -> None:
    found = {(page.name, riddle) for page in GUIDES for riddle in RIDDLES.findall(" ".join(text_of(page).split()))}
    assert not found


def test_messages_help_and_docstrings_use_the_words_of_the_field() -> None:
    found = set()
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(text_of(file))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {(file.name, node.lineno, riddle) for riddle in RIDDLES.findall(" ".join(node.value.split()))}
    assert not found


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_lines_of_prose_fit_an_editor(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    assert not [line for line in prose.splitlines() if len(line) > LONGEST_LINE and not line.startswith("|")]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_page_has_a_title_and_is_linked(page: Path) -> None:
    assert text_of(page).startswith("# ")
    assert any(f"({prefix}{page.name}" in text_of(other) for other in GUIDES for prefix in ("", "docs/") if other != page)
