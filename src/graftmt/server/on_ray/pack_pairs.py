"""Which packs a request needs, told by what the client sent: replicas that have them translate it. Layer 6."""

from __future__ import annotations

from dataclasses import dataclass, field

from graftmt.packs import Side
from graftmt.server.catalog import Catalog
from graftmt.server.fields import read_fields
from graftmt.server.guard import Scope
from graftmt.server.refusals import Refused

PATHS = frozenset({"/translate", "/v1/translate", "/v1/translate/stream"})
_SIDES: tuple[Side, Side] = ("source", "target")


@dataclass(frozen=True)
class PackPairs:
    """A catalog without its packs: the pack that is used for each new language, on each side."""

    packs: dict[Side, dict[str, str]] = field(default_factory=lambda: {"source": {}, "target": {}})

    @classmethod
    def of(cls, catalog: Catalog) -> PackPairs:
        found: dict[Side, dict[str, str]] = {}
        for side in _SIDES:
            chosen = {code: catalog.pack_for(code, side) for code in catalog.languages}
            found[side] = {code: pack.name for code, pack in chosen.items() if pack is not None}
        return cls(found)

    def pair(self, scope: Scope, body: bytes) -> str:
        """SOURCE PACK+TARGET PACK; nothing for what the base translates alone, and for all that cannot be told here.

        Whatever it says, any replica can translate the request: this only brings together what can share batches.
        """
        if scope["path"] not in PATHS:
            return ""
        kind = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
        try:
            fields = read_fields(scope["query_string"], body, kind)
            names = [self._pack(side, fields.optional(side), fields.optional(f"{side}_pack")) for side in _SIDES]
        except Refused:
            return ""
        return "+".join(names) if any(names) else ""

    def _pack(self, side: Side, language: str | None, named: str | None) -> str:
        return named or self.packs[side].get(language or "", "")
