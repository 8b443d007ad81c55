"""gettext catalogues, PO and MO: the messages of programs in many languages, joined by message. Layer 4.

Fuzzy, obsolete and untranslated entries are no text. Of an entry with plural forms two lines come: the singular with the
translation's first form, and the plural with its last; where the translation has one form alone (Japanese), it goes with the
plural. Accelerators and placeholders stay as they are. A catalogue is read into memory, one program's languages together.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeAlias

from graftmt.errors import DataError, LanguageError, nearest
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import SPLITS, by_split
from graftmt.prepare.readers.language_labels import choose_languages, corpus_name, looks_like_a_language
from graftmt.prepare.readers.lines import check_text
from graftmt.prepare.source import Line, Source

LARGEST_CATALOGUE = 256 << 20
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_KEYWORD = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d{1,3})\])?)\s*(".*)')
_CHARSET = re.compile(r"charset=([\w.:-]+)", re.IGNORECASE)
_LANGUAGE = re.compile(r"^Language:[ \t]*([\w@-]+)[ \t]*$", re.MULTILINE)
# Encodings that catalogues are in; Python knows more, some of them no encodings of text.
_ENCODINGS = re.compile(
    r"utf-?8|(us-)?ascii|iso[-_]?8859[-_]\d{1,2}|windows-\d{3,4}|cp\d{3,4}|koi8-[rtu]|euc[-_](jp|kr)|gb(k|2312|18030)|big5(-?hkscs)?|shift_jis|tis-620",
    re.IGNORECASE,
)

Key: TypeAlias = tuple[str, str]
"""Context and text of a message, which are the same in the catalogues of all languages."""


@dataclass
class _Entry:
    """A message as it stands in a catalogue."""

    line: int
    context: str = ""
    singular: str = ""
    plural: str | None = None
    forms: dict[int, str] = field(default_factory=dict)
    skipped: bool = False


def is_catalogue(name: str) -> bool:
    return name.lower().endswith((".po", ".mo"))


def read_gettext(
    files: Sequence[StoredFile], languages: Mapping[str, str] | None = None, *, source_language: str = "en"
) -> dict[str, Source]:
    """By split, `train` unless a file's label says otherwise. Messages are in `source_language`.

    A catalogue's language is its label (fr=FILE), its folder (fr/LC_MESSAGES), its header's, or its name (fr.po).
    """
    groups: dict[tuple[str, str], dict[str, StoredFile]] = {}
    for file in files:
        split = SPLITS.get(file.label.lower(), "train")
        code = _language_of(file)
        group = groups.setdefault((split, _domain(file, code)), {})
        if code in group:
            raise DataError(
                f"{file} and {group[code]} are both in {code}; say which language each is in: fr=FILE, or give one of them."
            )
        group[code] = file
    codes = sorted({code for group in groups.values() for code in group} - {source_language})
    chosen = choose_languages([source_language, *codes], languages, f"{files[0]} and what is with it")
    if source_language not in chosen.values():
        raise LanguageError(
            f"the messages are in {source_language!r}{nearest(source_language, chosen)}; add it to the languages asked for."
        )
    return by_split((split, _source(group, chosen, source_language)) for (split, _), group in sorted(groups.items()))


def _source(group: Mapping[str, StoredFile], chosen: Mapping[str, str], source_language: str) -> Source:
    def read() -> Iterator[Line]:
        lines: dict[Key, dict[str, str]] = {}
        for code in chosen.values():
            if code in group and code != source_language:
                for key, text in _translations(group[code]):
                    lines.setdefault(key, {})[code] = text
        for (_, message), texts in lines.items():
            texts[source_language] = message
            yield tuple(texts.get(code, "") for code in chosen.values())

    return Source(str(next(iter(group.values()))), tuple(chosen), read)


def _translations(file: StoredFile) -> Iterator[tuple[Key, str]]:
    """Each message with its translation; what has none is left out."""
    where = str(file)
    for entry in _entries(file):
        if entry.skipped or not entry.singular:
            continue
        if entry.plural is None:
            pairs = [(entry.singular, entry.forms.get(0, ""))]
        elif len(entry.forms) == 1:
            pairs = [(entry.plural, entry.forms.get(0, ""))]
        else:
            pairs = [
                (entry.singular, entry.forms.get(0, "")),
                (entry.plural, entry.forms[max(entry.forms)] if entry.forms else ""),
            ]
        for message, text in pairs:
            if message.strip() and text.strip():
                place = f"line {entry.line}" if is_po(file) else f"message {entry.line}"
                yield (entry.context, check_text(message, where, place)), check_text(text, where, place)


def is_po(file: StoredFile) -> bool:
    return file.name.lower().endswith(".po")


def _language_of(file: StoredFile) -> str:
    if file.label and file.label.lower() not in SPLITS:
        return file.label
    path = PurePosixPath(file.name)
    if path.parent.name == "LC_MESSAGES" and looks_like_a_language(path.parent.parent.name):
        return corpus_name(path.parent.parent.name)
    header = next((entry.forms.get(0, "") for entry in _entries(file) if not entry.singular), "")
    if (match := _LANGUAGE.search(header)) and looks_like_a_language(match[1]):
        return corpus_name(match[1])
    last = re.split(r"[.]", path.stem)[-1]
    if looks_like_a_language(last):
        return corpus_name(last)
    raise DataError(f"{file} does not say which language it is in; write it before the file, as in fr={file}")


def _domain(file: StoredFile, code: str) -> str:
    """What the catalogues of one program share; those named after their language share their folder."""
    path = PurePosixPath(file.name)
    if file.label and file.label.lower() not in SPLITS:
        return ""
    stem = path.stem
    for ending in (code, code.replace("_", "-")):
        stem = stem.removesuffix(ending).rstrip(".-_")
    return stem


def _entries(file: StoredFile) -> Iterator[_Entry]:
    with file.open() as handle:
        content = handle.read(LARGEST_CATALOGUE + 1)
    if len(content) > LARGEST_CATALOGUE:
        raise DataError(
            f"{file} is larger than {LARGEST_CATALOGUE:,} bytes; no program has that many messages. Is it a catalogue?"
        )
    return _po_entries(content, str(file)) if is_po(file) else _mo_entries(content, str(file))


def _po_entries(content: bytes, where: str) -> Iterator[_Entry]:
    """The entries of a PO file, in order."""
    entry, target, fuzzy = _Entry(0), "", False
    for number, line in enumerate(_decode_po(content, where), 1):
        line = line.strip()
        if line.startswith("#"):
            if target.startswith("msgstr"):  # comments stand before their entry
                yield entry
                entry, target, fuzzy = _Entry(number), "", False
            if line.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", line):
                fuzzy = True
        elif match := _KEYWORD.fullmatch(line):
            keyword = match[1]
            if target.startswith("msgstr") and keyword in ("msgctxt", "msgid"):
                yield entry
                entry, fuzzy = _Entry(number), False
            entry.line = entry.line or number
            # A fuzzy header is usual, and still the header.
            entry.skipped = fuzzy
            target = keyword
            _add(entry, target, _unquote(match[3], where, number), number, where, first=True)
        elif line.startswith('"') and target:
            _add(entry, target, _unquote(line, where, number), number, where)
        elif line:
            raise DataError(
                f"{where}, line {number}: {line[:60]!r} is not PO; expected msgid, msgstr, a quoted string or a comment."
            )
    if target and not target.startswith("msgstr"):
        raise DataError(f"{where}: ends after a {target} without its msgstr; the file may be cut: download it again.")
    if target:
        yield entry


def _add(entry: _Entry, keyword: str, text: str, number: int, where: str, first: bool = False) -> None:
    if keyword == "msgctxt":
        entry.context += text
    elif keyword == "msgid":
        entry.singular += text
    elif keyword == "msgid_plural":
        entry.plural = (entry.plural or "") + text
    else:
        form = int(keyword[7:-1]) if keyword.endswith("]") else 0
        if first and form in entry.forms:
            raise DataError(f"{where}, line {number}: a second {keyword} in one entry; is a msgid missing before it?")
        entry.forms[form] = entry.forms.get(form, "") + text


def _unquote(text: str, where: str, number: int) -> str:
    match = _QUOTED.fullmatch(text.rstrip())
    if match is None:
        raise DataError(f"{where}, line {number}: a string without its closing quotation mark, or text after it.")
    return _ESCAPE.sub(_unescape, match[1]) if "\\" in match[1] else match[1]


def _unescape(match: re.Match[str]) -> str:
    octal, hexadecimal, plain = match.groups()
    if octal or hexadecimal:
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))
    return _PLAIN_ESCAPES.get(plain, plain)


def _decode_po(content: bytes, where: str) -> list[str]:
    match = re.search(rb'"Content-Type:[^"]{0,200}', content[:20_000])
    encoding = _encoding(match[0].decode("latin-1") if match else "", where)
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    decoded = []
    for number, line in enumerate(lines, 1):
        decoded.append(_decode(line, encoding, where, f"line {number}"))
    return decoded


def _decode(raw: bytes, encoding: str, where: str, place: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}, {place}: not valid {encoding} (byte {raw[error.start]:#04x} at column {error.start + 1}); the header's "
            "charset may be wrong, or encodings mixed: msgconv -t UTF-8 converts a catalogue."
        ) from None


def _encoding(header: str, where: str) -> str:
    match = _CHARSET.search(header)
    name = match[1] if match else "utf-8"
    if name == "CHARSET":  # of a template that nobody filled in
        return "utf-8"
    if not _ENCODINGS.fullmatch(name):
        raise DataError(f"{where}: the charset {name!r} is not read here; convert it with msgconv -t UTF-8.")
    try:
        "".encode(name)
    except LookupError:
        raise DataError(f"{where}: Python does not know the charset {name!r}; convert it with msgconv -t UTF-8.") from None
    return name


def _mo_entries(content: bytes, where: str) -> Iterator[_Entry]:
    """The entries of an MO file: two tables of (length, offset), for messages and translations."""
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(content[:4])
    if order is None:
        raise DataError(f"{where} is no MO file: its first bytes are {content[:4].hex(' ') or 'missing'}.")

    def numbers(offset: int, count: int) -> tuple[int, ...]:
        if offset + 4 * count > len(content):
            raise DataError(
                f"{where}: cut at byte {len(content):,}, where byte {offset:,} and more are needed; download it again."
            )
        return struct.unpack_from(f"{order}{count}I", content, offset)

    def string(table: int, index: int) -> bytes:
        length, offset = numbers(table + 8 * index, 2)
        if offset + length > len(content):
            raise DataError(
                f"{where}: message {index + 1} would end at byte {offset + length:,} of {len(content):,}; download it again."
            )
        return content[offset : offset + length]

    if len(content) < 20:
        raise DataError(f"{where}: cut at byte {len(content):,}, inside its header; download it again.")
    _, count, messages, translations = numbers(4, 4)
    numbers(messages, 2 * count)
    numbers(translations, 2 * count)
    encoding = "utf-8"
    for index in range(count):
        place = f"message {index + 1}"
        raw_message, raw_translation = string(messages, index), string(translations, index)
        if index == 0 and not raw_message:
            encoding = _encoding(raw_translation[:20_000].decode("latin-1"), where)
        message = _decode(raw_message, encoding, where, place)
        context, separator, rest = message.partition("\x04")
        singular, *plural = (rest if separator else message).split("\0")
        forms = _decode(raw_translation, encoding, where, place).split("\0")
        if not plural:
            forms = forms[:1]
        yield _Entry(index + 1, context if separator else "", singular, plural[0] if plural else None, dict(enumerate(forms)))
