"""The reader of the paper's notation for recipes (Table 29), whose errors say where and what may stand there. Layer 3.

Components joined by `+`, in any order and in any of the paper's spellings; `recipe` has the values that they become.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, get_args

from graftmt.errors import ConfigError, nearest
from graftmt.packs.recipe import (
    LANGUAGE,
    STACKS,
    Adapters,
    CodeChoice,
    CodeKind,
    Initialisation,
    Layers,
    Recipe,
    Stack,
    TunedLayers,
    names_a_layer_again,
)

_N = "[0-9]{1,9}"
_NUMBERS = rf"{_N}(?:\s*,\s*{_N})*"
_LIST = rf"{_NUMBERS}|\{{\s*{_NUMBERS}\s*\}}"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_EMBED = _pattern(r"embed|only\s+embed|embed\s+only")
_NON_TIED = _pattern(r"non-tied")
_NORM_OR_BIASES = _pattern(r"(?P<stack>enc|dec)-(?P<what>norm|biases)")
_ADAPTERS = _pattern(
    rf"(?P<parallel>parallel-)?(?:(?P<stack>enc|dec)-)?(?P<beside>parallel-)?(?:adapters?|adapt|ad)-(?P<layers>first|last|all|{_LIST})"
    rf"(?:\s*\(\s*(?:d(?:im)?\s*=\s*)?(?P<dim>{_N})\s*\)|\s+d(?:im)?\s*=\s*(?P<bare>{_N}))?"
)
_TUNED = _pattern(rf"(?P<stack>enc|dec)-(?:(?P<place>first|last)-layer|layer-(?P<layers>{_LIST})|all-layers)")
_ALL_LAYERS = _pattern(r"all-(?P<stack>enc|dec)-layers")
_INIT = _pattern(r"init:\s*(?P<kind>\S*)")
_RANDOM = _pattern(r"random[\s-]+embed[\s-]+init")
_PAPERS_NUMBER = _pattern(rf"\(\s*(?P<bracketed>{_N})\s*\)|(?P<bare>{_N})")
_CODE = _pattern(r"code:\s*(?P<kind>[^\s:]*)(?::(?P<language>\S*))?")

_ADAPTER_HEADS = [
    f"{parallel}{name}"
    for parallel in ("", "parallel-")
    for name in (
        *(f"{stack}-adapters-{layers}" for stack in STACKS for layers in ("first", "last", "all", "1,2,3")),
        "adapters-all",
    )
]
_OTHER_COMPONENTS = [
    *("embed", "non-tied", "random embed init"),
    *(
        f"{stack}-{name}"
        for stack in STACKS
        for name in ("norm", "biases", "first-layer", "last-layer", "layer-1", "all-layers")
    ),
    *(f"init:{kind}" for kind in get_args(Initialisation)),
    *("code:learned:en", "code:none", "code:fixed:en", "code:proxy:ru", "code:proxy:nearest"),
]
EXPECTED = (
    "embed, non-tied, enc-norm, enc-biases, enc-adapters-all(512), adapters-all(64), parallel-adapters-all(64), "
    "enc-first-layer, enc-layer-2, enc-all-layers, init:random or code:none, also with dec- for enc-, "
    "first, last or 1,2,3 for all, and @trained after an adapter or a layer"
)


def papers_number(text: str) -> int | None:
    """12 of `12` and `(12)`, as the paper calls its models; None of anything else. What that model is, is not known here."""
    match = _PAPERS_NUMBER.fullmatch(text.strip())
    return int(match["bracketed"] or match["bare"]) if match else None


def read_recipe(text: str) -> Recipe:
    """What `Recipe.parse` gives."""
    return _Reader(text).read()


@dataclass(frozen=True)
class _Component:
    text: str
    start: int
    """Index of its first character in the recipe."""
    scoped: bool = False
    """Whether `@trained` stood after it."""


class _Reader:
    """Reads one recipe from left to right and knows where it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        self.adapters: list[Adapters] = []
        self.layers: list[TunedLayers] = []
        self.norms: list[Stack] = []
        self.biases: list[Stack] = []
        self.initialisation: Initialisation = "overlap"
        self.code = CodeChoice()

    def read(self) -> Recipe:
        components = self._components()
        for position, component in enumerate(components):
            self._read(component, components[position + 1 :])
        if "embed" not in self.names:
            raise self._error(0, "'embed' is missing; every pack has its own embeddings. Write 'embed + …'.")
        return Recipe(
            adapters=tuple(self.adapters),
            layers=tuple(self.layers),
            norms=tuple(self.norms),
            biases=tuple(self.biases),
            tied="non-tied" not in self.names,
            initialisation=self.initialisation,
            code=self.code,
        )

    def _components(self) -> list[_Component]:
        components, start = [], 0
        for part in self.text.split("+"):
            text = part.strip()
            if not text:
                raise self._error(start, f"a component is missing; expected {EXPECTED}.")
            where = start + part.index(text)
            head, at, scope = text.partition("@")
            if at and scope.strip().lower() != "trained":
                what = f"'@{scope.strip()}' is no scope; write '@trained', for the directions that were trained."
                raise self._error(where + len(head), what)
            components.append(_Component(head.rstrip(), where, bool(at)))
            start += len(part) + 1
        return components

    def _read(self, component: _Component, following: Sequence[_Component]) -> None:
        text = component.text
        if component.scoped and not any(pattern.fullmatch(text) for pattern in (_TUNED, _ALL_LAYERS, _ADAPTERS)):
            what = f"{text!r} cannot be for trained directions only; '@trained' stands after an adapter or a layer."
            raise self._error(component.start, what)
        if _EMBED.fullmatch(text):
            self._once("embed", component)
        elif _NON_TIED.fullmatch(text):
            self._once("non-tied", component)
        elif match := _NORM_OR_BIASES.fullmatch(text):
            self._once(match[0].lower(), component)
            (self.norms if match["what"].lower() == "norm" else self.biases).append(STACKS[match["stack"].lower()])
        elif match := _TUNED.fullmatch(text) or _ALL_LAYERS.fullmatch(text):
            self._read_layers(component, match)
        elif (match := _ADAPTERS.fullmatch(text)) and not (match["parallel"] and match["beside"]):
            self._read_adapters(component, match, following)
        elif _RANDOM.fullmatch(text):
            self._once("init", component)
            self.initialisation = "random"
        elif match := _INIT.fullmatch(text):
            self._once("init", component)
            self.initialisation = cast(Initialisation, self._choice(component, match, "init", get_args(Initialisation)))
        elif match := _CODE.fullmatch(text):
            self._once("code", component)
            self.code = self._code(component, match)
        elif (number := papers_number(text)) is not None:
            what = f"{text!r} is a number; write the components of that model, which `graftmt recipes --id {number}` shows."
            raise self._error(component.start, what)
        else:
            raise self._error(component.start, f"{text!r} is no component{_suggestion(text)} Expected {EXPECTED}.")

    def _read_layers(self, component: _Component, match: re.Match[str]) -> None:
        groups = match.groupdict()
        place = (groups.get("place") or "all").lower()
        layers = self._layers(component, match) if groups.get("layers") else cast(Layers, place)
        part = TunedLayers(stack=STACKS[match["stack"].lower()], layers=layers, scoped=component.scoped)
        if names_a_layer_again(part, self.layers):
            raise self._error(component.start, f"{component.text!r} names a layer a second time; leave one of them out.")
        self.layers.append(part)

    def _read_adapters(self, component: _Component, match: re.Match[str], following: Sequence[_Component]) -> None:
        layers = self._layers(component, match)
        if not match["stack"] and layers != "all":
            hint = " or ".join(f"{short}-adapters-{match['layers']}" for short in STACKS)
            raise self._error(component.start, f"{component.text!r} does not say in which stack; write {hint}.")
        dim = self._dimension(component, match, following)
        for stack in [STACKS[match["stack"].lower()]] if match["stack"] else STACKS.values():
            parallel = bool(match["parallel"] or match["beside"])
            part = Adapters(stack=stack, layers=layers, dim=dim, parallel=parallel, scoped=component.scoped)
            if names_a_layer_again(part, self.adapters):
                what = f"{component.text!r} puts a second adapter on a layer of the {stack}; a pack has one a layer."
                raise self._error(component.start, what)
            self.adapters.append(part)

    def _layers(self, component: _Component, match: re.Match[str]) -> Layers:
        text = match["layers"].lower()
        if text in ("first", "last", "all"):
            return cast(Layers, text)
        numbers: list[int] = []
        for number in re.finditer(_N, text):
            start = component.start + match.start("layers") + number.start()
            if int(number[0]) < 1:
                raise self._error(start, f"layer {number[0]}; expected a number from 1 on.")
            if int(number[0]) in numbers:
                raise self._error(start, f"layer {number[0]} stands here a second time; leave one of them out.")
            numbers.append(int(number[0]))
        return tuple(numbers)

    def _dimension(self, component: _Component, match: re.Match[str], following: Sequence[_Component]) -> int:
        """Its own, or that of the adapters directly after: `enc-adapt-last + dec-adapt-all (1024)` is row 52 of the paper."""
        dim = match["dim"] or match["bare"]
        if dim is None:
            after = _ADAPTERS.fullmatch(following[0].text) if following else None
            if after is None:
                what = f"{component.text!r} has no dimension; write {component.text + '(512)'!r} for one of 512."
                raise self._error(component.start, what)
            return self._dimension(following[0], after, following[1:])
        if int(dim) < 1:
            start = component.start + match.start("dim" if match["dim"] else "bare")
            raise self._error(start, f"an adapter's dimension is {dim}; expected at least 1, such as (512).")
        return int(dim)

    def _code(self, component: _Component, match: re.Match[str]) -> CodeChoice:
        kind = cast(CodeKind, self._choice(component, match, "code", get_args(CodeKind)))
        language = match["language"]
        if language is None and kind in ("learned", "none"):
            return CodeChoice(kind=kind)
        start = component.start + (match.start("language") if language is not None else match.end("kind"))
        if kind == "none":
            raise self._error(start, f"no code has no language; write 'code:none' or 'code:fixed:{language or 'en'}'.")
        if not language or not LANGUAGE.fullmatch(language):
            raise self._error(start, f"expected one of the base's languages, as in 'code:{kind}:en'.")
        if language.lower() == "nearest":
            language = "nearest"
            if kind != "proxy":
                raise self._error(start, f"'nearest' is for proxies; write 'code:proxy:nearest' or 'code:{kind}:en'.")
        return CodeChoice(kind=kind, language=language)

    def _choice(self, component: _Component, match: re.Match[str], name: str, known: tuple[str, ...]) -> str:
        kind: str = match["kind"].lower()
        if kind not in known:
            what = f"{name}:{kind} is not known{nearest(kind, known) or '.'} Expected {name}: with one of {', '.join(known)}."
            raise self._error(component.start + match.start("kind"), what)
        return kind

    def _once(self, name: str, component: _Component) -> None:
        if name in self.names:
            what = "says the same again" if name not in ("init", "code") else f"is a second choice of {name}"
            raise self._error(component.start, f"{component.text!r} {what}; leave one of them out.")
        self.names.add(name)

    def _error(self, start: int, what: str) -> ConfigError:
        """The recipe, the place and a caret under it."""
        line = re.sub(r"\s", " ", self.text)
        return ConfigError(f"recipe {self.text!r}, character {start + 1}: {what}\n  {line}\n  {' ' * start}^")


def _suggestion(text: str) -> str:
    """The nearest component, with the dimension that stands in the text."""
    head, bracket, tail = text.lower().partition("(")
    dimension = bracket + tail if bracket else "(512)"
    return nearest(head.strip() + bracket + tail, [*(name + dimension for name in _ADAPTER_HEADS), *_OTHER_COMPONENTS]) or "."
