"""`graftmt demo`: corpus, base, two languages added to it, a proof that it is unchanged, and a report. Layer 7."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from graftmt.adding.verification import verify
from graftmt.assessment.direction_lines import Evaluation, evaluate_directions
from graftmt.base import Base, check_base_place, read_base_document
from graftmt.configuration import apply_overrides, from_mapping, load_yaml
from graftmt.data import Corpus, Direction, select_directions
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.demo.demo_packs import GREEK, GREEK_ADAPTERS, PARTNER, UKRAINIAN, PackPlan, make_pack, pack_config, store_pack
from graftmt.demo.phrase_corpus import BASE_LANGUAGES, NEW_LANGUAGES, SPLITS, write_corpus
from graftmt.demo.report import (
    Findings,
    Result,
    draw_figures,
    forgetting_words,
    make_report,
    write_report,
    zero_shot_comparison,
)
from graftmt.devices import choose_device
from graftmt.errors import DataError, GraftError
from graftmt.files import atomic_folder, sweep
from graftmt.folders import make_folder, watched
from graftmt.places import CORPUS, DEMO, check_place
from graftmt.progress import indented, progress, say
from graftmt.training import TrainConfig, train_base
from graftmt.translator import Translator

LANGUAGES = (*BASE_LANGUAGES, *NEW_LANGUAGES)
NAMES = {"en": "English", "fr": "French", "de": "German", "es": "Spanish", "ru": "Russian", "el": "Greek", "uk": "Ukrainian"}


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What `graftmt demo` can be asked for."""

    folder: Path = Path("runs/demo")
    from_scratch: bool = False
    corpus: Path | None = None
    """Text made beforehand. Default: it is made from CLDR."""
    test_lines: int = 100
    beam: int = 5
    pack_steps: int | None = None
    """Training steps of each pack, instead of as many as it takes."""
    device: str = "auto"
    seed: int = 1

    @property
    def training(self) -> Path:
        """The run of a base that is trained from scratch."""
        return self.folder / "training"


@dataclass(frozen=True)
class DemoResult:
    """What was found, and where it is."""

    report: dict[str, Any]
    findings: Findings


def run_demo(options: DemoOptions) -> DemoResult:
    """The whole story; each step says what it does and what came of it. What an earlier try finished is taken as it is."""
    choose_device(options.device)
    SearchOptions(beam=options.beam)  # now, and not after the text is made
    check_place(options.folder, DEMO)
    check_no_other_base(options.folder / "base", options)
    make_folder(options.folder)
    sweep(options.folder)
    with watched(options.folder):
        return tell(options, options.folder / "base")


def tell(options: DemoOptions, base_folder: Path) -> DemoResult:
    """The same in a folder that is ours."""
    seconds: dict[str, float] = {}
    with timed(seconds, "corpus"):
        folder = options.corpus or make_corpus(options.folder / "corpus", options.seed)
        train, valid, test = (Corpus.open(folder, split, LANGUAGES) for split in SPLITS)
    with timed(seconds, "base"):
        if options.from_scratch:
            train_demo_base(options, folder, base_folder)
        else:
            copy_shipped_base(base_folder)
            say(f"2. Base: the one shipped with graftmt, in {base_folder} (train it yourself: graftmt demo --from-scratch).")
        base = Base.load(base_folder, device=choose_device(options.device))
    story = Story(options, Findings(base=base, seconds=seconds), train, valid, test)
    with timed(seconds, "base's directions"):
        story.score_base()
    with timed(seconds, "Greek source pack"):
        say("4. Greek, as a source: a pack of embeddings only, trained on Greek–English. The base stays as it is.")
        story.add(GREEK)
    with timed(seconds, "Ukrainian target pack"):
        say("5. Ukrainian, as a target: embeddings, the last decoder layer and an adapter, trained on English–Ukrainian.")
        story.add(UKRAINIAN)
    with timed(seconds, "Greek to Ukrainian"):
        story.combine()
    with timed(seconds, "Greek source pack with adapters"):
        say("7. To compare: Greek again, with adapters in every encoder layer. They see the code of English alone,")
        say("   and in the paper they forget the others' with more training (its Figure 3). Here, as measured:")
        story.compare_adapters()
    with timed(seconds, "verification"):
        story.verify(base_folder)
    report = make_report(story.findings, from_scratch=options.from_scratch)
    write_report(options.folder, report, story.findings)
    try:
        runs = {name: story.run_folder(plan) for name, plan in (("embed", GREEK), ("adapters", GREEK_ADAPTERS))}
        draw_figures(options.folder, runs, report)
    except GraftError as error:  # no matplotlib: the rest of the report is worth having
        say(f"no figures: {error}")
    return DemoResult(report, story.findings)


