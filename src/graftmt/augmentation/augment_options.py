"""What can be asked of an augmentation, declared once: Python and the command line read the same fields. Layer 5.

Light to import: `graftmt augment --help` waits for no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graftmt.augmentation.chunk_workers import ChunkEngine
from graftmt.errors import ConfigError, LanguageError
from graftmt.options import argument, option
from graftmt.text.languages import check_language_names

CHUNK_LINES = 512
"""Lines of a chunk: what a kill can cost, and what one batch is made from."""
_TEXT, _TEACHER, _RUN = "Text", "Teacher", "Running"


@dataclass(frozen=True, kw_only=True)
class AugmentOptions:
    """What `graftmt augment` can be asked for."""

    new: tuple[str, ...] = argument(commas=True, metavar="LANG")
    """The new language, such as el; several: el,uk"""

    base: Path = option("--base", "-b", group=_TEACHER)
    """Folder of the base"""
    teacher: Path | None = option("--teacher", default=None, group=_TEACHER)
    """Another base that translates (default: --base)"""
    packs: tuple[str, ...] = option("--packs", "-p", default=(), group=_TEACHER, metavar="PACKS")
    """Packs for the teacher, with commas; NAME=PATH names one"""
    pivot: str | None = option("--pivot", default=None, group=_TEACHER, metavar="LANG")
    """Language to translate from (default: English)"""
    beam: int = option("--beam", default=1, group=_TEACHER)
    """Hypotheses kept; 1 is greedy"""
    translate_with: str = option("--translate-with", default="native", group=_TEACHER, metavar="NAME")
    """native or ctranslate2 (faster on a CPU)"""

    train: tuple[str, ...] = option("--train", group=_TEXT, metavar="TEXT")
    """Corpus folder, or LANG=FILE; repeatable"""
    spec: str = option("--spec", group=_TEXT, metavar="SPEC")
    """N, N-bt, multi-aligned or multi-aligned-bt; -bt: back-translated"""
    languages: tuple[str, ...] | None = option("--languages", default=None, group=_TEXT, commas=True, metavar="LANGS")
    """Of the base, to pair with (default: all but the pivot)"""
    seed: int = option("--seed", default=1, group=_TEXT)
    """Another seed chooses other lines"""
    keep_copies: bool = option("--keep-copies", default=False, group=_TEXT)
    """Keep translations that are the same as their source"""
    keep_duplicates: bool = option("--keep-duplicates", default=False, group=_TEXT)
    """Keep a translation that another line has too"""

    output: Path = option("--output", "-o", group=_RUN, metavar="FOLDER")
    """The corpus folder to make"""
    chunk_lines: int = option("--chunk", default=CHUNK_LINES, group=_RUN, least=1)
    """Lines translated and stored together"""
    batch_tokens: int = option("--batch-tokens", default=0, group=_RUN, least=0)
    """Source tokens × beam at once; 0: by the device"""
    device: str = option("--device", default="auto", group=_RUN, metavar="NAME")
    """cpu, cuda, cuda:1 or auto"""
    dtype: str = option("--dtype", default="fp32", group=_RUN, metavar="TYPE")
    """fp32, bf16 or fp16; on a CPU also int8"""
    engine: Literal["local", "ray"] = option("--engine", default="local", group=_RUN)
    """This process, or the workers of a Ray cluster"""
    ray_address: str | None = option("--ray-address", default=None, group=_RUN, metavar="HOST")
    """A running cluster (default: one on this machine)"""
    workers: int | None = option("--workers", default=None, group=_RUN, least=1)
    """With ray (default: one for each CPU or GPU)"""
    minutes: float | None = option("--minutes", default=None, group=_RUN, least=0, metavar="N")
    """Stop cleanly after N minutes; rerun to resume"""
    fresh: bool = option("--fresh", default=False, group=_RUN)
    """Start over, and replace a result"""

    def __post_init__(self) -> None:
        if self.chunk_lines < 1:
            raise ConfigError(f"chunk_lines is {self.chunk_lines}; at least 1 is needed.")
        if not self.new or len(set(self.new)) < len(self.new):
            raise LanguageError(f"new languages: got {', '.join(self.new) or 'none'}; expected one or several, each once.")
        check_language_names(self.new, "new languages")
        _ = self.cluster  # which checks what belongs to it

    @property
    def cluster(self) -> ChunkEngine:
        """Who does the work."""
        gpu = self.engine == "ray" and self.device.startswith("cuda")
        return ChunkEngine(name=self.engine, address=self.ray_address, workers=self.workers, gpu=gpu)

    @property
    def work(self) -> Path:
        """Next to the output, which is replaced as a whole when it is ready."""
        return self.output.with_name(f"{self.output.name}.work")
