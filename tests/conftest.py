"""A toy world for tests that need a corpus, a configuration or a trained base: four languages, renamings of each other."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# Before torch is imported: many small models on few cores, where threads of one process get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
from hypothesis import settings

# The same examples every time, so that a change is judged by itself; HYPOTHESIS_PROFILE=searching looks for new ones.
settings.register_profile("stable", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "stable"))

NOTHING_IS_SKIPPED = os.environ.get("GRAFTMT_TEST_ALL") == "1"
"""CI sets this: a package, a browser or npm that is missing there fails the tests that need it."""


def failed_if_skipped(report: Any) -> Any:
    """The report of a test or of a file of tests, as a failure where it says that it was skipped and nothing may be."""
    if NOTHING_IS_SKIPPED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, although GRAFTMT_TEST_ALL is set: {report.longrepr[-1]}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    return failed_if_skipped((yield))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest begin first, so that no process works on one of them when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return failed_if_skipped((yield))


LANGUAGES = ("en", "xa", "xb", "xc")
SYLLABLES = {"en": ("bdfgkl", "aeo"), "xa": ("prstvz", "aiu"), "xb": ("бвгдкл", "аео"), "xc": ("κλμνπρ", "αεο")}
KNOWN, NEW = ("en", "fr", "ru"), ("el", "uk")  # of the world in which languages are grafted
SYLLABLES |= {"fr": ("prstvz", "aiu"), "ru": SYLLABLES["xb"], "el": SYLLABLES["xc"], "uk": ("бвгжзн", "аіу")}
SLOTS, WORDS_A_SLOT = 5, 5
SPLITS = {"train": 300, "valid": 20, "test": 20}


def toy_words(language: str) -> list[str]:
    """Twenty-five different words of two syllables."""
    consonants, vowels = SYLLABLES[language]
    syllables = [consonant + vowel for consonant in consonants for vowel in vowels]
    words = [first + second for first in syllables for second in syllables]
    return random.Random(language).sample(words, SLOTS * WORDS_A_SLOT)


def write_toy_corpus(folder: Path, languages: Sequence[str] = LANGUAGES) -> Path:
    """Sentences of four or five words, the word at each place out of five: word for word the same in every language."""
    chance = random.Random(1)
    words = {language: toy_words(language) for language in languages}
    folder.mkdir(parents=True)
    for split, size in SPLITS.items():
        sentences = [
            [slot * WORDS_A_SLOT + chance.randrange(WORDS_A_SLOT) for slot in range(chance.choice((SLOTS - 1, SLOTS)))]
            for _ in range(size)
        ]
        for language in languages:
            lines = [" ".join(words[language][word] for word in sentence) for sentence in sentences]
            (folder / f"{split}.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def _heard_on_standard_error() -> Iterator[None]:
    """Tests listen as the command line does; `heard_by` and `silence` inside of them change that."""
    from graftmt.progress import on_standard_error

    with on_standard_error():
        yield


@pytest.fixture(scope="session", autouse=True)
def token_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tokenised text goes here rather than to the user's cache; processes that tests start inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAFTMT_CACHE", str(tmp_path_factory.mktemp("token-cache")))
        yield


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the toy corpus: splits train, valid and test. Copy it before changing anything."""
    return write_toy_corpus(tmp_path_factory.mktemp("toy") / "corpus")


@pytest.fixture(scope="session")
def toy_settings(toy_corpus: Path) -> Callable[..., dict[str, Any]]:
    """`toy_settings(run, "seed=2", …)`: the plain form of a configuration that learns the toy corpus in seconds."""

    def settings(run: Path, *overrides: str) -> dict[str, Any]:
        from graftmt.configuration import apply_overrides

        mapping = {
            "run": str(run),
            "data": {"corpus": str(toy_corpus)},
            "subwords": {"merges": 200, "min_character_count": 1},
            "model": {
                "size": "tiny",
                "model_dim": 32,
                "ffn_dim": 64,
                "heads": 2,
                "encoder_layers": 1,
                "decoder_layers": 1,
            },
            "stages": [
                {
                    "directions": ["multi-parallel"],
                    "steps": 500,
                    "batch_tokens": 600,
                    "learning_rate": 0.01,
                    "warmup": 50,
                    "cooldown": 0.5,
                    "dropout": 0.0,
                    "clip_norm": 1.0,
                }
            ],
            "validation": {"directions": ["en-xa", "xb-en"], "every": 100, "lines": 10},
            "device": "cpu",
            "threads": 1,
            "tensorboard": False,
        }
        return apply_overrides(mapping, overrides)

    return settings


