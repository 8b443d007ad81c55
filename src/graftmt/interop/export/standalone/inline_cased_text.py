"""Text ↔ tokens with inline casing: words are lowercased; a token <U> or <T> after a piece says it was upper or title case.

Needs: pip install sentencepiece. Words are cut between scripts, letters and digits, and where the case changes; SentencePiece
cuts these parts further. A character that the vocabulary lacks is <unk>, or its bytes if the vocabulary has bytes.
"""

import re
import unicodedata
from collections.abc import Callable

import sentencepiece

BOUNDARY = "\u2581"  # before each word
UPPER, TITLE, ESCAPE, UNKNOWN = "<U>", "<T>", "<E>", "<unk>"
BYTES = {f"<0x{value:02X}>": value for value in range(256)}
SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class Table(dict[int, str]):
    """For `str.translate`: works each character out when it is first met."""

    def __init__(self, find: Callable[[str], str]) -> None:
        super().__init__()
        self.find = find

    def __missing__(self, codepoint: int) -> str:
        self[codepoint] = found = self.find(chr(codepoint))
        return found


# Case: only characters whose lower and upper form lead to each other take part.


def is_upper(character: str) -> bool:
    lower = character.lower()
    return len(lower) == 1 and lower != character and lower.upper() == character


def case_of(character: str) -> str:
    """u, l or n (neither)."""
    if is_upper(character):
        return "u"
    upper = character.upper()
    return "l" if len(upper) == 1 and is_upper(upper) and upper.lower() == character else "n"


CASES = Table(case_of)
LOWERED = Table(lambda character: character.lower() if case_of(character) == "u" else character)
RAISED = Table(lambda character: character.upper() if case_of(character) == "l" else character)
SAME_CASE = re.compile(r"n*u[un]*un*(?=ln*$)|n*un*l[ln]*|n*u[un]*(?=un*l|$)|[ln]+")


def marker_of(original: str) -> str | None:
    """The token that says how a lowercased piece was written."""
    cases = original.translate(CASES)
    if "u" not in cases:
        return None
    if "l" not in cases:
        return UPPER
    return TITLE if cases.replace("n", "").rfind("u") == 0 else None


def raised(piece: str, marker: str) -> str:
    if marker == UPPER:
        return piece.translate(RAISED)
    first = piece.translate(CASES).find("l")
    return piece if first < 0 else piece[:first] + piece[first].upper() + piece[first + 1 :]


# Parts of words: a class for each character, and what may stand together

SCRIPTS: dict[str, int] = {}
TOGETHER = re.compile("(?:j[jm]*)?([\ue000-\uefff])(?:\\1|[jm])*|j[jm]*|x|(.)(?:\\2|m)*", re.DOTALL)
RENAMED = {"IDEOGRAPHIC": "CJK", "HENTAIGANA": "HIRAGANA", "MASCULINE": "LATIN", "FEMININE": "LATIN"}


def script_of(character: str) -> str:
    words = unicodedata.name(character, "").split()
    if words and words[0] in ("FULLWIDTH", "HALFWIDTH"):
        words = words[1:]
    if words and words[0] in ("OLD", "LINEAR", "TAI", "NEW", "INSCRIPTIONAL", "CANADIAN"):
        return " ".join(words[:2])
    return RENAMED.get(words[0], words[0]) if words else ""


def class_of(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] == "M" or character in "\u200c\u200d":
        return "m"
    if category[0] not in "LN":
        return "o"
    script = script_of(character)
    number = SCRIPTS.setdefault(script, len(SCRIPTS))
    if category[0] == "N":
        return chr(0xF000 + number)
    return "j" if script in ("MODIFIER", "KATAKANA-HIRAGANA") else chr(0xE000 + number)


class Text:
    """The text of one side of the model in this folder."""

    def __init__(self, path: str) -> None:
        self.model = sentencepiece.SentencePieceProcessor(model_file=path)
        pieces = [self.model.id_to_piece(number) for number in range(1, self.model.get_piece_size())]
        self.alphabet = {piece for piece in pieces if len(piece) == 1}
        self.has_bytes = "<0x00>" in pieces
        self.classes = Table(self.class_here)

    def class_here(self, character: str) -> str:
        lower = character.translate(LOWERED)
        return class_of(lower) if lower in self.alphabet and character != BOUNDARY else "x"

    def encode(self, line: str) -> list[str]:
        """Tokens of a line."""
        return [token for word in line.split() for token in self.encode_word(word)]

    def encode_word(self, word: str) -> list[str]:
        classes = word.translate(self.classes)
        parts = [word[found.start() : found.end()] for found in TOGETHER.finditer(classes)]
        if word.translate(LOWERED) != word:
            parts = [piece for part in parts for piece in self.cut_by_case(part)]
        if classes[0] == "x":
            return [BOUNDARY, *(token for part in parts for token in self.encode_part(part))]
        parts[0] = BOUNDARY + parts[0]
        return [token for part in parts for token in self.encode_part(part)]

    def cut_by_case(self, part: str) -> list[str]:
        cases = part.translate(CASES)
        return [part[found.start() : found.end()] for found in SAME_CASE.finditer(cases)] if "u" in cases else [part]

    def encode_part(self, part: str) -> list[str]:
        if part == BOUNDARY:
            return [BOUNDARY, ESCAPE]
        lower = part.translate(LOWERED)
        if len(part) == 1 and lower not in self.alphabet:
            if not self.has_bytes:
                return [UNKNOWN]
            marker = marker_of(part)
            return [*(f"<0x{byte:02X}>" for byte in lower.translate(SURROGATES).encode()), *([marker] if marker else [])]
        tokens, start = [], 0
        for piece in self.model.encode(lower, out_type=str):
            tokens.append(piece)
            if marker := marker_of(part[start : start + len(piece)]):
                tokens.append(marker)
            start += len(piece)
        return tokens

    def decode(self, tokens: list[str]) -> str:
        parts: list[str] = []
        bytes_so_far = bytearray()
        for token in [*tokens, ""]:
            if token in BYTES:
                bytes_so_far.append(BYTES[token])
                continue
            parts.extend(bytes_so_far.decode(errors="replace"))
            bytes_so_far.clear()
            if token in (UPPER, TITLE):
                parts[-1:] = [raised(part, token) for part in parts[-1:]]
            elif token == ESCAPE:
                parts[-1:] = [BOUNDARY if part == " " else part for part in parts[-1:]]
            elif token:
                parts.append("\u2047" if token == UNKNOWN else token.replace(BOUNDARY, " "))
        return "".join(parts).removeprefix(" ")
