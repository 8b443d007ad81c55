"""Which lines of a corpus are paired with which of the base's languages: the paper's four ways, read and chosen. Layer 5."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graftmt.data import Corpus
from graftmt.data.corpus import check_equal_lengths
from graftmt.errors import ConfigError, DataError, LanguageError, nearest
from graftmt.text.aliases import english_in

Mask: TypeAlias = NDArray[np.bool_]
Hashes: TypeAlias = NDArray[np.uint64]
"""A number for each line, equal where the texts are; 0 where there is none."""

FORMS = "multi-aligned, multi-aligned-bt, N or N-bt lines per language, such as 1000, 1k or 1k-bt"

_BACK_TRANSLATED = re.compile(r"(?:[\s_-]+bt|\s*\(\s*bt\s*\))$")
_MULTI_ALIGNED = re.compile(r"(?:(?P<language>[\w-]+)\s+)?multi[\s-]?aligned")
_LINES = re.compile(r"(?P<number>\d[\d,_]*(?:\.\d+)?)\s*(?P<unit>[km]?)(?:\s+lines?(?:\s+(?:per|a)\s+lang(?:uage|\.)?)?)?")
_UNITS = {"": 1, "k": 1000, "m": 1_000_000}


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What to pair a new language with, besides the pivot."""

    lines: int | None = None
    """For each of the base's languages; None: as many as the corpus really has (`multi-aligned`)."""
    back_translated: bool = False
    """Their text is the teacher's translation of the pivot's, rather than the corpus's own."""

    def __post_init__(self) -> None:
        if self.lines is not None and self.lines < 1:
            raise ConfigError(f"augmentation: {self.lines} lines per language; at least 1 is needed.")

    @classmethod
    def parse(cls, text: str, new: Sequence[str] = ()) -> Spec:
        """`multi-aligned`, `multi-aligned-bt`, `1000`, `1k-bt`, or as the paper writes: `1k lines per lang (BT)`.

        >>> str(Spec.parse("100 lines per lang (BT)"))
        '100-bt'
        """
        plain = " ".join(text.casefold().split()).removeprefix("+").strip()
        rest = _BACK_TRANSLATED.sub("", plain)
        back_translated = rest != plain
        if match := _MULTI_ALIGNED.fullmatch(rest):
            language = match["language"]
            if language and language not in (name.casefold() for name in new):
                raise ConfigError(
                    f"augmentation {text!r} is of {language!r}, but what is added is {', '.join(new) or 'not said'}; "
                    "leave the language out: multi-aligned or multi-aligned-bt."
                )
            return cls(back_translated=back_translated)
        if match := _LINES.fullmatch(rest):
            lines = float(re.sub(r"[,_]", "", match["number"])) * _UNITS[match["unit"]]
            if lines != int(lines) or lines < 1:
                raise ConfigError(f"augmentation {text!r}: {lines:g} lines per language; expected a whole number from 1.")
            return cls(lines=int(lines), back_translated=back_translated)
        hint = nearest(plain, ("multi-aligned", "multi-aligned-bt", "1000", "1k-bt")) or ";"
        raise ConfigError(f"augmentation {text!r} is not known{hint} expected {FORMS}.")

    def __str__(self) -> str:
        """The canonical form: what `parse` reads and corpora record."""
        return ("multi-aligned" if self.lines is None else str(self.lines)) + ("-bt" if self.back_translated else "")

    @property
    def title(self) -> str:
        """As the paper's tables write it."""
        lines = self.lines
        if lines is None:
            name = "multi-aligned"
        else:
            name = f"{lines // 1000}k lines per lang" if lines % 1000 == 0 else f"{lines} lines per lang"
        return name + (" (BT)" if self.back_translated else "")


