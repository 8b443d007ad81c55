"""The augmented corpus folder: the text as it was, what was chosen, what the teacher made of it, and a report. Layer 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graftmt.augmentation.chunks import Work
from graftmt.augmentation.line_choice import Mask, Plan, text_hash
from graftmt.data import Corpus
from graftmt.data.corpus import segmented
from graftmt.prepare.output_folder import corpus_source
from graftmt.prepare.source import Line, Source, write_corpus

DROPPED = ("empty", "unfinished", "too_long", "copies", "duplicates")
"""Why a translation may not be trained on; the last two can be kept."""


@dataclass(frozen=True)
class Outputs:
    """What the teacher made of the lines chosen, chunk by chunk, and which of it is kept."""

    plan: Plan
    work: Work
    chunk_lines: int
    keep_copies: bool = False
    keep_duplicates: bool = False

    def look_over(self, language: str) -> tuple[Mask, dict[str, int]]:
        """Which lines have a translation worth training on, and how many have not, by reason.

        Of several lines with the same translation the first one stays, whatever order they were translated in.
        """
        counts = dict.fromkeys(DROPPED, 0)
        usable = self.plan.chosen[language].copy()
        lines, hashes = [], []
        for done in self.work.results(self.plan, language, self.chunk_lines):
            counts["unfinished"] += len(done.unfinished)
            counts["too_long"] += len(done.too_long)
            counts["copies"] += len(done.copies)
            missing = [line for line, text in zip(done.lines, done.texts, strict=True) if not text]
            counts["empty"] += len(missing) - len({*done.unfinished, *done.too_long})
            usable[missing] = False
            if not self.keep_copies:
                usable[list(done.copies)] = False
            lines.append(np.array(done.lines, dtype=np.int64))
            hashes.append(np.array([text_hash(text) for text in done.texts], dtype=np.uint64))
        numbers, marks = np.concatenate(lines), np.concatenate(hashes)
        numbers, marks = numbers[usable[numbers]], marks[usable[numbers]]
        first = np.zeros(len(numbers), dtype=np.bool_)
        first[np.unique(marks, return_index=True)[1]] = True
        counts["duplicates"] = int((~first).sum())
        if not self.keep_duplicates:
            usable[numbers[~first]] = False
        return usable, counts

    def texts(self, language: str, usable: Mask) -> Iterator[str]:
        """A text for each line of the corpus, empty where there is none."""
        results = self.work.results(self.plan, language, self.chunk_lines)
        texts = ((line, text) for done in results for line, text in zip(done.lines, done.texts, strict=True))
        for number, (chosen, used) in enumerate(zip(self.plan.chosen[language], usable, strict=True)):
            if not chosen:
                yield ""
                continue
            line, text = next(texts)
            assert line == number
            yield text if used else ""


def write_augmented(
    folder: Path, plan: Plan, splits: Mapping[str, Corpus], outputs: Outputs, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Writes the folder and returns the report on it."""
    report: dict[str, Any] = {
        "spec": str(plan.spec),
        "title": plan.spec.title,
        "pairs": {f"{new}-{plan.pivot}": lines for new, lines in plan.with_pivot.items()},
        "languages": {},
        "repeated": plan.repeated,
        "lines": int(plan.kept.sum()),
        "left_out": int((~plan.kept).sum()),
        "notes": plan.notes,
    }
    usable: dict[str, Mask] = {}
    for language, chosen in plan.chosen.items():
        counts = {"chosen": int(chosen.sum())}
        usable[language] = chosen
        if plan.spec.back_translated:
            usable[language], dropped = outputs.look_over(language)
            counts |= dropped
        report["languages"][language] = {**counts, "lines": int(usable[language].sum())}
        report["pairs"] |= plan.pairs(language, usable[language])
    train = splits["train"]
    languages = (*plan.new, plan.pivot, *plan.languages)

    def column(language: str) -> Iterator[str]:
        if language in usable and plan.spec.back_translated:
            return outputs.texts(language, usable[language])
        if language in usable:
            real = zip(train.lines(language), usable[language], strict=True)
            return (text if used else "" for text, used in real)
        return train.lines(language)

    def read() -> Iterator[Line]:
        columns = zip(*map(column, languages), strict=True)
        return (line for line, kept in zip(columns, plan.kept, strict=True) if kept)

    sources = {"train": Source(f"{train.folder}, augmented", languages, read)}
    for split, corpus in splits.items():
        if split != "train":
            sources[split] = corpus_source(corpus)
    made_from = {language: str(path) for language, path in train.files.items()}
    marks = segmented(item for corpus in splits.values() for item in corpus.files.items())
    write_corpus(folder, sources, {"augmentation": {**facts, "report": report}, "made_from": made_from, **marks})
    return report
