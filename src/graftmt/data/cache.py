"""Text tokenised once: per language a memory-mapped array of token ids and one of line starts. Layer 3.

The cache is keyed by the content of the file and the fingerprint of the tokenizer, so it is never stale. An entry carries
checksums, which are looked at when it is opened; one that is damaged is made again. The text itself is read for the key each
time, and has more bytes than its tokens, so that this takes little time in comparison.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftmt.checked import file_mark, has_mark, read_checked_json, write_checked_json
from graftmt.configuration import check_numbers, from_mapping, zero_or_more
from graftmt.data.corpus import Corpus, check_equal_lengths
from graftmt.data.line_files import read_lines
from graftmt.errors import DataError, GraftError
from graftmt.files import atomic_folder, open_regular, sweep
from graftmt.folders import make_folder
from graftmt.places import check_outside_models, default_cache_folder
from graftmt.progress import progress
from graftmt.text import Text
from graftmt.workers import pool

FORMAT = 1
ARRAYS = ("ids.npy", "starts.npy")
SMALL = 2_000_000
"""Bytes of text that one process tokenises in about a second."""


@dataclass(frozen=True)
class TokenizedText:
    """One language of one split: line i is ids[starts[i]:starts[i + 1]], empty where there is no translation."""

    language: str
    ids: NDArray[Any]
    starts: NDArray[np.int64]
    unknown_rate: float

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int32]:
        return np.diff(self.starts).astype(np.int32)

    def line(self, index: int) -> list[int]:
        found: list[int] = self.ids[self.starts[index] : self.starts[index + 1]].tolist()
        return found


@dataclass(frozen=True)
class TokenizedCorpus:
    """One split, tokenised: what batches are made of."""

    split: str
    texts: dict[str, TokenizedText]
    content: str = ""
    """The cache keys of the texts: another text or tokenizer has others."""

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.texts)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(languages, lines + 1): the starts of all texts, for reading lines of many languages at once."""
        return np.stack([text.starts for text in self.texts.values()])

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """(languages, lines): how many tokens each line has."""
        return np.diff(self.starts, axis=1).astype(np.int32)

    def __len__(self) -> int:
        return len(next(iter(self.texts.values())))


@contextmanager
def writable_cache(folder: Path) -> Iterator[None]:
    """Around writing to it: errors of the folder say how to choose another one."""
    try:
        check_outside_models(folder, itself=True)
        make_folder(folder)
        if not os.access(folder, os.W_OK):
            raise GraftError("it is not writable") from OSError()
        sweep(folder)
        yield
    except GraftError as error:
        if not isinstance(error.__cause__, OSError) and folder.is_dir():
            raise  # of the text, not of the folder
        raise DataError(
            f"tokenised text cannot be kept in {folder}: {str(error).rstrip('.')}. Name a folder that can be written in the "
            "environment variable GRAFTMT_CACHE (or data.cache=… of a run)."
        ) from None


def tokenize_corpus(
    corpus: Corpus,
    tokenizer: Text | Mapping[str, Text],
    folder: Path | None = None,
    *,
    processes: int | None = None,
) -> TokenizedCorpus:
    """Tokenises what is not in the cache yet, languages in parallel, and opens all of it.

    One tokenizer for all languages, or one for each: a new language has its own, next to the base's.
    """
    tokenizers = tokenizer if isinstance(tokenizer, Mapping) else dict.fromkeys(corpus.languages, tokenizer)
    folder = default_cache_folder() if folder is None else folder
    keys = {language: cache_key(path, tokenizers[language]) for language, path in corpus.files.items()}
    entries = {language: folder / key for language, key in keys.items()}
    texts: dict[str, TokenizedText] = {}
    damaged: dict[str, str] = {}
    for language, entry in entries.items():
        try:
            if os.path.lexists(entry / "text.json"):
                texts[language] = open_text(language, entry, len(tokenizers[language]))
        except DataError as error:
            damaged[language] = str(error)
    if texts:  # what a kill left next to an entry that was finished; where one is made, that is looked for then
        sweep(folder)
    # Files of the same content share an entry, which is made once.
    missing = list({entry: language for language, entry in entries.items() if language not in texts}.values())
    if missing:
        with writable_cache(folder), progress(f"tokenising {corpus.split}", len(missing)) as report:
            for problem in damaged.values():
                report.message(f"{problem} It is made again.")
            jobs = [(str(corpus.files[one]), str(entries[one]), tokenizers[one], one in damaged) for one in missing]
            size = sum(corpus.files[language].stat().st_size for language in missing)
            for done, _ in enumerate(_tokenize_files(jobs, size, processes), 1):
                report.update(done, missing[done - 1])
        for language in entries.keys() - texts.keys():
            texts[language] = open_text(language, entries[language], len(tokenizers[language]))
    texts = {language: texts[language] for language in entries}
    check_equal_lengths({language: len(text) for language, text in texts.items()}, corpus)
    return TokenizedCorpus(corpus.split, texts, " ".join(keys.values()))


