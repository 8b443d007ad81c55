"""An evaluation: all directions translated in large batches, each kept and scored when it is done, and a report. Layer 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import sacrebleu

from graftmt.assessment.direction_lines import DirectionLines, check_directions, direction_lines, translate_directions
from graftmt.assessment.evaluate_options import ScoringOptions
from graftmt.assessment.evaluation_folder import EvaluationFolder, digest
from graftmt.assessment.off_target import Judge, OffTarget, floors
from graftmt.assessment.scoring_pool import Scored, Scorer, ScoringJob, scorer
from graftmt.data import Corpus, Direction
from graftmt.data.corpus import segmented
from graftmt.decoding import SearchOptions
from graftmt.errors import LanguageError, nearest
from graftmt.evaluation import Scores, joined
from graftmt.evaluation.scores import bleu_metric, default_tokenizer
from graftmt.folders import exclusive
from graftmt.prepare.segmentation import desegment, is_chinese
from graftmt.progress import progress
from graftmt.translator import Translator

CHUNK_BATCHES = 32
"""Directions are translated together until they fill about N batches: a kill costs one chunk, full batches save time."""
CHARACTERS_A_TOKEN = 3


@dataclass(frozen=True, kw_only=True)
class AssessOptions(ScoringOptions):
    """What is scored for a model that is loaded, in directions that are known."""

    directions: tuple[Direction, ...]
    source_pack: str | None = None
    target_pack: str | None = None
    search: SearchOptions = field(default_factory=SearchOptions)


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """All directions' figures, and what the report says of how they came to be."""

    scores: Scores
    off_target: Mapping[Direction, OffTarget]
    """Which languages translations are in, where that was looked at."""
    facts: Mapping[str, Any]
    """What was translated, with what and how."""
    texts: Mapping[Direction, tuple[str, str]]
    """Digests of a direction's sources and of its references, by which reports are known to be of the same lines."""
    options: AssessOptions
    new: tuple[str, ...]
    languages: tuple[str, ...]
    """In the order of a heat-map: the base's, then the new ones."""
    judge: Judge | None
    floors: Mapping[str, float | None]
    translated: int
    """Directions translated now; the others had been before."""


def assess(translator: Translator, corpus: Corpus, options: AssessOptions) -> Assessment:
    """Translates what is missing, scores what is not scored; with an `output` folder, all that is done is kept in it."""
    folder = None if options.output is None else EvaluationFolder(options.output, corpus.split)
    if folder is not None:
        folder.check()
    check_directions(translator, options.directions, options.through, options.source_pack, options.target_pack)
    new = new_languages(translator, options)
    unspaced = segmented_languages(corpus, options)
    tokenizers = {target: options.tokenize or default_tokenizer(target) for _, target in options.directions}
    signatures = {name: bleu_metric(name).tokenizer_signature for name in sorted(set(tokenizers.values()))}
    found = direction_lines(corpus, options.directions, lines=options.lines)
    texts = corpus.texts(sorted({language for direction in options.directions for language in direction}), options.lines)
    facts = describe(translator, corpus, options, unspaced, texts)
    judge, floor = make_judge(translator, corpus, options, unspaced) if options.off_target else (None, {})
    as_scored = {one.direction: _as_scored(one, unspaced) for one in found}
    with ExitStack() as stack:
        if folder is not None:
            stack.enter_context(exclusive(folder.path, "the evaluation in", stays=True))
            folder.begin(facts, options.directions, fresh=options.fresh)
            folder.store_lines({name: _unspaced(lines, name in unspaced) for name, lines in texts.items()})
        scoring = stack.enter_context(scorer(judge, sum(len(one.numbers) for one in found)))
        work = _Work(folder, judge, tokenizers, signatures, scoring)
        missing, notes = [], []
        for one in found:
            before = None if folder is None else folder.read_translations(one.direction, len(one.numbers))
            if before is None:
                missing.append(one)
                if folder is not None and (path := folder.translation(one.direction)).exists():
                    notes.append(f"{path} is not what was stored there: it is translated again")
            else:
                work.score(as_scored[one.direction], before)
        for direction, hypotheses in _translate(translator, missing, options, len(found), notes):
            work.translated(as_scored[direction], _unspaced(hypotheses, direction.target in unspaced))
        scored = work.all(options.directions)
    return Assessment(
        scores=joined(one.scores for one in scored.values()),
        off_target={direction: one.off_target for direction, one in scored.items() if one.off_target is not None},
        facts=facts,
        texts={direction: (digest(one.sources), digest(one.references)) for direction, one in as_scored.items()},
        options=options,
        new=new,
        languages=(*(name for name in translator.languages if name not in new), *new),
        judge=judge,
        floors=floor,
        translated=len(missing),
    )


def _translate(
    translator: Translator, missing: Sequence[DirectionLines], options: AssessOptions, of: int, notes: Sequence[str]
) -> Iterator[tuple[Direction, list[str]]]:
    """Each direction with its translations, chunk by chunk; `notes` are told first."""
    done = 0
    title = f"translating {len(missing)} of {of} directions"
    with progress(title, sum(len(one.numbers) for one in missing)) as report:
        for note in notes:
            report.message(note)

        def hear(number: int) -> None:
            report.update(done + number, "lines")

        for chunk in chunks(missing, translator.base.languages, options.search):
            translations = translate_directions(
                translator,
                chunk,
                pivot=options.through,
                source_pack=options.source_pack,
                target_pack=options.target_pack,
                options=options.search,
                on_batch=hear,
            )
            yield from zip((one.direction for one in chunk), translations, strict=True)
            done += sum(len(one.numbers) for one in chunk)


