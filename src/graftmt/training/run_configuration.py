"""A training run as one checked value: what a YAML file and its overrides become. Layer 4."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graftmt.configuration import LATER, above_zero, check_numbers, check_seed, one_or_more
from graftmt.errors import ConfigError
from graftmt.model import ModelConfig, named_size
from graftmt.training.optimization import StageConfig
from graftmt.training.validation import ValidationConfig

MOST_PIECES = 10_000_000
"""Of a vocabulary: forty times those of the largest models."""
MOST_THREADS = 4096
"""Beyond which torch fails in ways of its own."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which text."""

    corpus: Path
    """A folder of line-aligned files: train.en.txt, train.fr.txt.xz, valid.en.txt, …"""
    languages: tuple[str, ...] | None = None
    """All that the folder has, unless named."""
    exclude: tuple[str, ...] = ()
    """… but not these: languages to be added later."""
    pivot: str = "en"
    """The centre of `english-centric` directions and of averages."""
    max_length: int = 256
    """Pairs with more tokens on a side are left out of training."""
    cache: Path | None = None
    """Where tokenised text is kept; $GRAFTMT_CACHE or the user's cache folder unless set."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1", one_or_more, "max_length")


BASE_MERGES = 32000
PACK_MERGES = 4000
"""For each new language."""


@dataclass(frozen=True, kw_only=True)
class SubwordConfig:
    """The shared vocabulary, made from the training text."""

    merges: int = BASE_MERGES
    temperature: float = 5.0
    min_character_count: int = 10
    """Characters seen at least this often are always in the vocabulary."""
    byte_fallback: bool = False
    """Rarer characters become bytes rather than <unk>."""
    sample_lines: int = 1_000_000
    """At most N lines per language are read to make the vocabulary, evenly spread over the file."""
    model: Path | None = None
    """A subwords.model made before, to use instead."""
    pieces: int | None = None
    """Exactly N pieces, characters included, in place of a number of merges."""
    casing: Literal["inline", "none"] = field(default="inline", metadata=LATER)
    """inline: lowercased, with markers for case, the better one. none: plain cased SentencePiece, which transformers and
    CTranslate2 read with their own tools after `graftmt export`."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1", one_or_more, "sample_lines", "min_character_count")
        check_numbers(self, f"1 to {MOST_PIECES:,}", lambda value: 1 <= value <= MOST_PIECES, "merges", "pieces")
        check_numbers(self, "a number above 0", above_zero, "temperature")


