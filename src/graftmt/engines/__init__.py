"""What searches for translations once a composition is made: an engine, of which each kind is one file. Above `decoding`.

`native` is graftmt's own search. Engines that need other programs are in `interop.engines`.
"""

from graftmt.engines.native import NativeEngine, NativeSearcher
from graftmt.engines.protocol import Engine, Searcher

__all__ = ["Engine", "NativeEngine", "NativeSearcher", "Searcher"]
