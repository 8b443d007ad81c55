"""FLORES-style folders: dev/eng_Latn.dev and devtest/eng_Latn.devtest (or dev.eng_Latn), a file per language. Layer 4."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graftmt.errors import DataError
from graftmt.prepare.detector import detector_code
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import SPLITS
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import read_in_step
from graftmt.prepare.source import Source

_FILE = re.compile(
    r"(?:.*/)?(?:(?P<code>[A-Za-z][\w-]*)\.(?P<split>dev|devtest|test)|(?P<split2>dev|devtest|test)\.(?P<code2>[A-Za-z][\w-]*))"
)


def is_flores_file(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


def read_flores(
    files: Sequence[StoredFile], languages: Mapping[str, str] | None = None, *, short_codes: bool = False
) -> dict[str, Source]:
    """valid (their dev) and test (their devtest; a hidden test, where there is one, comes as `hidden`).

    `short_codes`: `fr` for fra_Latn where neither is asked for by name.
    """
    found: dict[str, dict[str, StoredFile]] = {}
    for file in files:
        match = _FILE.fullmatch(file.name)
        if match is None:
            raise DataError(f"{file} is no file of a FLORES folder; expected names such as eng_Latn.dev and eng_Latn.devtest.")
        codes = found.setdefault(match["split"] or match["split2"], {})
        code = match["code"] or match["code2"]
        if code in codes:
            raise DataError(f"{file} and {codes[code]} are both the same language and split; give one of them.")
        codes[code] = file
    named = {split: "hidden" if split == "test" and "devtest" in found else SPLITS[split] for split in found}
    return {
        named[split]: _source(found[split], _short(found[split], languages, short_codes), split)
        for split in ("dev", "devtest", "test")
        if split in found
    }


def _source(group: Mapping[str, StoredFile], languages: Mapping[str, str] | None, split: str) -> Source:
    first = str(next(iter(group.values())))
    chosen = choose_languages(sorted(group), languages, f"the {split} split besides {first}")
    ordered = [group[code] for code in chosen.values()]
    return Source(first, tuple(chosen), lambda: read_in_step(ordered))


def _short(group: Mapping[str, StoredFile], languages: Mapping[str, str] | None, short_codes: bool) -> Mapping[str, str] | None:
    """Short names → codes there. `fr` asked for means fra_Latn; zh, of which there are two, has to be written out."""
    if not short_codes:
        return languages
    by_short: dict[str, list[str]] = {}
    for code in sorted(group):
        by_short.setdefault(detector_code(code), []).append(code)
    if languages is None:
        return {codes[0] if len(codes) > 1 else short: codes[0] for short, codes in by_short.items()} | {
            code: code for codes in by_short.values() if len(codes) > 1 for code in codes
        }
    chosen = {}
    for name, code in languages.items():
        codes = by_short.get(code, [])
        if code not in group and len(codes) > 1:
            raise DataError(f"{code!r} may be {' or '.join(codes)}; write {name}={codes[0]}, for instance.")
        chosen[name] = codes[0] if code not in group and codes else code
    return chosen
