"""Small worlds for experiments: the demo's profile on toy text with a base of random weights, and releases."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from noisy_results import noisy_experiment

from graftmt.data import Corpus

TINY_MODEL = "{size: tiny, model_dim: 16, ffn_dim: 24, heads: 2, encoder_layers: 3, decoder_layers: 3}"
QUICK = [
    "evaluation.beam=1",
    "evaluation.max_length=12",
    "evaluation.off_target=false",
    "device=cpu",
    "threads=1",
    f"base.model={TINY_MODEL}",
    f"bilingual.model={TINY_MODEL}",
    "base.subwords={merges: 60, min_character_count: 1}",
    "bilingual.subwords={merges: 60, min_character_count: 1}",
    "packs.subwords={merges: 30, min_character_count: 1}",
    "packs.multi_aligned_steps=null",
    "packs.several_steps=null",
    "packs.pairs={}",
    "packs.multi_aligned_pairs={}",
    "changes={}",
    "packs.validations=1",
    "packs.validation={lines: 2, translate: false}",
    *(f"packs.{side}={{steps: 3, batch_tokens: 200, learning_rate: 0.02, warmup: 1}}" for side in ("source", "target")),
    "base.stages=[{steps: 4, batch_tokens: 400, warmup: 1}, {steps: 4, batch_tokens: 400, warmup: 1}]",
    *(f"{kind}.stages=[{{steps: 3, batch_tokens: 200, warmup: 1}}]" for kind in ("bilingual", "retrain", "substitute")),
    *(f"{kind}.validations=1" for kind in ("base", "bilingual", "retrain", "substitute")),
    *(f"{kind}.validation={{lines: 3, translate: false}}" for kind in ("base", "bilingual", "retrain", "substitute")),
    *(f"{kind}.precision=fp32" for kind in ("base", "bilingual", "retrain", "substitute", "packs")),
]
"""Changes that make any profile run in seconds."""

TOY = ["initial=[en, fr, ru]", "others=[fr, ru]", "packs.watch=[fr]", "evaluation.sets.test.lines=4"]


@pytest.fixture
def ran(tmp_path: Path) -> Callable[..., Path]:
    return noisy_experiment(tmp_path / "experiments")


@pytest.fixture(scope="session")
def quick() -> list[str]:
    return QUICK


@pytest.fixture(scope="session")
def toy() -> list[str]:
    return TOY


@pytest.fixture
def arguments(graft_corpus: Path, graft_base, quick: list[str]) -> Callable[..., list[str]]:
    """`arguments(output, "--tables", "2")`: a command in the toy world, with a base of random weights."""

    def make(output: Path, *more: str) -> list[str]:
        given = ["--corpus", str(graft_corpus), "--base", f"4={graft_base()}", "--output", str(output)]
        return ["experiment", "run", "demo", *given, *quick, *TOY, *more]

    return make


@pytest.fixture
def run(graftmt, arguments) -> Callable[..., dict[str, Any]]:
    """Runs it in this process and returns its JSON; `code` is the exit code expected."""

    def go(output: Path, *more: str, code: int = 0) -> dict[str, Any]:
        result = graftmt(*arguments(output, *more), "--json", "--quiet")
        assert result.code == code, result.stderr
        return json.loads(result.stdout)

    return go


@pytest.fixture
def results() -> Callable[[Path], dict[str, dict[str, Any]]]:
    """`results(output)`: the results by the keys of their jobs, their scores by the plain names of test sets.

    With `named`, all files as they are, by their names.
    """

    def read(output: Path, *, named: bool = False) -> dict[str, dict[str, Any]]:
        found = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((output / "results").glob("*.json"))}
        if named:
            return found
        for document in found.values():
            for place in (document, document.get("base") or {}):
                if "scores" in place:
                    place["scores"] = {one["set"]: one for one in place["scores"].values()}
        return {document["job"]: document for document in found.values()}

    return read


@pytest.fixture
def names(graftmt, arguments) -> Callable[..., dict[str, str]]:
    """`names(output, "--tables", "2")`: the keys of jobs → their names, with hashes."""

    def look(output: Path, *more: str) -> dict[str, str]:
        shown = graftmt(*arguments(output, *more), "--dry-run", "--json")
        assert shown.code == 0, shown.stderr
        return {job["job"]: job["name"] for job in json.loads(shown.stdout)["jobs"]}

    return look


def scores_of(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {key: (result["fingerprint"], result["scores"]) for key, result in found.items()}


@pytest.fixture
def same_scores() -> Callable[..., None]:
    """Two sets of results have the same jobs, the same models and the same figures."""

    def check(one: Mapping[str, Mapping[str, Any]], other: Mapping[str, Mapping[str, Any]]) -> None:
        assert scores_of(one) == scores_of(other)

    return check


@pytest.fixture(scope="session")
def ted_release(tmp_path_factory: pytest.TempPathFactory, graft_corpus: Path) -> Path:
    """The toy text as neulab released TED: a table a split, with gaps."""
    folder = tmp_path_factory.mktemp("ted")
    for split, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
        corpus = Corpus.open(graft_corpus, split)
        rows = ["\t".join(["talk_name", *corpus.languages])]
        for number, line in enumerate(zip(*(corpus.lines(language) for language in corpus.languages), strict=True)):
            cells = ["__NULL__" if name == "train" and number % 7 == place + 1 else text for place, text in enumerate(line)]
            rows.append("\t".join([f"talk_{number // 10}", *cells]))
        (folder / f"all_talks_{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def chinese(line: str) -> str:
    """Two Chinese characters for each word, and no spaces."""
    signs = (zlib.crc32(word.encode()) for word in line.split())
    return "".join(chr(0x4E00 + sign % 3000) + chr(0x4E00 + sign // 3000 % 3000) for sign in signs)


@pytest.fixture(scope="session")
def paracrawl_releases(tmp_path_factory: pytest.TempPathFactory, graft_corpus: Path) -> Path:
    """The toy text as ParaCrawl (en, fr, de), the UN corpus (ar, zh) and FLORES are released."""
    folder = tmp_path_factory.mktemp("releases")
    train, test = (Corpus.open(graft_corpus, split) for split in ("train", "test"))
    # The toy world's languages under the names of those that these corpora have.
    called = {"en": "en", "fr": "fr", "de": "ru", "ar": "el", "zh": "uk"}
    written = {name: chinese if name == "zh" else str for name in called}
    texts = {name: [written[name](line) for line in train.lines(toy)] for name, toy in called.items()}
    (folder / "paracrawl").mkdir()
    for language in ("fr", "de"):
        rows = "".join(f"{english}\t{text}\n" for english, text in zip(texts["en"], texts[language], strict=True))
        (folder / "paracrawl" / f"en-{language}.txt.gz").write_bytes(gzip.compress(rows.encode()))
    (folder / "unpc").mkdir()
    for pair in ("ar-en", "en-zh"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for language in pair.split("-"):
                content = "".join(f"{text}\n" for text in texts[language][100:]).encode()
                entry = tarfile.TarInfo(f"{pair}/UNv1.0.{pair}.{language}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        (folder / "unpc" / f"UNv1.0.{pair}.tar.gz.00").write_bytes(buffer.getvalue())
    codes = {"en": "eng_Latn", "fr": "fra_Latn", "de": "deu_Latn", "ar": "arb_Arab", "zh": "zho_Hans"}
    for split in ("dev", "devtest"):
        for language, code in codes.items():
            path = folder / "flores" / split / f"{code}.{split}"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = map(written[language], test.lines(called[language]))
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder
