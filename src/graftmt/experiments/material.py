"""The text that a job's model trains on: the corpus itself, some of its lines, or what augmentation makes of it. Layer 7."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from graftmt.augmentation.augmenting import augment_training
from graftmt.augmentation.line_choice import Spec
from graftmt.base import Base
from graftmt.configuration import to_mapping
from graftmt.data import Corpus
from graftmt.documents import read_json, write_json
from graftmt.errors import DataError
from graftmt.experiments.addresses import short_hash
from graftmt.experiments.job_locks import JobLocks
from graftmt.files import atomic_folder
from graftmt.training import Stopped, SubwordConfig
from graftmt.training.run_text import run_subwords, subwords_file


@dataclass(frozen=True)
class Material:
    """Text for one pack."""

    train: Corpus
    partners: tuple[str, ...]
    seconds: float = 0.0
    """That augmentation took, whenever it was."""


@dataclass(frozen=True)
class Teacher:
    """Who back-translates: a base folder, and the base itself where it is resident."""

    folder: Path
    fingerprint: str
    resident: Base | None
    dtype: str
    beam: int
    device: str


def augmented(
    train: Corpus,
    spec: Spec,
    new: Sequence[str],
    base: Path,
    teacher: Teacher,
    folder: Path,
    *,
    seed: int,
    digest: str,
    locks: JobLocks,
    minutes: float | None,
) -> Material:
    """Made once for all packs that take it. After `minutes` or a kill it resumes.

    `digest`: of the text that it is made from.
    """
    by = [teacher.fingerprint, teacher.beam, teacher.dtype] if spec.back_translated else []
    name = f"{'+'.join(new)}-{spec}-seed{seed}.{short_hash([digest, *by])}"
    output, note, begun = folder / name, folder / f"{name}.json", folder / f"{name}.begun.json"
    # Once it is there it is only looked at, which takes moments.
    with locks.take(f"text-{name}", wait=output.is_dir() and note.is_file()):
        before = _seconds(begun) if begun.is_file() else 0.0
        started = time.monotonic()
        try:
            corpus = augment_training(
                train,
                spec=str(spec),
                new=new,
                base=base,
                folder=output,
                resident=teacher.resident,
                teacher=None if teacher.resident is not None else teacher.folder,
                beam=teacher.beam,
                seed=seed,
                device=teacher.device,
                dtype=teacher.dtype,
                minutes=minutes,
            )
        except Stopped:
            write_json(begun, {"seconds": round(before + time.monotonic() - started, 1)})
            raise
        if not note.is_file():
            write_json(note, {"seconds": round(before + time.monotonic() - started, 1)})
        begun.unlink(missing_ok=True)
    partners = tuple(language for language in corpus.languages if language not in new)
    return Material(corpus, partners, _seconds(note))


def _seconds(note: Path) -> float:
    """How long an augmentation has taken, by its note."""
    found = read_json(note, "the time of the augmentation").get("seconds")
    if not isinstance(found, int | float):
        raise DataError(f"{note} is damaged (it has no seconds); delete it, and the time counts as none.")
    return found


def pairs_in(corpus: Corpus, first: str, second: str) -> list[int]:
    """Numbers of the lines, from 0, that have text in both."""
    both = zip(corpus.lines(first), corpus.lines(second), strict=True)
    return [number for number, pair in enumerate(both) if pair[0].strip() and pair[1].strip()]


def subset(
    train: Corpus, valid: Corpus, pair: tuple[str, str], lines: int, folder: Path, *, seed: int, digest: str, locks: JobLocks
) -> Path:
    """A corpus folder with `lines` line pairs of two languages, and all of their validation text.

    A smaller one of the same seed is part of a larger one.
    """
    output = folder / f"{'-'.join(sorted(pair))}-{lines}-seed{seed}.{digest}"
    if not output.is_dir():
        with locks.take(f"text-size-{output.name}", wait=True):
            if not output.is_dir():
                _choose(train, valid, pair, lines, output, seed)
    return output


def _choose(train: Corpus, valid: Corpus, pair: tuple[str, str], lines: int, output: Path, seed: int) -> None:
    both = np.array(pairs_in(train, *pair))
    if lines > len(both):
        raise DataError(f"{train.folder} has {len(both):,} line pairs of {'-'.join(pair)}; {lines:,} were to be chosen.")
    mark = hashlib.sha256(f"{seed} {' '.join(sorted(pair))}".encode()).digest()
    chosen = set(both[np.random.default_rng(int.from_bytes(mark[:16], "big")).permutation(len(both))[:lines]].tolist())
    with atomic_folder(output) as temporary:
        for language in pair:
            kept = (line for number, line in enumerate(train.lines(language)) if number in chosen)
            _write(temporary / f"train.{language}.txt", kept)
            _write(temporary / f"{valid.split}.{language}.txt", valid.lines(language))


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as handle:
        handle.writelines(f"{line}\n" for line in lines)


def shared_subwords(train: Corpus, options: SubwordConfig, folder: Path, locks: JobLocks, *, digest: str) -> Path:
    """One vocabulary for all packs of the corpus's languages, made once from all of their text."""
    options = replace(options, merges=options.merges * len(train.languages))
    name = f"{'+'.join(train.languages)}.{short_hash([digest, to_mapping(options)])}"
    stored = subwords_file(folder / name, options)
    if not stored.is_file():
        with locks.take(f"text-subwords-{name}", wait=True):
            run_subwords(folder / name, options, train)
    return stored
