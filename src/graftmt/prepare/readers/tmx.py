"""TMX translation memories, parsed as they stream: entities refused, external DTDs not loaded, one unit in memory. Layer 4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.parsers import expat

from graftmt.data.line_files import LONGEST_LINE
from graftmt.errors import DataError, LanguageError, nearest
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import by_split, split_of
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import check_text, too_long
from graftmt.prepare.source import Line, Source
from graftmt.progress import say
from graftmt.text.aliases import variants_of

_BLOCK = 1 << 16
_LONGEST_TOKEN = 2 << 20  # bytes between two angle brackets: the parser goes over an unfinished one again and again
_MOST_LANGUAGES = 1000
# Their content is the code of another format; that of <hi> is text.
_CODE_ELEMENTS = frozenset(("bpt", "ept", "it", "ph", "ut"))


def is_tmx(name: str) -> bool:
    return name.lower().endswith(".tmx")


def read_tmx(
    files: Sequence[StoredFile], languages: Mapping[str, str] | None = None, *, fold_regions: bool = False
) -> dict[str, Source]:
    """By split. Languages go by their codes in lower case, `en_us` for EN-US, or `en` where regions are folded.

    Which languages there are is only known at the end of a file: unless named, it is read twice. Of two texts in one language
    in one unit the first is taken; a unit with none of the languages is no line.
    """
    alone = len(files) == 1
    return by_split((split_of(file), _source(file, languages, fold_regions, alone)) for file in files)


def _source(file: StoredFile, languages: Mapping[str, str] | None, fold: bool, alone: bool) -> Source:
    if languages is None:
        found = dict.fromkeys(code for unit in _units(file, fold) for code in unit)
        chosen = choose_languages(sorted(found), None, str(file))
    else:
        chosen = {name: _code(code, fold) for name, code in languages.items()}

    def read() -> Iterator[Line]:
        seen: set[str] = set()
        for unit in _units(file, fold):
            if len(seen) < _MOST_LANGUAGES:
                seen.update(unit)
            line = tuple(unit.get(code, "") for code in chosen.values())
            if any(line):
                yield line
        missing = next((code for code in chosen.values() if code not in seen), None)
        if missing and alone:  # one of several files may well lack a language
            hint = "" if fold else " With --fold-regions en-US counts as en."
            raise LanguageError(
                f"{file} has no text in {missing!r}{nearest(missing, seen) or ';'} there: "
                f"{', '.join(sorted(seen)[:40]) or 'none'}.{hint}"
            )
        if languages is None:
            general = [code for code in chosen.values() if "_" not in code]
            for code, others in variants_of(general, chosen.values()).items():
                say(f"note: {file} has {', '.join(others)} next to {code}, each by itself; --fold-regions makes it one.")
            return
        for code, others in variants_of(chosen.values(), sorted(seen)).items():
            say(f"note: {file} has text in {', '.join(others)} too, which is not taken for {code}; --fold-regions takes it.")

    return Source(str(file), tuple(chosen), read)


def _code(code: str, fold: bool) -> str:
    code = code.strip().lower().replace("-", "_")
    return code.split("_")[0] if fold else code


def _units(file: StoredFile, fold: bool) -> Iterator[dict[str, str]]:
    """code → text for each translation unit."""
    where = str(file)
    units = _Units(where, fold)
    parser = units.parser
    with file.open() as handle:
        fed = 0
        while True:
            block = handle.read(_BLOCK)
            try:
                parser.Parse(block, not block)
            except expat.ExpatError as error:
                raise DataError(
                    f"{where}, line {error.lineno}: not well-formed XML ({expat.ErrorString(error.code)}); if the file was cut "
                    "in the middle, download it again."
                ) from None
            except (LookupError, ValueError) as error:
                raise DataError(f"{where}: an encoding that is not read here ({error}); convert the file to UTF-8.") from None
            yield from units.take()
            if not block:
                return
            fed += len(block)
            if fed - max(parser.CurrentByteIndex, 0) > _LONGEST_TOKEN:
                raise too_long(where, f"line {parser.CurrentLineNumber}", fed - parser.CurrentByteIndex)


class _Units:
    """Collects the units that the parser comes across."""

    def __init__(self, where: str, fold: bool) -> None:
        self.where, self.fold = where, fold
        self.ready: list[dict[str, str]] = []
        self.unit: dict[str, str] | None = None
        self.language = ""
        self.text: list[str] | None = None
        self.length = 0
        self.code_depth = 0
        self.root = ""
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        # An entity can stand for another file, or for a billion laughs; a DTD in another place is never fetched.
        self.parser.EntityDeclHandler = self.refuse_entities
        self.parser.SkippedEntityHandler = self.refuse_entities

    def take(self) -> list[dict[str, str]]:
        ready, self.ready = self.ready, []
        return ready

    def place(self) -> str:
        return f"line {self.parser.CurrentLineNumber}"

    def refuse_entities(self, name: str, *_: object) -> None:
        raise DataError(
            f"{self.where}, {self.place()}: the entity {name!r}, which XML files from others can abuse, so it is refused; "
            "write the characters themselves."
        )

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.root:
            self.root = name
            if name != "tmx":
                raise DataError(
                    f"{self.where}, {self.place()}: the root element is <{name[:40]}>; a TMX file begins with <tmx>."
                )
        elif name == "tu":
            self.unit = {}
        elif name == "tuv":
            self.language = _code(attributes.get("xml:lang", attributes.get("lang", "")), self.fold)
            if self.unit is not None and not self.language:
                raise DataError(f"{self.where}, {self.place()}: a <tuv> without a language; expected xml:lang=…")
        elif name == "seg" and self.unit is not None and self.language:
            self.text, self.length, self.code_depth = [], 0, 0
        elif self.text is not None and (self.code_depth or name in _CODE_ELEMENTS):
            self.code_depth += 1

    def end(self, name: str) -> None:
        if name == "seg" and self.text is not None:
            text = check_text("".join(self.text), self.where, self.place())
            if self.unit is not None:
                self.unit.setdefault(self.language, text)
                if len(self.unit) > _MOST_LANGUAGES:
                    raise DataError(
                        f"{self.where}, {self.place()}: a unit in more than {_MOST_LANGUAGES:,} languages; is this file sound?"
                    )
            self.text = None
        elif name == "tuv":
            self.language = ""
        elif name == "tu" and self.unit is not None:
            self.ready.append(self.unit)
            self.unit = None
        elif self.text is not None and self.code_depth:
            self.code_depth -= 1

    def characters(self, text: str) -> None:
        if self.text is not None and not self.code_depth:
            self.text.append(text)
            self.length += len(text)
            if self.length > LONGEST_LINE:
                raise too_long(self.where, self.place(), self.length)