def choose_languages(
    new: Sequence[str],
    train: Corpus,
    base_languages: Sequence[str],
    written: Sequence[str],
    *,
    pivot: str | None = None,
    languages: Sequence[str] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The pivot, and the other languages to pair the new ones with: by default all that the base has `written`."""
    for language in new:
        if language in base_languages:
            raise LanguageError(f"{language} is already one of the base's languages ({', '.join(base_languages)}).")
    partners = [language for language in train.languages if language in base_languages]
    pivot = pivot or english_in(partners) or (partners[0] if len(partners) == 1 else "")
    if not pivot:
        raise LanguageError(
            f"the text in {train.folder} has {', '.join(partners) or 'none'} of the base's languages; say with --pivot which "
            f"one {', '.join(new)} is paired with and can be translated from."
        )
    if pivot not in partners:
        raise LanguageError(
            f"--pivot: {pivot!r} is not among the base's languages in {train.folder}{nearest(pivot, partners) or '.'} Those "
            f"are: {', '.join(partners) or 'none'}."
        )
    if languages is None:
        return pivot, tuple(language for language in written if language != pivot)
    for language in languages:
        if language not in base_languages or language == pivot:
            others = [name for name in base_languages if name != pivot]
            why = "is the pivot, which is there anyway" if language == pivot else "is not one of the base's languages"
            raise LanguageError(
                f"--languages: {language!r} {why}{nearest(language, others) or '.'} Choose among: {', '.join(others)}."
            )
    return pivot, tuple(dict.fromkeys(languages))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Per language of the base, the lines of the corpus to be paired with it. A byte for each line and language."""

    spec: Spec
    new: tuple[str, ...]
    pivot: str
    chosen: dict[str, Mask]
    """Language → which lines; every language here has at least one."""
    kept: Mask
    """Lines that have text in a new language and in another one."""
    with_pivot: dict[str, int]
    """New language → how many lines it has together with the pivot."""
    spoken: dict[str, Mask]
    """New language → the lines that have text in it."""
    repeated: int
    """Lines not considered because their text had come before."""
    notes: list[str] = field(default_factory=list)

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.chosen)

    def lines(self, language: str) -> NDArray[np.int64]:
        """Numbers of the lines chosen for a language, from 0, in order."""
        return np.flatnonzero(self.chosen[language])

    def pairs(self, language: str, lines: Mask) -> dict[str, int]:
        """`el-fr` → how many of these lines, which have text in fr, have text in el."""
        return {f"{new}-{language}": int((spoken & lines).sum()) for new, spoken in self.spoken.items()}


def make_plan(
    spec: Spec, corpus: Corpus, *, new: Sequence[str], pivot: str, languages: Sequence[str], named: bool, seed: int
) -> Plan:
    """Chooses lines for each of `languages`, as many as there are up to what the spec says.

    A text is chosen once: lines that repeat one are passed over. Which ones, depends on the corpus, the seed and the two
    languages alone. `named`: the languages were asked for by name, so that one without lines is an error; else it is noted.
    """
    hashes = {language: text_hashes(corpus, language) for language in (*new, pivot)}
    check_equal_lengths({language: len(lines) for language, lines in hashes.items()}, corpus)
    spoken = {language: hashes[language] != 0 for language in new}
    with_pivot = {language: spoken[language] & (hashes[pivot] != 0) for language in new}
    _check_pivot(corpus, with_pivot, pivot)
    choice = _Choice(corpus, spec, seed, spoken)
    distinct = {name: first_of_each(np.flatnonzero(lines), hashes[pivot]) for name, lines in with_pivot.items()}
    for language in languages:
        real = None
        if language in corpus.languages and not (spec.back_translated and spec.lines is not None):
            real = text_hashes(corpus, language)
            check_equal_lengths({new[0]: len(hashes[new[0]]), language: len(real)}, corpus)
        if spec.back_translated:
            choice.from_pivot(language, distinct, real)
        else:
            choice.from_real(language, {name: hashes[name] for name in new}, real)
    _check_chosen(choice, languages, named)
    repeated = sum(int(lines.sum()) - len(distinct[name]) for name, lines in with_pivot.items()) if spec.back_translated else 0
    return Plan(
        spec=spec,
        new=tuple(new),
        pivot=pivot,
        chosen=choice.chosen,
        kept=np.logical_or.reduce([*with_pivot.values(), *choice.chosen.values()]),
        with_pivot={name: int(lines.sum()) for name, lines in with_pivot.items()},
        spoken=spoken,
        repeated=repeated + choice.repeated,
        notes=choice.notes,
    )


