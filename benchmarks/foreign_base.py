"""A real foreign model on one GPU: trained with transformers, imported, scored by both programs, and given new languages.

    python benchmarks/foreign_text.py --corpus CORPUS -o runs/foreign                (beforehand, on a CPU: one minute)
    PYTHONPATH=src python benchmarks/foreign_base.py --output $OUT                   (on the GPU: carry runs/foreign, 40 MB)
    PYTHONPATH=src python benchmarks/foreign_base.py --device cpu --tiny             (the whole of it in a minute, to debug)

An M2M100 of Transformer Base size learns the 20 languages of the corpus for `--seconds`, with transformers' model class and its
NLLB tokenizer class, and is saved by `save_pretrained`. `graftmt import` makes a base of the folder. Both programs translate
the same lines in nine directions. Then come packs with the defaults of `graftmt add`: Greek as source, Greek and Ukrainian as
target; zero-shot directions, Greek to Ukrainian composed and through English, and `verify`.

It ends within `--limit` seconds: what there is no time left for is left out and said to be. Each part's result is in
results.json and results.md, in `--output`, as soon as it is known. Rerun the command to resume; finished parts are kept in
`--work`. The machine needs torch, transformers, tokenizers, sentencepiece, safetensors and sacrebleu.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sacrebleu
import torch
import transformers
from peers import nllb_training as peer
from peers.hugging_face import their_shape

import graftmt
from graftmt.adding.verification import verify
from graftmt.base import Base
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.devices import choose_device
from graftmt.model import named_size
from graftmt.translator import Translator

EN, FR, DE, RU, JA, EL, UK = "eng_Latn", "fra_Latn", "deu_Latn", "rus_Cyrl", "jpn_Jpan", "ell_Grek", "ukr_Cyrl"
NINE = [(FR, EN), (DE, EN), (RU, EN), (JA, EN), (EN, FR), (EN, DE), (EN, RU), (FR, DE), (RU, FR)]
OTHERS = (EN, FR, DE, RU)
PACKS = {"el-source": (EL, "source"), "el-target": (EL, "target"), "uk-target": (UK, "target")}
TOLERANCE = 0.2
"""chrF between the two programs, at most."""
NEEDS = {"train": 60, "import": 15, "parity": 40, "pack": 60, "scores": 20, "verify": 25}
"""Seconds without which a part is not begun, beside the training's own."""


class OutOfTime(Exception):
    """There is not enough of the limit left for this part."""


class Record:
    """The results so far, on disk after each part."""

    def __init__(self, work: Path, output: Path, limit: float) -> None:
        self.kept, self.output, self.end = work / "results.json", output, time.monotonic() + limit
        self.values: dict[str, Any] = json.loads(self.kept.read_text()) if self.kept.exists() else {"skipped": []}
        self.values["skipped"] = []

    def part(self, name: str, make: Callable[[], Any], needs: float = 0) -> Any:
        """What this part gave, made now unless it was before."""
        if name not in self.values:
            left = self.end - time.monotonic()
            if left < needs:
                self.values["skipped"].append(name)
                self.write()
                raise OutOfTime(f"{name}: {left:.0f} s are left, and it needs {needs:.0f}")
            started = time.monotonic()
            self.values[name] = make()
            self.values.setdefault("wall_seconds", {})[name] = round(time.monotonic() - started, 1)
            self.write()
            print(f"[{name}] {time.monotonic() - started:.1f} s", flush=True)
        return self.values[name]

    def write(self) -> None:
        self.output.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.values, indent=1, ensure_ascii=False) + "\n"
        for path in (self.kept, self.output / "results.json"):
            path.write_text(text, encoding="utf-8")
        (self.output / "results.md").write_text(table(self.values), encoding="utf-8")


