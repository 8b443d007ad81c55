"""The text that a pack learns from: found, checked, paired with languages of the base, with a part held out. Layer 6."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graftmt.adding.given_text import Piece, open_text, pieces_of
from graftmt.checked import file_mark, has_mark
from graftmt.data import Corpus
from graftmt.data.corpus import check_equal_lengths, find_files, in_order, segmented
from graftmt.documents import read_json, write_json
from graftmt.errors import ConfigError, DataError, GraftError, LanguageError, nearest
from graftmt.files import atomic_folder, open_regular
from graftmt.text.aliases import english_in
from graftmt.text.languages import check_language_names

FORMAT = 1
FEWEST_LINES = 20
"""Different lines in a new language below which nothing can be held out."""
HELD_OUT_SHARE = 20
"""At most one line in N is held out."""

Check: TypeAlias = Callable[[Corpus, Sequence[str], Sequence[str]], None]
Hashes: TypeAlias = dict[str, NDArray[np.int64]]
"""Per language a number for each line, equal where the texts are; 0 where there is none."""

_SPACES_AND_DIGITS = re.compile(r"[\s\d]+")


@dataclass(frozen=True)
class AddCorpus:
    """What `graftmt add` trains and validates on."""

    train: Corpus
    valid: Corpus
    test: Corpus | None
    partners: tuple[str, ...]
    """The base's languages that the new ones are trained with; the corpora may have more, for zero-shot directions."""
    new: tuple[str, ...]
    held_out: bool
    """Whether `valid` was taken out of the training text here."""
    few: tuple[str, ...] = ()
    """Those of the partners that have only the few lines which `--augment` has added."""
    augmentation: dict[str, Any] | None = None
    """What `--augment` has added, for the pack's card."""

    pieces: tuple[Piece, ...] = ()
    """What the training text was made of, where that was read from several places or other formats."""

    def pairs(self, most: int) -> int:
        """Lines to train on that have text in a new language and in a partner; no more than `most` are counted."""
        sides = ([self.train.lines(name) for name in names] for names in (self.new, self.partners))
        lines = zip(*(zip(*columns, strict=True) for columns in sides), strict=True)
        return sum(islice((1 for new, old in lines if any(map(str.strip, new)) and any(map(str.strip, old))), most))


def open_add_corpus(
    train: Sequence[str],
    *,
    new: Sequence[str],
    base_languages: Sequence[str],
    partners: Sequence[str] | None,
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
    work: Path,
    seed: int,
    held_out_lines: int = 1000,
    check: Check | None = None,
) -> AddCorpus:
    """The corpus in `train`: a folder, a file per language, written LANG=FILE or named as in `data.kab.txt.gz`, a table or
    another format; or several of these, one after the other.

    `partners` are chosen from the text where there is no doubt; `("all",)` means each language of the base that it has.
    Valid and test splits are those given, else the folder's own; without a valid split, one is held out in `work/data`.
    `check` may refuse a split with the new languages and their partners.
    """
    _check_new(new, base_languages)
    if held_out_lines < 1:
        raise ConfigError(f"held_out_lines is {held_out_lines}; validation needs at least 1 line.")
    known = tuple(dict.fromkeys((*new, *base_languages)))
    source = open_text(train, "train", known, new, partners)
    chosen = _choose_partners(partners, source, new, base_languages)
    valid_split = _find_split("valid", valid, train, known, new, chosen)
    test_split = _find_split("test", test, train, known, new, chosen)
    # What is held out is held out in all languages, so all have to be read.
    hashes = hash_lines(source, (*new, *chosen) if valid_split else source.languages, key_of=dict.fromkeys(new, form))
    _check_pairs(source, hashes, new, chosen)
    paired = tuple(partner for partner in chosen if usable_lines(hashes, partner, new).any())
    if paired != chosen and tuple(partners or ()) != ("all",):
        missing = next(partner for partner in chosen if partner not in paired)
        raise _no_pairs(source, missing, new, f"leave {missing} out of --with")
    for split in (source, valid_split, test_split) if check else ():
        if check and split:
            check(split, new, paired)
    pieces = tuple(pieces_of(source))
    if valid_split:
        return AddCorpus(source, valid_split, test_split, paired, tuple(new), held_out=False, pieces=pieces)
    folder = _hold_out(source, hashes, new, paired, work / "data", seed, held_out_lines)
    made = {split: Corpus.open(folder, split, source.languages) for split in ("train", "valid")}
    return AddCorpus(made["train"], made["valid"], test_split, paired, tuple(new), held_out=True, pieces=pieces)


def form(text: str) -> str:
    """What two lines have in common that say the same to a reader of training text: all but case, whitespace and digits."""
    return _SPACES_AND_DIGITS.sub("", text.casefold())


