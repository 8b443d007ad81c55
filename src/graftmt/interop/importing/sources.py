"""Where a foreign model comes from: a folder, or an id of Hugging Face, whose files huggingface_hub brings or has. Layer 5."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from graftmt.errors import DataError, GraftError

WANTED = (
    "*.json",
    "*.model",
    "*.spm",
    "*.txt",
    "*.md",
    "model*.safetensors",
)
"""What is brought of a repository; weights in the older format only where there are no others."""
OLD_WEIGHTS = ("pytorch_model*.bin",)

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


class SourceError(GraftError):
    """A model that cannot be brought."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A model on this machine."""

    folder: Path
    name: str
    """Its id, or its folder's name."""
    revision: str | None = None
    """The commit, where it has an id."""


def find_source(source: str, revision: str | None = None) -> Found:
    """The folder of a model; one with an id is downloaded, or found in huggingface_hub's cache."""
    folder = Path(source).expanduser()
    if folder.exists():
        if revision is not None:
            raise DataError(f"--revision is for models with an id; {source} is on this machine and has one version.")
        resolved = folder.resolve()
        name = resolved.name if resolved.is_dir() else resolved.stem
        return Found(folder=folder, name=name)
    if not _ID.fullmatch(source):
        raise DataError(
            f"there is no folder {source}, and it is no id of Hugging Face, such as facebook/nllb-200-distilled-600M; "
            "check the path."
        )
    path = _download(source, revision)
    return Found(folder=path, name=source, revision=path.name if re.fullmatch("[0-9a-f]{40}", path.name) else revision)


def _download(source: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise SourceError(
            f"{source} is an id of Hugging Face, and huggingface_hub is not installed: pip install 'graftmt[hf]'. "
            f"Or {_bring(source)}"
        ) from None
    try:
        path = Path(snapshot_download(source, revision=revision, allow_patterns=list(WANTED)))
        if not any(path.glob("model*.safetensors*")):
            path = Path(snapshot_download(source, revision=revision, allow_patterns=[*WANTED, *OLD_WEIGHTS]))
    except LocalEntryNotFoundError:
        offline = os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
        reason = "HF_HUB_OFFLINE is set" if offline else "there is no network"
        raise SourceError(
            f"{source} is not in the cache of huggingface_hub here, and {reason}. On a machine with a network, {_bring(source)}"
        ) from None
    except (HfHubHTTPError, ValueError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SourceError(
            f"{source} cannot be brought from Hugging Face ({type(error).__name__}: {reason:.300}). Check the id and "
            f"--revision; for models with conditions, log in with `hf auth login`. Or {_bring(source)}"
        ) from None
    return path


def _bring(source: str) -> str:
    name = source.rpartition("/")[2]
    return f"run `hf download {source} --local-dir {name}`, copy the folder here, and give its path instead of the id."
