"""Corpora by name, downloaded by opustools or mtdata where there is a network, then read as Moses files. Layer 4.

What was downloaded stays in a folder of its own, and is not downloaded again, also where it is refused. One that is there is
whole.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graftmt.errors import ConfigError, DataError
from graftmt.files import atomic_folder
from graftmt.places import check_outside_models
from graftmt.prepare.readers.archives import StoredFile, find_files
from graftmt.prepare.readers.moses import is_moses_file, read_moses
from graftmt.prepare.readers.stored_parts import Limits
from graftmt.prepare.source import Source

PROVIDERS = ("opus", "mtdata")


@dataclass(frozen=True)
class Named:
    """A corpus of OPUS (`Books`, en-fr) or of mtdata (`Statmt-europarl-10-deu-eng`, deu-eng)."""

    provider: str
    name: str
    pair: tuple[str, str]
    release: str | None = None
    """OPUS's. Default: the latest."""

    def __post_init__(self) -> None:
        if self.provider not in PROVIDERS:
            raise ConfigError(f"corpora by name come from {' or '.join(PROVIDERS)}, not from {self.provider!r}.")
        if self.release is not None and self.provider != "opus":
            raise ConfigError(f"--release {self.release}: only OPUS has releases; mtdata's names have a version in them.")
        words = (self.name, *self.pair, *([] if self.release is None else [self.release]))
        if not all(re.fullmatch(r"\w[\w.-]*", word) for word in words):
            raise ConfigError(f"{', '.join(map(repr, words))} should be plain names, such as Books, en, fr and v1.")

    @property
    def folder(self) -> str:
        """What its own folder below the downloads is called, so that no other corpus is taken for it."""
        release = [self.release or "latest"] if self.provider == "opus" else []
        return "-".join([self.name, *self.pair, *release])


def read_named(
    named: Named, downloads: Path, languages: Mapping[str, str] | None = None, *, limits: Limits | None = None
) -> dict[str, Source]:
    """The corpus, by split, from its folder below `downloads`, where it is downloaded unless it is there."""
    folder = downloads / named.folder
    files = _texts(folder, limits)
    if not files:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise DataError(f"{folder} is there, without the text of {named.name!r}; remove it, or choose other --downloads.")
        check_outside_models(folder)
        with atomic_folder(folder) as unfinished:
            _download(named, unfinished)
            if not any(unfinished.iterdir()):
                raise _nothing(named)
        # Only now that the download has its name: where a limit refuses it, it is there for a call with higher ones.
        files = _texts(folder, limits)
        if not files:
            shutil.rmtree(folder)
            raise _nothing(named)
    return read_moses(files, languages)


def _download(named: Named, folder: Path) -> None:
    try:
        (_download_from_opus if named.provider == "opus" else _download_with_mtdata)(named, folder)
    except OSError as error:
        raise DataError(
            f"could not get {named.name!r} from {named.provider}: {error}. Check the network and the space on the disk, then "
            "run the same command again."
        ) from error


def _nothing(named: Named) -> DataError:
    first, second = named.pair
    listing = f"opus_get -s {first} -t {second} -l" if named.provider == "opus" else f"mtdata list -l {first}-{second}"
    return DataError(
        f"{named.provider} gave no text of {named.name!r} in {first}-{second}; is there a network, and does the corpus have "
        f"this pair? `{listing}` lists what there is."
    )


def _texts(folder: Path, limits: Limits | None) -> list[StoredFile]:
    """Moses files, and those in OPUS's zips; mtdata's merged train.en repeats its train-parts."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    try:
        return find_files([folder], lambda name: is_moses_file(name) and not re.match(r"train\.[^/]*$", name), limits=limits)
    except DataError as error:
        if " has no files" in str(error):
            return []
        raise DataError(f"{error} The download stays in {folder}; remove it to have another one.") from None


def _download_from_opus(named: Named, folder: Path) -> None:
    try:
        opustools = importlib.import_module("opustools")
    except ImportError:
        raise DataError("OPUS corpora by name need opustools: pip install 'graftmt[names]'.") from None
    # It prints its progress; standard output is for results.
    with contextlib.redirect_stdout(sys.stderr):
        opustools.OpusGet(
            directory=named.name,
            source=named.pair[0],
            target=named.pair[1],
            release=named.release or "latest",
            preprocess="moses",
            download_dir=str(folder),
            suppress_prompts=True,
        ).get_files()


def _download_with_mtdata(named: Named, folder: Path) -> None:
    if importlib.util.find_spec("mtdata") is None:
        raise DataError("mtdata's corpora need mtdata: pip install 'graftmt[names]'.")
    # Its command line is what it keeps stable; it writes train-parts/NAME.deu and .eng.
    # -P: not a file mtdata.py that lies in the current folder.
    command = [sys.executable, "-P", "-m", "mtdata", "get", "-l", "-".join(named.pair), "-tr", named.name, "-o", str(folder)]
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise DataError(f"mtdata could not get {named.name!r}: it ended with code {done.returncode}; what it said is above.")