def hash_lines(corpus: Corpus, languages: Iterable[str], key_of: Mapping[str, Callable[[str], str]] | None = None) -> Hashes:
    """Numbers for these languages' lines, by the text without its margins, or by what `key_of` makes of a language's text.

    The numbers themselves differ from one process to the next; which of them are equal does not.
    """
    hashes = {}
    for language in languages:
        key = (key_of or {}).get(language, str.strip)
        keys = map(key, corpus.lines(language))
        hashes[language] = np.fromiter((hash(text) if text else 0 for text in keys), dtype=np.int64)
    check_equal_lengths({language: len(lines) for language, lines in hashes.items()}, corpus)
    return hashes


def usable_lines(hashes: Hashes, language: str, others: Sequence[str]) -> NDArray[np.bool_]:
    """Which lines have text in `language` and in at least one of `others`."""
    translated = np.zeros(len(hashes[language]), dtype=np.bool_)
    for other in others:
        if other in hashes:
            translated |= hashes[other] != 0
    translated &= hashes[language] != 0
    return translated


def _check_new(new: Sequence[str], base_languages: Sequence[str]) -> None:
    check_language_names(new, "languages to add")
    if not new or len(set(new)) < len(new):
        raise LanguageError(f"languages to add: got {', '.join(new) or 'none'}; expected one or several, each once.")
    for language in new:
        if language in base_languages:
            raise LanguageError(
                f"{language} is already one of the base's languages ({', '.join(sorted(base_languages))}); nothing to add."
            )


def _choose_partners(
    asked: Sequence[str] | None, source: Corpus, new: Sequence[str], base_languages: Sequence[str]
) -> tuple[str, ...]:
    candidates = tuple(language for language in source.languages if language not in new)
    if not candidates:
        raise LanguageError(
            f"the text in {source.folder} has no language of the base besides {', '.join(new)}; a pack learns from "
            f"translations into one of: {', '.join(base_languages)}."
        )
    if asked is None:
        if (english := english_in(candidates)) is not None:
            return (english,)
        if len(candidates) == 1:
            return candidates
        raise LanguageError(
            f"the text has several languages of the base: {', '.join(candidates)}; say which to train with: "
            f"--with {candidates[0]}, --with {','.join(candidates[:2])} or --with all."
        )
    if tuple(asked) == ("all",):
        return candidates
    if not asked:
        raise LanguageError(f"no language to train with was given; the text has {', '.join(candidates)}, or write all.")
    for language in asked:
        if language not in base_languages:
            hint = nearest(language, base_languages) or "."
            raise LanguageError(
                f"--with: {language!r} is not one of the base's languages{hint} It has: {', '.join(base_languages)}."
            )
        if language not in candidates:
            raise LanguageError(
                f"--with: the text in {source.folder} has nothing in {language!r}; of the base's languages it has: "
                f"{', '.join(candidates)}."
            )
    return tuple(dict.fromkeys(asked))


def _find_split(
    split: str, given: Sequence[str], train: Sequence[str], known: Sequence[str], new: Sequence[str], partners: Sequence[str]
) -> Corpus | None:
    """The split given, which has to be usable; else the training folder's own where that is usable."""
    if given:
        corpus = open_text(given, split, known, new, partners)
        _check_pairs(corpus, _hashes_of_pairs(corpus, new, partners), new, partners)
        return corpus
    folder = Path(train[0]).expanduser()
    files = find_files(folder, split) if folder.is_dir() and len(train) == 1 else {}
    if not set(new) <= files.keys() or files.keys().isdisjoint(partners):
        return None
    corpus = in_order(Corpus(folder, split, files), known)
    hashes = _hashes_of_pairs(corpus, new, partners)
    return corpus if all(usable_lines(hashes, language, partners).any() for language in new) else None


def _hashes_of_pairs(corpus: Corpus, new: Sequence[str], partners: Sequence[str]) -> Hashes:
    return hash_lines(corpus, [language for language in (*new, *partners) if language in corpus.files])


def _check_pairs(corpus: Corpus, hashes: Hashes, new: Sequence[str], partners: Sequence[str]) -> None:
    for language in new:
        if not usable_lines(hashes, language, partners).any():
            raise _no_pairs(corpus, language, partners, "line i of each file must be the same segment")


def _no_pairs(corpus: Corpus, language: str, others: Sequence[str], advice: str) -> DataError:
    """No line can be used in both: there is none, or those there are say nothing but numbers."""
    both = f"both in {language} and in {' or '.join(others)}"
    if usable_lines(_hashes_of_pairs(corpus, [language], others), language, others).any():
        return DataError(
            f"the {corpus.split} lines that have text {both} are of digits alone ({corpus.folder}); there is no language to be "
            "learned from them. Give text in words."
        )
    return DataError(f"no {corpus.split} line has text {both} ({corpus.folder}); {advice}.")


