"""BLEU and chrF, computed by sacreBLEU and never without its signature, and the long table of all scores. Layer 1.

A row is of one job, test set, direction and metric. Tables, averages and files are views of the table.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from graftmt.errors import ConfigError, DataError, GraftError, nearest

Metric = Literal["bleu", "chrf"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf")
METRIC_NAMES: dict[str, str] = {"bleu": "BLEU", "chrf": "chrF"}
"""For people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One figure. `bleu` and `chrf` go from 0 to 100, `off_target` from 0 to 1, and `lines` counts the lines scored."""

    metric: str
    value: float | None
    """None: it cannot be told."""
    signature: str = ""
    """sacreBLEU's, with which others can compute the same."""
    source: str = ""
    target: str = ""
    set: str = ""
    """The test set."""
    job: str = ""

    @property
    def direction(self) -> str:
        """As `en-fr`; an average over several has its name as its source, and no target."""
        return f"{self.source}-{self.target}" if self.target else self.source


class Scores(tuple[Score, ...]):
    """Rows of the table."""

    def select(self, *, set: str | None = None, directions: Collection[str] | None = None) -> Scores:
        """The rows of a test set, of some directions, or both."""
        return Scores(row for row in self if set in (None, row.set) and (directions is None or row.direction in directions))

    def by_pair(self) -> dict[tuple[str, str], Scores]:
        """(source, target) → the rows of that direction."""
        found: dict[tuple[str, str], list[Score]] = {}
        for row in self:
            found.setdefault((row.source, row.target), []).append(row)
        return {pair: Scores(rows) for pair, rows in found.items()}

    def labelled(self, *, set: str, job: str = "") -> Scores:
        """The same rows as those of a test set and a job."""
        return Scores(replace(row, set=set, job=job) for row in self)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Source and target of each direction, once, in the order of the rows."""
        return list(dict.fromkeys((row.source, row.target) for row in self))

    @property
    def directions(self) -> list[str]:
        return list(dict.fromkeys(row.direction for row in self))

    @property
    def sets(self) -> list[str]:
        return list(dict.fromkeys(row.set for row in self))

    def known(self, metric: str) -> list[float]:
        """The values of a metric that there are, in order."""
        return [row.value for row in self if row.metric == metric and row.value is not None]

    def mean(self, metric: str) -> float:
        """Each direction weighs the same; of one row, its value."""
        return fmean(self.known(metric))

    @property
    def bleu(self) -> float:
        return self.mean("bleu")

    @property
    def chrf(self) -> float:
        return self.mean("chrf")

    def share(self, metric: str) -> float | None:
        """As `mean`, None where nothing is known."""
        return self.mean(metric) if self.known(metric) else None

    def averages(self) -> dict[str, Any]:
        """The means over its directions, and how many these are, for a JSON file."""
        found: dict[str, Any] = {**{metric: self.mean(metric) for metric in METRICS}, "directions": len(self.pairs)}
        return {**found, "off_target": self.share("off_target")} if any(row.metric == "off_target" for row in self) else found

    def signatures(self, metric: str) -> list[str]:
        return sorted({row.signature for row in self if row.metric == metric and row.signature})

    def figures(self, digits: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Metric → value of one direction, for a JSON file; rounded where `digits` says so."""
        rounded = {row.metric: row.value for row in self}
        for metric, count in (digits or {}).items():
            if (value := rounded.get(metric)) is not None:
                rounded[metric] = round(value, count)
        return {metric: int(value) if metric == "lines" and value is not None else value for metric, value in rounded.items()}


def joined(tables: Iterable[Scores]) -> Scores:
    """The rows of several tables in one."""
    return Scores(row for table in tables for row in table)


# Primary subtags, because a prefix is not enough: `zha` is Zhuang, which is written in Latin script.
CHINESE = frozenset({"zh", "zho", "chi", "cmn", "yue"})
JAPANESE = frozenset({"ja", "jpn"})

SPM = "spm:"
"""Before the path of a SentencePiece model: spBLEU with a model that is here, where sacreBLEU's own would be downloaded."""


def score_direction(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    source: str,
    target: str,
    tokenize: str | None = None,
) -> Scores:
    """Scores detokenised `hypotheses` against `references`, line by line; `tokenize` is BLEU's tokeniser, as in `bleu_metric`.

    Empty lines are scored as sacreBLEU scores them: leave out lines whose translation is missing beforehand.
    """
    _check_lines(hypotheses, references, f"{source}-{target}")
    bleu = score_bleu(hypotheses, references, tokenize=tokenize or default_tokenizer(target))
    chrf = score_chrf(hypotheses, references)
    rows = (bleu, chrf, Score(metric="lines", value=len(hypotheses)))
    return Scores(replace(row, source=source, target=target) for row in rows)


