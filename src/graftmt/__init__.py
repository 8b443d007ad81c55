"""graftmt: add languages to a multilingual translation model without retraining or forgetting."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from graftmt.adding.add_options import AddOptions as AddOptions
    from graftmt.adding.verification import verify as verify
    from graftmt.api import add as add
    from graftmt.api import evaluate as evaluate
    from graftmt.api import import_model as import_model
    from graftmt.api import train as train
    from graftmt.base import Base as Base
    from graftmt.decoding import SearchOptions as SearchOptions
    from graftmt.errors import GraftError as GraftError
    from graftmt.packs import Pack as Pack
    from graftmt.packs import Recipe as Recipe
    from graftmt.translation_requests import Translation as Translation
    from graftmt.translator import Translator as Translator

_HOMES = {
    "AddOptions": "adding.add_options",
    "Base": "base",
    "GraftError": "errors",
    "Pack": "packs",
    "Recipe": "packs",
    "SearchOptions": "decoding",
    "Translation": "translator",
    "Translator": "translator",
    "add": "api",
    "evaluate": "api",
    "import_model": "api",
    "train": "api",
    "verify": "adding.verification",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    """Each name is imported when it is used: `graftmt --help` should not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'graftmt' has no attribute {name!r}")
    return getattr(import_module(f"graftmt.{_HOMES[name]}"), name)
