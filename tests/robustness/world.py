"""A small world of sound things to damage: text, a base, packs, and every kind of unfinished work, all made by commands."""

from __future__ import annotations

import random
import shutil
import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

import graftmt
from robustness.isolation import Outcome, command_line, import_noted, noting_imports, run_isolated, settle_memory
from robustness.kills import kill_at, operations_in

KNOWN, NEW = ("en", "fr", "ru"), ("el", "uk")
SYLLABLES = {"en": "bdfgkl aeo", "fr": "prstvz aiu", "ru": "бвгдкл аео", "el": "κλμνπρ αεο", "uk": "бвгжзн аіу"}
SPLITS = {"train": 120, "valid": 8, "test": 8}
STAGE = {"directions": ["multi-parallel"], "batch_tokens": 400, "learning_rate": 0.01, "warmup": 2}
TRAINING = {
    "subwords": {"merges": 60, "min_character_count": 1},
    "model": {"size": "tiny", "model_dim": 16, "ffn_dim": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 2},
    "stages": [{**STAGE, "name": "first", "steps": 8}, {**STAGE, "name": "second", "steps": 6}],
    "validation": {"directions": ["en-fr"], "every": 4, "lines": 4, "translate": False},
}
RUN = {"checkpoint_every": 3, "log_every": 1, "device": "cpu", "threads": 1, "tensorboard": False}
QUICK_ADD = (
    "tensorboard=false",
    "threads=1",
    "validation.lines=4",
    "validation.every=3",
    "validation.translate=false",
    "checkpoint_every=2",
)
TINY_MODEL = "{size: tiny, model_dim: 16, ffn_dim: 24, heads: 2, encoder_layers: 2, decoder_layers: 2}"
QUICK_EXPERIMENT = (
    *("evaluation.beam=1", "evaluation.max_length=8", "evaluation.off_target=false", "evaluation.sets.test.lines=3"),
    *("initial=[en, fr, ru]", "others=[fr, ru]", "packs.watch=[fr]", "device=cpu", "threads=1", "changes={}", "packs.pairs={}"),
    *("packs.subwords={merges: 30, min_character_count: 1}", "packs.multi_aligned_steps=null", "packs.several_steps=null"),
    *("packs.multi_aligned_pairs={}", "packs.validations=1", "packs.validation={lines: 2, translate: false}"),
    *(f"packs.{side}={{steps: 3, batch_tokens: 200, learning_rate: 0.02, warmup: 1}}" for side in ("source", "target")),
    "packs.precision=fp32",
)


RECIPES = {
    "el-source": ("source", "el", "embed"),
    "el-trained": ("source", "el", "embed + enc-first-layer@trained + enc-adapters-last(4)"),
    "uk-target": ("target", "uk", "embed + dec-last-layer + enc-adapters-last(4)"),
}
FOREIGN = {"m2m-100": "safetensors", "marian": "bin"}
"""Families of models of other programs, and the format of their weights."""
RESUMABLE = ("train", "retrain", "add", "translate", "augment", "evaluate", "experiment")
WORK = (*RESUMABLE, "clean", "split")
"""Commands that leave something; the last ones are quick, and start over."""