@contextmanager
def timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    seconds[step] = time.monotonic() - started


def make_corpus(folder: Path, seed: int) -> Path:
    """Text for the base's languages and the two that are added later; made once, since it depends on nothing but the seed."""
    languages = (*BASE_LANGUAGES, *NEW_LANGUAGES)
    wanted = [folder / f"{split}.{language}.txt" for split in SPLITS for language in languages]
    if (folder / "corpus.json").is_file() and all(path.is_file() for path in wanted):
        say(f"1. Corpus: {folder} is there already.")
        return folder
    check_place(folder, CORPUS)
    say(f"1. Corpus: making text in {len(languages)} languages from CLDR …")
    facts = write_corpus(folder, languages, seed=seed)
    say(f"   {sum(facts['lines'].values()):,} lines a language in {folder}")
    return folder


def check_no_other_base(folder: Path, options: DemoOptions) -> None:
    """A base that an earlier demo put here may be replaced, for the package or the demo's own training has it too."""
    with shipped_base() as path:
        shipped, trained = mark_of(path), mark_of(options.training / "base")
    there = mark_of(folder)
    if there is not None and there == (trained if options.from_scratch else shipped):
        return  # nothing will be written
    check_base_place(folder)
    if there not in (None, shipped, trained):
        languages = ", ".join(read_base_document(folder)["languages"])
        raise GraftError(
            f"{folder} holds another base than the demo's ({languages}), and it stays as it is. Choose another folder for the "
            "demo (--folder), or move the base away."
        )


def shipped_base() -> AbstractContextManager[Path]:
    """The base inside the package, as a folder."""
    return resources.as_file(resources.files("graftmt.demo") / "base")


def mark_of(base: Path) -> str | None:
    """Its fingerprint, where there is one."""
    return str(read_base_document(base)["fingerprint"]) if (base / "base.json").is_file() else None


def put_base(source: Path, folder: Path) -> None:
    """A copy of the base in `source`, unless it is there already; `check_no_other_base` has been asked."""
    if mark_of(folder) == mark_of(source):
        return
    with atomic_folder(folder) as temporary:
        for path in source.iterdir():
            if path.is_file() and path.suffix != ".py":
                shutil.copyfile(path, temporary / path.name)


def copy_shipped_base(folder: Path) -> None:
    """The base inside the package becomes a folder like any other."""
    with shipped_base() as shipped:
        if mark_of(shipped) is None:
            raise DataError("this copy of graftmt has no demo base inside; train it: graftmt demo --from-scratch.")
        put_base(shipped, folder)


def train_demo_base(options: DemoOptions, corpus: Path, folder: Path) -> None:
    """The configuration inside the package, on this machine; resumes an earlier try."""
    present = Corpus.open(corpus, "train").languages
    excluded = [language for language in present if language not in BASE_LANGUAGES]
    with resources.as_file(resources.files("graftmt.demo") / "base.yaml") as path:
        values = load_yaml(path)
    changes = [f"run={options.training}", f"data.corpus={corpus}", f"data.exclude={excluded}", f"device={options.device}"]
    config = from_mapping(TrainConfig, apply_overrides(values, [*changes, f"seed={options.seed}"]))
    say("2. Base: training it from scratch; ten to twenty minutes on two CPU cores.")
    with indented():
        trained = train_base(config)
    put_base(trained, folder)


