"""A base as large as NLLB-200-600M on a CPU: each command from import to verify, with its time and its peak memory.

    PYTHONPATH=src:benchmarks python benchmarks/large_on_cpu.py --work runs/large          (10 GB of disk, some twenty minutes)
    PYTHONPATH=src:benchmarks python benchmarks/large_on_cpu.py --work runs/large --tiny   (to debug: a minute)

transformers' own class makes the model (12+12 layers, width 1024, 256,206 rows, random weights whose sentences end) and saves
it with its NLLB tokenizer. Then a user's commands follow, each a process of its own: import, translate, add as source and as
target, translate with both packs, verify. Text is the demo's, Greek and English. Seconds and memory are those of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch
from peers import foreign_tokenizers

from graftmt import __version__
from graftmt.demo.phrase_corpus import build_corpus

LAYOUT: dict[str, Any] = {
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "scale_embedding": True,
    "max_position_embeddings": 1024,
}
NEW = "tyv"
"""The base has Greek: what is to be new is called Tuvan here."""
PIECES, ROWS = 256_001, 256_206
TINY: dict[str, Any] = LAYOUT | {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2}
END, PADDING = 2, 1
GB = 1e9


def main() -> None:
    arguments = parse_arguments()
    work: Path = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "model").is_dir():
        make_model(work / "model.tmp", tiny=arguments.tiny)
        (work / "model.tmp").rename(work / "model")
    write_text(work, arguments.lines)
    made = {"graftmt": __version__, "torch": torch.__version__, "python": platform.python_version(), "cores": os.cpu_count()}
    report: dict[str, Any] = {"machine": made, "threads": arguments.threads, "steps": arguments.steps, "commands": {}}
    for name, command in commands(work, arguments).items():
        report["commands"][name] = measured(command, work, arguments.threads)
        print(f"{name}: {report['commands'][name]}", file=sys.stderr, flush=True)
        if report["commands"][name]["exit_code"]:
            break
    document = json.dumps(report, indent=2)
    if arguments.output:
        arguments.output.write_text(document + "\n", encoding="utf-8")
    print(document if arguments.json else table(report))
    sys.exit(any(one["exit_code"] for one in report["commands"].values()))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("runs/large"), help="folder for it all; the model is made once")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each command (default: all cores)")
    parser.add_argument("--lines", type=int, default=2_000, help="pairs to learn from (default: %(default)s)")
    parser.add_argument("--translated", type=int, default=32, help="lines to translate, beam 5 (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="updates of each pack (default: %(default)s)")
    parser.add_argument("--tiny", action="store_true", help="a small model instead")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def make_model(folder: Path, *, tiny: bool) -> None:
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    shutil.rmtree(folder, ignore_errors=True)
    tokenizer = foreign_tokenizers.nllb(folder, pieces=0 if tiny else PIECES)
    rows = len(tokenizer) if tiny else ROWS
    assert len(tokenizer) <= rows, f"{len(tokenizer):,} pieces and codes"
    config = M2M100Config(**(TINY if tiny else LAYOUT), vocab_size=rows, pad_token_id=PADDING, eos_token_id=END, bos_token_id=0)
    torch.manual_seed(1)
    model = M2M100ForConditionalGeneration(config)
    with torch.no_grad():
        output = model.get_output_embeddings().weight
        output[PADDING] = 0
        model.get_decoder().layer_norm.bias += 2.0 * output[END] / output[END].square().sum()
    model.save_pretrained(folder)


def write_text(work: Path, lines: int) -> None:
    splits = build_corpus(("el", "en"), train_lines=lines, valid_lines=0, test_lines=200)
    for split, text in splits.items():
        if text["el"]:
            pairs = [f"{greek}\t{english}\n" for greek, english in zip(text["el"], text["en"], strict=True)]
            (work / f"{split}.tsv").write_text(f"{NEW}\ten\n" + "".join(pairs), encoding="utf-8")
            (work / f"{split}.en").write_text("".join(f"{line}\n" for line in text["en"]), encoding="utf-8")


def commands(work: Path, arguments: argparse.Namespace) -> dict[str, list[str]]:
    """By a name for people; what they made before is made anew."""
    for name in ("base", "source", "target"):
        shutil.rmtree(work / name, ignore_errors=True)
    few = ["--steps", str(arguments.steps), "--lines", "8", "--beam", "1", "--augment", "none", "--device", "cpu"]
    text = ["--train", "train.tsv", "--test", "test.tsv", "--with", "eng_Latn"]

    def add(side: str) -> list[str]:
        return [
            "add",
            NEW,
            "-b",
            "base",
            *text,
            *few,
            "--side",
            side,
            "--run",
            side,
            "--fresh",
            "tensorboard=false",
            "validation.lines=4",
        ]

    sample = [*["head", "-n", str(arguments.translated), "test.en"]]
    packs = ["-p", "source/pack,target/pack"]

    def translate(*options: str) -> list[str]:
        return [*sample, "|", "translate", "-b", "base", "--device", "cpu", "--max-length", "32", *options]

    return {
        "import": ["import", "model", "-o", "base"],
        "translate, English to French, beam 5": translate("-s", "eng_Latn", "-t", "fra_Latn"),
        "the same with --dtype int8": translate("-s", "eng_Latn", "-t", "fra_Latn", "--dtype", "int8"),
        f"add, as source, {arguments.steps} steps": add("source"),
        f"add, as target, {arguments.steps} steps": add("target"),
        "translate, English to the new language, beam 5": translate("-s", "eng_Latn", "-t", NEW, *packs),
        "verify": ["verify", "-b", "base", *packs, "-n", "2", "--device", "cpu"],
    }


def measured(command: list[str], work: Path, threads: int) -> dict[str, Any]:
    """Wall seconds, the processor's and the peak of a process of graftmt; what it reads comes from before the |."""
    reading, writing = os.pipe()
    if "|" in command:
        at = command.index("|")
        count, name = command[2:at]
        text = "".join((work / name).read_text(encoding="utf-8").splitlines(keepends=True)[: int(count)])
        os.write(writing, text.encode())
        command = command[at + 1 :]
    os.close(writing)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path[1:])),
    }
    environment["GRAFTMT_CACHE"] = str((work / "cache").absolute())
    start = time.perf_counter()
    with (work / "output.log").open("ab") as log:
        child = os.fork()
        if not child:
            os.chdir(work)
            os.dup2(reading, 0)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            os.execve(sys.executable, [sys.executable, "-P", "-m", "graftmt", *command], environment)
        os.close(reading)
        _, status, used = os.wait4(child, 0)
    return {
        "exit_code": os.waitstatus_to_exitcode(status),
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_gb": round(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / GB, 2),
    }


def table(report: dict[str, Any]) -> str:
    rows = ["| | seconds | processor seconds | peak GB |", "|---|---:|---:|---:|"]
    for name, one in report["commands"].items():
        failed = f" (failed: {one['exit_code']}, see output.log)" if one["exit_code"] else ""
        rows.append(f"| {name}{failed} | {one['seconds']} | {one['processor_seconds']} | {one['peak_gb']} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