class _Choice:
    """The lines chosen so far, and what is worth saying about them."""

    def __init__(self, corpus: Corpus, spec: Spec, seed: int, spoken: Mapping[str, Mask]) -> None:
        self.corpus, self.spec, self.seed, self.spoken = corpus, spec, seed, spoken
        self.chosen: dict[str, Mask] = {}
        self.missing: list[str] = []
        self.repeated = 0
        self.notes: list[str] = []

    def from_pivot(self, language: str, distinct: Mapping[str, NDArray[np.int64]], real: Hashes | None) -> None:
        """Lines to translate; for `multi-aligned-bt` as many as really have text in the language."""
        wanted = {
            name: self.spec.lines or (0 if real is None else int((lines & (real != 0)).sum()))
            for name, lines in self.spoken.items()
        }
        self._spread(language, distinct, wanted)

    def from_real(self, language: str, new: Mapping[str, Hashes], real: Hashes | None) -> None:
        """Lines that have text in the language."""
        if real is None:
            self.missing.append(language)
            return
        together = {name: lines & (real != 0) for name, lines in self.spoken.items()}
        if self.spec.lines is None:
            self._take(language, np.logical_or.reduce(list(together.values())))
            return
        distinct = {}
        for name, lines in together.items():
            # Both texts as one number; the multiplication (modulo 2^64) tells (a, b) from (b, a).
            distinct[name] = first_of_each(np.flatnonzero(lines), new[name] * np.uint64(0x9E3779B97F4A7C15) + real)
            self.repeated += int(lines.sum()) - len(distinct[name])
        self._spread(language, distinct, dict.fromkeys(together, self.spec.lines))

    def _spread(self, language: str, candidates: Mapping[str, NDArray[np.int64]], wanted: Mapping[str, int]) -> None:
        """For each new language; a line chosen for one counts for all that it has text in."""
        chosen = np.zeros(len(next(iter(self.spoken.values()))), dtype=np.bool_)
        for name, lines in candidates.items():
            free = lines[~chosen[lines]]
            more = wanted[name] - int((chosen & self.spoken[name]).sum())
            if more > len(free):
                got = wanted[name] - more + len(free)
                self.notes.append(
                    f"{name}-{language}: {got:,} lines, not {wanted[name]:,}: the corpus has no more different ones"
                )
            chosen[spread(free, more, f"{self.seed} {name} {language}")] = True
        self._take(language, chosen)

    def _take(self, language: str, lines: Mask) -> None:
        if lines.any():
            self.chosen[language] = lines
        else:
            self.missing.append(language)


def text_hashes(corpus: Corpus, language: str) -> Hashes:
    """A number for each line's text, whitespace aside; the same on every machine."""
    texts = (" ".join(line.split()) for line in corpus.lines(language))
    return np.fromiter((text_hash(text) if text else 0 for text in texts), dtype=np.uint64)


def text_hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


def first_of_each(lines: NDArray[np.int64], hashes: Hashes) -> NDArray[np.int64]:
    """Of the lines with the same text, the first one."""
    return np.sort(lines[np.unique(hashes[lines], return_index=True)[1]])


def spread(lines: NDArray[np.int64], count: int, seed: str) -> NDArray[np.int64]:
    """`count` of the lines, one out of each of as many equal stretches: a corpus in an order of its own is seen whole."""
    if count >= len(lines):
        return lines
    number = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
    edges = np.arange(max(count, 0) + 1, dtype=np.int64) * len(lines) // max(count, 1)
    places = edges[:-1] + (number.random(len(edges) - 1) * np.diff(edges)).astype(np.int64)
    return lines[places]


def _check_pivot(corpus: Corpus, with_pivot: Mapping[str, Mask], pivot: str) -> None:
    for language, lines in with_pivot.items():
        if not lines.any():
            raise DataError(
                f"no line of {corpus.folder} has text both in {language} and in {pivot}; line i of each file must be the same "
                "segment. Is another language its partner? Say so with --pivot."
            )


def _check_chosen(choice: _Choice, languages: Sequence[str], named: bool) -> None:
    if not choice.missing:
        return
    listed, new = ", ".join(choice.missing), " or ".join(choice.spoken)
    what = f"{choice.corpus.folder} has no lines with text both in {new} and in {listed}"
    if choice.spec.back_translated:
        advice = f"`{choice.spec}` translates as many lines as it has; to translate a number of them, write 1k-bt."
    else:
        advice = "Translated lines would do: write 1k-bt."
    if named or len(choice.missing) == len(languages):
        raise LanguageError(f"{what}. {advice}")
    choice.notes.append(f"nothing for {listed}: {what}. {advice}")
