"""The façade: load a base and packs, translate lines. Layer 4."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import overload

from graftmt.base import Base
from graftmt.data import Direction
from graftmt.decoding import SearchOptions, checked_options
from graftmt.devices import AnyDevice, AnyDtype
from graftmt.engines import Engine, NativeEngine, OnBatch, Searcher
from graftmt.errors import DataError, LanguageError
from graftmt.packs import Composition, Pack, Side, compose, load_pack
from graftmt.packs.composition import check_fits
from graftmt.text import languages_of
from graftmt.text.aliases import find_language, nearest_language
from graftmt.translation_requests import (
    LongLine,
    Request,
    Translation,
    check_codes,
    check_line,
    encoded_line,
    shown,
    translate_encoded,
)

INT8 = "int8"
"""The precision in which the large matrices of a model are int8, and all else fp32."""


class Translator:
    """Translates between the languages of a base and those that packs add to it; directions are routed, not configured.

    >>> Translator("runs/demo/base").translate(["5 kilometers"], source="en", target="fr")
    ['5 kilomètres']
    >>> Translator("runs/demo/base", packs=["runs/demo/packs/el-source"]).translate(["5 χιλιόμετρα"], source="el", target="fr")
    ['5 kilomètres']

    Packs come as a list, as one alone, or as a mapping of names where several are for one language and side; a request then
    says which. One translator may be used from many threads. `fold=False` keeps low-rank updates and parallel adapters apart
    from the weights they change: somewhat slower, but all packs then share the base's memory. `dtype="int8"` is for CPUs: large
    matrices are int8, made once for the base and shared by all packs. `engine` is what searches: graftmt itself unless one is
    given.
    """

    def __init__(
        self,
        base: Base | str | Path,
        packs: Mapping[str, Pack | str | Path] | Sequence[Pack | str | Path] | Pack | str | Path = (),
        *,
        device: AnyDevice = "cpu",
        dtype: AnyDtype = "fp32",
        fold: bool = True,
        engine: Engine | None = None,
    ) -> None:
        self.fold = fold
        int8 = dtype == INT8
        self.base = base if isinstance(base, Base) else Base.load(base, device=device, dtype="fp32" if int8 else dtype)
        weight = self.base.model.source_embedding.weight
        self.engine = NativeEngine(weight.dtype, weight.device, int8=int8) if engine is None else engine
        self._searchers: dict[int, Searcher] = {}
        self.packs: dict[str, Pack] = {}
        self._compositions: dict[tuple[str | bool | None, ...], Composition] = {}
        self._lock = threading.Lock()
        packs = [packs] if isinstance(packs, Pack | str | Path) else packs
        named = packs.items() if isinstance(packs, Mapping) else [(None, pack) for pack in packs]
        for name, pack in named:
            self.add_pack(pack, name)

    def add_pack(self, pack: Pack | str | Path, name: str | None = None) -> str:
        """Installs one more pack and returns its name; translations in progress are not disturbed."""
        loaded = pack if isinstance(pack, Pack) else load_pack(pack)
        weight = self.base.model.source_embedding.weight
        loaded = loaded.to(weight.device, weight.dtype)
        check_fits(loaded, self.base, loaded.side)
        with self._lock:
            if name is None:
                for other in self.packs.values():
                    twice = sorted(set(other.languages) & set(loaded.languages))
                    if other.side == loaded.side and twice:
                        raise LanguageError(
                            f"two packs for {', '.join(twice)} as {loaded.side}: give each a name (NAME=PATH, or a mapping in "
                            "Python) and say which one a translation takes."
                        )
                name = f"{'+'.join(loaded.languages)}-{loaded.side}"
            if name in self.packs:
                raise LanguageError(f"there is a pack {name!r} already; give this one another name.")
            self.packs = {**self.packs, name: loaded}  # a new mapping: other threads may be reading this one
        return name

    def with_packs(self, packs: Mapping[str, Pack]) -> Translator:
        """Another translator on the same resident base, with these packs; compositions of packs that both have are shared."""
        other = Translator(self.base, packs, fold=self.fold, engine=self.engine)
        kept = {None, *(name for name, pack in other.packs.items() if self.packs.get(name) is pack)}
        with self._lock:
            known = self._compositions.items()
            other._compositions = {key: model for key, model in known if {key[0], key[1]} <= kept}  # names, and whether whole
            shared = set(map(id, other._compositions.values()))
            other._searchers = {key: searcher for key, searcher in self._searchers.items() if key in shared}
        return other

    @property
    def languages(self) -> tuple[str, ...]:
        """The base's, then those of the packs."""
        return tuple(dict.fromkeys((*self.base.languages, *self.source_languages, *self.target_languages)))

    @property
    def source_languages(self) -> tuple[str, ...]:
        return self._languages("source")

    @property
    def target_languages(self) -> tuple[str, ...]:
        return self._languages("target")

    @property
    def directions(self) -> tuple[Direction, ...]:
        """All that can be translated directly, such as el-fr."""
        pairs = product(self.source_languages, self.target_languages)
        return tuple(Direction(source, target) for source, target in pairs if source != target)

    def _languages(self, side: Side) -> tuple[str, ...]:
        added = (language for pack in self.packs.values() if pack.side == side for language in pack.languages)
        return tuple(dict.fromkeys((*languages_of(self.base.tokenizer, side), *added)))

    def code(self, name: str, side: Side) -> str:
        """The code of a language that may have another name, as eng for `eng_Latn`; an unknown name stays as it is."""
        if name in self.languages:
            return name
        return find_language(name, self._languages(side), of="this base and its packs") or name

    def _with_codes(self, request: Request) -> Request:
        pivots = {} if request.pivot is None else {"pivot": request.pivot}
        check_codes(source=request.source, target=request.target, **pivots)
        source, target, pivot = self.code(request.source, "source"), self.code(request.target, "target"), request.pivot
        if (source, target) == (request.source, request.target) and (pivot is None or pivot in self.languages):
            return request
        return request._replace(source=source, target=target, pivot=None if pivot is None else self.code(pivot, "target"))

    def composition(
        self, source: str, target: str, *, source_pack: str | None = None, target_pack: str | None = None
    ) -> Composition:
        """The model for a direction; every translator has one of each, made when it is first needed."""
        check_codes(source=source, target=target)
        source, target = self.code(source, "source"), self.code(target, "target")
        if source == target:
            raise LanguageError(f"source and target are both {source!r}; there is nothing to translate.")
        names = self._pack_for(source, "source", source_pack), self._pack_for(target, "target", target_pack)
        found = [
            (None if name is None else self.packs[name], other) for name, other in zip(names, (target, source), strict=True)
        ]
        # A pack with parts for trained directions only makes two compositions.
        key = (*names, *(pack is None or pack.is_whole_with(other) for pack, other in found))
        with self._lock:
            if key not in self._compositions:
                config = self.base.model.config
                packs = [None if pack is None else pack.for_partner(other, config) for pack, other in found]
                self._compositions[key] = compose(self.base, source=packs[0], target=packs[1], fold=self.fold)
            return self._compositions[key]

    def searcher(self, composition: Composition) -> Searcher:
        """What the engine makes of a composition of this translator, once."""
        with self._lock:
            found = self._searchers.get(id(composition))
            if found is None:
                found = self._searchers[id(composition)] = self.engine.searcher(composition, self.base.fingerprint)
            return found

    def _pack_for(self, language: str, side: Side, chosen: str | None) -> str | None:
        """The name of the pack that reads or writes a language; none is needed for the base's own."""
        if language in languages_of(self.base.tokenizer, side):
            if chosen is not None:
                raise LanguageError(f"{language!r} is one of the base's languages: as {side} it takes no pack, not {chosen!r}.")
            return None
        fitting = [name for name, pack in self.packs.items() if pack.side == side and language in pack.languages]
        if chosen is not None:
            if chosen not in fitting:
                how = "" if chosen in self.packs else " A pack is given by its path with --packs, and chosen by its name."
                known = ", ".join(fitting) or "none"
                raise LanguageError(f"the pack {chosen!r} is not one for {language!r} as {side}; those are: {known}.{how}")
            return chosen
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise LanguageError(
                f"{language!r} as {side} has several packs: {', '.join(fitting)}. Say which one with --{side}-pack "
                f"({side}_pack= in Python)."
            )
        if language in self.languages:
            other = "target" if side == "source" else "source"
            raise LanguageError(
                f"language {language!r} is installed as a {other} only; to use it as a {side}, make a pack with "
                f"`graftmt add {language} --side {side}`."
            )
        installed = ", ".join(dict.fromkeys(own for pack in self.packs.values() for own in pack.languages)) or "none"
        raise LanguageError(
            f"language {language!r} is neither in the base ({', '.join(self.base.languages)}) nor in a pack here (installed: "
            f"{installed}){nearest_language(language, self.languages) or ';'} if you have a pack for it, give it with --packs "
            f"PACK; otherwise make one with `graftmt add {language}`."
        )

    @overload
    def translate(
        self,
        lines: Sequence[str],
        *,
        source: str,
        target: str,
        pivot: str | None = None,
        source_pack: str | None = None,
        target_pack: str | None = None,
        n_best: None = None,
        options: SearchOptions | None = None,
        on_batch: OnBatch | None = None,
    ) -> list[str]: ...
    @overload
    def translate(
        self,
        lines: Sequence[str],
        *,
        source: str,
        target: str,
        pivot: str | None = None,
        source_pack: str | None = None,
        target_pack: str | None = None,
        n_best: int,
        options: SearchOptions | None = None,
        on_batch: OnBatch | None = None,
    ) -> list[list[Translation]]: ...
    def translate(
        self,
        lines: Sequence[str],
        *,
        source: str,
        target: str,
        pivot: str | None = None,
        source_pack: str | None = None,
        target_pack: str | None = None,
        n_best: int | None = None,
        options: SearchOptions | None = None,
        on_batch: OnBatch | None = None,
    ) -> list[str] | list[list[Translation]]:
        """One translation for each line, in order; an empty line gives an empty one. `pivot` goes through that language.

        With `n_best`, the N best of each line, best first, with their scores.
        """
        if isinstance(lines, str):
            raise DataError("translate takes a list of lines; got one string. Wrap it: [text].")
        if isinstance(lines, bytes) or not isinstance(lines, Iterable):
            raise DataError(f"translate takes a list of lines, each a str; got {shown(lines)}.")
        self.check_direction(source, target, pivot, source_pack, target_pack)
        requests = [Request(line, source, target, pivot, source_pack, target_pack) for line in lines]
        if n_best is not None:
            options = replace(checked_options(options), n_best=n_best)
            return self.translate_requests(requests, options, on_batch)
        found = self.translate_requests(requests, options, on_batch)
        return [translations[0].text for translations in found]

    def check_direction(
        self,
        source: str,
        target: str,
        pivot: str | None = None,
        source_pack: str | None = None,
        target_pack: str | None = None,
    ) -> None:
        """Both languages must be known on their side; with a pivot, so must it be on both."""
        check_codes(source=source, target=target, **({} if pivot is None else {"pivot": pivot}))
        source, target = self.code(source, "source"), self.code(target, "target")
        pivot = None if pivot is None else self.code(pivot, "target")
        if pivot is None or pivot in (source, target):
            self.composition(source, target, source_pack=source_pack, target_pack=target_pack)
        else:
            self.composition(source, pivot, source_pack=source_pack)
            self.composition(pivot, target, target_pack=target_pack)

    def translate_requests(
        self, requests: Sequence[Request], options: SearchOptions | None = None, on_batch: OnBatch | None = None
    ) -> list[list[Translation]]:
        """The `options.n_best` best translations of each request, best first; directions mix freely.

        A request with a pivot takes two hops, each translated in batches together with all others.
        """
        options = checked_options(options)
        requests = [self._with_codes(request) for request in requests]
        for index, request in enumerate(requests):
            check_line(request.line, index)
        hops = [request.pivot is not None and request.pivot not in (request.source, request.target) for request in requests]
        # Lines are heard of as done at their last hop.
        twice = [row for row, two in enumerate(hops) if two]
        try:
            first = [requests[row].first_hop() for row in twice]
            between = iter(self._search(first, replace(options, n_best=1), None) if first else [])
        except LongLine as error:
            raise LongLine(twice[error.index], error.size) from None
        last = [
            request.last_hop(next(between)[0].text) if two else request for request, two in zip(requests, hops, strict=True)
        ]
        return self._search(last, options, on_batch)

    def _search(self, requests: Sequence[Request], options: SearchOptions, on_batch: OnBatch | None) -> list[list[Translation]]:
        """All requests, one composition after the other, each in batches of like lengths."""
        groups: dict[int, tuple[Composition, list[int]]] = {}
        for row, request in enumerate(requests):
            model = self.composition(
                request.source, request.target, source_pack=request.source_pack, target_pack=request.target_pack
            )
            groups.setdefault(id(model), (model, []))[1].append(row)
        encoded: dict[int, list[int]] = {}
        for model, rows in groups.values():
            for row in rows:
                encoded[row] = encoded_line(model, requests[row], row)
        results: list[list[Translation]] = [[] for _ in requests]
        done = 0
        for model, rows in groups.values():

            def hear(number: int, before: int = done) -> None:
                if on_batch is not None:
                    on_batch(before + number)

            found = translate_encoded(
                model,
                [requests[row] for row in rows],
                [encoded[row] for row in rows],
                options,
                hear,
                searcher=self.searcher(model),
            )
            for row, translations in zip(rows, found, strict=True):
                results[row] = translations
            done += sum(bool(encoded[row]) for row in rows)
        return results