@dataclass(frozen=True)
class World:
    """A folder of sound things. Commands read them where they are; what is to be damaged is copied first."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    @property
    def cache(self) -> Path:
        """Text that is tokenised already, and whatever else graftmt keeps for later."""
        return self.folder / "cache"


BASE_TRAINING = {
    **TRAINING,
    "stages": [{**STAGE, "steps": 150}],
    "validation": {"directions": ["en-fr"], "every": 1000, "lines": 4},
}
"""Long enough that what comes out depends on what goes in."""


def make_world(folder: Path) -> World:
    """Makes all of it in some seconds; the same to the bit each time, apart from clocks and the paths that some files hold."""
    world = World(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write_corpus(world / "corpus")
    _write_configurations(world)
    _make(world, "train", str(world / "base.yaml"))
    shutil.copytree(world / "base-run" / "base", world / "base")
    _make_packs(world)
    _make_finished(world)
    _make_unfinished(world)
    _make_foreign(world)
    _make_published(world)
    for name in ("base", "packs/el-source", "packs/uk-target.graftpack"):
        _make(world, "push", str(world / name), str(world / "shop"), "-q")
    settle_memory()
    return world


def _write_corpus(folder: Path) -> None:
    """Sentences of two to five words, word for word the same in every language."""
    chance = random.Random(1)
    words = {language: _words(language) for language in SYLLABLES}
    folder.mkdir()
    for split, size in SPLITS.items():
        sentences = [[chance.randrange(20) for _ in range(chance.randint(2, 5))] for _ in range(size)]
        for language, own in words.items():
            lines = [" ".join(own[word] for word in sentence) for sentence in sentences]
            (folder / f"{split}.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _words(language: str) -> list[str]:
    consonants, vowels = SYLLABLES[language].split()
    syllables = [consonant + vowel for consonant in consonants for vowel in vowels]
    return random.Random(language).sample([one + other for one in syllables for other in syllables], 20)


def _write_configurations(world: World) -> None:
    data = {"corpus": str(world / "corpus"), "languages": list(KNOWN)}
    base = {"run": str(world / "base-run"), "data": data, **BASE_TRAINING, **RUN}
    (world / "base.yaml").write_text(yaml.safe_dump(base), encoding="utf-8")
    train = {"run": str(world / "train" / "run"), "data": data, **TRAINING, **RUN}
    (world / "train.yaml").write_text(yaml.safe_dump(train), encoding="utf-8")
    shutil.copy(Path(graftmt.__file__).parent / "experiments" / "profiles" / "demo.yaml", world / "profile.yaml")
    retrain = {
        "run": str(world / "retrain-run"),
        "base": str(world / "base"),
        "new": ["el"],
        "method": "retrain",
        "data": {"corpus": str(world / "corpus")},
        "stages": [{**STAGE, "steps": 8}],
        "validation": {"lines": 2, "every": 4, "translate": False},
        **RUN,
    }
    (world / "retrain.yaml").write_text(yaml.safe_dump(retrain), encoding="utf-8")


def _make_packs(world: World) -> None:
    for name, (side, language, recipe) in RECIPES.items():
        for place in (
            world / "packs" / name,
            world / "packs" / f"{name}.graftpack",
        ):  # the second time there is nothing to train
            arguments = add_arguments(world, world / f"{name}-run", side, language, recipe)
            _make(world, *arguments, "-o", str(place))


def add_arguments(world: World, run: Path, side: str = "source", language: str = "el", recipe: str = "embed") -> list[str]:
    given = ["add", language, "--base", str(world / "base"), "--train", str(world / "corpus"), "--side", side]
    options = ["--augment", "none", "--steps", "6", "--merges", "30", "--lines", "2", "--beam", "1", "--device", "cpu", "-q"]
    return [*given, "--recipe", recipe, "--run", str(run), *options, *QUICK_ADD]


def work_arguments(world: World, name: str, folder: Path) -> list[str]:
    """A command that resumes, and that works in `folder` alone."""
    base, corpus = str(world / "base"), str(world / "corpus")
    short = ("--beam", "1", "--max-length", "8", "--device", "cpu", "-q")
    commands = {
        "train": ["train", str(world / "train.yaml"), f"run={folder / 'run'}", "-q"],
        "retrain": ["retrain", str(world / "retrain.yaml"), f"run={folder / 'run'}", "-q"],
        "add": [*add_arguments(world, folder / "run"), "-o", str(folder / "pack")],
        "translate": [
            *("translate", "-b", base, "-s", "en", "-t", "fr", "--input", f"{corpus}/train.en.txt"),
            *("--output", str(folder / "out.fr.txt"), "--chunk", "16", *short),
        ],
        "augment": [
            *("augment", "el", "--base", base, "--train", corpus, "--spec", "20-bt", "-o", str(folder / "augmented")),
            *("--chunk", "8", "--device", "cpu", "-q"),
        ],
        "evaluate": [
            *("evaluate", "-b", base, "-c", corpus, "-d", "en-fr,fr-en,ru-fr", "-o", str(folder / "scores")),
            *("--no-off-target", *short),
        ],
        "experiment": [
            *("experiment", "run", "demo", "--corpus", corpus, "--base", f"4={base}", "--output", str(folder / "experiments")),
            *("--tables", "4", "--rows", "7+31", "-q", *QUICK_EXPERIMENT),
        ],
        "clean": ["prepare", "clean", corpus, "-o", str(folder / "clean"), "-q", "--no-language-id"],
        "split": ["prepare", "split", corpus, "-o", str(folder / "split"), "--valid", "4", "--test", "4", "-q"],
    }
    return commands[name]


def _make_finished(world: World) -> None:
    for name in WORK:
        _make(world, *work_arguments(world, name, Path(name)))


def _make_published(world: World) -> None:
    """A report with its translations, and a page with numbers from it."""
    experiments, published = world / "experiment" / "experiments", world / "published"
    given = ["experiment", "report", "demo", *QUICK_EXPERIMENT, "-r", str(experiments), "-o", str(published / "report")]
    _make(world, *given, "-f", "none")
    assert list((published / "report" / "translations").iterdir())
    claims = "chrf 7 el-en > -1; bleu 7 el-en > -1; updates 7 > 0; stated the page's own = 4.2"
    (published / "page.md").write_text(f"Text of 4.2.\n<!-- from report: {claims} -->\n", encoding="utf-8")


def _make_unfinished(world: World) -> None:
    """Work that was killed in the middle: what the same command resumes from."""
    for name in RESUMABLE:
        folder = Path(f"unfinished-{name}")  # relative: some files hold the paths of others, and the folder will be copied
        action, place = command_line(*work_arguments(world, name, folder)), world.folder / folder
        total = operations_in(action, place, surroundings(world))
        shutil.rmtree(place)
        outcome = run_isolated(kill_at(action, place, int(total * 0.6)), environment=surroundings(world), folder=world.folder)
        assert outcome.code == -signal.SIGKILL, outcome


def _make_foreign(world: World) -> None:
    """Small models of transformers' own classes, in a process of its own: importing has to do without transformers."""
    for family, weights in FOREIGN.items():
        folder = world / f"foreign-{family}"
        outcome = run_isolated(partial(_save_foreign, folder, family, weights), environment=surroundings(world), timeout=300)
        assert outcome.code == 0, outcome.stderr
        _make(world, "import", str(folder), "-o", str(world / f"imported-{family}"), *import_languages(family), "-q")


def _save_foreign(folder: Path, family: str, weights: str) -> None:
    import torch
    from peers.foreign_models import MODELS
    from safetensors.torch import load_file

    MODELS[family](folder)
    if weights == "bin":
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()


def import_languages(family: str) -> list[str]:
    return ["--from", "en", "--to", "ru"] if family == "marian" else []


def _make(world: World, *arguments: str) -> Outcome:
    note = world.folder.with_name("imports.txt")
    action = noting_imports(command_line(*arguments), note)
    outcome = run_isolated(action, environment=surroundings(world), folder=world.folder)
    if outcome.code != 0:
        raise AssertionError(f"a sound command failed: {' '.join(arguments)}\n{outcome.stderr}")
    import_noted(note)
    return outcome


def surroundings(world: World, cache: Path | None = None) -> dict[str, str]:
    """Environment variables of a command."""
    return {"GRAFTMT_CACHE": str(cache or world.cache), "COLUMNS": "200", "HOME": str(world / "home")}