def score_bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> Score:
    """Corpus BLEU with sacreBLEU's defaults. A corpus without a single 4-gram scores 0, even against itself."""
    _check_lines(hypotheses, references, "BLEU")
    return _score("bleu", bleu_metric(tokenize), hypotheses, references)


def score_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF2 with sacreBLEU's defaults: character n-grams up to 6, no word n-grams."""
    _check_lines(hypotheses, references, "chrF")
    return _score("chrf", CHRF(), hypotheses, references)


def default_tokenizer(target: str) -> str:
    """BLEU's tokeniser for a target language; the signature states which one it was.

    Without MeCab, Japanese is scored on characters: 13a would take a whole sentence for one word.
    """
    primary = re.split(r"[-_]", target.lower(), maxsplit=1)[0]
    if primary in CHINESE:
        return "zh"
    if primary in JAPANESE:
        return "ja-mecab" if _installed("MeCab") and _installed("ipadic") else "char"
    return "13a"


def bleu_metric(tokenize: str) -> BLEU:
    """sacreBLEU's BLEU with one of its tokenisers, or with `spm:PATH`, a SentencePiece model of one's own."""
    if tokenize.startswith(SPM):
        # What sacreBLEU does for flores101 and flores200, but for where the model comes from; the signature says which it was.
        metric = BLEU(tokenize="none", force=True)
        metric.tokenizer = _sentence_pieces(Path(tokenize.removeprefix(SPM)))
        metric.tokenizer_signature = metric.tokenizer.signature()
        return metric
    known = [*sorted(BLEU.TOKENIZERS), f"{SPM}PATH"]
    if tokenize not in BLEU.TOKENIZERS:
        raise ConfigError(f"BLEU has no tokeniser {tokenize!r}; there are: {', '.join(known)}{nearest(tokenize, known)}")
    try:
        # With `none` the text is meant to be tokenised already: sacreBLEU need not warn of it.
        return BLEU(tokenize=tokenize, force=True) if tokenize == "none" else BLEU(tokenize=tokenize)
    except (ImportError, RuntimeError, OSError) as error:  # a missing package, or a model that cannot be downloaded
        reason = " ".join(str(error).split())
        raise GraftError(
            f"BLEU's tokeniser {tokenize!r} cannot be used here: {reason} "
            f"Install what it asks for, or choose another one, such as 13a, char, or {SPM}PATH with a SentencePiece model."
        ) from error


class SentencePieces:
    """A SentencePiece model as one of sacreBLEU's tokenisers."""

    def __init__(self, path: Path) -> None:
        import sentencepiece

        try:
            model = path.read_bytes()
            self.processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
        except OSError as error:
            raise ConfigError(
                f"{SPM}{path}: the SentencePiece model cannot be read ({error.strerror}); FLORES has one for 101 languages and "
                "one for 200, which are downloaded once and given here as files."
            ) from None
        except RuntimeError:
            raise ConfigError(f"{SPM}{path}: this is not a SentencePiece model.") from None
        self.name = re.sub(r"[^\w.-]", "_", path.name)  # a signature is cut at its `|` and `:`
        self.digest = hashlib.sha256(model).hexdigest()

    def signature(self) -> str:
        return f"spm[{self.name},sha256={self.digest[:12]}]"

    def __call__(self, line: str) -> str:
        return " ".join(self.processor.encode(line, out_type=str))


@cache
def _sentence_pieces(path: Path) -> SentencePieces:
    return SentencePieces(path)


def _score(name: str, metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    result = metric.corpus_score(list(hypotheses), [list(references)])
    # Rounding in sacreBLEU's logarithms puts a perfect score a hair above 100.
    value = min(100.0, float(result.score))
    # The signature comes after the score: only then is the number of references known.
    return Score(metric=name, value=value, signature=str(metric.get_signature()))


def _check_lines(hypotheses: Sequence[str], references: Sequence[str], what: str) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{what}: {len(hypotheses)} hypotheses cannot be scored against {len(references)} references; "
            "both need one line per segment, in the same order."
        )
    if not hypotheses:
        raise DataError(f"{what}: 0 hypotheses and 0 references leave nothing to score; check the test set.")


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