@pytest.fixture(scope="session")
def train() -> Callable[..., list[str]]:
    """Trains in this process and returns what was said; a run that `minutes` stops is no failure."""
    from graftmt.progress import heard_by
    from graftmt.training import Stopped, TrainConfig, train_base

    def run(config: TrainConfig, **options: Any) -> list[str]:
        said: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("os.cpu_count", lambda: 1)  # tokenise here: processes take longer to start than this text needs
            try:
                with heard_by(said.append):
                    train_base(config, **options)
            except Stopped as stop:
                said.append(stop.reason)
        return said

    return run


@pytest.fixture(scope="session")
def toy_run(
    tmp_path_factory: pytest.TempPathFactory, toy_settings: Callable[..., dict[str, Any]], train: Callable[..., list[str]]
) -> Path:
    """The folder of a finished run that has learned the toy task; read only."""
    from graftmt.configuration import from_mapping
    from graftmt.training import TrainConfig

    run = tmp_path_factory.mktemp("toy") / "run"
    train(from_mapping(TrainConfig, toy_settings(run)))
    return run


@pytest.fixture(scope="session")
def toy_base(toy_run: Path) -> Path:
    """The folder of a base that translates the toy languages well; read only."""
    return toy_run / "base"


@pytest.fixture
def base_copy(toy_base: Path, tmp_path: Path) -> Path:
    """A copy of the toy base, to be damaged."""
    return Path(shutil.copytree(toy_base, tmp_path / "base-copy"))