@dataclass(frozen=True, kw_only=True)
class ModelSection:
    """A named size and what differs from it."""

    size: str = "base"
    norm: Literal["pre", "post"] = "pre"
    embeddings: Literal["tied", "tied-target", "separate"] = "tied"
    activation: Literal["relu", "gelu", "silu"] = "relu"
    code_placement: Literal["source", "decoder"] = "source"
    model_dim: int | None = None
    ffn_dim: int | None = None
    heads: int | None = None
    encoder_layers: int | None = None
    decoder_layers: int | None = None

    def __post_init__(self) -> None:
        self.architecture()

    def architecture(self) -> ModelConfig:
        shape = ("model_dim", "ffn_dim", "heads", "encoder_layers", "decoder_layers")
        changes: dict[str, Any] = {name: getattr(self, name) for name in shape if getattr(self, name) is not None}
        return named_size(self.size, norm=self.norm, embeddings=self.embeddings, activation=self.activation, **changes)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What every run has, whatever it trains. The resolved form is saved as config.yaml in the run's folder."""

    run: Path
    """The run's folder: checkpoints, logs and, at the end, the base or the pack."""
    stages: tuple[StageConfig, ...] = (StageConfig(),)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    seed: int = 1
    device: str = "auto"
    """cpu, cuda, or auto: a GPU where there is one."""
    threads: int = 0
    """CPU threads for torch; 0 leaves torch's choice."""
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False
    """torch.compile: half a minute at the start, faster after."""
    capture: bool = True
    """On a GPU, steps over packed batches are recorded once and replayed as a CUDA graph."""
    sharded: bool = False
    """Under `torchrun`, each process holds a part of every layer (FSDP2): for bases that do not fit one device."""
    checkpoint_every: int = 1000
    keep_checkpoints: int = 2
    log_every: int = 50
    tensorboard: bool = True
    store_dtype: Literal["fp32", "bf16", "fp16"] = "fp32"
    """The precision in which the result is stored."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("stages is empty; a run has at least one stage.")
        check_numbers(self, "at least 1", one_or_more, "checkpoint_every", "log_every", "keep_checkpoints")
        check_seed(self)
        check_numbers(self, f"0 to {MOST_THREADS}", lambda value: 0 <= value <= MOST_THREADS, "threads")
        if not self.validation.lines and any(stage.patience for stage in self.stages):
            raise ConfigError(
                "patience ends a stage by its validation scores, and there are none with validation.lines=0; leave patience "
                "out, or validate on some lines."
            )
        if self.sharded and (self.compile or any(stage.packed for stage in self.stages)):
            raise ConfigError("sharded=true works without compile and without packed batches; leave these out, or it.")
        if self.sharded and self.validation.lines > 0 and self.validation.translates:
            raise ConfigError(
                "sharded=true validates by the loss alone: to translate, every process would fetch every layer for every "
                "token. Set validation.translate=false and leave validation.metric=loss."
            )


@dataclass(frozen=True, kw_only=True)
class TrainConfig(RunConfig):
    """Everything about the training of a base."""

    data: DataConfig
    subwords: SubwordConfig = field(default_factory=SubwordConfig)
    model: ModelSection = field(default_factory=ModelSection)


@dataclass(frozen=True, kw_only=True)
class PackDataConfig:
    """Which pairs a pack trains on; the text itself comes separately."""

    partners: tuple[str, ...] = ("en",)
    """The base's languages that the new ones are paired with."""
    few: tuple[str, ...] = ()
    """Those of the partners with a few lines only, such as back-translated ones: they take no part in choosing the best
    checkpoint, and are watched instead; parts with `@trained` are not for them."""
    max_length: int = 256
    """Pairs with more tokens on a side are left out of training."""
    cache: Path | None = None
    """Where tokenised text is kept; $GRAFTMT_CACHE or the user's cache folder unless set."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1", one_or_more, "max_length")
        if strangers := [name for name in self.few if name not in self.partners]:
            raise ConfigError(
                f"data.few: {', '.join(strangers)} {'is' if len(strangers) == 1 else 'are'} not among data.partners, "
                f"{', '.join(self.partners)}."
            )


PACK_STAGE = StageConfig(
    name="pack", directions=(), steps=4000, warmup=400, learning_rate=1e-3, dropout=0.1, betas=(0.9, 0.999), cooldown=0.3
)


@dataclass(frozen=True, kw_only=True)
class PackConfig(RunConfig):
    """Everything about the training of a language pack."""

    languages: tuple[str, ...]
    """The new ones: several share one vocabulary and all parameters."""
    side: Literal["source", "target"]
    recipe: str = "embed"
    data: PackDataConfig = field(default_factory=PackDataConfig)
    subwords: SubwordConfig = field(default_factory=lambda: SubwordConfig(merges=PACK_MERGES))
    """`merges` for each new language."""
    stages: tuple[StageConfig, ...] = (PACK_STAGE,)
    """`directions` of a stage: all of new language and partner unless named."""
    parent: Path | None = None
    """A pack to continue, with its vocabulary and recipe, instead of a new one."""
    codes_from: Path | None = None
    """A base that knows the language, or a target pack with a learned code of it: what code:proxy:nearest measures by."""


@dataclass(frozen=True, kw_only=True)
class RetrainDataConfig:
    """The text of a re-training: all that the base was trained on, and the new languages with it."""

    corpus: Path
    """A folder of line-aligned files, as for training a base."""
    languages: tuple[str, ...] | None = None
    """The base's languages to train on; all of them unless named. One that is left out will be forgotten."""
    pivot: str = "en"
    """The centre of `english-centric` directions."""
    max_length: int = 256
    """Pairs with more tokens on a side are left out of training."""
    cache: Path | None = None
    """Where tokenised text is kept; $GRAFTMT_CACHE or the user's cache folder unless set."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1", one_or_more, "max_length")


@dataclass(frozen=True, kw_only=True)
class NewDirectionsConfig:
    """How the directions of new languages are sampled next to those that the base knows."""

    directions: tuple[str, ...] = ()
    """Of a stage's directions, those of new languages are only these (a view or a list); all unless named."""
    probability: float | None = None
    """A fixed one for each of them, the rest shared by temperature among the others (the paper's ParaCrawl models: 0.05) …"""
    upsample: float | None = None
    """… or N times as often as by temperature alone. Default: 5 with method substitute, otherwise 1."""

    def __post_init__(self) -> None:
        if self.probability is not None and self.upsample is not None:
            raise ConfigError("probability and upsample are both given; give one of them.")
        check_numbers(self, "a number between 0 and 1", lambda value: 0 < value < 1, "probability")
        check_numbers(self, "a number above 0", above_zero, "upsample")


RETRAIN_STAGE = StageConfig(name="retrain", directions=("multi-parallel",), betas=(0.9, 0.999))


@dataclass(frozen=True, kw_only=True)
class RetrainConfig(RunConfig):
    """Everything about re-training a base with new languages: the paper's costly baselines."""

    base: Path
    """The folder of the base to start from; it stays as it is, the result is another one."""
    new: tuple[str, ...]
    """The languages to add."""
    method: Literal["retrain", "substitute"] = "retrain"
    """retrain: a new vocabulary, whose new rows are random. substitute: one of exactly the old size (Garcia et al. 2021), whose
    new rows take the values of those that are no longer used."""
    data: RetrainDataConfig
    subwords: SubwordConfig = field(default_factory=SubwordConfig)
    """Options that are not given are those that the base was made with."""
    model: ModelSection | None = None
    """What the base is expected to be, if given: its architecture cannot change."""
    new_directions: NewDirectionsConfig = field(default_factory=NewDirectionsConfig)
    stages: tuple[StageConfig, ...] = (RETRAIN_STAGE,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.new or len(set(self.new)) < len(self.new):
            raise ConfigError(f"new is [{', '.join(self.new)}]; expected the new languages, each once, such as [el, uk].")

    @property
    def upsample(self) -> float:
        chosen = self.new_directions.upsample
        return chosen if chosen is not None else 5.0 if self.method == "substitute" else 1.0


MAY_CHANGE = (
    "run",
    "device",
    "threads",
    "compile",
    "capture",
    "sharded",
    "checkpoint_every",
    "keep_checkpoints",
    "log_every",
    "tensorboard",
    "store_dtype",
    "data.corpus",
    "data.cache",
    "base",
    "parent",
    "codes_from",
)
"""Keys in which a resumed run may differ from the one that began: they do not decide what is learned.
(A moved corpus or base is recognised by its content.)"""
