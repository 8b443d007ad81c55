"""The folder of an evaluation: its lines, and each direction's translations and scores, written as they are made. Layer 5.

evaluation.json          what was translated, with what and how; another evaluation is refused
lines/SPLIT.LANG.txt     the test set's lines, as they are scored
SPLIT.SOURCE-TARGET.txt  translations
scores/SPLIT.SOURCE-TARGET.json
report.json, report.md, chrf.png, bleu.png, off-target.png
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graftmt.assessment.off_target import OffTarget
from graftmt.assessment.scoring_pool import Scored
from graftmt.configuration import changes
from graftmt.data import Direction
from graftmt.data.corpus import read_lines
from graftmt.errors import DataError, GraftError
from graftmt.evaluation import Score, Scores
from graftmt.files import read_json, write_json, write_text

FORMAT = 1
LEFT = re.compile(r"\.lock|\.evaluation\.json\.\d+\.tmp")
"""All that a kill can leave where there is no evaluation.json, since that is written before anything else."""


@dataclass(frozen=True)
class EvaluationFolder:
    """Each file is whole or not there, so that whatever stops the work, the rest can go on from it."""

    path: Path
    split: str

    def check(self) -> None:
        """Files of others are safe here, a corpus too. Comes before the lock is taken, which would be one more file."""
        if not self.path.is_dir() or self._before() is not None:
            return
        if not all(LEFT.fullmatch(path.name) for path in self.path.iterdir()):
            raise GraftError(f"{self.path} is not empty and no evaluation; choose a new folder.")

    def _before(self) -> dict[str, Any] | None:
        """What the evaluation that is there was begun with; others may call their files evaluation.json too."""
        description = self.path / "evaluation.json"
        found = read_json(description, "the evaluation") if description.is_file() else {}
        return found if {"format", "base", "split", "directions"} <= found.keys() else None

    def begin(self, facts: Mapping[str, Any], directions: Sequence[Direction], *, fresh: bool = False) -> None:
        """Goes on with the evaluation that is there, where it is this one; `fresh` starts over. `check` has been asked."""
        before = self._before()
        if before is not None and fresh:
            self._clear(before, directions)
        elif before is not None:
            changed = changes_in_words(before, {"format": FORMAT, **facts})
            if changed:
                raise GraftError(
                    f"{self.path} holds an evaluation that was begun otherwise: {'; '.join(changed)}. Give the command as it "
                    "was to go on with it, or start over with --fresh, or write to another folder (-o)."
                )
            return
        write_json(self.path / "evaluation.json", {"format": FORMAT, **facts})

    def _clear(self, before: Mapping[str, Any], directions: Sequence[Direction]) -> None:
        """Removes what an evaluation wrote, and nothing else: the folder may be one that people keep other files in."""
        names = {(self.split, str(direction)) for direction in directions}
        names |= {(str(before["split"]), str(name)) for name in before["directions"]}
        for split, name in names:
            (self.path / f"{split}.{name}.txt").unlink(missing_ok=True)
            (self.path / "scores" / f"{split}.{name}.json").unlink(missing_ok=True)
        for name in ("report.json", "report.md", "chrf.png", "bleu.png", "off-target.png"):
            (self.path / name).unlink(missing_ok=True)

    def translation(self, direction: Direction) -> Path:
        return self.path / f"{self.split}.{direction}.txt"

    def score(self, direction: Direction) -> Path:
        return self.path / "scores" / f"{self.split}.{direction}.json"

    def read_translations(self, direction: Direction, count: int) -> list[str] | None:
        """None where they are not there, or not as many as they should be."""
        path = self.translation(direction)
        if not path.is_file():
            return None
        with suppress(DataError):  # damaged: made again
            found = list(read_lines(path))
            return found if len(found) == count else None
        return None

    def store_translations(self, direction: Direction, translations: Sequence[str]) -> None:
        write_text(self.translation(direction), "".join(f"{line}\n" for line in translations))

    def store_lines(self, texts: Mapping[str, Sequence[str]]) -> None:
        for language, lines in texts.items():
            write_text(self.path / "lines" / f"{self.split}.{language}.txt", "".join(f"{line}\n" for line in lines))

    def read_scored(self, direction: Direction, key: str) -> Scored | None:
        """None where they are not there, or were made from other translations or in another way."""
        path = self.score(direction)
        if not path.is_file():
            return None
        with suppress(GraftError, KeyError, TypeError, AttributeError):  # damaged, or of another version: made again
            document = read_json(path, "scores")
            off_target = document["off_target"]
            if document["key"] == key:
                rows = Scores(Score(**row) for row in document["scores"])
                return Scored(rows, None if off_target is None else OffTarget(**off_target))
        return None

    def store_scored(self, direction: Direction, key: str, scored: Scored) -> None:
        write_json(self.score(direction), {"key": key, **asdict(scored)})


def digest(*parts: Any) -> str:
    """Of strings, and of what JSON can hold."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", errors="surrogatepass")).hexdigest()[:32]


def changes_in_words(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`beam was 5, is 1`: what two descriptions do not have in common; of fingerprints and long lists, that they do not."""
    found = []
    for key, old, new in changes(before, now):
        long = max(len(str(old)), len(str(new))) > 60 or key.startswith("text.")
        found.append(f"{key} {'changed' if long else f'was {old}, is {new}'}")
    return found