def _hold_out(
    source: Corpus, hashes: Hashes, new: Sequence[str], partners: Sequence[str], folder: Path, seed: int, limit: int
) -> Path:
    """Splits `source` into train and valid in `folder`, unless that is what is there already."""
    options = {"format": FORMAT, "seed": seed, "held_out_lines": limit, "new": list(new), "partners": list(partners)}
    key = _content_key(source, options)
    if _made_before(folder, key, source.languages):
        return folder
    usable = {language: usable_lines(hashes, language, partners) for language in new}
    held_out = np.zeros(len(hashes[new[0]]), dtype=np.bool_)
    held_out[choose_lines({code: _different(hashes[code], usable[code]) for code in new}, seed, limit)] = True
    trained = ~held_out & ~_same_text(hashes, new, held_out)
    for language in new:
        if not (usable[language] & trained).any():
            raise DataError(
                f"too little text: with {held_out.sum():,} lines held out for validation, and their repetitions left out, "
                f"no line in {language} is left to train on. Give a valid split (--valid), or more text."
            )
    with atomic_folder(folder) as temporary:
        for language in source.languages:
            _write_splits(source, language, held_out, trained, temporary)
        lines = {"train": int(trained.sum()), "valid": int(held_out.sum()), "left_out": int((~trained & ~held_out).sum())}
        files = {language: str(path) for language, path in source.files.items()}
        marks = {path.name: file_mark(path) for path in sorted(temporary.iterdir())}
        facts = {"key": key, **options, "lines": lines, "made_from": files, **segmented(source.files.items()), "files": marks}
        write_json(temporary / "corpus.json", facts)
    return folder


def _content_key(corpus: Corpus, options: Mapping[str, object]) -> str:
    """A hash of the options and of all files."""
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode())
    for language, path in corpus.files.items():
        with open_regular(path) as handle:
            digest.update(f"\n{language} {hashlib.file_digest(handle, 'sha256').hexdigest()}".encode())
    return digest.hexdigest()[:32]


def _made_before(folder: Path, key: str, languages: Sequence[str]) -> bool:
    """Whether the splits are there and whole. Damaged ones are made again, from the same text."""
    if not (folder / "corpus.json").is_file():
        return False
    try:
        facts = read_json(folder / "corpus.json", "the held-out split")
        marks = facts.get("files", {})  # earlier versions stored none
        whole = isinstance(marks, dict) and all(has_mark(folder / name, str(mark)) for name, mark in marks.items())
    except (GraftError, OSError):
        return False
    made = whole and facts.get("key") == key
    return made and all(set(languages) <= find_files(folder, split).keys() for split in ("train", "valid"))


def _different(hashes: NDArray[np.int64], usable: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The usable lines, each text once, where it comes first: a frequent line is no likelier to be held out than a rare one,
    and holding it out does not empty the training text."""
    lines = np.flatnonzero(usable)
    return np.sort(lines[np.unique(hashes[lines], return_index=True)[1]])


def choose_lines(candidates: Mapping[str, NDArray[np.int64]], seed: int, limit: int) -> NDArray[np.int64]:
    """The lines to hold out: at most `limit`, at most 5 % of the candidates of all languages, some of each language.

    Languages with few lines choose first, each an equal part of what is left, less what lines chosen before give it.
    """
    for language, lines in candidates.items():
        if len(lines) < FEWEST_LINES:
            raise DataError(
                f"too little text in {language} to hold some out for validation: {len(lines)} lines have a translation and "
                f"differ in more than digits, at least {FEWEST_LINES} are needed. Give a valid split (--valid), or more text."
            )
    together = np.unique(np.concatenate(list(candidates.values())))
    limit = min(limit, len(together) // HELD_OUT_SHARE)
    random = np.random.default_rng(seed)
    chosen = np.array([], dtype=np.int64)
    for choosing, lines in zip(range(len(candidates), 0, -1), sorted(candidates.values(), key=len), strict=True):
        free = np.setdiff1d(lines, chosen)
        own = len(lines) - len(free)
        count = min(len(lines) // HELD_OUT_SHARE - own, math.ceil((limit - len(chosen)) / choosing))
        count = max(count, 0 if own else 1)
        chosen = np.append(chosen, random.permutation(free)[:count])
    return np.sort(chosen)


def _same_text(hashes: Hashes, new: Sequence[str], held_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The lines whose text in a new language is that of a line held out."""
    same = np.zeros(len(held_out), dtype=np.bool_)
    for language in new:
        texts = hashes[language][held_out]
        same |= np.isin(hashes[language], texts[texts != 0])
    return same


def _write_splits(source: Corpus, language: str, held_out: NDArray[np.bool_], trained: NDArray[np.bool_], folder: Path) -> None:
    """Line i of each language stays aligned with line i of the others, empty or not."""
    with (
        (folder / f"train.{language}.txt").open("w", encoding="utf-8", newline="\n") as train,
        (folder / f"valid.{language}.txt").open("w", encoding="utf-8", newline="\n") as valid,
    ):
        for text, is_held_out, is_trained in zip(source.lines(language), held_out, trained, strict=True):
            if is_held_out:
                valid.write(f"{text}\n")
            elif is_trained:
                train.write(f"{text}\n")
