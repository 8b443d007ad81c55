"""A profile: on what corpus, with which languages and for how long the paper's models are trained here. Layer 7.

`profiles/` has those that come with graftmt. A file of your own is given by its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graftmt.configuration import apply_overrides, check_numbers, check_seed, from_mapping, load_yaml, one_or_more, zero_or_more
from graftmt.decoding import SearchOptions
from graftmt.errors import ConfigError, nearest
from graftmt.experiments.definitions import Corpus, models, new_languages, run_owner
from graftmt.training import StageConfig, SubwordConfig, ValidationConfig
from graftmt.training.run_configuration import MOST_THREADS, ModelSection, NewDirectionsConfig

FOLDER = Path(__file__).parent / "profiles"


@dataclass(frozen=True, kw_only=True)
class CorpusSection:
    """The text."""

    folder: Path | None = None
    """Line-aligned, with the splits train and valid and those that are scored; --corpus names another."""
    made_by: tuple[str, ...] = ()
    """The commands that make it, said to people who lack it."""
    provided: Literal["demo"] | None = None
    """demo: made from CLDR, as by `graftmt demo`, and so are its bases."""
    unfiltered: Path | None = None
    """The same without language ID, for the models that show what happens then."""


@dataclass(frozen=True, kw_only=True)
class TestSet:
    """Lines to be scored, under the name that the paper's tables have for them."""

    __test__ = False  # pytest takes what is called Test… for tests

    split: str
    corpus: Path | None = None
    """A folder of its own, where it is not in the corpus."""
    lines: int | None = None
    """The first ones. Default: all."""
    between_lines: int | None = None
    """The first ones for directions between two initial languages, neither the pivot: a base has many (default: `lines`)."""
    tokenize: str | None = None
    """BLEU's tokeniser. Default: by language."""
    checkpoint: Literal["best", "last"] = "best"
    """last: a set for packs alone, translated with the weights that training ended with."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1", one_or_more, "lines", "between_lines")

    def lines_for(self, *, between: bool) -> int | None:
        """How many lines a direction has; `between`: it is one between initial languages."""
        return self.between_lines if between and self.between_lines is not None else self.lines


@dataclass(frozen=True, kw_only=True)
class EvaluationSection:
    """How models are scored."""

    sets: dict[str, TestSet]
    beam: int = 5
    length_penalty: float = 1.0
    max_length: int = 256
    batch_tokens: int = 0
    """0: chosen by the device."""
    off_target: bool = True
    keep_lines: int | None = None
    """How many translations of each direction are kept. Default: all, as tests of significance need them."""

    def __post_init__(self) -> None:
        check_numbers(self, "a number that is not negative", zero_or_more, "batch_tokens", "keep_lines")
        self.search(batch_tokens=1)

    def search(self, batch_tokens: int) -> SearchOptions:
        """`batch_tokens` serve where the profile has none."""
        return SearchOptions(
            beam=self.beam,
            length_penalty=self.length_penalty,
            max_length=self.max_length,
            batch_tokens=self.batch_tokens or batch_tokens,
        )


@dataclass(frozen=True, kw_only=True)
class TrainingSection:
    """How one kind of model is trained from the whole text: bases, bilingual models, re-training."""

    stages: tuple[StageConfig, ...]
    """Their directions are those of the model, whatever is written here."""
    max_length: int = 256
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    validations: int = 4
    """Evenly over the longest stage; validation.every does not count."""
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False
    store_dtype: Literal["fp32", "bf16", "fp16"] = "fp32"

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("stages is empty; a model has at least one.")
        check_numbers(self, "at least 1", one_or_more, "max_length", "validations")


@dataclass(frozen=True, kw_only=True)
class ScratchSection(TrainingSection):
    """From nothing: what re-training takes from its base is chosen here."""

    model: ModelSection
    subwords: SubwordConfig = field(default_factory=SubwordConfig)


@dataclass(frozen=True, kw_only=True)
class BilingualSection(ScratchSection):
    """One model for each direction."""

    partners: tuple[str, ...] = ()
    """The initial languages that a new one is paired with, besides the pivot; a model must be trained for each of them."""
    initial: bool = False
    """Whether also to train models between the initial languages and the pivot (Tables 1 and 9)."""


@dataclass(frozen=True, kw_only=True)
class RetrainSection(TrainingSection):
    """All weights, on all text and the new languages."""

    new_directions: NewDirectionsConfig = field(default_factory=NewDirectionsConfig)


@dataclass(frozen=True, kw_only=True)
class PackSection:
    """Incremental training."""

    source: StageConfig
    target: StageConfig
    multi_aligned_steps: int | None = None
    """Where a pack trains with all initial languages; otherwise as many as its stage has."""
    several_steps: int | None = None
    """Where it is for several new languages."""
    pairs: dict[str, int] = field(default_factory=dict)
    """New language → its line pairs with the pivot. The steps of a stage are those of the first; the others, and packs with
    some lines of each initial language on top, have as many epochs. Default: as many updates for all."""
    multi_aligned_pairs: dict[str, int] = field(default_factory=dict)
    """The same for `multi_aligned_steps`: line pairs with all initial languages."""
    subwords: SubwordConfig = field(default_factory=lambda: SubwordConfig(merges=4000))
    """`merges` for each new language."""
    max_length: int = 256
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    watch: tuple[str, ...] = ()
    """Initial languages whose zero-shot directions are validated while a pack trains: the curves of Figure 3."""
    validations: int = 8
    precision: Literal["fp32", "bf16"] = "fp32"
    base_dtype: Literal["fp32", "bf16"] = "fp32"
    """How the frozen base is held in training; scores are those of fp32."""
    compile: bool = False

    def __post_init__(self) -> None:
        numbers = ("multi_aligned_steps", "several_steps", "max_length", "validations")
        check_numbers(self, "at least 1", one_or_more, *numbers)


@dataclass(frozen=True, kw_only=True)
class AugmentationSection:
    """Back-translation."""

    teacher: int | None = None
    """The number of the model that translates, such as 3 (Table 29); default: the pack's own base (Section 3.1)."""
    beam: int = 1

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1", one_or_more, "beam")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Everything that the experiments need besides the paper's own definitions."""

    name: str
    title: str
    paper: Corpus
    """Whose numbered models these are."""
    corpus: CorpusSection = field(default_factory=CorpusSection)
    pivot: str = "en"
    initial: tuple[str, ...]
    new: tuple[str, ...]
    others: tuple[str, ...]
    """The initial languages over which `/EN` is averaged; the paper's are all 19."""
    evaluation: EvaluationSection
    base: ScratchSection
    bilingual: BilingualSection
    retrain: RetrainSection
    substitute: RetrainSection
    packs: PackSection
    augmentation: AugmentationSection = field(default_factory=AugmentationSection)
    proxies: dict[str, str] = field(default_factory=dict)
    """New language → the initial one whose code `code:proxy` is for it (Table 25). Default: the nearest one, computed from a
    model that is re-trained with the language. One for a language of the paper that is not in `new` decides nothing."""
    sizes: tuple[int, ...] | None = None
    """Of training corpora, for figures by size, instead of those that the figures name."""
    size_steps: dict[str, int] = field(default_factory=dict)
    """Lines of such a corpus → updates on it at the most; a small one is learned by heart long before the usual number."""
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Model number → KEY=VALUE changes to the configuration of its training."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Model number → why it is not trained here, unless its folder is given with --base."""
    expected: dict[str, float] = field(default_factory=dict)
    """Minutes of a job by kind (base, bilingual, retrain, substitute, pack, composition, pivot), until some were measured."""
    seed: int = 1
    """Of the bases; other models have the one asked for."""
    device: str = "auto"
    threads: int = 0

    def __post_init__(self) -> None:
        check_seed(self)
        check_numbers(self, f"0 to {MOST_THREADS}", lambda value: 0 <= value <= MOST_THREADS, "threads")
        for name, counts in (("sizes", self.sizes or ()), ("size_steps", self.size_steps.values())):
            if any(count < 1 for count in counts):
                raise ConfigError(f"{name} has {', '.join(map(str, counts))}; expected numbers of at least 1.")
        if self.pivot != "en":
            raise ConfigError(f"pivot is {self.pivot!r}; expected en, which all tables and figures of the paper are about.")
        if self.pivot not in self.initial:
            raise ConfigError(f"pivot is {self.pivot!r}, which is not among the initial languages: {', '.join(self.initial)}.")
        for name, languages in (
            ("others", self.others),
            ("packs.watch", self.packs.watch),
            ("bilingual.partners", self.bilingual.partners),
        ):
            for language in languages:
                if language not in self.initial or language == self.pivot:
                    known = [one for one in self.initial if one != self.pivot]
                    raise ConfigError(
                        f"{name} names {language!r}{nearest(language, known) or ';'} expected initial languages other than "
                        f"{self.pivot}: {', '.join(known)}."
                    )
        hyphens = [language for language in (*self.initial, *self.new) if "-" in language]
        if hyphens:
            raise ConfigError(
                f"{', '.join(hyphens)}: results name directions as el-en, so that a language has no hyphen of its own here. "
                f"Rename the corpus's files, as in {hyphens[0].replace('-', '_')}."
            )
        both = [language for language in self.new if language in self.initial]
        if both or not self.new:
            raise ConfigError(f"new names {', '.join(both) or 'no language'}; expected languages that are not initial.")
        if not self.evaluation.sets or not self.others:
            raise ConfigError("evaluation.sets or others is empty; there would be nothing to score.")
        if len(self.base.stages) != 2:
            raise ConfigError(
                f"base.stages has {len(self.base.stages)} stages; expected two, English-centric and multi-parallel: the base "
                "after the first one is a model of its own."
            )
        if self.base.validation.lines < 1:
            raise ConfigError("base.validation.lines is 0; a stage's best weights are chosen by validation: set at least 1.")
        for name, pairs in (("pairs", self.packs.pairs), ("multi_aligned_pairs", self.packs.multi_aligned_pairs)):
            if pairs and (set(pairs) != set(self.new) or min(pairs.values()) < 1):
                raise ConfigError(
                    f"packs.{name} has {', '.join(pairs)}; expected a number of line pairs for each of {', '.join(self.new)}."
                )
        self._check_proxies()
        for number in (*self.changes, *self.left_out):
            if not number.isdecimal() or int(number) not in models():
                raise ConfigError(f"changes and left_out go by the numbers of models; got {number!r}.")
        for number in self.changes:
            if (owner := run_owner(int(number))) != int(number):
                raise ConfigError(
                    f"changes.{number}: ({number}) is a stage of the run that makes ({owner}), whose changes both have; write "
                    f"changes.{owner}=[stages.0.KEY=VALUE]."
                )

    def _check_proxies(self) -> None:
        left_out = (new_languages("TED") | new_languages("ParaCrawl")) - {*self.new}
        for language, proxy in self.proxies.items():
            if language not in left_out and (language not in self.new or proxy not in self.initial):
                raise ConfigError(
                    f"proxies has {language}: {proxy}; expected a new language ({', '.join(self.new)}) and the initial one "
                    f"whose code it takes ({', '.join(self.initial)}). To have it computed: proxies.{language}=null."
                )


