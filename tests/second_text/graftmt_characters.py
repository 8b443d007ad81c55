"""A second kind of text, as another package would bring it: characters instead of subwords.

It shares no code with our own kind, and nothing is where ours has it: the end is row 0 and padding the last row, <unk> and the
codes stand among the pieces, there is no <s>, one row means nothing. `TwoAlphabets` has a vocabulary for each side, one way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from graftmt.errors import DataError, LanguageError
from graftmt.text import CodePlacement, Layout, PieceCounts, code_symbol
from graftmt.text.kinds import TextKind
from graftmt.text.protocol import LAYOUTS, text_fingerprint

UNUSED = "<unused>"
FILE = "alphabet.json"


@dataclass(frozen=True)
class CharacterText:
    """Rows: the end, half of the alphabet, <unk>, codes, the rest of the alphabet, a row without a meaning, padding."""

    alphabet: tuple[str, ...]
    languages: tuple[str, ...]
    layout: Layout

    kind = "characters"
    end_id, beginning_id = 0, None

    @property
    def symbols(self) -> tuple[str, ...]:
        half = len(self.alphabet) // 2
        codes = map(code_symbol, self.languages)
        return ("</s>", *self.alphabet[:half], "<unk>", *codes, *self.alphabet[half:], UNUSED, "<pad>")

    def __len__(self) -> int:
        return len(self.alphabet) + len(self.languages) + 4

    @property
    def padding_id(self) -> int:
        return len(self) - 1

    @property
    def unknown_id(self) -> int:
        return 1 + len(self.alphabet) // 2

    @property
    def piece_rows(self) -> list[int]:
        after = self.unknown_id + 1 + len(self.languages)
        return [*range(1, self.unknown_id), *range(after, len(self) - 2)]

    def code(self, language: str) -> int:
        if language not in self.languages:
            raise LanguageError(f"no code of {language!r}; known: {', '.join(self.languages)}")
        return self.unknown_id + 1 + self.languages.index(language)

    @property
    def forbidden(self) -> list[int]:
        return [self.padding_id, self.padding_id - 1, self.unknown_id, *map(self.code, self.languages)]

    def encode(self, text: str) -> list[int]:
        row_of = dict(zip((self.symbols[row] for row in self.piece_rows), self.piece_rows, strict=True))
        return [row_of.get(character, self.unknown_id) for word in text.split() for character in f"▁{word}"]

    def decode(self, ids: Iterable[int]) -> str:
        symbols, pieces, text = self.symbols, set(self.piece_rows), ""
        for row in ids:
            if row == self.end_id:
                break
            text += symbols[row] if row in pieces else ""
        return text.replace("▁", " ").strip()

    def spell(self, piece: str) -> list[str]:
        return [character for character in piece.removeprefix("▁") if character in self.alphabet]

    def count(self, lines: Iterable[str]) -> PieceCounts:
        encoded = [self.encode(line) for line in lines]
        unknown = sum(ids.count(self.unknown_id) for ids in encoded)
        return PieceCounts(lines=len(encoded), pieces=sum(map(len, encoded)), unknown=unknown, bytes=0)

    def with_codes(self, languages: Sequence[str], placement: CodePlacement) -> CharacterText:
        return CharacterText(self.alphabet, tuple(languages), LAYOUTS[placement])

    # Of a base

    def side(self, side: str) -> CharacterText:
        return self

    @property
    def source_languages(self) -> tuple[str, ...]:
        return self.languages

    target_languages = source_languages

    # Storage

    @property
    def fingerprint(self) -> str:
        return text_fingerprint(self.kind, self.options(), self.files())

    def options(self) -> dict[str, Any]:
        return {"languages": list(self.languages), "layout": asdict(self.layout)}

    def files(self) -> dict[str, bytes]:
        return {FILE: json.dumps(self.alphabet, ensure_ascii=False).encode()}


class Characters(TextKind):
    name = "characters"

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return (FILE,)

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> CharacterText:
        return CharacterText(read_alphabet(files[FILE], where), tuple(options["languages"]), Layout(**options["layout"]))

    def learn(self, texts: Mapping[str, Iterable[str]], *, sizes: Mapping[str, int], **options: Any) -> CharacterText:
        found = {character for lines in texts.values() for line in lines for character in line if not character.isspace()}
        return CharacterText(("▁", *sorted(found)), (), LAYOUTS["source"])


def read_alphabet(content: bytes, where: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(content))
    except (ValueError, TypeError):
        raise DataError(f"{where}: its alphabet is damaged.") from None


@dataclass(frozen=True)
class TwoAlphabets:
    """The text of a base that translates one way only, without any codes."""

    source: CharacterText
    target: CharacterText
    source_languages: tuple[str, ...]
    target_languages: tuple[str, ...]

    kind = "two-alphabets"
    layout = Layout(source_code=None, decoder_start="padding")

    def side(self, side: str) -> CharacterText:
        return replace(self.source if side == "source" else self.target, layout=self.layout)

    @property
    def fingerprint(self) -> str:
        return text_fingerprint(self.kind, self.options(), self.files())

    def options(self) -> dict[str, Any]:
        return {"source": list(self.source_languages), "target": list(self.target_languages)}

    def files(self) -> dict[str, bytes]:
        return {"source.json": self.source.files()[FILE], "target.json": self.target.files()[FILE]}


class TwoWay(TextKind):
    name = "two-alphabets"

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return ("source.json", "target.json")

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> TwoAlphabets:
        sides = [CharacterText(read_alphabet(files[name], where), (), TwoAlphabets.layout) for name in self.file_names(options)]
        return TwoAlphabets(*sides, tuple(options["source"]), tuple(options["target"]))


class Broken:
    """No kind of text at all."""