def main() -> None:
    arguments = parse_arguments()
    started = time.monotonic()
    if arguments.fresh:
        shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True, exist_ok=True)
    arguments.device = choose_device(arguments.device)
    record = Record(arguments.work, arguments.output or arguments.work, arguments.limit)
    record.values["about"] = about(arguments)
    steps = [
        lambda: record.part("training", lambda: train(arguments), NEEDS["train"] + arguments.seconds),
        lambda: record.part("import", lambda: imported(arguments), NEEDS["import"]),
        lambda: record.part("parity", lambda: parity(arguments), NEEDS["parity"]),
        *(lambda name=name: record.part(name, lambda: pack(name, arguments), NEEDS["pack"]) for name in PACKS),
        lambda: record.part("zero-shot", lambda: pack_scores(arguments), NEEDS["scores"]),
        lambda: record.part("verify", lambda: proof(arguments), NEEDS["verify"]),
    ]
    for number, step in enumerate(steps):
        try:
            step()
        except OutOfTime as error:
            print(f"left out: {error}", flush=True)
            if number < 3:  # all else needs these
                break
    record.values["seconds"] = round(time.monotonic() - started, 1)
    record.write()
    print(table(record.values))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/foreign"), help="what foreign_text.py made")
    parser.add_argument("--work", type=Path, default=Path("runs/foreign-work"), help="models and packs (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="folder for results.json and results.md (default: that of --work)")
    parser.add_argument("--seconds", type=float, default=180, help="of training (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=570, help="seconds for all of it (default: %(default)s)")
    parser.add_argument("--size", default="base", help="architecture (default: %(default)s)")
    parser.add_argument("--batch-tokens", type=int, default=32_768, help="of the training (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=500, help="of the test split (default: %(default)s)")
    parser.add_argument("--pack-steps", type=int, default=900, help="updates of a pack (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=256, help="lines at a time for generate (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--tiny", action="store_true", help="a small model, few lines, few steps: to debug on a CPU")
    parser.add_argument("--fresh", action="store_true", help="start over")
    arguments = parser.parse_args()
    if arguments.tiny:
        tiny = {"seconds": 8.0, "size": "tiny", "batch_tokens": 1500, "lines": 6, "pack_steps": 4, "batch": 6}
        for name, value in tiny.items():
            setattr(arguments, name, value)
    return arguments


def about(arguments: argparse.Namespace) -> dict[str, Any]:
    on_gpu = arguments.device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "size": arguments.size,
        "lines": arguments.lines,
        "pack_steps": arguments.pack_steps,
        "versions": {
            "graftmt": graftmt.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
    }


def most_lines(arguments: argparse.Namespace) -> int | None:
    """Of the training text."""
    return 1500 if arguments.tiny else None


def trained_languages(arguments: argparse.Namespace) -> list[str]:
    files = (arguments.folder / "corpus").glob("train.*")
    return sorted({path.name.split(".")[1] for path in files} - {EL, UK})


def options_of(arguments: argparse.Namespace) -> peer.TrainingOptions:
    return peer.TrainingOptions(seconds=arguments.seconds, batch_tokens=arguments.batch_tokens, device=arguments.device)


def train(arguments: argparse.Namespace) -> dict[str, Any]:
    """The foreign model, in a folder as transformers saves it."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.folder / "tokenizer")
    languages, options = trained_languages(arguments), options_of(arguments)
    started = time.monotonic()
    corpus = peer.read_lines(arguments.folder / "corpus", "train", languages, most_lines(arguments))
    tokens = peer.tokenize(tokenizer, corpus)
    codes = {language: tokenizer.convert_tokens_to_ids(language) for language in languages}
    pairs = peer.Pairs(tokens, codes, options.longest)
    preparing = time.monotonic() - started
    print(f"read and tokenised in {preparing:.1f} s", flush=True)
    model = peer.new_model(tokenizer, their_shape(named_size(arguments.size)), options)
    done = peer.train(model, pairs, options)
    model.save_pretrained(arguments.work / "saved")
    tokenizer.save_pretrained(arguments.work / "saved")
    return {
        **done,
        "preparing_seconds": round(preparing, 1),
        "parameters": model.num_parameters(),
        "rows": model.config.vocab_size,
        "tokens": len(tokenizer),
        "languages": languages,
        "files": sorted(path.name for path in (arguments.work / "saved").iterdir()),
    }


def imported(arguments: argparse.Namespace) -> dict[str, Any]:
    """By the command that a user types."""
    base = arguments.work / "base"
    shutil.rmtree(base, ignore_errors=True)
    command = [sys.executable, "-m", "graftmt", "import", str(arguments.work / "saved"), "-o", str(base)]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"graftmt import failed:\n{done.stdout}\n{done.stderr}")
    seconds = time.monotonic() - started
    return {"seconds": round(seconds, 1), "fingerprint": Base.load(base).fingerprint, "said": done.stdout.strip()[-600:]}


def test_lines(arguments: argparse.Namespace, *languages: str) -> list[list[str]]:
    found = peer.read_lines(arguments.folder / "corpus", "test", languages, arguments.lines)
    return [found[language] for language in languages]


def chrf(translations: list[str], references: list[str]) -> float:
    return round(sacrebleu.corpus_chrf(translations, [references]).score, 2)


def search_options(arguments: argparse.Namespace, beam: int) -> SearchOptions:
    longest = 30 if arguments.tiny else 200
    return SearchOptions(beam=beam, max_length=longest, length_ratio=longest, batch_tokens=batch_tokens_for(arguments.device))


def parity(arguments: argparse.Namespace) -> dict[str, Any]:
    """The same lines through both programs, beam 5 and fp32, and greedy through ours."""
    saved = arguments.work / "saved"
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved)
    theirs = transformers.M2M100ForConditionalGeneration.from_pretrained(saved).to(arguments.device).eval()
    translator = Translator(arguments.work / "base", device=arguments.device)
    rows: dict[str, Any] = {}
    seconds = {"hugging_face": 0.0, "graftmt": 0.0}
    for source, target in [pair for pair in NINE if set(pair) <= set(trained_languages(arguments))]:
        lines, references = test_lines(arguments, source, target)
        options = search_options(arguments, 5)
        started = time.monotonic()
        other = peer.generate(
            theirs, tokenizer, lines, source, target, beam=5, batch=arguments.batch, longest=options.max_length
        )
        between = time.monotonic()
        own = translator.translate(lines, source=source, target=target, options=options)
        seconds["hugging_face"] += between - started
        seconds["graftmt"] += time.monotonic() - between
        greedy = translator.translate(lines, source=source, target=target, options=search_options(arguments, 1))
        rows[f"{source}-{target}"] = {
            "hugging_face": chrf(other, references),
            "graftmt": chrf(own, references),
            "greedy": chrf(greedy, references),
            "identical": round(sum(map(str.__eq__, own, other)) / len(lines), 4),
        }
    difference = max(abs(row["graftmt"] - row["hugging_face"]) for row in rows.values())
    return {
        "directions": rows,
        "largest_difference": round(difference, 2),
        "met": difference <= TOLERANCE,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
    }


def pack(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """As `graftmt add` makes it, with fewer updates."""
    language, side = PACKS[name]
    on_gpu = arguments.device.startswith("cuda")
    limited: dict[str, Any] = {"overrides": ("validation.lines=4", "stages.0.batch_tokens=600"), "augment": "none"}
    made = graftmt.add(
        arguments.work / "base",
        language,
        train=str(short_corpus(arguments) if arguments.tiny else arguments.folder / "corpus"),
        partner=EN,
        side=side,
        run=arguments.work / "runs" / name,
        output=arguments.work / "packs" / name,
        steps=arguments.pack_steps,
        device=arguments.device,
        base_precision="bf16" if on_gpu else "fp32",
        test_lines=100 if on_gpu else 4,
        fresh=True,
        say=lambda text: print(f"  {text}", flush=True),
        **(limited if arguments.tiny else {}),
    )
    assert not isinstance(made, tuple)
    return {
        "recipe": str(made.recipe),
        "parameters": made.size,
        "rows": len(made.tokenizer),
        "seconds": made.card.get("training_seconds"),
        "initialisation": made.card.get("initialisation"),
        "scores": made.card.get("scores"),
    }


def short_corpus(arguments: argparse.Namespace) -> Path:
    folder: Path = arguments.work / "corpus"
    if not folder.exists():
        folder.mkdir()
        for split, count in (("train", 400), ("valid", 20), ("test", 20)):
            found = peer.read_lines(arguments.folder / "corpus", split, [*trained_languages(arguments), EL, UK], count)
            for language, lines in found.items():
                (folder / f"{split}.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def pack_scores(arguments: argparse.Namespace) -> dict[str, Any]:
    """Trained and zero-shot directions of each pack, greedy and fp32, as docs/results/docs-packs.md has them."""
    packs = {name: arguments.work / "packs" / name for name in PACKS if (arguments.work / "packs" / name).exists()}
    translator = Translator(arguments.work / "base", packs, device=arguments.device)
    options = search_options(arguments, 1)
    rows: dict[str, Any] = {}
    for name in packs:
        language, side = PACKS[name]
        for other in [other for other in OTHERS if other in trained_languages(arguments)]:
            source, target = (language, other) if side == "source" else (other, language)
            lines, references = test_lines(arguments, source, target)
            found = translator.translate(lines, source=source, target=target, options=options)
            rows[f"{source}-{target}"] = chrf(found, references)
    if {"el-source", "uk-target"} <= packs.keys():
        lines, references = test_lines(arguments, EL, UK)
        for way, pivot in (("composed", None), ("through English", EN)):
            found = translator.translate(lines, source=EL, target=UK, pivot=pivot, options=options)
            rows[f"{EL}-{UK}, {way}"] = chrf(found, references)
    return rows


def proof(arguments: argparse.Namespace) -> dict[str, Any]:
    """That the base is what it was when it was imported."""
    packs = {name: arguments.work / "packs" / name for name in PACKS if (arguments.work / "packs" / name).exists()}
    return verify(arguments.work / "base", packs, device=arguments.device, lines=2 if arguments.tiny else 20).to_dict()


def table(values: dict[str, Any]) -> str:
    """results.md: what there is so far."""
    about_it = values.get("about", {})
    lines = [f"# A foreign model: M2M100 {about_it.get('size')}, {about_it.get('device')}", "", f"`{json.dumps(about_it)}`", ""]
    if found := values.get("training"):
        lines += [
            f"Trained {found['seconds']} s: {found['updates']:,} updates, "
            f"{found['pairs']:,} pairs ({found['pairs_per_second']:,}/s), "
            f"{found['parameters'] / 1e6:.1f}M parameters, {found['rows']:,} rows for {found['tokens']:,} tokens, "
            f"{len(found['languages'])} languages; last loss {found['curve'][-1][1] if found['curve'] else '?'}.",
            "",
        ]
    if found := values.get("parity"):
        lines += [
            "| direction | Hugging Face, beam 5 | graftmt, beam 5 | identical lines | graftmt, greedy |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {name} | {row['hugging_face']:.2f} | {row['graftmt']:.2f} | {row['identical']:.1%} | {row['greedy']:.2f} |"
            for name, row in found["directions"].items()
        ]
        lines += ["", f"Largest difference {found['largest_difference']} chrF; seconds {json.dumps(found['seconds'])}.", ""]
    if any(name in values for name in PACKS):
        lines += ["| pack | recipe | parameters | rows | seconds of training |", "|---|---|---|---|---|"]
        lines += [
            f"| {name} | `{values[name]['recipe']}` | {values[name]['parameters'] / 1e6:.2f}M | {values[name]['rows']:,} | "
            f"{values[name]['seconds']} |"
            for name in PACKS
            if name in values
        ]
        lines.append("")
    if found := values.get("zero-shot"):
        lines += [
            "| direction | chrF, greedy |",
            "|---|---|",
            *(f"| {name} | {score:.2f} |" for name, score in found.items()),
            "",
        ]
    if found := values.get("verify"):
        lines += [
            f"verify: base_unchanged {found['base_unchanged']}, {found['lines']} lines, packs {', '.join(found['packs'])}.",
            "",
        ]
    lines += [f"Left out for want of time: {', '.join(values['skipped'])}.", ""] if values.get("skipped") else []
    return "\n".join([*lines, f"Seconds of each part: {json.dumps(values.get('wall_seconds', {}))}", ""])


if __name__ == "__main__":
    main()
