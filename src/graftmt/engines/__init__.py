"""What searches for translations once a composition is made: an engine, of which each kind is one file. Above `decoding`.

`native` is graftmt's own search. Engines that need other programs are in `interop.engines`.
"""

from graftmt.engines.engine_protocol import Engine, Searcher
from graftmt.engines.native import NativeEngine, NativeSearcher

__all__ = ["Engine", "NativeEngine", "NativeSearcher", "Searcher"]
