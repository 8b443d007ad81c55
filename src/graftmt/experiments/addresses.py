"""Where models, results and texts of jobs are: under a readable name with a hash of all that decides them. Layer 7.

OUTPUT/results/NAME.json                    scores, and how they came to be; of a job that failed, its message
OUTPUT/results/NAME.FINGERPRINT.json        an earlier result, whose model came out otherwise when it was made again
OUTPUT/translations/NAME/SET.DIRECTION.txt  translations
OUTPUT/translations/lines/SET.LANG.txt      the lines that these are scored with
OUTPUT/bases/NAME, runs/NAME, work/NAME     what is needed to resume, and can be deleted; so can OUTPUT/text
OUTPUT/locks                                which process does what
OUTPUT/logs                                 what processes say that were started by another one

NAME is a job's key and a hash of its training settings, its text and its base: model-7-el-seed1.3f9a2c1b. SET is a test set
and a hash of its lines and of how it is translated and scored: test.77ab01c3. Whatever changes, changes the name: nothing is
ever in the way of something else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from graftmt.base import read_base_document
from graftmt.data.corpus import find_files
from graftmt.documents import read_json
from graftmt.experiments.definitions import PROXY, chain_of, run_owner
from graftmt.experiments.job_settings import augmentation_of, set_settings, training_settings
from graftmt.experiments.jobs import Job, Proxy, base_job, described, initial_of, needs, oracle_of, trained, trains
from graftmt.experiments.made import MADE, noted_codes
from graftmt.experiments.profiles import Profile
from graftmt.files import open_regular

WHOLE = 64 << 20
"""Bytes up to which a file is read as a whole; of a larger one, as many pieces as this has MiB are, evenly spread."""
PIECE = 1 << 20


class Addresses:
    """The names of one profile's jobs, for one corpus and one output folder."""

    def __init__(
        self, profile: Profile, output: Path, corpus: Path | None = None, given: Mapping[int, Path] | None = None
    ) -> None:
        """`given`: number of a model → the folder of a base to take for it. Without a corpus, no result is found."""
        self.profile, self.output, self.corpus, self.given = profile, output, corpus, dict(given or {})
        self._names: dict[Job, str] = {}

    # Names

    def name(self, job: Job) -> str | None:
        """None as long as the base that it stands on is neither here nor known from a result, or its proxy is not known."""
        if job not in self._names:
            facts = self.facts(job)
            if facts is None:
                return None
            self._names[job] = f"{job.key}.{short_hash(facts)}"
        return self._names[job]

    def known_name(self, job: Job) -> str:
        """That of a job whose base is here."""
        name = self.name(job)
        assert name is not None, f"the base of {job.key} is not there"
        return name

    def facts(self, job: Job) -> dict[str, Any] | None:
        """All that decides a job's model."""
        if job.kind in ("composition", "pivot"):
            parts = self.parts(job)
            return None if None in parts else {"parts": parts}
        if (given := self._given(job)) is not None:
            return {"fingerprint": read_base_document(given)["fingerprint"]}
        proxy = self.proxy(job)
        if job.plus == PROXY and proxy is None:
            return None
        settings = training_settings(self.profile, job, None if proxy is None else proxy.language)
        facts: dict[str, Any] = {"training": settings, "text": self.text(job)}
        numbers = {"base": initial_of(job)} if trains(job) not in ("base", "bilingual") else {}
        spec = augmentation_of(job) if trains(job) == "pack" else None
        if spec is not None and spec.back_translated and self.profile.augmentation.teacher is not None:
            numbers["teacher"] = self.profile.augmentation.teacher
        for role, number in numbers.items():
            assert number is not None
            facts[role] = self.fingerprint(number)
            if facts[role] is None:
                return None
        return facts

    def parts(self, job: Job) -> list[str | None]:
        """The names of what a job combines."""
        return [self.name(needed) for needed in needs(job, self.profile)]

    def proxy(self, job: Job) -> Proxy | None:
        """What `code:proxy` is for a job: the profile's own, or by the re-trained model, once that is made.

        A pack is named by the language alone: as long as that is the same, it is the same pack.
        """
        if job.plus != PROXY:
            return None
        language, oracle = job.languages[0], oracle_of(job, self.profile)
        if language in self.profile.proxies:
            return Proxy(language=self.profile.proxies[language])
        name = None if oracle is None else self.name(oracle)
        if name is None:
            return None
        codes = noted_codes(self.output / "runs" / name / MADE) or noted_codes(self.result(name)) or {}
        found = codes.get(language)
        return Proxy(language=min(found, key=found.__getitem__), by=name, distances=found) if found else None

    def is_given(self, job: Job) -> bool:
        return self._given(job) is not None

    def _given(self, job: Job) -> Path | None:
        is_base = job.kind == "model" and trains(job) == "base"
        return self.given.get(trained(job).id) if is_base else None

    # Bases

    def base(self, number: int) -> Path:
        return self.given.get(number) or self.output / "bases" / self.known_name(base_job(number))

    def has_base(self, number: int) -> bool:
        return (self.base(number) / "base.json").is_file()

    def fingerprint(self, number: int) -> str | None:
        """Of the base that is here; where it was deleted, of the one that its result is of."""
        if self.has_base(number):
            return str(read_base_document(self.base(number))["fingerprint"])
        path = self.result(self.known_name(base_job(number)))
        return read_json(path, "the result").get("fingerprint") if path.is_file() else None

    def chain(self, number: int) -> list[int]:
        """The bases that come out of one run: where another one follows, this one is its first stage."""
        owner = run_owner(number)
        alone = owner in self.given or str(owner) in self.profile.left_out
        return chain_of(number if alone else owner)

    # Places

    def result(self, name: str) -> Path:
        return self.output / "results" / f"{name}.json"

    def run(self, job: Job) -> Path:
        return self.output / "runs" / self.known_name(job)

    # Text

    def text(self, job: Job) -> dict[str, str]:
        """The files that a job's model is trained and validated on → their digests."""
        kind = trains(job)
        languages = set(job.languages) if kind == "bilingual" else {*self.profile.initial, *job.languages}
        sections = {"bilingual": self.profile.bilingual, "retrain": self.profile.retrain, "substitute": self.profile.substitute}
        section = self.profile.packs if kind == "pack" else sections.get(kind, self.profile.base)
        found = digests(self.corpus, {"train", section.validation.split}, languages)
        if not described(job).data.filtered:
            more = digests(self.profile.corpus.unfiltered, {"train"}, languages)
            found |= {f"unfiltered: {name}": digest for name, digest in more.items()}
        return found

    def text_hash(self, languages: Collection[str], splits: Collection[str] = ("train",), *, filtered: bool = True) -> str:
        """Of the text in some languages."""
        return short_hash(digests(self.corpus if filtered else self.profile.corpus.unfiltered, splits, languages))

    # Test sets

    @cached_property
    def sets(self) -> dict[str, str]:
        """The names of the profile's test sets, with a hash → without."""
        return {
            f"{name}.{short_hash({**set_settings(self.profile, name), 'text': self.test_text(name)})}": name
            for name in self.profile.evaluation.sets
        }

    def sets_of(self, job: Job) -> dict[str, str]:
        """Those that a job is scored on: sets for the last checkpoint are for packs by themselves."""
        alone = job.model is not None and job.kind in ("model", "size") and trains(job) == "pack"
        checkpoint = {name: one.checkpoint for name, one in self.profile.evaluation.sets.items()}
        return {name: plain for name, plain in self.sets.items() if alone or checkpoint[plain] == "best"}

    def test_text(self, name: str) -> dict[str, str]:
        one = self.profile.evaluation.sets[name]
        return digests(one.corpus or self.corpus, {one.split}, {*self.profile.initial, *self.profile.new})


def short_hash(facts: Any) -> str:
    """Of what JSON can hold; the order of keys does not matter."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:8]


def digests(folder: Path | None, splits: Collection[str], languages: Collection[str]) -> dict[str, str]:
    """`train.el` → the digest of that file; what a folder does not have is left out."""
    if folder is None or not folder.is_dir():
        return {}
    return {
        f"{split}.{language}": digest(path)
        for split in sorted(splits)
        for language, path in sorted(find_files(folder, split).items())
        if language in languages
    }


def digest(path: Path) -> str:
    stat = path.stat()
    return _digest(path, stat.st_size, stat.st_mtime_ns)


@cache
def _digest(path: Path, size: int, changed: int) -> str:
    """Read once for all jobs, as long as the file stays as it is."""
    found = hashlib.sha256(f"{size} ".encode())
    with open_regular(path) as handle:
        if size <= WHOLE:
            found.update(handle.read())
        else:
            pieces = WHOLE // PIECE
            for number in range(pieces):
                handle.seek((size - PIECE) * number // (pieces - 1))
                found.update(handle.read(PIECE))
    return found.hexdigest()[:16]
