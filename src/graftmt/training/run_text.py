"""The text that a run makes for itself: learned once from its corpus, and kept. Layer 4."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from graftmt.checked import file_mark, has_mark, read_checked_json, write_checked_json
from graftmt.configuration import to_mapping
from graftmt.data import Corpus, TokenizedCorpus, unknown_rates
from graftmt.errors import DataError, GraftError
from graftmt.files import atomic_file, open_regular
from graftmt.progress import say
from graftmt.text import FewerMerges, SharedText
from graftmt.text.kinds import TextKind, text_kind
from graftmt.text.kinds.inline_cased import KIND as OURS
from graftmt.text.kinds.sentencepiece import KIND as PLAIN
from graftmt.training.checkpoints import CannotGoOn, Checkpoints
from graftmt.training.run_configuration import SubwordConfig

KIND_OF_CASING = {"inline": OURS, "none": PLAIN}
"""The kind of text that a vocabulary is of."""


def subwords_file(run: Path, options: SubwordConfig) -> Path:
    """Where a run keeps the subword model that was made for it."""
    return run / text_kind(KIND_OF_CASING[options.casing]).file_names({})[0]


def run_subwords(run: Path, options: SubwordConfig, corpus: Corpus, *, default: int | None = None) -> SharedText:
    """The run's own text, without codes: given, or learned once and kept. `casing` says of which kind it is.

    `default`: the merges that are made where nobody asks for a number.
    """
    kind, stored, note = text_kind(KIND_OF_CASING[options.casing]), subwords_file(run, options), run / "subwords.json"
    # A run that has checkpoints keeps its vocabulary, and says itself if the text has changed; before the first one
    # the vocabulary is only kept where the same text and options would give it again.
    if Checkpoints(run / "checkpoints", 1).latest() is not None:
        noted = _noted(note)
        if "model" in noted and not _is_as_noted(stored, noted):
            raise CannotGoOn(f"the run's vocabulary, {stored}, was changed or damaged. Restore it from a copy")
        return kind.open_file(stored)
    made_from = _fingerprint_of_source(options, corpus)
    noted = _noted(note)
    if noted.get("made_from") == made_from and ("model" not in noted or _is_as_noted(stored, noted)) and stored.is_file():
        return kind.open_file(stored)
    if options.model is not None:
        text = kind.open_file(options.model)
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            text = _learned(kind, options, corpus)
        for warning in caught:  # where in our code it arose is no one's concern
            say(_in_words(warning.message, options, default))
    note.unlink(missing_ok=True)
    with atomic_file(stored) as temporary:
        temporary.write_bytes(text.files()[stored.name])
    write_checked_json(note, {"made_from": made_from, "model": file_mark(stored)})
    return text


def _learned(kind: TextKind, options: SubwordConfig, corpus: Corpus) -> SharedText:
    languages = corpus.languages
    named = ", ".join(languages) if len(languages) < 5 else f"{len(languages)} languages"
    size = f"{options.merges:,} merges" if options.pieces is None else f"{options.pieces:,} pieces"
    say(f"making a vocabulary of {size} from {named} …")
    sizes = {language: sum(1 for _ in _filled(corpus, language)) for language in languages}
    return kind.learn(
        {  # every n-th line, so that a corpus sorted by source is not cut off
            language: islice(_filled(corpus, language), 0, None, max(1, -(-size // options.sample_lines)))
            for language, size in sizes.items()
        },
        sizes=sizes,
        merges=options.merges,
        temperature=options.temperature,
        min_character_count=options.min_character_count,
        byte_fallback=options.byte_fallback,
        pieces=options.pieces,
    )


def _in_words(warning: Warning | str, options: SubwordConfig, default: int | None) -> str:
    """Nobody asked for the default: that the text has no room for it is no mistake."""
    if isinstance(warning, FewerMerges) and options.pieces is None and options.merges == default:
        return f"the default of {warning.asked:,} merges is more than this text supports: {warning.learned:,} are made"
    return str(warning)


def _noted(note: Path) -> dict[str, Any]:
    """What subwords.json says of the vocabulary; nothing if it is missing or damaged. Earlier versions noted no checksum."""
    with suppress(GraftError):
        return read_checked_json(note, "the vocabulary")
    return {}


def _is_as_noted(stored: Path, noted: Mapping[str, Any]) -> bool:
    """Whether the vocabulary is the one that was noted; one of another size is not read."""
    with suppress(OSError):
        return has_mark(stored, str(noted["model"]))
    return False


def _fingerprint_of_source(options: SubwordConfig, corpus: Corpus) -> str:
    """A hash of the options and the text that a vocabulary is made from."""
    digest = hashlib.sha256(json.dumps(to_mapping(options), sort_keys=True).encode())
    paths = corpus.files if options.model is None else {"model": options.model}
    for name, path in paths.items():
        digest.update(name.encode())
        try:
            with open_regular(path) as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; check the path.") from None
    return digest.hexdigest()


def _filled(corpus: Corpus, language: str) -> Iterator[str]:
    return (line for line in corpus.lines(language) if line.strip())


def report_unknown(corpus: TokenizedCorpus, rows: int) -> None:
    rates = ", ".join(f"{language} {100 * rate:.3f} %" for language, rate in unknown_rates(corpus).items())
    say(f"vocabulary: {rows:,} rows; <unk> among training tokens: {rates}")
