"""Corpora by name, downloaded by opustools or mtdata where there is a network, then read as Moses files. Layer 4.

What was downloaded stays in the folder given, and is not downloaded again.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from graftmt.errors import ConfigError, DataError
from graftmt.prepare.readers.archives import StoredFile, find_files
from graftmt.prepare.readers.moses import is_moses_file, read_moses
from graftmt.prepare.readers.storage import Limits
from graftmt.prepare.source import Source

PROVIDERS = ("opus", "mtdata")


def read_named(
    provider: str,
    name: str,
    pair: tuple[str, str],
    folder: Path,
    languages: Mapping[str, str] | None = None,
    *,
    release: str = "latest",
    limits: Limits | None = None,
) -> dict[str, Source]:
    """A corpus of OPUS (`Books`, en-fr) or of mtdata (`Statmt-europarl-10-deu-eng`, deu-eng), by split."""
    if provider not in PROVIDERS:
        raise ConfigError(f"corpora by name come from {' or '.join(PROVIDERS)}, not from {provider!r}.")
    if not all(re.fullmatch(r"\w[\w.-]*", word) for word in (name, release, *pair)):
        raise ConfigError(
            f"{name!r}, {release!r} and {'-'.join(pair)!r} should be plain names, such as Books, latest and en-fr."
        )
    files = _texts(folder, limits)
    if not files:
        folder.mkdir(parents=True, exist_ok=True)
        if provider == "opus":
            _download_from_opus(name, pair, folder, release)
        else:
            _download_with_mtdata(name, pair, folder)
        files = _texts(folder, limits)
    if not files:
        listing = f"opus_get -s {pair[0]} -t {pair[1]} -l" if provider == "opus" else f"mtdata list -l {'-'.join(pair)}"
        raise DataError(
            f"{provider} put no text of {name!r} in {'-'.join(pair)} into {folder}; is there a network, and does the corpus "
            f"have this pair? `{listing}` lists what there is."
        )
    return read_moses(files, languages)


def _texts(folder: Path, limits: Limits | None) -> list[StoredFile]:
    """Moses files, and those in OPUS's zips; mtdata's merged train.en repeats its train-parts."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    try:
        return find_files([folder], lambda name: is_moses_file(name) and not re.match(r"train\.[^/]*$", name), limits=limits)
    except DataError as error:
        if " has no files" in str(error):
            return []
        raise


def _download_from_opus(name: str, pair: tuple[str, str], folder: Path, release: str) -> None:
    try:
        opustools = importlib.import_module("opustools")
    except ImportError:
        raise DataError("OPUS corpora by name need opustools: pip install 'graftmt[names]'.") from None
    # It prints its progress; standard output is for results.
    with contextlib.redirect_stdout(sys.stderr):
        opustools.OpusGet(
            directory=name,
            source=pair[0],
            target=pair[1],
            release=release,
            preprocess="moses",
            download_dir=str(folder),
            suppress_prompts=True,
        ).get_files()


def _download_with_mtdata(name: str, pair: tuple[str, str], folder: Path) -> None:
    if importlib.util.find_spec("mtdata") is None:
        raise DataError("mtdata's corpora need mtdata: pip install 'graftmt[names]'.")
    # Its command line is what it keeps stable; it writes train-parts/NAME.deu and .eng.
    command = [sys.executable, "-m", "mtdata", "get", "-l", "-".join(pair), "-tr", name, "-o", str(folder)]
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise DataError(f"mtdata could not get {name!r}: it ended with code {done.returncode}; what it said is above.")
