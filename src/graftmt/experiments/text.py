"""One output folder, one text: what the results of a folder were trained and scored on, remembered and compared. Layer 7.

OUTPUT/text.json   corpus file → its digest; files of test sets that have a folder of their own go by the set's name
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from graftmt.data.corpus import find_files
from graftmt.errors import ConfigError, DataError, first_few
from graftmt.experiments.claims import Claims
from graftmt.experiments.profiles import Profile
from graftmt.experiments.store import Store
from graftmt.files import read_json, write_json

NAME = "text.json"
WHOLE = 64 << 20
"""Bytes up to which a file is read as a whole; of a larger one, as many pieces as this has MiB are, evenly spread."""
PIECE = 1 << 20


def check_text(profile: Profile, corpus: Path, output: Path) -> None:
    """Refuses another text than that of the results that are there; files that were not seen before are noted.

    Where nothing was made from the text noted, as after a wrong --corpus, the one given takes its place.
    """
    found = {name: digest(path) for name, path in sorted(_files(profile, corpus))}
    note = output / NAME
    before = read_json(note, "the note of the text").get("files") if note.is_file() and _is_begun(output) else {}
    if not isinstance(before, dict):
        raise DataError(f"{note} is damaged (it names no files); delete it if the results beside it are of this text.")
    changed = [name for name in found if name in before and before[name] != found[name]]
    if changed:
        named = f"{first_few(changed)} {'differs' if len(changed) == 1 else 'differ'}"
        raise ConfigError(
            f"the results in {output} are of another text than that of {corpus}: {named}. Give the corpus of then with "
            "--corpus, or another --output folder; where only the files' form has changed, such as their compression, delete "
            f"{note}."
        )
    if found.keys() - before.keys():
        write_json(note, {"files": {**before, **found}})


def _is_begun(output: Path) -> bool:
    """Whether something is there that was made from the text, or a process that is about to."""
    claims = Claims(output / "locks", lambda text: None)
    return not Store(output).is_empty or any(claims.is_held(path.stem) for path in claims.folder.glob("*.lock"))


def _files(profile: Profile, corpus: Path) -> Iterator[tuple[str, Path]]:
    """Those of the profile's languages, each with the name that it goes by."""
    sets = profile.evaluation.sets
    sections = (profile.base, profile.bilingual, profile.retrain, profile.substitute, profile.packs)
    validation = {section.validation.split for section in sections}
    places = {
        "": (corpus, {"train", *validation, *(one.split for one in sets.values() if one.corpus is None)}),
        **{f"{name}: ": (one.corpus, {one.split}) for name, one in sets.items() if one.corpus is not None},
    }
    if profile.corpus.unfiltered is not None:
        places["unfiltered: "] = (profile.corpus.unfiltered, {"train"})
    languages = {*profile.initial, *profile.new}
    for prefix, (folder, splits) in places.items():
        if folder.is_dir():  # where it is not, whoever needs it says so
            for split in splits:
                for language, path in find_files(folder, split).items():
                    if language in languages:
                        yield f"{prefix}{split}.{language}", path


def digest(path: Path) -> str:
    size = path.stat().st_size
    found = hashlib.sha256(f"{size} ".encode())
    with path.open("rb") as handle:
        if size <= WHOLE:
            found.update(handle.read())
        else:
            pieces = WHOLE // PIECE
            for number in range(pieces):
                handle.seek((size - PIECE) * number // (pieces - 1))
                found.update(handle.read(PIECE))
    return found.hexdigest()[:32]
