"""A toy world for tests that need a corpus, a configuration or a trained base: four languages, renamings of each other."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

# Before torch is imported: many small models on few cores, where threads of one process get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

LANGUAGES = ("en", "xa", "xb", "xc")
SYLLABLES = {"en": ("bdfgkl", "aeo"), "xa": ("prstvz", "aiu"), "xb": ("бвгдкл", "аео"), "xc": ("κλμνπρ", "αεο")}
SLOTS, WORDS_A_SLOT = 5, 5
SPLITS = {"train": 300, "valid": 20, "test": 20}


def toy_words(language: str) -> list[str]:
    """Twenty-five different words of two syllables."""
    consonants, vowels = SYLLABLES[language]
    syllables = [consonant + vowel for consonant in consonants for vowel in vowels]
    words = [first + second for first in syllables for second in syllables]
    return random.Random(language).sample(words, SLOTS * WORDS_A_SLOT)


def write_toy_corpus(folder: Path) -> Path:
    """Sentences of four or five words, the word at each place out of five: word for word the same in every language."""
    chance = random.Random(1)
    words = {language: toy_words(language) for language in LANGUAGES}
    folder.mkdir(parents=True)
    for split, size in SPLITS.items():
        sentences = [
            [slot * WORDS_A_SLOT + chance.randrange(WORDS_A_SLOT) for slot in range(chance.choice((SLOTS - 1, SLOTS)))]
            for _ in range(size)
        ]
        for language in LANGUAGES:
            lines = [" ".join(words[language][word] for word in sentence) for sentence in sentences]
            (folder / f"{split}.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


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
    from graftmt.training import Stopped, TrainConfig, train_base

    def run(config: TrainConfig, **options: Any) -> list[str]:
        said: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("os.cpu_count", lambda: 1)  # tokenise here: processes take longer to start than this text needs
            try:
                train_base(config, quiet=True, say=said.append, **options)
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
        path = tmp_path / "standard-input"
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
