"""What can be asked of `graftmt pull`, declared once: Python and the command line read the same fields. Layer 5.

Light to import: `graftmt pull --help` waits for no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graftmt.errors import ConfigError
from graftmt.options import argument, option
from graftmt.prepare.sizes import parse_size

CHECKS = "Checks before the download"


@dataclass(frozen=True, kw_only=True)
class PullOptions:
    """What is wanted, and from where."""

    source: str = argument(metavar="SOURCE")
    """hf:OWNER/NAME[@REVISION], a web folder or a folder"""
    name: str | None = argument(default=None, metavar="NAME")
    """Base or pack to get, if SOURCE has several"""
    output: Path | None = option("--output", "-o", default=None)
    """Folder or .graftpack to make (default: ./NAME)"""
    replace: bool = option("--replace", default=False)
    """Replace another base or pack at the output"""
    base: Path | None = option("--base", "-b", default=None, group=CHECKS)
    """Base that the pack must fit"""
    revision: str | None = option("--revision", default=None, group=CHECKS, metavar="REV")
    """Branch, tag or commit; or what `packs list` printed"""
    fingerprint: str | None = option("--fingerprint", default=None, group=CHECKS, metavar="HEX")
    """Fingerprint it must have, or its first 8 digits"""
    max_size: str = option("--max-size", default="10GB", group=CHECKS, metavar="SIZE")
    """Refuse what is larger"""

    def __post_init__(self) -> None:
        if parse_size(self.max_size) is None:
            raise ConfigError(f"--max-size is {self.max_size!r}; expected a size, such as 500MB or 2GB.")

    @property
    def limit(self) -> int:
        """Bytes it may have."""
        size = parse_size(self.max_size)
        assert size is not None
        return size
