"""Which results a report shows: those of one profile, of the settings given, and of one text. Layer 7.

A folder may have results of several settings. A report in another folder has only what was chosen when it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graftmt.errors import ConfigError, GraftError
from graftmt.experiments.addresses import short_hash
from graftmt.experiments.definitions import PROXY
from graftmt.experiments.job_settings import set_settings, training_settings
from graftmt.experiments.profiles import Profile, known_profiles, load_profile
from graftmt.experiments.reporting.kept_texts import TRANSLATIONS
from graftmt.experiments.reporting.result_files import (
    COMPARISONS,
    Result,
    ResultFile,
    experiments_folder,
    read_files,
    results_folder,
)
from graftmt.experiments.reporting.stored_translations import stored_files


@dataclass(frozen=True)
class Selection:
    """The results to be shown, and how many of the same profile are not."""

    files: list[ResultFile]
    left_out: int

    @property
    def results(self) -> list[Result]:
        current = {one.name: one.document.get("fingerprint") for one in self.files if not one.is_earlier}
        found = []
        for one in self.files:
            fingerprint = one.base.get("fingerprint")
            found.append(one.result(superseded=current.get(str(one.base.get("name")), fingerprint) != fingerprint))
        return found


def select_results(folder: Path, profile: str | None = None, settings: Profile | None = None) -> Selection:
    """All results of one profile; without its name there must be only one.

    `settings`: only those that were made so. Default: the profile of this name, where it comes with graftmt. What a report has
    brought along was chosen when it was made.
    """
    files = read_files(folder)
    profiles = sorted({str(one.document.get("profile") or "") for one in files})
    inside = results_folder(folder)
    if profile is None and len(profiles) > 1:
        raise ConfigError(f"{inside} has results of {', '.join(profiles)}; say which: graftmt experiment report NAME.")
    of_profile = [one for one in files if profile in (None, one.document.get("profile") or "")]
    if not of_profile:
        raise ConfigError(f"{inside} has no results of profile {profile!r}; it has those of {', '.join(profiles)}.")
    name = profile or profiles[0]
    if _is_report(experiments_folder(folder)):
        settings = None
    elif settings is None and name in known_profiles():
        settings = load_profile(name)
    chosen = _of_one_text(of_profile if settings is None else _of_settings(of_profile, settings))
    # Of several of one job on one base, as after an upgrade, the newest.
    newest = {(one.document.get("job"), one.base.get("fingerprint")): one for one in sorted(chosen, key=_age)}
    return Selection(sorted(newest.values(), key=lambda one: one.path), len(of_profile) - len(newest))


def _is_report(folder: Path) -> bool:
    """Whether the results came with a report: next to what it compared, or the translations that it keeps."""
    return (folder / COMPARISONS).is_file() or bool(stored_files(folder / TRANSLATIONS))


def _age(file: ResultFile) -> tuple[bool, str]:
    """The newest last."""
    return _is_addressed(file), str(file.document.get("finished") or "")


def _is_addressed(file: ResultFile) -> bool:
    """Whether its name has a hash of its settings; results of format 1 give way to these."""
    return "format" in file.document


def _of_settings(files: Sequence[ResultFile], settings: Profile) -> list[ResultFile]:
    """Without models of other settings, what stands on them or combines them, and scores of other settings."""
    left_out = {one.name for one in files if not _is_of(one, settings)}
    for _ in range(2):  # packs of such bases, then what combines such packs
        left_out |= {one.name for one in files if left_out & {one.base.get("name"), *(one.document.get("parts") or ())}}
    return [_with_sets(one, settings) for one in files if one.name not in left_out]


def _is_of(file: ResultFile, settings: Profile) -> bool:
    """Of format 1, and of what was given or combined, nothing is known."""
    document = file.document
    if document.get("settings") is None or not _is_addressed(file):
        return True
    job = file.trained_job
    try:
        proxy = document["settings"]["recipe"].partition(f"{PROXY}:")[2].partition(" ")[0] if job.plus == PROXY else None
        return short_hash(training_settings(settings, job, proxy)) == short_hash(document["settings"])
    except (GraftError, KeyError):  # a job that this profile does not have
        return False


def _with_sets(file: ResultFile, settings: Profile) -> ResultFile:
    """Without scores that were made with other settings."""
    if not _is_addressed(file):
        return file

    def kept(scores: dict[str, Any]) -> dict[str, Any]:
        sets = settings.evaluation.sets
        return {
            name: one
            for name, one in scores.items()
            if one["set"] not in sets or one["settings"] == set_settings(settings, one["set"])
        }

    document = {**file.document, "scores": kept(file.document.get("scores") or {})}
    if file.base:
        document["base"] = {**file.base, "scores": kept(file.base["scores"])}
    return replace(file, document=document)


def _of_one_text(files: Iterable[ResultFile]) -> list[ResultFile]:
    """Those that contradict no newer one: no file of text has another digest in them."""
    known: dict[str, str] = {}

    def agrees(text: dict[str, str]) -> bool:
        return all(known.get(name, digest) == digest for name, digest in text.items())

    kept: list[ResultFile] = []
    for file in sorted(files, key=_age, reverse=True):
        if not agrees(file.document.get("text") or {}):
            continue
        known |= file.document.get("text") or {}
        scores: dict[str, Any] = {}
        for name, one in reversed((file.document.get("scores") or {}).items()):
            text = {f"{one['set']}: {part}": digest for part, digest in (one.get("text") or {}).items()}
            repeated = any(one.get("set", name) == other.get("set") for other in scores.values())
            if agrees(text) and not repeated:
                known |= text
                scores = {name: one, **scores}
        if scores or not file.document.get("scores"):
            kept.append(replace(file, document={**file.document, "scores": scores} if scores else file.document))
    return kept