@dataclass(frozen=True)
class Story:
    """The steps that need a base, in order; each adds to the findings."""

    options: DemoOptions
    findings: Findings
    train: Corpus
    valid: Corpus
    test: Corpus

    @property
    def base(self) -> Base:
        return self.findings.base

    def run_folder(self, plan: PackPlan) -> Path:
        return self.options.folder / "runs" / plan.name

    def score_base(self) -> None:
        """Every direction between the base's languages, on lines whose combination of template and names is not in training."""
        directions = select_directions("multi-parallel", self.base.languages)
        lines, beam = self.options.test_lines, self.options.beam
        say(f"3. The base alone: {lines} held-out lines in each of {len(directions)} directions, beam {beam} …")
        found = self.evaluate(Translator(self.base), directions)
        self.findings.results += [Result(evaluation=evaluation, route="base") for evaluation in found]
        mean = sum(evaluation.scores.chrf for evaluation in found) / len(found)
        say(f"   chrF {mean:.1f} on average; it knows {', '.join(map(NAMES.__getitem__, BASE_LANGUAGES))}")

    def add(self, plan: PackPlan) -> None:
        """A pack of the story proper."""
        self.findings.results += self.make_and_score(plan)

    def compare_adapters(self) -> None:
        """The pack that trains more than embeddings, against the one that does not."""
        self.findings.comparisons += self.make_and_score(GREEK_ADAPTERS, name="enc-adapters-all(64)")
        say(f"   {forgetting_words(zero_shot_comparison(self.findings))}")

    def make_and_score(self, plan: PackPlan, name: str = "") -> list[Result]:
        """Trains one pack, stores it under packs/, and scores its trained and its zero-shot directions."""
        options = self.options
        config = pack_config(
            plan,
            self.run_folder(plan),
            BASE_LANGUAGES,
            steps=options.pack_steps,
            seed=options.seed,
            device=options.device,
        )
        with indented():
            pack = make_pack(config, self.base, self.train, self.valid)
        found = self.evaluate(Translator(self.base, [pack]), plan.directions(BASE_LANGUAGES))
        path = options.folder / "packs" / plan.name
        store_pack(pack, path, self.base, found, options.beam, self.test.split)
        self.findings.packs[plan.name] = pack, path
        trained, *others = (f"{evaluation.direction} {evaluation.scores.chrf:.1f}" for evaluation in found)
        say(f"   chrF on held-out lines: {trained}; zero-shot {', '.join(others)}")
        return [
            Result(
                evaluation=evaluation,
                route="source pack" if plan.side == "source" else "target pack",
                zero_shot=number > 0,
                name=name,
            )
            for number, evaluation in enumerate(found)
        ]

    def combine(self) -> None:
        """Greek to Ukrainian: the two packs in one model, and for comparison two translations in a row."""
        say("6. Greek → Ukrainian: both packs on the same base. Neither has seen the other's language.")
        translator = Translator(self.base, {name: pack for name, (pack, _) in self.findings.packs.items()})
        direction = [Direction(GREEK.language, UKRAINIAN.language)]
        (composed,) = self.evaluate(translator, direction)
        (through,) = self.evaluate(translator, direction, pivot=PARTNER)
        self.findings.results.append(Result(evaluation=composed, route="composition", zero_shot=True))
        self.findings.comparisons.append(Result(evaluation=through, route="pivot", name=f"pivot through {NAMES[PARTNER]}"))
        say(f"   chrF {composed.scores.chrf:.1f} in one go; {through.scores.chrf:.1f} through English, in two")

    def verify(self, base_folder: Path) -> None:
        """The base's files, its tensors and its translations, with all packs installed and used."""
        say("8. Proof: the base with and without the packs …")
        lines = max(1, min(20, self.options.test_lines))
        result = verify(
            base_folder,
            {name: path for name, (_, path) in self.findings.packs.items()},
            texts=self.test.texts(LANGUAGES, lines),
            lines=lines,
            beam=self.options.beam,
            device=str(self.base.model.device),
        )
        self.findings.verification = result
        say(f"   stored tensors have the fingerprint {result.fingerprint[:16]}…: {_yes(result.stored_unchanged)}")
        say(f"   tensors in memory are the same, bit for bit: {_yes(result.resident_unchanged)}")
        say(f"   {result.lines} translations are the same, with the same scores: {_yes(result.outputs_identical)}")

    def evaluate(
        self, translator: Translator, directions: Sequence[Direction], *, pivot: str | None = None
    ) -> list[Evaluation]:
        options = self.options
        search = SearchOptions(beam=options.beam, max_length=120, batch_tokens=batch_tokens_for(self.base.model.device.type))
        total = options.test_lines * len(directions)
        with progress("translating", total) as report:
            return evaluate_directions(
                translator,
                self.test,
                directions,
                lines=options.test_lines,
                pivot=pivot,
                options=search,
                on_batch=lambda done: report.update(done, "lines"),
            )


def _yes(fine: bool) -> str:
    return "yes" if fine else "NO"
