"""`graftmt augment`: choose the lines, have them translated, and write it all as a corpus folder like any other. Layer 5."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.augmentation.assembly import DROPPED, Outputs, write_augmented
from graftmt.augmentation.augment_options import AugmentOptions
from graftmt.augmentation.back_translation import (
    BackTranslator,
    Teacher,
    back_translate,
    lines_together,
    missing_chunks,
    search_options,
)
from graftmt.augmentation.chunks import Work, differences
from graftmt.augmentation.line_choice import Plan, Spec, choose_languages, make_plan
from graftmt.base import Base, read_base_text
from graftmt.data import Corpus
from graftmt.data.corpus import check_equal_lengths, find_files, in_order, open_split
from graftmt.devices import choose_device
from graftmt.documents import read_json
from graftmt.engines import Engine
from graftmt.errors import DataError, GraftError
from graftmt.files import open_regular, remove_left
from graftmt.folders import exclusive
from graftmt.packs.named_packs import parse_packs
from graftmt.places import CHUNKS, CORPUS, check_outside_models, check_place
from graftmt.prepare.output_folder import check_replaceable
from graftmt.progress import pace, progress, say
from graftmt.text import languages_of
from graftmt.training.checkpoints import CannotGoOn
from graftmt.training.stopping import Stopped, stop_on_signals

FORMAT = 1
NAMED = 4
"""Languages that a bar names; more are counted."""


@dataclass
class AugmentResult:
    """The corpus folder and how it came to be."""

    folder: Path
    report: dict[str, Any]
    """Also in corpus.json."""
    translated: int = 0
    """Lines translated by this process."""
    seconds: float = 0.0
    made_before: bool = False
    """The folder was there already, from the same text and options."""
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            **self.report,
            "translated_now": self.translated,
            "seconds": round(self.seconds, 1),
            "made_before": self.made_before,
        }


def augment(
    options: AugmentOptions,
    *,
    splits: Mapping[str, Corpus] | None = None,
    resident: Base | None = None,
    search: Engine | None = None,
) -> AugmentResult:
    """Makes the corpus folder, or resumes making it. `splits`: text that is open already; `resident`: the teacher's base;
    `search`: what `translate_with` names, if that is not graftmt itself."""
    started = time.monotonic()
    spec = Spec.parse(options.spec, options.new)
    text = read_base_text(options.base)
    base_languages = languages_of(text)
    known = (*options.new, *base_languages)
    splits = open_splits(options.train, options.new, known) if splits is None else splits
    train, written = splits["train"], text.target_languages
    pivot, languages = choose_languages(
        options.new, train, base_languages, written, pivot=options.pivot, languages=options.languages
    )
    teacher = Teacher(
        base=options.teacher or options.base,
        packs=parse_packs(options.packs),
        device=options.device,
        dtype=options.dtype,
        search=search,
    )
    if spec.back_translated:
        teacher.check(pivot, languages)
    begun = describe_work(options, spec, train, pivot, languages, teacher)
    facts = describe_corpus(options, splits, begun)
    work = Work(options.work)
    check_outside_models(options.output)
    check_place(options.work, CHUNKS)
    with exclusive(options.work, "the augmentation in"):
        try:
            remove_left(options.output)  # also where the corpus is there, and is not written again
            result = made_before(options, facts, [path for corpus in splits.values() for path in corpus.files.values()])
            if options.fresh:
                work.clear()
            if result is None:
                if spec.back_translated:
                    work.begin(begun)
                plan = make_plan(
                    spec,
                    train,
                    new=options.new,
                    pivot=pivot,
                    languages=languages,
                    named=options.languages is not None,
                    seed=options.seed,
                )
                result = carry_out(plan, splits, teacher, work, options, facts, resident)
            work.remove()
        finally:
            if options.work.is_dir() and {path.name for path in options.work.iterdir()} <= {".lock", "work.json"}:
                work.remove()  # nothing was done
    result.seconds = time.monotonic() - started
    return result


def carry_out(
    plan: Plan,
    splits: Mapping[str, Corpus],
    teacher: Teacher,
    work: Work,
    options: AugmentOptions,
    facts: Mapping[str, Any],
    resident: Base | None,
) -> AugmentResult:
    """What was planned: lines translated, where they are to be, and the corpus written."""
    for note in plan.notes:
        say(f"note: {note}")
    result = AugmentResult(options.output, {}, notes=plan.notes)
    if Spec.parse(options.spec, options.new).back_translated:
        result.translated = translate_plan(plan, splits["train"], teacher, work, options, resident)
    outputs = Outputs(plan, work, options.chunk_lines, options.keep_copies, options.keep_duplicates)
    result.report = write_augmented(options.output, plan, splits, outputs, facts)
    return result


def augment_training(
    train: Corpus,
    *,
    spec: str,
    new: Sequence[str],
    base: Path,
    folder: Path,
    pivot: str | None = None,
    resident: Base | None = None,
    teacher: Path | None = None,
    beam: int = 1,
    seed: int = 1,
    device: str = "auto",
    dtype: str = "fp32",
    minutes: float | None = None,
    fresh: bool = False,
) -> Corpus:
    """What `graftmt add --augment` trains on: a training split, after validation text was held out of it, augmented.

    Its languages but the new ones are the partners to train with. `resident`: the base, where it is the teacher too.
    """
    options = AugmentOptions(
        new=tuple(new),
        base=base,
        train=(),
        spec=spec,
        output=folder,
        pivot=pivot,
        teacher=teacher,
        beam=beam,
        seed=seed,
        device=device,
        dtype=dtype,
        minutes=minutes,
        fresh=fresh,
    )
    result = augment(options, splits={"train": train}, resident=resident if teacher is None else None)
    for line in report_lines(result):
        say(line)
    made = Corpus.open(folder, "train")
    return Corpus(
        folder, "train", {name: made.files[name] for name in (*train.languages, *made.languages) if name in made.files}
    )


def describe_work(
    options: AugmentOptions, spec: Spec, train: Corpus, pivot: str, languages: Sequence[str], teacher: Teacher
) -> dict[str, Any]:
    """All that the choice of lines and their translations depend on."""
    read = {*options.new, pivot, *(() if spec.back_translated and spec.lines is not None else languages)}
    facts: dict[str, Any] = {
        "format": FORMAT,
        "spec": str(spec),
        "seed": options.seed,
        "new": list(options.new),
        "pivot": pivot,
        "languages": list(languages),
        "text": {f"train.{language}": _hash_file(path) for language, path in train.files.items() if language in read},
    }
    if spec.back_translated:
        facts |= {"teacher": teacher.facts(), "beam": options.beam, "chunk_lines": options.chunk_lines}
        if options.batch_tokens:
            facts["batch_tokens"] = options.batch_tokens
    return facts


def describe_corpus(options: AugmentOptions, splits: Mapping[str, Corpus], work: Mapping[str, Any]) -> dict[str, Any]:
    """That, and what decides what becomes of the translations."""
    others = {
        f"{split}.{language}": _hash_file(path)
        for split, corpus in splits.items()
        if split != "train"
        for language, path in corpus.files.items()
    }
    return {
        **work,
        "text": {**work["text"], **others},
        "keep_copies": options.keep_copies,
        "keep_duplicates": options.keep_duplicates,
    }


def _hash_file(path: Path) -> str:
    try:
        with open_regular(path) as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()[:32]
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; check the path.") from None


def made_before(options: AugmentOptions, facts: Mapping[str, Any], inputs: Sequence[Path]) -> AugmentResult | None:
    """The corpus that is there, where it is the one asked for; nothing else is overwritten unasked, and never the input."""
    folder = options.output
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    stored = read_json(folder / "corpus.json", "the corpus").get("augmentation") if (folder / "corpus.json").is_file() else None
    if not isinstance(stored, dict) or not _is_report(stored.get("report")):
        check_place(folder, CORPUS)
        raise GraftError(
            f"{folder} is there already, was not made by `graftmt augment` and stays as it is; choose another folder (-o)."
        )
    if options.fresh:
        check_replaceable(folder, inputs)
        return None
    before = {key: value for key, value in stored.items() if key != "report"}
    if changed := differences(before, facts):
        raise CannotGoOn(
            f"{folder} holds a corpus that was made otherwise: {'; '.join(changed)}. Give the command as it was for that one",
        )
    return AugmentResult(folder, stored["report"], made_before=True)


def _is_report(value: Any) -> bool:
    """Whether it has what is read of it later; corpus.json may be damaged, or of another program."""
    if not isinstance(value, dict) or not all(isinstance(value.get(key), dict) for key in ("pairs", "languages")):
        return False
    counts = [*value["pairs"].values(), value.get("lines"), value.get("repeated")]
    for entry in value["languages"].values():
        counts += [entry.get("chosen"), entry.get("lines"), *entry.values()] if isinstance(entry, dict) else [None]
    return isinstance(value.get("title"), str) and all(type(count) is int for count in counts)


def translate_plan(
    plan: Plan, train: Corpus, teacher: Teacher, work: Work, options: AugmentOptions, resident: Base | None
) -> int:
    """All that is chosen and not translated yet; returns how many lines this process translated. Stopped, all is saved."""
    total = sum(int(lines.sum()) for lines in plan.chosen.values())
    # On Ray's machines the device is theirs to find.
    device = choose_device(options.device) if options.engine == "local" else options.device
    search = search_options(device, beam=options.beam, batch_tokens=options.batch_tokens)
    translate = BackTranslator(teacher, plan.pivot, search, resident)
    reused, translated, began = 0, 0, time.monotonic()
    into = ", ".join(plan.languages) if len(plan.languages) <= NAMED else f"{len(plan.languages)} languages"

    with (
        stop_on_signals(options.minutes) as request,
        progress(f"translating into {into}", total) as bar,
    ):

        def hear(lines: int) -> None:
            nonlocal translated
            translated += lines
            left = total - reused - translated
            bar.update(reused + translated, pace(translated, left, time.monotonic() - began))
            if left and request.asked:
                try:
                    request.stop()
                except Stopped as stop:
                    stop.standing = {"translated": reused + translated, "lines": total}
                    raise

        def hear_reused(lines: int) -> None:
            nonlocal reused
            reused += lines
            if lines:
                bar.message(f"{lines:,} lines were translated before")

        together = lines_together(device, options.cluster)
        chunks = missing_chunks(plan, train, work, options.chunk_lines, hear_reused, together=together)
        back_translate(chunks, translate, work, options.cluster, hear)
    assert reused + translated == total
    return translated


def report_lines(result: AugmentResult) -> list[str]:
    """For people: what was made, and what was dropped."""
    report = result.report
    pairs = ", ".join(f"{pair} {lines:,}" for pair, lines in report["pairs"].items())
    lines = [f"{report['title']}: {report['lines']:,} lines in {result.folder} ({pairs})"]
    reasons = {reason: sum(counts.get(reason, 0) for counts in report["languages"].values()) for reason in DROPPED}
    if any(reasons.values()):
        found = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in reasons.items() if count)
        lines.append(f"of the translations: {found}")
    if report["repeated"]:
        lines.append(f"{report['repeated']:,} lines repeat a text and were not considered")
    return lines


def open_splits(train: Sequence[str], new: Sequence[str], known: Sequence[str]) -> dict[str, Corpus]:
    """A folder's splits in the languages known here, or the training text alone where it comes as files."""
    splits = {"train": open_split(train, "train", known, new)}
    folder = Path(train[0]).expanduser()
    if folder.is_dir():
        for split in ("valid", "test"):
            corpus = in_order(Corpus(folder, split, find_files(folder, split)), known)
            if corpus.files:
                # Now, and not when the translations are there and all is written.
                check_equal_lengths({name: sum(1 for _ in corpus.lines(name)) for name in corpus.languages}, corpus)
                splits[split] = corpus
    return splits
