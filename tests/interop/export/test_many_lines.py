"""Five hundred lines under every recipe: CTranslate2 translates as graftmt does, and gives each token the same probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch
from interop.export.native import log_probabilities, recipes_of_tables, searched, source_rows
from peers import foreign_tokenizers as made
from peers.foreign_models import MODELS

from graftmt import Base, import_model
from graftmt.errors import ExportError
from graftmt.interop.export.plain_model import plain_model
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.targets.ctranslate2 import write_model
from graftmt.packs import Composition, compose

pytestmark = pytest.mark.slow
NEAR = 1e-4
COUNT, LONGEST = 500, 16
TABLES = [("source", recipe) for recipe in recipes_of_tables()["source"]] + [
    ("target", recipe) for recipe in recipes_of_tables()["target"]
]
OTHERS = [
    ("source", "embed + enc-lora-all(4)"),
    ("target", "embed + lora-all(4, alpha=8)"),
    ("source", "embed + parallel-enc-adapters-all(4)"),
    ("target", "embed + parallel-adapters-all(4)"),
    ("source", "embed + code:fixed:en"),
    ("source", "embed + code:none"),
    ("target", "embed + code:proxy:ru"),
    ("target", "embed + code:fixed:fr"),
    ("target", "embed + code:none"),
]
BASES: list[dict[str, Any]] = [
    {"placement": "source", "output_bias": True},
    {"placement": "decoder", "embeddings": "separate", "output_bias": True},
    {"placement": "decoder", "norm": "post", "output_bias": True},
]


@pytest.fixture(scope="module")
def lines(graft_corpus: Path) -> list[str]:
    """Different ones, some with capitals, digits and signs that no vocabulary has."""
    found = (graft_corpus / "train.el.txt").read_text(encoding="utf-8").splitlines()
    messy = [f"{line.upper()}, {number}!" if number % 7 == 0 else line for number, line in enumerate(found)]
    several = [*messy, *(f"{one} {other}" for one, other in zip(messy, reversed(messy), strict=True))]
    return list(islice(dict.fromkeys(several), COUNT))


def ended(tokens: list[int], end: int) -> list[int]:
    """With the end, but for a translation that was cut off: the programs count its length each in their way."""
    return [*tokens, end] if len(tokens) < LONGEST - 1 else tokens[: LONGEST - 1]


def check(composition: Composition, folder: Path, source: str, target: str, lines: Sequence[str]) -> int:
    """How many lines are translated otherwise; each of these is as probable, as far as fp32 can tell."""
    codec = composition.codec
    write_model(composition, folder)
    model = plain_model(composition.model)
    source_names = row_names(composition, "source", len(model.encoder.embedding))
    target_names = row_names(composition, "target", len(model.decoder.embedding))
    prefix = codec.decoder_prefix(target)
    rows = [source_rows(composition, source, target, line) for line in lines]
    ours = searched(composition, source, target, lines, beam=1, max_length=LONGEST)
    there = ctranslate2.Translator(str(folder), intra_threads=1)
    answers = there.translate_batch(
        [[source_names[row] for row in each] for each in rows],
        target_prefix=[[target_names[row] for row in prefix[1:]]] * len(lines),
        suppress_sequences=[[target_names[row]] for row in codec.forbidden],
        beam_size=1,
        min_decoding_length=0,  # or nothing is never a translation
        max_decoding_length=LONGEST + len(prefix) - 1,
        max_batch_size=32,
    )
    theirs = [[target_names.index(token) for token in one.hypotheses[0]][len(prefix) - 1 :] for one in answers]
    assert len({tuple(each) for each in ours}) > 3  # a model that says the same of everything would prove nothing
    ours, theirs = ([ended(each, codec.end_id) for each in found] for found in (ours, theirs))
    different = [number for number in range(len(lines)) if ours[number] != theirs[number]]
    for number in different:
        pair = ours[number], theirs[number]
        one, other = (sum(log_probabilities(composition, rows[number], prefix, each)) for each in pair)
        assert abs(one - other) < NEAR * LONGEST, (lines[number], ours[number], theirs[number])
    scored = there.score_batch(
        [[source_names[row] for row in each] for each in rows],
        [[target_names[row] for row in (*prefix[1:], *each[:-1])] for each in ours],
        max_batch_size=32,
    )
    for row, each, one in zip(rows, ours, scored, strict=True):
        own = log_probabilities(composition, row, prefix, each)
        given = one.log_probs[len(prefix) - 1 :]  # of what it was given and the end, which a cut one has not
        count = len(each) - (each[-1] != codec.end_id)
        assert max(abs(a - b) for a, b in zip(own[:count], given[:count], strict=True)) < NEAR
    return len(different)


def lively(composition: Composition) -> Composition:
    """Random models say the same of everything, and do not end by themselves."""
    parameters = dict(composition.model.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            if parameter.dim() == 2 and "embedding" not in name and "projection" not in name:
                parameter *= 1.8
            elif ("norm" in name and name.endswith("bias")) or name == "projection.bias":
                parameter.zero_()
        parameters["projection.bias"][composition.codec.end_id] = 1.5
    return composition


def is_possible(side: str, recipe: str, base: dict[str, Any]) -> bool:
    """A source pack has no code to choose where the source begins with that of the target."""
    return not (side == "source" and "code:" in recipe and base["placement"] == "source")


CASES = [(base, *each) for base in BASES for each in (*TABLES, *OTHERS) if is_possible(*each, base)]


@pytest.mark.parametrize(("base", "side", "recipe"), CASES, ids=str)
def test_five_hundred_lines(
    composed: Callable[..., Composition], tmp_path: Path, lines: list[str], base: Any, side: str, recipe: str
) -> None:
    composition = lively(composed(*((recipe, "embed") if side == "source" else ("embed", recipe)), **base))
    is_serial = "adapters" in recipe.replace("parallel-enc-adapters", "").replace("parallel-adapters", "")
    if base.get("norm") == "post" and is_serial:
        with pytest.raises(ExportError, match="parallel"):
            write_model(composition, tmp_path)
        return
    assert len(lines) == COUNT
    assert check(composition, tmp_path, "el", "uk", lines) <= COUNT // 50


@pytest.mark.parametrize("name", ["m2m-100", "nllb", "marian", "mbart"])
def test_five_hundred_lines_of_imported_models(name: str, tmp_path: Path) -> None:
    theirs = MODELS[name](tmp_path / "theirs")
    import_model(theirs.folder, tmp_path / "base")
    short = [line for line in made.sample_lines() if line.strip() and len(line) < 60]
    several = [*short, *(f"{one} {other}" for one, other in zip(short, reversed(short), strict=True))]
    lines = list(islice(dict.fromkeys(several), COUNT))
    assert len(lines) == COUNT
    folder = tmp_path / "out"
    folder.mkdir()
    composition = compose(Base.load(tmp_path / "base"), fold=True)
    assert check(composition, folder, theirs.source, theirs.target, lines) <= COUNT // 50
