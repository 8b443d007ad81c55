"""One numbering for the rows of both matrices, for programs whose tokenizers have one: Hugging Face. Layer 5.

Where source and target have the same text and codes, rows keep their numbers. Otherwise the special symbols come first, then
all rows of the source, then those of the target that the source does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graftmt.errors import ExportError
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.target import Job
from graftmt.text import Text
from graftmt.text.protocol import SIDES, Side

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
"""In fairseq's order, which the classes of transformers expect."""
PADDING = 1
_MARKS = "\ue000\ue123\uf8ff"


@dataclass(frozen=True, kw_only=True)
class JointRows:
    """The ids of a tokenizer, and the row of each matrix that each of them is."""

    tokens: tuple[str, ...]
    """A name for each id."""
    source: tuple[int | None, ...]
    """For each id the row of the source matrix; None where it has none."""
    target: tuple[int | None, ...]
    codes: dict[str, int]
    """Tokens that are neither text nor one of the four special symbols: codes of languages, rows without a meaning."""
    mark: str
    """What the tokens that only the target has begin with."""

    @property
    def is_shared(self) -> bool:
        """Whether every row has the number that it has in both matrices."""
        return self.source == self.target == tuple(range(len(self.tokens)))

    def id_of(self, side: str, row: int) -> int:
        return (self.source if side == "source" else self.target).index(row)

    def place(self, matrix: Tensor, side: str, filling: Tensor | None = None) -> Tensor:
        """The matrix with a row for each id; ids without one have zeros, or `filling`."""
        if self.is_shared and len(matrix) == len(self.tokens):
            return matrix
        rows = self.source if side == "source" else self.target
        known = torch.tensor([row is not None and row < len(matrix) for row in rows])
        result = matrix.new_zeros(len(rows), matrix.shape[1])
        if filling is not None:
            result[~known] = filling.to(matrix)
        result[known] = matrix[torch.tensor([row for row in rows if row is not None and row < len(matrix)])]
        return result


def joint_rows(job: Job) -> JointRows:
    sides = {side: job.composition.codec.text_of(side) for side in SIDES}
    stacks = {"source": job.model.encoder, "target": job.model.decoder}
    names = {side: _tokens(job, side, text, len(stacks[side].embedding)) for side, text in sides.items()}
    specials = {side: _specials(text) for side, text in sides.items()}
    mark = next(mark for mark in _MARKS if not any(mark in name for side in names.values() for name in side))
    if names["source"] == names["target"] and _in_order(specials["source"]):
        tokens, both = names["source"], tuple(range(len(names["source"])))
        return _with_codes(tokens, both, both, mark, text_rows={*sides["source"].piece_rows})
    return _joined(sides, names, specials, mark)


def _tokens(job: Job, side: Side, text: Text, rows: int) -> list[str]:
    """Names as transformers has them: `__fr__` for a code."""
    found = row_names(job.composition, side, rows)
    pieces = set(text.piece_rows)
    return [name if row in pieces or not name.startswith("<lang:") else f"__{name[6:-1]}__" for row, name in enumerate(found)]


def _specials(text: Text) -> dict[str, int | None]:
    rows = (text.beginning_id, text.padding_id, text.end_id, text.unknown_id)
    return dict(zip(SPECIALS, rows, strict=True))


def _in_order(specials: dict[str, int | None]) -> bool:
    return list(specials.values()) == list(range(len(SPECIALS)))


def _joined(
    sides: dict[Side, Text], names: dict[Side, list[str]], specials: dict[Side, dict[str, int | None]], mark: str
) -> JointRows:
    tokens = list(SPECIALS)
    rows: dict[Side, list[int | None]] = {side: list(specials[side].values()) for side in names}
    place = {name: number for number, name in enumerate(tokens)}
    text_rows: set[int] = set()
    for side in SIDES:
        pieces, taken = set(sides[side].piece_rows), set(specials[side].values())
        for row, name in enumerate(names[side]):
            if row in taken:
                continue
            known = place.get(name)
            # What only the target writes must not be what the source's text is cut into.
            if known is None or rows[side][known] is not None or (known in text_rows) != (row in pieces):
                known = len(tokens)
                own = name if side == "source" or row not in pieces else mark + name
                tokens.append(own if own not in place else f"{side} {own}")
                place.setdefault(name, known)
                for other in rows.values():
                    other.append(None)
            rows[side][known] = row
            if row in pieces:
                text_rows.add(known)
    return _with_codes(tokens, tuple(rows["source"]), tuple(rows["target"]), mark, text_rows)


def _with_codes(
    tokens: Sequence[str],
    source: tuple[int | None, ...],
    target: tuple[int | None, ...],
    mark: str,
    text_rows: set[int],
) -> JointRows:
    codes = {name: number for number, name in enumerate(tokens) if number >= len(SPECIALS) and number not in text_rows}
    if len(set(tokens)) < len(tokens):
        raise ExportError("two rows of the vocabularies have one name; translate with graftmt, or export to CTranslate2.")
    return JointRows(tokens=tuple(tokens), source=source, target=target, codes=codes, mark=mark)
