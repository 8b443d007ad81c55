"""Corpora: read, tokenise once, sample, batch. Layer 3."""

from graftmt.data.batching import Batch, BatchMaker, BatchPlan, BatchStream
from graftmt.data.cache import TokenizedCorpus, tokenize_corpus, unknown_rates
from graftmt.data.corpus import Corpus
from graftmt.data.directions import Direction, parse_direction, select_directions
from graftmt.data.line_files import read_lines
from graftmt.data.packing import PackedBatch, PackedMaker, PackedPlan, PackedShape
from graftmt.data.sampling import PairSampler, temperature_probabilities

__all__ = [
    "Batch",
    "BatchMaker",
    "BatchPlan",
    "BatchStream",
    "Corpus",
    "Direction",
    "PackedBatch",
    "PackedMaker",
    "PackedPlan",
    "PackedShape",
    "PairSampler",
    "TokenizedCorpus",
    "parse_direction",
    "read_lines",
    "select_directions",
    "temperature_probabilities",
    "tokenize_corpus",
    "unknown_rates",
]
