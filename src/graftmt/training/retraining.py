"""Re-training a base with new languages, the paper's costly baselines: another vocabulary, then all weights on all text.

Layer 4. The rows of the new vocabulary start from those of the old one; the rest is a run of the common loop. The result is a
base of its own, which names its parent; what the base itself becomes worse at in the process is measured by `drift`.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graftmt.base import Base, check_base_place, read_base_document
from graftmt.configuration import to_mapping
from graftmt.data import Corpus, tokenize_corpus, unknown_rates
from graftmt.devices import choose_device
from graftmt.documents import write_json
from graftmt.errors import ConfigError
from graftmt.files import write_text
from graftmt.progress import say
from graftmt.text import SharedText, Text, TextCodec
from graftmt.text.kinds import default_kind
from graftmt.training.bases import make_card
from graftmt.training.checkpoints import Checkpoints
from graftmt.training.drift import Drift, drift_of, scores_before
from graftmt.training.retrain_request import check, check_origin, is_new, origin, retrain_directions, validation_text
from graftmt.training.run_configuration import BASE_MERGES, RetrainConfig
from graftmt.training.run_folder import held_run
from graftmt.training.run_text import report_unknown, run_subwords
from graftmt.training.stages import run_stages, set_up_torch
from graftmt.training.stopping import stop_on_signals
from graftmt.training.training_job import Prepared, WholeModel
from graftmt.training.validation import Validator

BY_ROW = {"source_embedding.weight", "target_embedding.weight", "projection.weight", "projection.bias"}
"""The tensors of a Transformer that have one row for each symbol of the vocabulary."""

COPIED, SUBSTITUTED, NEW = "copied", "substituted", "new"


# Rows


@dataclass(frozen=True)
class RowMap:
    """Where each row of a new vocabulary starts: from a row of the old one, or (None) from noise."""

    sources: tuple[int | None, ...]
    rules: tuple[str, ...]
    """copied, substituted or new, for each row."""
    outdated: tuple[int, ...]
    """Rows of the old vocabulary whose symbols the new one lacks."""

    def counts(self) -> dict[str, int]:
        """How many rows follow which rule, and how many old ones are outdated."""
        found = Counter(self.rules)
        return {rule: found[rule] for rule in (COPIED, SUBSTITUTED, NEW) if found[rule]} | {"outdated": len(self.outdated)}


def map_rows(old: Sequence[str], new: Sequence[str], *, reuse: bool) -> RowMap:
    """A symbol that both vocabularies have keeps its row. With `reuse`, new symbols take the outdated rows in their order.

    Vocabularies are in the order of their merges, then characters, then codes, so that frequent new symbols take rows of
    frequent old ones. Of two vocabularies of one size the map is then a permutation: no row is lost, none is random.
    """
    row_of = {symbol: row for row, symbol in enumerate(old)}
    kept = set(new)
    outdated = tuple(row for row, symbol in enumerate(old) if symbol not in kept)
    spare = iter(outdated if reuse else ())
    sources, rules = [], []
    for symbol in new:
        row = row_of.get(symbol)
        rule = COPIED
        if row is None:
            row = next(spare, None)
            rule = NEW if row is None else SUBSTITUTED
        sources.append(row)
        rules.append(rule)
    return RowMap(tuple(sources), tuple(rules), outdated)


def move_rows(old: Tensor, fresh: Tensor, rows: RowMap) -> Tensor:
    """`fresh` (V', …) with the rows of `old` (V, …) where the map has one: a matrix, or a bias."""
    assert len(fresh) == len(rows.sources), "a row for each symbol of the new vocabulary"
    result = fresh.detach().clone()
    targets = [row for row, source in enumerate(rows.sources) if source is not None]
    sources = [source for source in rows.sources if source is not None]
    result[targets] = old.detach()[sources].to(result)
    return result


def with_vocabulary(base: Base, tokenizer: SharedText, rows: RowMap, seed: int) -> Base:
    """The same model with another vocabulary: rows moved, new ones as in a new model of this seed, all else copied."""
    torch.manual_seed(seed)
    made = Base.create(base.model.config, tokenizer)
    known = dict(base.model.named_parameters())
    with torch.no_grad():
        for name, parameter in made.model.named_parameters():
            parameter.copy_(move_rows(known[name], parameter, rows) if name in BY_ROW else known[name])
    return made


def row_table(old: Sequence[str], new: Sequence[str], rows: RowMap) -> str:
    """rows.tsv: for each row of the new vocabulary its symbol, the rule and the old symbol that it starts from."""
    lines = ["row\tsymbol\trule\tfrom"]
    for row, (symbol, rule, source) in enumerate(zip(new, rows.rules, rows.sources, strict=True)):
        lines.append(f"{row}\t{symbol}\t{rule}\t{'' if source is None else old[source]}")
    return "\n".join(lines) + "\n"


# The run


@dataclass
class RetrainJob:
    """A re-training that is ready to begin."""

    start: Base
    """The parent's weights under the new vocabulary."""
    rows: RowMap
    prepared: Prepared


@dataclass(frozen=True)
class Retrained:
    """What a re-training gave."""

    folder: Path
    fingerprint: str
    parent: str
    method: str
    rows: dict[str, Any]
    drift: Drift | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "base": str(self.folder),
            "fingerprint": self.fingerprint,
            "parent": self.parent,
            "method": self.method,
            "rows": self.rows,
            "scores": None if self.drift is None else self.drift.to_dict(),
        }


