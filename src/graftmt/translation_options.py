"""What can be asked of everything that translates, declared once: Python and the command line read the same fields. Layer 1.

Light to import: `graftmt translate --help` waits for no model.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from graftmt.errors import ConfigError
from graftmt.options import argument, option
from graftmt.places import PACK

MODEL, TEXT, SEARCH, RUN = "Model", "Text", "Search", "Running"


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """A base, its packs, and what runs them."""

    base: Path = option("--base", "-b", group=MODEL)
    """Folder of the base"""
    packs: tuple[str, ...] = option("--packs", "-p", default=(), group=MODEL, metavar="PACKS")
    """Packs, with commas; NAME=PATH names one"""
    device: str = option("--device", default="auto", group=RUN, metavar="NAME")
    """cpu, cuda, cuda:1 or auto"""
    dtype: str = option("--dtype", default="fp32", group=RUN, metavar="TYPE")
    """fp32, bf16 or fp16; on a CPU also int8"""
    engine: str = option("--engine", default="native", group=RUN, metavar="NAME")
    """native or ctranslate2 (faster on a CPU)"""


@dataclass(frozen=True, kw_only=True)
class WayOptions(ModelOptions):
    """… and how they search. The defaults are those of `SearchOptions`."""

    source_pack: str | None = option("--source-pack", default=None, group=MODEL, metavar="NAME")
    """Pack that reads the input, if several could"""
    target_pack: str | None = option("--target-pack", default=None, group=MODEL, metavar="NAME")
    """Pack that writes the output, if several could"""
    beam: int = option("--beam", default=5, group=SEARCH)
    """Hypotheses kept; 1 is greedy: faster, a little worse"""
    length_penalty: float = option("--length-penalty", default=1.0, group=SEARCH)
    """Above 1 favours longer output"""
    max_length: int = option("--max-length", default=1024, group=SEARCH)
    """Most tokens of a translation"""
    batch_tokens: int = option("--batch-tokens", default=0, group=RUN, least=0)
    """Source tokens × beam at once; 0: by the device"""


@dataclass(frozen=True, kw_only=True)
class TranslateOptions(WayOptions):
    """What `graftmt translate` can be asked for."""

    text: tuple[str, ...] = argument(default=(), hidden=True)
    """Not taken: text comes by standard input or --input."""
    source: str = option("--source", "-s", group=TEXT, metavar="LANG")
    """Language of the input, such as en"""
    target: str = option("--target", "-t", group=TEXT, metavar="LANG")
    """Language of the output, such as fr"""
    pivot: str | None = option("--pivot", default=None, group=TEXT, metavar="LANG")
    """Translate through this language, in two steps"""
    input: Path | None = option("--input", "-i", default=None, group=TEXT, metavar="FILE")
    """Translate this file; .gz, .xz and .zst too"""
    output: Path | None = option("--output", "-o", default=None, group=TEXT, metavar="FILE")
    """Where the translation of --input goes"""
    skip_bad_lines: bool = option("--skip-bad-lines", default=False, group=TEXT)
    """With --input: leave lines that are no text empty"""
    desegment: bool = option("--desegment", default=False, group=TEXT)
    """Remove the spaces between Chinese characters"""
    n_best: int = option("--n-best", default=1, group=SEARCH)
    """Translations per line, with tabs between them"""
    chunk: int | None = option("--chunk", default=None, group=RUN, least=1)
    """Lines sorted and translated together (default: 1024)"""
    fresh: bool = option("--fresh", default=False, group=RUN)
    """With --input: start over, replace the output"""

    def __post_init__(self) -> None:
        if self.text:
            raise ConfigError(self._instead())
        if (self.input is None) != (self.output is None):
            missing = "--output" if self.output is None else "--input"
            raise ConfigError(f"{missing} is missing: give both files, or none of them for standard input and output.")
        for flag, given in (("--fresh", self.fresh), ("--skip-bad-lines", self.skip_bad_lines)):
            if given and self.input is None:
                raise ConfigError(f"{flag} is for --input and --output; leave it out.")

    def _instead(self) -> str:
        """Text is read from standard input or a file: what to type."""
        text = self.text
        if len(text) == 1 and Path(text[0]).is_file():
            file = shlex.quote(text[0])
            return f"to translate the file {text[0]}: --input {file} --output FILE, or < {file}"
        if any(Path(one).is_dir() and PACK.is_one(Path(one)) for one in text):
            given = ",".join([*map(str, self.packs), *text])
            return f"several packs are one argument, with commas between them: -p {shlex.quote(given)}"
        said = " ".join(text)
        return (
            f"{said[:60]!r} is text, which translate reads from standard input: echo {shlex.quote(said)} | "
            f"graftmt translate -b {shlex.quote(str(self.base))} -s {self.source} -t {self.target}"
        )