@pytest.fixture(scope="session")
def graft_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a corpus in en, fr and ru, which bases know, and in el and uk, which they do not; read only."""
    return write_toy_corpus(tmp_path_factory.mktemp("graft") / "corpus", (*KNOWN, *NEW))


@pytest.fixture(scope="session")
def graft_base(tmp_path_factory: pytest.TempPathFactory, graft_corpus: Path) -> Callable[..., Path]:
    """`graft_base("post", "decoder")`: the folder of a base with random weights, three layers on each side; read only."""
    import torch

    from graftmt.base import Base
    from graftmt.data import Corpus
    from graftmt.model import ModelConfig
    from graftmt.text import Tokenizer, train_subwords

    shape = {"model_dim": 16, "ffn_dim": 24, "heads": 2, "encoder_layers": 3, "decoder_layers": 3}
    made: dict[str, Path] = {}

    def build(norm: str = "pre", placement: str = "source", languages: Sequence[str] = KNOWN, **changes: Any) -> Path:
        key = f"{norm}-{placement}-{'-'.join([*languages, *map(str, changes.values())])}"
        if key not in made:
            train = Corpus.open(graft_corpus, "train", languages)
            texts = {language: train.lines(language) for language in languages}
            tokenizer = Tokenizer(train_subwords(texts, merges=60, min_character_count=1), languages, placement)  # type: ignore[arg-type]
            torch.manual_seed(1)
            base = Base.create(ModelConfig(**{**shape, "norm": norm, **changes}), tokenizer)  # type: ignore[arg-type]
            with torch.no_grad():  # biases and norms that do something
                for name, parameter in base.model.named_parameters():
                    if "embedding" not in name:
                        parameter += 0.1 * torch.randn_like(parameter)
            made[key] = tmp_path_factory.mktemp("graft") / key
            base.save(made[key])
        return made[key]

    return build


@pytest.fixture(scope="session")
def graft_subwords(tmp_path_factory: pytest.TempPathFactory, graft_corpus: Path) -> Callable[..., Path]:
    """`graft_subwords("el")`: a subwords.model for new languages, with pieces that the training text does not have."""
    from graftmt.data import Corpus
    from graftmt.text import train_subwords

    made: dict[tuple[str, ...], Path] = {}

    def build(*languages: str) -> Path:
        if languages not in made:
            train = Corpus.open(graft_corpus, "train", languages)
            texts = {language: [*train.lines(language), "ψωψω 12 fada"] for language in languages}
            made[languages] = tmp_path_factory.mktemp("graft") / "subwords.model"
            made[languages].write_bytes(train_subwords(texts, merges=30, min_character_count=1).model_bytes)
        return made[languages]

    return build


@pytest.fixture(scope="session")
def make_pack(graft_subwords: Callable[..., Path]) -> Callable[..., Any]:
    """`make_pack(base, "source", "embed + enc-first-layer", "el")`: a pack whose every parameter differs from its start.

    What training would do to it is none of a composition's business, so noise does.
    """

    import torch

    from graftmt.packs import Recipe, create_pack
    from graftmt.text import Subwords

    def make(base: Any, side: str = "source", recipe: str = "embed", *languages: str, seed: int = 1) -> Any:
        languages = languages or ("el",)
        subwords = Subwords.load(graft_subwords(*languages))
        translations = {"▁κ": {"▁b": 1.0}}
        pack = create_pack(
            base,
            side=side,  # type: ignore[arg-type]
            languages=languages,
            recipe=Recipe.parse(recipe),
            subwords=subwords,
            seed=seed,
            translations=translations,
        )
        generator = torch.Generator().manual_seed(seed + 100)
        with torch.no_grad():
            for parameter in pack.parameters.values():
                parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
        return pack

    return make


@pytest.fixture(scope="session")
def graft_config(graft_subwords: Callable[..., Path]) -> Callable[..., Any]:
    """`graft_config(run, "target", "embed", steps=8)`: the configuration of a pack that trains for a few steps."""
    from dataclasses import replace

    from graftmt.training import PackConfig, PackDataConfig, StageConfig, SubwordConfig, ValidationConfig

    def config(
        run: Path,
        side: str = "source",
        recipe: str = "embed",
        *,
        languages: Sequence[str] = ("el",),
        partners: Sequence[str] = ("en",),
        few: Sequence[str] = (),
        steps: int = 3,
        **changes: Any,
    ) -> PackConfig:
        stage = StageConfig(name="pack", directions=(), batch_tokens=200, learning_rate=0.02, warmup=1, steps=steps)
        stage = replace(stage, **{key: changes.pop(key) for key in ("directions", "batch_tokens", "dropout") if key in changes})
        return PackConfig(
            run=run,
            side=side,  # type: ignore[arg-type]
            recipe=recipe,
            languages=tuple(languages),
            data=PackDataConfig(partners=tuple(partners), few=tuple(few)),
            **{
                "stages": (stage,),
                "subwords": SubwordConfig(model=graft_subwords(*languages)),
                "validation": ValidationConfig(every=4, lines=6),
                "tensorboard": False,
                "threads": 1,
                **changes,
            },
        )

    return config


@pytest.fixture(scope="session")
def train_graft(graft_corpus: Path, graft_config: Callable[..., Any]) -> Callable[..., Any]:
    """`train_graft(run, base, "target", "embed", …)`: that pack, trained on a resident base."""
    from graftmt.base import Base
    from graftmt.data import Corpus
    from graftmt.packs import Pack
    from graftmt.progress import heard_by
    from graftmt.training import train_pack

    def train(
        run: Path, base: Base, *arguments: Any, validate: bool = False, said: list[str] | None = None, **options: Any
    ) -> Pack:
        train, valid = (Corpus.open(graft_corpus, split) for split in ("train", "valid"))
        config = graft_config(run, *arguments, **options)
        heard = [] if said is None else said
        with heard_by(heard.append):
            return train_pack(config, base, train, valid if validate else None)

    return train


@pytest.fixture(scope="session")
def start_graftmt() -> Callable[..., subprocess.Popen[bytes]]:
    """`start_graftmt("translate", …, stdin=…)`: a process of its own, with one thread and all its streams as pipes."""
    import graftmt

    source = str(Path(graftmt.__file__).parents[1])

    def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        # PYTHONUNBUFFERED would hide output that is kept back.
        inherited = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
        environment = {**inherited, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", **options.pop("environment", {})}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([sys.executable, "-m", "graftmt", *arguments], env=environment, **{**pipes, **options})

    return start


class Result(NamedTuple):
    """What a command gave back."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def graftmt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """`graftmt("translate", …, stdin=b"…")`: the whole command line in this process, which spares the start of a new one."""
    from graftmt.cli.app import main

    def run(*arguments: str, stdin: bytes = b"") -> Result:
        path = tmp_path.with_name(f"{tmp_path.name}-standard-input")  # not inside, where only the test writes
        path.write_bytes(stdin)
        capfd.readouterr()
        with path.open(encoding="utf-8") as handle, monkeypatch.context() as patch:
            patch.setattr("sys.argv", ["graftmt", *arguments])
            patch.setattr("sys.stdin", handle)
            patch.setattr("os.cpu_count", lambda: 1)
            patch.setenv("COLUMNS", "250")
            try:
                main()
                code = 0
            except SystemExit as leaving:
                code = int(leaving.code or 0)
        return Result(code, *capfd.readouterr())

    return run