def _tokenize_files(jobs: Sequence[tuple[str, str, Text, bool]], size: int, processes: int | None) -> Iterator[None]:
    """Does the jobs, in processes of their own if the text is large; yields when each is done."""
    # Starting processes takes seconds; a small corpus is done before they are there.
    processes = 1 if size < SMALL and processes is None else min(len(jobs), processes or os.cpu_count() or 1)
    if processes == 1:
        for job in jobs:
            _tokenize_file(*job)
            yield
        return
    with pool(processes) as workers:
        yield from workers.map(_tokenize_file, *zip(*jobs, strict=True))


def cache_key(path: Path, tokenizer: Text) -> str:
    """A hash of the file's bytes and of the tokenizer."""
    digest = hashlib.sha256(f"{FORMAT} {tokenizer.fingerprint} ".encode())
    try:
        with open_regular(path) as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check that the file is there and may be read.") from None
    return digest.hexdigest()[:32]


def _tokenize_file(path: str, entry: str, tokenizer: Text, replaces: bool = False) -> None:
    """Reads, encodes and stores one file; a process of its own when several are to be done.

    `replaces`: the entry that is there is damaged.
    """
    kind = np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32
    ids: list[NDArray[Any]] = []
    lengths: list[int] = []
    chunk: list[int] = []
    for line in read_lines(Path(path)):
        tokens = tokenizer.encode(line)
        lengths.append(len(tokens))
        chunk += tokens
        if len(chunk) > 1 << 20:
            ids.append(np.array(chunk, dtype=kind))
            chunk = []
    ids.append(np.array(chunk, dtype=kind))
    flat = np.concatenate(ids)
    unknown = 0 if tokenizer.unknown_id is None else int((flat == tokenizer.unknown_id).sum())
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    # Unless it is to be replaced: another run may have tokenised the same text meanwhile.
    with atomic_folder(Path(entry), unless=None if replaces else "text.json") as temporary:
        np.save(temporary / "ids.npy", flat)
        np.save(temporary / "starts.npy", starts)
        facts = {"format": FORMAT, "lines": len(lengths), "tokens": len(flat), "unknown": unknown}
        checksums = {name: file_mark(temporary / name) for name in ARRAYS}
        write_checked_json(temporary / "text.json", {**facts, "files": checksums})


@dataclass(frozen=True, kw_only=True)
class Facts:
    """text.json of an entry."""

    format: int
    lines: int
    tokens: int
    unknown: int
    files: dict[str, str] | None = None
    """Checksums of the arrays; entries of earlier versions have none."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 0", zero_or_more, "lines", "tokens", "unknown")


def open_text(language: str, entry: Path, rows: int) -> TokenizedText:
    """Maps a cache entry into memory, checking that its parts are as they were written; an error names the entry.

    `rows`: of the tokenizer's vocabulary.
    """
    try:
        facts = from_mapping(Facts, read_checked_json(entry / "text.json", "the token cache"))
        for name in ARRAYS:
            if facts.files is not None and not has_mark(entry / name, facts.files.get(name, "")):
                raise ValueError(f"{name} does not have its checksum")
        # Mapped too, since a damaged header may state any size.
        ids, starts = (np.load(entry / name, mmap_mode="r", allow_pickle=False) for name in ARRAYS)
        if starts.dtype != np.int64 or ids.dtype not in (np.uint16, np.uint32) or not starts.ndim == ids.ndim == 1:
            raise ValueError("the arrays are of another kind")
        starts = np.array(starts)
        if len(starts) != facts.lines + 1 or not starts[-1] == len(ids) == facts.tokens:
            raise ValueError("sizes do not agree")
        if facts.files is None and (starts[0] != 0 or (np.diff(starts) < 0).any() or (len(ids) and ids.max() >= rows)):
            raise ValueError("lines do not follow each other, or tokens are none")
    except (GraftError, OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError, TokenError) as error:
        raise DataError(f"the token cache {entry} is damaged ({str(error).rstrip('.')}).") from None
    return TokenizedText(language, ids, starts, facts.unknown / max(1, facts.tokens))


def unknown_rates(corpus: TokenizedCorpus, languages: Sequence[str] | None = None) -> dict[str, float]:
    """The share of `<unk>` among the tokens of each language."""
    return {language: corpus.texts[language].unknown_rate for language in languages or corpus.languages}
