"""The text and the languages that an augmentation is asked for. Layer 5."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graftmt.augmentation.augment_options import AugmentOptions
from graftmt.data import Corpus
from graftmt.data.corpus import check_equal_lengths, find_files, in_order, open_split
from graftmt.errors import LanguageError, nearest
from graftmt.text.aliases import english_in


def open_splits(train: Sequence[str], new: Sequence[str], known: Sequence[str]) -> dict[str, Corpus]:
    """A folder's splits in the languages known here, or the training text alone where it comes as files."""
    splits = {"train": open_split(train, "train", known, new)}
    folder = Path(train[0]).expanduser()
    if folder.is_dir():
        for split in ("valid", "test"):
            corpus = in_order(Corpus(folder, split, find_files(folder, split)), known)
            if corpus.files:
                # Now, and not when the translations are there and all is written.
                check_equal_lengths({name: sum(1 for _ in corpus.lines(name)) for name in corpus.languages}, corpus)
                splits[split] = corpus
    return splits


def choose_languages(
    options: AugmentOptions, train: Corpus, base_languages: Sequence[str], written: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The pivot, and the other languages to pair the new ones with: by default all that the base has `written`."""
    for language in options.new:
        if language in base_languages:
            raise LanguageError(f"{language} is already one of the base's languages ({', '.join(base_languages)}).")
    partners = [language for language in train.languages if language in base_languages]
    pivot = options.pivot or english_in(partners) or (partners[0] if len(partners) == 1 else "")
    if not pivot:
        raise LanguageError(
            f"the text in {train.folder} has {', '.join(partners) or 'none'} of the base's languages; say with --pivot which "
            f"one {', '.join(options.new)} is paired with and can be translated from."
        )
    if pivot not in partners:
        raise LanguageError(
            f"--pivot: {pivot!r} is not among the base's languages in {train.folder}{nearest(pivot, partners) or '.'} Those "
            f"are: {', '.join(partners) or 'none'}."
        )
    if options.languages is None:
        return pivot, tuple(language for language in written if language != pivot)
    for language in options.languages:
        if language not in base_languages or language == pivot:
            others = [name for name in base_languages if name != pivot]
            why = "is the pivot, which is there anyway" if language == pivot else "is not one of the base's languages"
            raise LanguageError(
                f"--languages: {language!r} {why}{nearest(language, others) or '.'} Choose among: {', '.join(others)}."
            )
    return pivot, tuple(dict.fromkeys(options.languages))
