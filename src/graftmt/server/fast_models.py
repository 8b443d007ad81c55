"""Directions that another engine runs: a model for each pair of packs, which comes and goes with them. Layer 6.

Each of these models holds the whole base again, which is why they are only made for directions that are named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from graftmt.data.directions import parse_direction
from graftmt.engines import Searcher
from graftmt.errors import GraftError, LanguageError
from graftmt.packs import Composition
from graftmt.server.catalog import Catalog
from graftmt.server.refusals import Refused
from graftmt.translator import Translator

logger = logging.getLogger(__name__)


class SizedSearcher(Searcher, Protocol):
    """A searcher that says what its weights take."""

    @property
    def bytes(self) -> int: ...


class FastEngine(Protocol):
    """An engine whose models have weights of their own."""

    @property
    def how(self) -> str: ...

    def searcher(self, composition: Composition, base: str) -> SizedSearcher: ...


@dataclass(frozen=True)
class FastModel:
    """One model, with the named directions that it is for; other directions of the same packs use it too."""

    composition: Composition
    searcher: SizedSearcher
    source_pack: str | None
    target_pack: str | None
    directions: tuple[str, ...]


@dataclass(frozen=True)
class FastState:
    """What there is for one catalog. An immutable value."""

    models: dict[int, FastModel] = field(default_factory=dict)
    """By the identity of their composition, which a model keeps alive."""
    problems: dict[str, str] = field(default_factory=dict)
    """By direction: why it is translated as all others are."""


class FastModels:
    """Holds the models for the current catalog. Until one is made, and where it cannot be, graftmt's own search answers."""

    def __init__(self, engine: Callable[[], FastEngine], names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self._engine = engine() if self.names else None
        self.state = FastState()

    @property
    def how(self) -> str:
        """Engine and precision; nothing where no direction is named."""
        return "" if self._engine is None else self._engine.how

    def searcher(self, translator: Translator, composition: Composition) -> Searcher:
        """What translates with this composition now."""
        model = self.state.models.get(id(composition))
        return translator.searcher(composition) if model is None else model.searcher

    def hear_catalog(self, catalog: Catalog) -> None:
        """Makes what a new catalog needs and drops what it no longer does; takes as long as an export."""
        made: dict[int, FastModel] = {}
        problems: dict[str, str] = {}
        for name in self.names:
            try:
                model = self._made(catalog, name)
            except (GraftError, Refused) as error:
                problems[name] = str(error)
            except Exception as error:  # whatever it is, the thread that watches for packs must not stop
                problems[name] = f"its model could not be made ({type(error).__name__})."
            else:
                before = made.get(id(model.composition))
                directions = (*before.directions, name) if before is not None else (name,)
                made[id(model.composition)] = replace(model, directions=directions)
                continue
            if self.state.problems.get(name) != problems[name]:
                logger.warning("%s is not run by %s: %s", name, self.how, problems[name])
        self.state = FastState(made, problems)

    def _made(self, catalog: Catalog, name: str) -> FastModel:
        assert self._engine is not None
        source, target = parse_direction(name, tuple(catalog.languages))
        for code, side in ((source, "source"), (target, "target")):
            if code not in getattr(catalog.translator, f"{side}_languages"):
                raise LanguageError(f"direction {name!r}: there is no pack here for {code!r} as {side}.")
        packs = catalog.chosen_pack(source, "source", None), catalog.chosen_pack(target, "target", None)
        composition = catalog.translator.composition(source, target, source_pack=packs[0], target_pack=packs[1])
        known = self.state.models.get(id(composition))
        searcher = known.searcher if known is not None else self._engine.searcher(composition, catalog.base.fingerprint)
        if known is None:
            logger.info("%s: %s, %.0f MB", name, self.how, searcher.bytes / 1e6)
        return FastModel(composition, searcher, *packs, (name,))
