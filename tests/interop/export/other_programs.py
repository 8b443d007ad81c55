"""Compositions exported to other programs, which are asked what graftmt itself is asked (`native`), in rows of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import ctranslate2
import torch
from interop.export.native import Forced
from transformers import AutoModelForSeq2SeqLM

from graftmt.errors import ExportError
from graftmt.interop.export.component_check import check_components
from graftmt.interop.export.joint_rows import joint_rows
from graftmt.interop.export.plain_model import plain_model
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.target import Job, Sentences
from graftmt.interop.export.targets.ctranslate2 import write_model
from graftmt.interop.export.targets.hugging_face import HuggingFace
from graftmt.packs import Composition

AT_ONCE = 128
Rows = Sequence[Sequence[int]]


class OtherProgram(Protocol):
    def greedy(self, sources: Rows, longest: int) -> list[list[int]]:
        """The translation of each source, without prefix and end; about `longest` tokens at most."""

    def log_probabilities(self, lines: Sequence[Forced]) -> list[list[float]]:
        """Of each token that is given."""


def largest_difference(lines: Sequence[Forced], program: OtherProgram) -> float:
    """Between log-probabilities of given tokens, here and there."""
    found = program.log_probabilities(lines)
    pairs = zip(lines, found, strict=True)
    return max(abs(a - b) for line, theirs in pairs for a, b in zip(line.log_probabilities, theirs, strict=True))


class InCTranslate2:
    def __init__(self, composition: Composition, target: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        write_model(composition, folder)
        model, codec = plain_model(composition.model), composition.codec
        self.sources = row_names(composition, "source", len(model.encoder.embedding))
        self.targets = row_names(composition, "target", len(model.decoder.embedding))
        self.rows = {name: row for row, name in enumerate(self.targets)}
        self.prefix = [self.targets[row] for row in codec.decoder_prefix(target)[1:]]
        self.never = [[self.targets[row]] for row in codec.forbidden if row < len(self.targets)]
        self.end = codec.end_id
        self.model = ctranslate2.Translator(str(folder), intra_threads=1)

    def greedy(self, sources: Rows, longest: int) -> list[list[int]]:
        found = self.model.translate_batch(
            [[self.sources[row] for row in source] for source in sources],
            target_prefix=[self.prefix] * len(sources),
            suppress_sequences=self.never,
            beam_size=1,
            min_decoding_length=0,  # or nothing is never a translation
            max_decoding_length=longest + len(self.prefix),  # the prefix counts there
            max_batch_size=AT_ONCE,
        )
        return [[self.rows[token] for token in one.hypotheses[0]][len(self.prefix) :] for one in found]

    def log_probabilities(self, lines: Sequence[Forced]) -> list[list[float]]:
        """CTranslate2 adds the end to what it is given: a target without one goes there whole, and its end is left out."""
        given = [line.target[:-1] if line.target[-1] == self.end else line.target for line in lines]
        found = self.model.score_batch(
            [[self.sources[row] for row in line.source] for line in lines],
            [[*self.prefix, *(self.targets[row] for row in each)] for each in given],
            max_batch_size=AT_ONCE,
        )
        start = len(self.prefix)
        return [one.log_probs[start : start + len(line.target)] for line, one in zip(lines, found, strict=True)]


class InHuggingFace:
    def __init__(self, composition: Composition, source: str, target: str, folder: Path) -> None:
        """An `ExportError` where the format cannot hold the model."""
        check_components(composition)
        job, program = job_of(composition, source, target), HuggingFace()
        if problem := program.problem(job):
            raise ExportError(problem)
        folder.mkdir(exist_ok=True)
        program.write(job, folder)
        rows = joint_rows(job)
        self.sources, self.targets = (
            {row: number for number, row in enumerate(side) if row is not None} for side in (rows.source, rows.target)
        )
        self.rows = {number: row for row, number in self.targets.items()}
        self.prefix = [self.targets[row] for row in composition.codec.decoder_prefix(target)]
        self.model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def _padded(self, lines: Sequence[Sequence[int]]) -> torch.Tensor:
        longest, padding = max(map(len, lines)), self.model.config.pad_token_id
        return torch.tensor([[*line, *[padding] * (longest - len(line))] for line in lines])

    def _inputs(self, sources: Rows) -> dict[str, torch.Tensor]:
        ids = self._padded([[self.sources[row] for row in source] for source in sources])
        return {"input_ids": ids, "attention_mask": (ids != self.model.config.pad_token_id).long()}

    @torch.inference_mode()
    def greedy(self, sources: Rows, longest: int) -> list[list[int]]:
        """`generation_config.json` says what starts and what never comes out."""
        found: list[list[int]] = []
        ends = {self.model.config.eos_token_id, self.model.config.pad_token_id}
        length = {"max_new_tokens": longest + len(self.prefix), "max_length": None, "num_beams": 1, "early_stopping": False}
        for at in range(0, len(sources), AT_ONCE):
            for one in self.model.generate(**self._inputs(sources[at : at + AT_ONCE]), **length).tolist():
                assert one[: len(self.prefix)] == self.prefix
                ids = one[len(self.prefix) :]
                count = next((number for number, token in enumerate(ids) if token in ends), len(ids))
                found.append([self.rows[token] for token in ids[:count]])
        return found

    @torch.inference_mode()
    def log_probabilities(self, lines: Sequence[Forced]) -> list[list[float]]:
        found: list[list[float]] = []
        for at in range(0, len(lines), AT_ONCE):
            some = lines[at : at + AT_ONCE]
            wanted = [[self.targets[row] for row in line.target] for line in some]
            decoder = self._padded([[*self.prefix, *each[:-1]] for each in wanted])
            scores = self.model(**self._inputs([line.source for line in some]), decoder_input_ids=decoder).logits
            for each, own in zip(wanted, torch.log_softmax(scores[:, len(self.prefix) - 1 :], dim=-1), strict=True):
                found.append(own[: len(each)].gather(1, torch.tensor(each)[:, None])[:, 0].tolist())
        return found


def job_of(composition: Composition, source: str, target: str) -> Job:
    codec = composition.codec
    around = Sentences(
        source=source,
        target=target,
        before=tuple(codec.source_prefix(source, target)),
        after=tuple(codec.source_suffix(source, target)),
        decoder=tuple(codec.decoder_prefix(target)),
    )
    options: dict[str, Any] = {"quantization": "float32", "provenance": {}, "example": ""}
    return Job(composition=composition, model=plain_model(composition.model), directions=(around,), **options)