class _Work:
    """Scores that are being made, and those that have been."""

    def __init__(
        self,
        folder: EvaluationFolder | None,
        judge: Judge | None,
        tokenizers: Mapping[str, str],
        signatures: Mapping[str, str],
        scorer: Scorer,
    ) -> None:
        self.folder, self.scorer, self.tokenizers = folder, scorer, tokenizers
        self.how = [sacrebleu.__version__, signatures, None if judge is None else dict(judge.how)]
        self.pending: dict[Direction, tuple[str, str, Future[Scored]]] = {}
        self.done: dict[Direction, Scored] = {}

    def translated(self, lines: DirectionLines, hypotheses: list[str]) -> None:
        """Kept first, scored then; what others have finished meanwhile is kept too."""
        if self.folder is not None:
            self.folder.store_translations(lines.direction, hypotheses)
        self.score(lines, hypotheses)
        for direction in [direction for direction, (*_, future) in self.pending.items() if future.done()]:
            self._finish(direction)

    def score(self, lines: DirectionLines, hypotheses: list[str]) -> None:
        direction = lines.direction
        tokenize = self.tokenizers[direction.target]
        key = digest(self.how, tokenize, hypotheses, lines.references)
        before = None if self.folder is None else self.folder.read_scored(direction, key)
        if before is not None:
            self.done[direction] = before
            return
        job = ScoringJob(*direction, hypotheses, lines.references, tokenize)
        self.pending[direction] = (key, digest(list(hypotheses)), self.scorer.submit(job))

    def all(self, directions: Sequence[Direction]) -> dict[Direction, Scored]:
        for direction in list(self.pending):
            self._finish(direction)
        return {direction: self.done[direction] for direction in directions}

    def _finish(self, direction: Direction) -> None:
        key, translations, future = self.pending.pop(direction)
        self.done[direction] = future.result()
        if self.folder is not None:
            self.folder.store_scored(direction, key, translations, self.done[direction])


def chunks(
    missing: Sequence[DirectionLines], base_languages: Sequence[str], search: SearchOptions
) -> Iterator[list[DirectionLines]]:
    """Directions that are translated together; those that take the same packs stand side by side."""

    def packs(one: DirectionLines) -> tuple[str, ...]:
        return tuple("" if language in base_languages else language for language in one.direction)

    chunk: list[DirectionLines] = []
    size = 0.0
    for one in sorted(missing, key=packs):  # stable: the order given, otherwise
        chunk.append(one)
        size += search.beam * sum(map(len, one.sources)) / CHARACTERS_A_TOKEN
        if size >= CHUNK_BATCHES * search.batch_tokens:
            yield chunk
            chunk, size = [], 0.0
    if chunk:
        yield chunk


def new_languages(translator: Translator, options: AssessOptions) -> tuple[str, ...]:
    """X of the averages: what the packs add, or what was named, as for a base that was trained again with new languages."""
    if options.new is None:
        return tuple(name for name in translator.languages if name not in translator.base.languages)
    for name in options.new:
        if name not in translator.languages:
            raise LanguageError(
                f"--new {name}: this is not a language here{nearest(name, translator.languages) or '.'} "
                f"Languages here: {', '.join(translator.languages)}."
            )
    if options.pivot in options.new:
        raise LanguageError(f"--new {options.pivot}: it is the pivot of the averages (--pivot), and cannot be new too.")
    return options.new


def segmented_languages(corpus: Corpus, options: AssessOptions) -> tuple[str, ...]:
    """Whose text has spaces between Chinese characters that are to be taken out."""
    targets = sorted({language for direction in options.directions for language in direction})
    if options.desegment is not None:
        return tuple(filter(is_chinese, targets)) if options.desegment else ()
    listed = segmented(corpus.files.items()).get("segmented", [])
    return tuple(name for name in targets if name in listed)


def _as_scored(lines: DirectionLines, unspaced: Sequence[str]) -> DirectionLines:
    """The lines as people write them."""
    source, target = (language in unspaced for language in lines.direction)
    return replace(lines, sources=_unspaced(lines.sources, source), references=_unspaced(lines.references, target))


def _unspaced(lines: Sequence[str], wanted: bool) -> list[str]:
    return [desegment(line) for line in lines] if wanted else list(lines)


def describe(
    translator: Translator,
    corpus: Corpus,
    options: AssessOptions,
    unspaced: Sequence[str],
    texts: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """What translations depend on. How they are scored is not in it, nor device and batches: these may change on the way."""
    return {
        "base": translator.base.fingerprint,
        "packs": {name: pack.fingerprint for name, pack in translator.packs.items()},
        "source_pack": options.source_pack,
        "target_pack": options.target_pack,
        "through": options.through,
        "split": corpus.split,
        "lines": options.lines,
        "beam": options.search.beam,
        "length_penalty": options.search.length_penalty,
        "max_length": options.search.max_length,
        "dtype": translator.engine.how,
        "desegmented": list(unspaced),
        "directions": [str(direction) for direction in options.directions],
        "text": {name: digest(lines) for name, lines in texts.items()},
    }


def make_judge(
    translator: Translator, corpus: Corpus, options: AssessOptions, unspaced: Sequence[str]
) -> tuple[Judge, dict[str, float | None]]:
    """Who says which language a line is in, among all that base and packs know; and how wrong that is on the references."""
    texts = {
        name: [line for line in _unspaced(list(islice(corpus.lines(name), options.lines)), name in unspaced) if line.strip()]
        for name in translator.languages
        if name in corpus.languages
    }
    judge = Judge.make(translator.languages, texts)
    targets = sorted({target for _, target in options.directions})
    return judge, floors(judge, targets, texts)