def retrain_base(config: RetrainConfig, *, minutes: float | None = None, fresh: bool = False) -> Retrained:
    """Runs what is left of a run; the finished base is in the run's folder as `base`. The parent is not changed.

    A run that exists resumes exactly where it stopped; `fresh` moves it aside and starts over. `minutes` stops cleanly in time.
    """
    started = time.monotonic()
    device = choose_device(config.device)
    languages = check(config, read_base_document(config.base))
    set_up_torch(device, config.threads)
    folder = config.run / "base"
    with held_run(config.run, device, of="retrained base", fresh=fresh) as team:
        check_base_place(folder)
        parent = Base.load(config.base)
        check_origin(config, parent)
        with team.first_alone():
            job = prepare_retraining(config, parent, languages)
        facts = row_facts(job.rows)
        say(describe_rows(facts))
        job.start.model.to(device)
        before = None
        checkpoints = Checkpoints(config.run / "checkpoints", config.keep_checkpoints, RetrainConfig)
        if (latest := checkpoints.latest()) is not None:  # what was begun otherwise is refused before anything is written
            checkpoints.read_state(latest, to_mapping(config), job.prepared.data, job.prepared.marks)
        if team.first:
            old, new = (base.tokenizer.side("source").symbols for base in (parent, job.start))
            unknown = unknown_rates(job.prepared.train)
            document = {"rows": len(new), **origin(config, parent), **facts, "unknown_rates": unknown}
            write_json(config.run / "vocabulary.json", document)
            write_text(config.run / "rows.tsv", row_table(old, new, job.rows))
            before = scores_before(config, parent, device, job.start.model, job.prepared)
        about, model = origin(config, parent), job.start.model
        del parent  # its weights need no longer be held
        left = None if minutes is None else minutes - (time.monotonic() - started) / 60
        with stop_on_signals(left) as request:
            directions = [retrain_directions(config, stage, languages) for stage in config.stages]
            state = run_stages(WholeModel(config, job.prepared, model, directions), request, team)
        card = make_card(config, state)
        validated = [] if job.prepared.validator is None else job.prepared.validator.directions
        drift = drift_of(before, card["validation"], [str(d) for d in validated if is_new(d, config.new)])
        result = Retrained(folder, "", about["parent"], config.method, facts, drift)
        if team.first:
            card |= {**about, "rows_from_parent": facts, "drift": None if drift is None else drift.to_dict()}
            result = replace(result, fingerprint=job.start.save(folder, dtype=config.store_dtype, card=card))
            for line in [] if drift is None else drift.lines():
                say(line)
            say(f"base {result.fingerprint[:16]}, re-trained from {result.parent[:16]}, stored in {folder}")
    return result


