"""Text that is out of step stops `graftmt add` before anything is trained, unless it is forced. Layer 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.data import Corpus
from graftmt.prepare.misalignment import Alignment
from graftmt.prepare.output_folder import corpus_source
from graftmt.prepare.refusal import check_source, refuse


@dataclass
class TextCheck:
    """Asked about each split; remembers what it was asked, for both sides of a language are trained on the same text."""

    force: bool = False
    found: dict[tuple[Path, ...], list[Alignment]] = field(default_factory=dict)

    def __call__(self, corpus: Corpus, new: Sequence[str], partners: Sequence[str]) -> None:
        """Each new language with each partner."""
        for name, part in parts_of(corpus, [*new, *partners]):
            key = (Path(name), *part.files.values())
            if key in self.found:
                continue
            source = corpus_source(part)
            there = [language for language in new if language in part.files]
            alignments = [one for partner in partners if partner in part.files for one in check_source(source, partner, there)]
            self.found[key] = alignments
            refuse(alignments, name, force=self.force)

    def to_list(self) -> list[dict[str, Any]]:
        return [{"text": str(key[0]), **alignment.to_dict()} for key, every in self.found.items() for alignment in every]


def parts_of(corpus: Corpus, languages: Sequence[str]) -> Iterator[tuple[str, Corpus]]:
    """What the corpus was made of, each by the name that it was given under."""
    files = {name: corpus.files[name] for name in dict.fromkeys(languages) if name in corpus.files}
    yield f"the {corpus.split} text in {corpus.folder}", Corpus(corpus.folder, corpus.split, files)
