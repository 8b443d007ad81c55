"""What searches for translations once a composition is made: an engine, of which each kind is one file. Above `decoding`.

`native` is graftmt's own search. `interop.engine_registry` knows all engines, also those that need other programs.
"""

from graftmt.engines.engine_protocol import Engine, Searcher
from graftmt.engines.native import NativeEngine, NativeSearcher

__all__ = ["Engine", "NativeEngine", "NativeSearcher", "Searcher"]
