"""Text tokenised once: per language a memory-mapped array of token ids and one of line starts. Layer 3.

The cache is keyed by the content of the file and the fingerprint of the tokenizer, so it is never stale.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftmt.data.corpus import Corpus, check_equal_lengths, read_lines
from graftmt.errors import DataError
from graftmt.files import atomic_folder, read_json, write_json
from graftmt.progress import progress
from graftmt.text import Tokenizer
from graftmt.workers import pool

FORMAT = 1
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


def default_cache_folder() -> Path:
    """`$GRAFTMT_CACHE`, or graftmt's folder in the user's cache."""
    configured = os.environ.get("GRAFTMT_CACHE")
    return Path(configured) if configured else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "graftmt"


def tokenize_corpus(
    corpus: Corpus,
    tokenizer: Tokenizer | Mapping[str, Tokenizer],
    folder: Path | None = None,
    *,
    processes: int | None = None,
    quiet: bool = False,
) -> TokenizedCorpus:
    """Tokenises what is not in the cache yet, languages in parallel, and opens all of it.

    One tokenizer for all languages, or one for each: a new language beside those of a base has its own.
    """
    tokenizers = dict.fromkeys(corpus.languages, tokenizer) if isinstance(tokenizer, Tokenizer) else tokenizer
    folder = default_cache_folder() if folder is None else folder
    keys = {language: cache_key(path, tokenizers[language]) for language, path in corpus.files.items()}
    entries = {language: folder / key for language, key in keys.items()}
    missing = [language for language, entry in entries.items() if not (entry / "text.json").is_file()]
    # Files of the same content share an entry, which is made once.
    missing = list({entries[language]: language for language in missing}.values())
    if missing:
        jobs = [(str(corpus.files[language]), str(entries[language]), tokenizers[language]) for language in missing]
        size = sum(corpus.files[language].stat().st_size for language in missing)
        # Starting processes takes seconds; a small corpus is done before they are there.
        processes = 1 if size < SMALL and processes is None else min(len(jobs), processes or os.cpu_count() or 1)
        with progress(f"tokenising {corpus.split}", len(jobs), quiet=quiet) as report:
            if processes == 1:
                for done, job in enumerate(jobs, 1):
                    _tokenize_file(*job)
                    report.update(done, missing[done - 1])
            else:
                with pool(processes) as workers:
                    for done, _ in enumerate(workers.map(_tokenize_file, *zip(*jobs, strict=True)), 1):
                        report.update(done, missing[done - 1])
    texts = {language: open_text(language, entry) for language, entry in entries.items()}
    check_equal_lengths({language: len(text) for language, text in texts.items()}, corpus)
    return TokenizedCorpus(corpus.split, texts, " ".join(keys.values()))


def cache_key(path: Path, tokenizer: Tokenizer) -> str:
    """A hash of the file's bytes and of the tokenizer."""
    digest = hashlib.sha256(f"{FORMAT} {tokenizer.fingerprint} ".encode())
    try:
        with path.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check that the file is there and may be read.") from None
    return digest.hexdigest()[:32]


def _tokenize_file(path: str, entry: str, tokenizer: Tokenizer) -> None:
    """Reads, encodes and stores one file; a process of its own when several are to be done."""
    kind = np.uint16 if len(tokenizer.vocabulary) <= 1 << 16 else np.uint32
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
    unknown = int((flat == tokenizer.vocabulary.unknown_id).sum())
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    with atomic_folder(Path(entry), unless="text.json") as temporary:  # another run may have tokenised the same text meanwhile
        np.save(temporary / "ids.npy", flat)
        np.save(temporary / "starts.npy", starts)
        facts = {"format": FORMAT, "lines": len(lengths), "tokens": len(flat), "unknown": unknown}
        write_json(temporary / "text.json", facts)


def open_text(language: str, entry: Path) -> TokenizedText:
    """Maps a cache entry into memory, checking that its parts agree."""
    facts = read_json(entry / "text.json", "the token cache")
    try:
        ids = np.load(entry / "ids.npy", mmap_mode="r", allow_pickle=False)
        starts = np.load(entry / "starts.npy", allow_pickle=False)
        unknown_rate = facts["unknown"] / max(1, facts["tokens"])
        if len(starts) != facts["lines"] + 1 or not starts[-1] == len(ids) == facts["tokens"]:
            raise ValueError("sizes do not agree")
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise DataError(f"the token cache {entry} is damaged ({error}); delete that folder and run again.") from None
    return TokenizedText(language, ids, starts, unknown_rate)


def unknown_rates(corpus: TokenizedCorpus, languages: Sequence[str] | None = None) -> dict[str, float]:
    """The share of `<unk>` among the tokens of each language."""
    return {language: corpus.texts[language].unknown_rate for language in languages or corpus.languages}