def known_profiles() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_profile(name: str, overrides: Sequence[str] = ()) -> Profile:
    """One of those that come with graftmt, by name, or any YAML file by its path; with KEY=VALUE changes."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        if name not in known_profiles():
            raise ConfigError(
                f"there is no profile {name!r}{nearest(name, known_profiles()) or ';'} known: "
                f"{', '.join(known_profiles())}. A profile of your own is given as the path of its YAML file."
            )
        path = FOLDER / f"{name}.yaml"
    return from_mapping(Profile, apply_overrides(_read(path), overrides))


def _read(path: Path) -> dict[str, Any]:
    """A profile's YAML; with `extends: NAME`, that profile with what this one says otherwise, section by section."""
    mapping: dict[str, Any] = {key: value for key, value in load_yaml(path).items() if not str(key).startswith("_")}
    parent = mapping.pop("extends", None)
    if parent is None:
        return mapping
    if parent not in known_profiles() or parent == path.stem:
        raise ConfigError(
            f"{path}: extends is {parent!r}; expected the name of another profile: {', '.join(known_profiles())}."
        )
    return _merged(_read(FOLDER / f"{parent}.yaml"), mapping)


def _merged(parent: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Sections are merged key by key; anything else, lists too, replaces what the parent has. null takes a key out."""
    found = dict(parent)
    for key, value in own.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = _merged(found[key], value)
        else:
            found[key] = value
    return found
