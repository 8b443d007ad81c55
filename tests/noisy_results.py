"""Results of experiments with translations that have some of the references' words right, for reports."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics.chrf import CHRF

WORDS = ["the", "a", "cat", "dog", "house", "tree", "went", "saw", "big", "small", "red", "on", "in", "under", "over"]
CHANCE = random.Random(1)
LINES = {
    language: [" ".join(f"{language}{word}" for word in CHANCE.choices(WORDS, k=CHANCE.randint(4, 12))) for _ in range(80)]
    for language in ("el", "en", "fr", "de", "uk")
}
LINES["fr"][3] = LINES["fr"][50] = ""  # French lacks two lines


def pairs(direction: str) -> list[int]:
    return [n for n, pair in enumerate(zip(*(LINES[name] for name in direction.split("-")), strict=True)) if all(pair)]


def noisy(direction: str, right: float, seed: int) -> list[str]:
    """So many of the references' words stay; with one seed, what stays of few also stays of more."""
    chance = random.Random(f"{direction} {seed}")

    def word(text: str) -> str:
        roll, other = chance.random(), chance.choice(WORDS)
        return text if roll < right else other

    references = [LINES[direction.split("-")[1]][line] for line in pairs(direction)]
    return [" ".join(map(word, line.split())) for line in references]


def noisy_experiment(folder: Path) -> Callable[..., Path]:
    """`ran(7, {"el-en": 0.7})`: a result whose translations have so many words right; returns the experiments' folder."""
    (folder / "translations" / "lines").mkdir(parents=True)
    (folder / "results").mkdir()
    for language, lines in LINES.items():
        write(folder / "translations" / "lines" / f"test.{language}.txt", lines)

    def go(model: int, right: Mapping[str, float], *, seed: int = 1, base: str = "0dddbf411efd9ae5", **facts: Any) -> Path:
        languages = facts.get("languages", ["el"])
        job = f"model-{model}-{'+'.join(languages)}-seed{seed}"
        directions = {}
        for direction, share in right.items():
            translations = noisy(direction, share, seed)
            write(folder / "translations" / job / f"test.{direction}.txt", translations)
            chrf = CHRF().corpus_score(translations, [[LINES[direction.split("-")[1]][n] for n in pairs(direction)]]).score
            directions[direction] = {"bleu": chrf - 20, "chrf": round(chrf, 3), "off_target": 0.0, "lines": len(translations)}
        document = {
            "job": job,
            "kind": "model",
            "profile": "docs",
            "model": model,
            "languages": languages,
            "seed": seed,
            "base": {"id": 4, "fingerprint": base},
            "scores": {"test": {"directions": directions}},
            **facts,
        }
        (folder / "results" / f"{job}.json").write_text(json.dumps(document), encoding="utf-8")
        return folder

    return go


def write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def source(trained: float, zero_shot: float, language: str = "el") -> dict[str, float]:
    return {f"{language}-en": trained, f"{language}-fr": zero_shot, f"{language}-de": zero_shot}
