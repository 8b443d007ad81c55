"""What the paper trained and what it printed, read from the YAML files next to this module. Layer 7.

`models.yaml` has every numbered model once. What the paper shows of them is in `table_definitions/` and `figure_definitions/`,
what it concludes in `findings.yaml`. Models, tables and figures of our own, which nobody printed, are in `beyond.yaml`,
`table_definitions/beyond-*.yaml` and `figure_definitions/beyond-*.yaml`; their numbers begin with `FIRST_OF_OURS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from graftmt.configuration import from_mapping, load_yaml
from graftmt.errors import ConfigError
from graftmt.packs.component import Side
from graftmt.packs.recipe import Recipe

FOLDER = Path(__file__).parent

FIRST_OF_OURS = 101
"""The paper's models and tables have smaller numbers."""

PROXY = "code:proxy"
"""What Table 25 adds to a recipe: the base's code that is nearest to the new language's own, in a model re-trained with it."""

Corpus = Literal["TED", "ParaCrawl"]
Trains = Literal["none", "bilingual", "base", "retrain", "substitute", "pack"]


@dataclass(frozen=True, kw_only=True)
class Data:
    """The line pairs that a model trains on, besides those with English in its own languages."""

    view: Literal["english-centric", "multi-parallel", "multi-aligned"] = "english-centric"
    """multi-aligned: the new language with all of the base's languages, for the lines that have them."""
    lines_per_language: int | None = None
    """Besides English, at most N lines with each other language."""
    back_translated: bool = False
    """The other languages' side is the base's translation of the English one."""
    filtered: bool = True
    """By language ID: false for the ParaCrawl models that show what happens without."""

    @property
    def english_alone(self) -> bool:
        """Whether the new languages are paired with English and nothing else: all other directions are zero-shot."""
        return self.view == "english-centric" and self.lines_per_language is None


@dataclass(frozen=True, kw_only=True)
class Model:
    """One of the numbered models. `el` (ParaCrawl: `ar`) stands for any one new language."""

    id: int
    name: str
    corpus: Corpus
    trains: Trains
    """none: figures of others, or, with an initial model, that one used otherwise (by pivot, after fewer updates)."""
    size: str | None = None
    """Of the Transformer, where nothing comes before it; `size_of` gives that of all."""
    initial: int | None = None
    """The model that it starts from."""
    updates: int | None = None
    """The checkpoint after N updates, not the best one."""
    side: Side | None = None
    languages: tuple[str, ...] = ()
    """The new ones that are trained together; several make one pack or one re-trained model."""
    recipe: str | None = None
    data: Data = field(default_factory=Data)
    second_stage: float | None = None
    """Updates of the stage that `@trained` adds, as a share of the first one's. Default: half."""
    temperature: float | None = None
    """Of its training text, where the model is about that; otherwise the profile's."""
    parameters: str | None = None
    """As printed."""
    note: str | None = None

    def __post_init__(self) -> None:
        if self.second_stage is not None and (self.second_stage <= 0 or not Recipe.parse(self.recipe or "embed").scoped):
            raise ConfigError(f"({self.id}): second_stage is for recipes with @trained parts, and above 0.")

    @property
    def ours(self) -> bool:
        return self.id >= FIRST_OF_OURS


@dataclass(frozen=True, kw_only=True)
class System:
    """What translates in a row: one model, or a source and a target one, composed or in two hops through English."""

    model: int | None = None
    source: int | None = None
    target: int | None = None
    pivot: bool = False
    """Between languages other than English, in two hops through it."""
    initial: int | None = None
    """The base of its packs, where it is not the one that they name (Tables 18 and 19)."""
    plus: str | None = None
    """A component more than the model's recipe has; `recipe_of` joins them."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of figures, each the average over directions that its name says."""

    name: Literal["→EN", "←EN", "/EN", "X→EN", "X→/EN", "EN→X", "/EN→X", "X→X"]
    group: str
    """The heading that it shares with its neighbours: split and metric."""
    languages: tuple[str, ...] = ()
    """X: the new ones."""
    split: Literal["valid", "test", "flores-devtest", "ted2020-valid"] = "test"
    metric: Literal["bleu", "chrf", "spbleu", "bleu-delta", "chrf-delta"] = "bleu"


