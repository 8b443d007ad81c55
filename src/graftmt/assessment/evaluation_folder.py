"""The folder of an evaluation: its lines, and each direction's translations and scores, written as they are made. Layer 5.

evaluation.json          what was translated, with what and how; another evaluation is refused
lines/SPLIT.LANG.txt     the test set's lines, as they are scored
SPLIT.SOURCE-TARGET.txt  translations
scores/SPLIT.SOURCE-TARGET.json  figures, and what the translations are known by
report.json, report.md, chrf.png, bleu.png, off-target.png
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graftmt.assessment.off_target import OffTarget
from graftmt.assessment.scoring_pool import Scored
from graftmt.checked import read_checked_json, write_checked_json
from graftmt.configuration import changes, from_mapping
from graftmt.data import Direction
from graftmt.data.line_files import read_lines
from graftmt.errors import ConfigError, DataError, GraftError
from graftmt.evaluation import Score, Scores
from graftmt.files import sweep, write_text
from graftmt.places import EVALUATION, check_place

FORMAT = 1


@dataclass(frozen=True)
class EvaluationFolder:
    """Each file is whole or not there, so that the work can resume from it, whatever stopped it."""

    path: Path
    split: str

    def check(self) -> None:
        """Files of others are safe here, a corpus too. Comes before the lock is taken, which would be one more file."""
        check_place(self.path, EVALUATION)

    def _before(self) -> dict[str, Any] | None:
        """What the evaluation that is there was begun with; others may call their files evaluation.json too."""
        description = self.path / "evaluation.json"
        found = read_checked_json(description, "the evaluation") if description.is_file() else {}
        if not {"format", "base", "split", "directions"} <= found.keys():
            return None
        names = found["directions"]
        if not isinstance(names, list) or not all(
            isinstance(name, str) and "/" not in name for name in (found["split"], *names)
        ):
            raise DataError(f"{description} is damaged (split or directions). Choose another folder (-o), or delete this one.")
        return found

    def begin(self, facts: Mapping[str, Any], directions: Sequence[Direction], *, fresh: bool = False) -> None:
        """Resumes the evaluation in the folder, if it is this one; `fresh` starts over. `check` has been asked."""
        for place in (self.path, self.path / "scores", self.path / "lines"):
            sweep(place)
        before = self._before()
        if before is not None and fresh:
            self._clear(before, directions)
        elif before is not None:
            changed = changes_in_words(before, {"format": FORMAT, **facts})
            if changed:
                raise GraftError(
                    f"{self.path} holds an evaluation that was begun otherwise: {'; '.join(changed)}. Give the command as it "
                    "was to resume it, or start over with --fresh, or write to another folder (-o)."
                )
            return
        write_checked_json(self.path / "evaluation.json", {"format": FORMAT, **facts})

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
        """None if they are not there, not as many as they should be, or not those that were stored: made again then."""
        path = self.translation(direction)
        if not path.is_file():
            return None
        with suppress(DataError):
            found = list(read_lines(path))
            stored = self._score_document(direction).get("translations")
            return found if len(found) == count and stored in (None, digest(found)) else None
        return None

    def store_translations(self, direction: Direction, translations: Sequence[str]) -> None:
        # First what they are known by: after a kill in between, the text that is there is not taken for this one.
        write_checked_json(self.score(direction), {"translations": digest(list(translations))})
        write_text(self.translation(direction), "".join(f"{line}\n" for line in translations))

    def store_lines(self, texts: Mapping[str, Sequence[str]]) -> None:
        for language, lines in texts.items():
            write_text(self.path / "lines" / f"{self.split}.{language}.txt", "".join(f"{line}\n" for line in lines))

    def read_scored(self, direction: Direction, key: str) -> Scored | None:
        """None where they are not there, or were made from other translations or in another way."""
        document = self._score_document(direction)
        if document.get("key") != key:
            return None
        with suppress(ConfigError):  # damaged, or of another version: made again
            found = from_mapping(_Stored, {name: document.get(name) for name in ("scores", "off_target")})
            return Scored(Scores(found.scores), found.off_target)
        return None

    def store_scored(self, direction: Direction, key: str, translations: str, scored: Scored) -> None:
        """`translations`: the digest of those that were scored."""
        write_checked_json(self.score(direction), {"key": key, "translations": translations, **asdict(scored)})

    def _score_document(self, direction: Direction) -> dict[str, Any]:
        """Empty if there is none, or if it is damaged."""
        with suppress(GraftError):
            return read_checked_json(self.score(direction), "scores")
        return {}


@dataclass(frozen=True)
class _Stored:
    """The figures of a direction, in its file."""

    scores: tuple[Score, ...]
    off_target: OffTarget | None


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
