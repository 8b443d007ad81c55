"""graftmt: add languages to a multilingual translation model without retraining or forgetting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from graftmt.base import Base as Base
    from graftmt.decoding import SearchOptions as SearchOptions
    from graftmt.translator import Translator as Translator

__all__ = ["Base", "SearchOptions", "Translator", "__version__"]


def __getattr__(name: str) -> Any:
    """The façade is imported when it is used: `graftmt --help` should not wait for torch."""
    if name == "Base":
        from graftmt.base import Base

        return Base
    if name == "SearchOptions":
        from graftmt.decoding import SearchOptions

        return SearchOptions
    if name == "Translator":
        from graftmt.translator import Translator

        return Translator
    raise AttributeError(f"module 'graftmt' has no attribute {name!r}")