@dataclass(frozen=True, kw_only=True)
class Row:
    label: str
    system: System
    languages: tuple[str, ...] = ()
    """Those that the row's models were trained for, each for one, where they are not the model's own."""
    scores: tuple[float | None, ...]
    """One a column, chrF from 0 to 1 as printed, deltas of it times 1000; null for a dash or where the row has none."""
    bold: tuple[int, ...] = ()
    """Positions of the scores that the paper prints bold, counted from 0."""
    parameters: str | None = None
    rule: bool = False
    """A line stands above it."""
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    number: int
    """Counted in the order of the paper's source."""
    label: str
    title: str
    corpus: Corpus
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def ours(self) -> bool:
        """With rows that the paper does not have, next to some that it has; none has a printed score here."""
        return self.number >= FIRST_OF_OURS


@dataclass(frozen=True, kw_only=True)
class Curve:
    label: str
    model: int
    languages: tuple[str, ...] = ("el",)
    plus: str | None = None
    """As a system's."""
    added: bool = False
    """By us: the paper's figure does not have it."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One plot: the score of one direction, by updates or by the size of the training corpus."""

    direction: str
    by: Literal["updates", "lines"]
    metric: Literal["bleu", "chrf"] = "bleu"
    split: Literal["valid", "test"] = "valid"
    sizes: tuple[int, ...] = ()
    """Lines of the training corpus, where the plot is by them; the whole corpus comes last in any case."""
    curves: tuple[Curve, ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    number: int
    label: str
    title: str
    corpus: Corpus
    panels: tuple[Panel, ...]

    @property
    def ours(self) -> bool:
        return self.number >= FIRST_OF_OURS


@dataclass(frozen=True, kw_only=True)
class Models:
    models: tuple[Model, ...]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim of the paper's as comparisons; `findings.yaml` says how to read it."""

    text: str
    quantity: str
    pairs: tuple[str, ...]
    """12 > 7, 7+30 > 1 through English: the first system is better than the second."""
    slack: float = 0.0
    """`as good as`: by how much the first may be worse."""

    @property
    def systems(self) -> list[tuple[System, System]]:
        return [(_system(better), _system(worse)) for better, _, worse in (pair.partition(" > ") for pair in self.pairs)]


def _system(text: str) -> System:
    name = text.removesuffix(" through English")
    source, plus, target = name.partition("+")
    if not plus:
        return System(model=int(name), pivot=name != text)
    return System(source=int(source), target=int(target), pivot=name != text)


@dataclass(frozen=True, kw_only=True)
class Findings:
    findings: tuple[Finding, ...]


@cache
def findings() -> tuple[Finding, ...]:
    return from_mapping(Findings, load_yaml(FOLDER / "findings.yaml")).findings


@cache
def models() -> dict[int, Model]:
    files = (FOLDER / "models.yaml", FOLDER / "beyond.yaml")
    return {model.id: model for path in files for model in from_mapping(Models, load_yaml(path)).models}


@cache
def tables() -> dict[int, Table]:
    found = [from_mapping(Table, load_yaml(path)) for path in (FOLDER / "table_definitions").glob("*.yaml")]
    return {table.number: table for table in sorted(found, key=lambda table: table.number)}


@cache
def figures() -> dict[int, Figure]:
    found = [from_mapping(Figure, load_yaml(path)) for path in (FOLDER / "figure_definitions").glob("*.yaml")]
    return {figure.number: figure for figure in sorted(found, key=lambda figure: figure.number)}


def is_ours(row: Row) -> bool:
    """Whether it is of one of our recipes: our own tables repeat some of the paper's."""
    return row.system.model is not None and models()[row.system.model].ours


def chain_of(number: int) -> list[int]:
    """The bases that come before a base, and it: (3), (4)."""
    before = models()[number].initial
    return [number] if before is None else [*chain_of(before), number]


def run_owner(number: int) -> int:
    """The base in whose run this one is a stage: that of (4) has (3) in it."""
    for other in models().values():
        if other.trains == "base" and other.initial == number:
            return run_owner(other.id)
    return number


def size_of(model: Model) -> str:
    """The Transformer's size: its own or that of the model from which all started."""
    if model.size is None and model.initial is not None:
        return size_of(models()[model.initial])
    assert model.size is not None, f"({model.id}) has neither a size nor an initial model"
    return model.size


def new_languages(corpus: Corpus) -> frozenset[str]:
    """Those that the paper adds in its experiments on this corpus."""
    return frozenset(language for model in models().values() if model.corpus == corpus for language in model.languages)


def recipe_of(model: Model, plus: str | None, proxy: str | None = None) -> str:
    """The recipe of a model's pack, with one component more; `proxy`: whose code `code:proxy` is. Default: to be found."""
    assert model.recipe is not None, f"({model.id}) is no pack"
    more = f"{plus}:{proxy or 'nearest'}" if plus == PROXY else plus
    return str(Recipe.parse(model.recipe if more is None else f"{model.recipe} + {more}"))
