"""Text that is out of step stops `graftmt add` before anything is trained, unless it is forced. Layer 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.adding.given_text import piece_lines
from graftmt.data import Corpus
from graftmt.prepare.refusal import check_source, refuse


@dataclass
class TextCheck:
    """Asked about each split; remembers what it was asked, for both sides of a language are trained on the same text."""

    force: bool = False
    found: dict[tuple[Path, ...], list[dict[str, Any]]] = field(default_factory=dict)

    def __call__(self, corpus: Corpus, new: Sequence[str], partners: Sequence[str]) -> None:
        """Each new language with each partner, in each piece that the corpus was made of."""
        key = (corpus.folder, *corpus.files.values())
        if key in self.found:
            return
        self.found[key] = found = []
        for piece, source in piece_lines(corpus, [*new, *partners]):
            there = [language for language in new if language in source.languages]
            alignments = [
                one.counted_from(piece.first_line)
                for partner in partners
                if partner in source.languages
                for one in check_source(source, partner, there)
            ]
            found += [{"text": piece.name, **one.to_dict()} for one in alignments]
            refuse(alignments, piece.name, force=self.force)

    def to_list(self) -> list[dict[str, Any]]:
        return [entry for entries in self.found.values() for entry in entries]