def prepare_retraining(config: RetrainConfig, parent: Base, languages: Sequence[str]) -> RetrainJob:
    """Everything before the first step: vocabulary, tokenised text, the rows of the parent under the new vocabulary."""
    train = Corpus.open(config.data.corpus, "train", languages)
    old = parent_text(parent)
    tokenizer = retrain_tokenizer(config, old, train)
    codec = TextCodec(tokenizer)
    rows = map_rows(old.symbols, tokenizer.symbols, reuse=config.method == "substitute")
    tokenized = tokenize_corpus(train, tokenizer, config.data.cache)
    report_unknown(tokenized, len(tokenizer))
    digest = hashlib.sha256(f"{parent.fingerprint} {config.method} ".encode())
    digest.update(tokenized.content.encode())
    validator = None
    if config.validation.lines > 0:
        valid, directions = validation_text(config, languages)
        valid_tokens = tokenize_corpus(valid, tokenizer, config.data.cache)
        validator = Validator.open(
            valid,
            valid_tokens,
            codec,
            directions,
            lines=config.validation.lines,
            translate_lines=config.validation.translate_lines,
            max_length=config.data.max_length,
        )
        digest.update(valid_tokens.content.encode())
    trained = [retrain_directions(config, stage, languages) for stage in config.stages]
    new = [direction for directions in trained for direction in directions if is_new(direction, config.new)]
    share = config.new_directions.probability
    prepared = Prepared(
        codec,
        tokenized,
        validator,
        digest.hexdigest(),
        config.data.max_length,
        marks={"base": parent.fingerprint[:16]},
        fixed={} if share is None else dict.fromkeys(new, share),
        factors={} if share is not None or config.upsample == 1 else dict.fromkeys(new, config.upsample),
    )
    return RetrainJob(with_vocabulary(parent, tokenizer, rows, config.seed), rows, prepared)


def parent_text(parent: Base) -> Text:
    """The vocabulary that is replaced. The new one is of our own kind, in the arrangement of the old one."""
    kind = parent.tokenizer.kind
    if kind != default_kind().name:
        raise ConfigError(
            f"the base's text is of kind {kind!r}, and re-training makes a vocabulary of kind {default_kind().name!r}. "
            "Make a pack with `graftmt add` instead."
        )
    return parent.tokenizer.side("source")


def retrain_tokenizer(config: RetrainConfig, old: Text, train: Corpus) -> SharedText:
    """The new shared vocabulary; the codes of new languages follow those of the base.

    For a substitution it has as many rows as the old one, codes included: the new codes cost as many pieces.
    """
    languages, options = [*old.languages, *config.new], config.subwords
    if config.method == "substitute" and options.model is None:
        options = replace(options, pieces=len(old.piece_rows) - len(config.new))
    text = run_subwords(config.run, options, train, default=BASE_MERGES)
    tokenizer = text.with_codes(languages, old.layout.placement("source"))
    if config.method == "substitute" and len(tokenizer) != len(old):
        raise ConfigError(
            f"substitution keeps the size of the vocabulary: the base has {len(old):,} rows, the new one {len(tokenizer):,}. "
            + ("Leave subwords.model out." if options.model else "There is too little text for that many merges: give more.")
        )
    return tokenizer


def row_facts(rows: RowMap) -> dict[str, Any]:
    """The counts, and the overlap as the paper gives it for ParaCrawl: 78 % of the new tokens, 84 % of the old ones."""
    copied = rows.rules.count(COPIED)
    old = copied + len(rows.outdated)
    return {
        **rows.counts(),
        "new_in_old": round(copied / len(rows.rules), 4),
        "old_in_new": round(copied / old, 4),
    }


def describe_rows(facts: Mapping[str, Any]) -> str:
    names = {COPIED: "copied by token", SUBSTITUTED: "take outdated rows", NEW: "new, random"}
    counts = ", ".join(f"{facts[rule]:,} {words}" for rule, words in names.items() if rule in facts)
    return (
        f"rows: {counts}; {100 * facts['new_in_old']:.1f} % of the new vocabulary was in the old one, "
        f"{100 * facts['old_in_new']:.1f} % of the old one is in the new"
    )
