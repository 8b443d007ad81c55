"""Packs on disk: a folder, or the same four files in one archive that can be sent around. Layer 3.

`pack.json`, `pack.safetensors`, `subwords.model` and a `README.md` for people. Written atomically; read with every check
that can be made without the base, whose fingerprint is compared when a composition is made.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors_torch
from torch import Tensor, nn

from graftmt import places
from graftmt.base import DTYPES, hash_tensors, named_dtype
from graftmt.configuration import from_mapping, to_mapping
from graftmt.errors import CheckpointError, GraftError
from graftmt.files import atomic_file, atomic_folder
from graftmt.model import ModelConfig
from graftmt.packs.pack import Pack
from graftmt.packs.recipe import Recipe
from graftmt.places import PACK, check_file
from graftmt.text import Subwords, Tokenizer

FORMAT = 1
"""Raised when the files' meaning changes; a reader refuses a newer one and keeps reading the older ones."""

ARCHIVE = ".graftpack"
"""A path that ends so is one file, a zip archive; any other is a folder."""

AGAIN = "Get it again from a copy."
DOCUMENT, TENSORS, SUBWORDS, CARD = "pack.json", "pack.safetensors", "subwords.model", "README.md"

REQUIRED: dict[str, type] = {
    "fingerprint": str,
    "base": str,
    "side": str,
    "languages": list,
    "recipe": str,
    "code_placement": str,
    "codes": list,
    "architecture": dict,
    "card": dict,
}


def save_pack(pack: Pack, path: str | Path, config: ModelConfig, *, dtype: str = "fp32") -> str:
    """Writes the pack as a folder, or as one file where `path` ends in .graftpack; returns its fingerprint.

    `config` is the architecture of its base: with it the pack can be checked where the base is not at hand.
    """
    path, precision = Path(path), named_dtype(dtype)
    check_place(path)
    tensors = {name: tensor.detach().to("cpu", precision).contiguous() for name, tensor in pack.parameters.items()}
    mark = pack_fingerprint(pack, tensors)
    data = safetensors_torch.save(tensors)
    document = {
        "kind": "pack",
        "format": FORMAT,
        "fingerprint": mark,
        "base": pack.base,
        "side": pack.side,
        "languages": list(pack.languages),
        "recipe": str(pack.recipe),
        "code_placement": pack.tokenizer.code_placement,
        "codes": list(pack.tokenizer.languages),
        "rows": len(pack.tokenizer),
        "parameters": pack.size,
        "bytes": len(data) + len(pack.tokenizer.subwords.model_bytes),
        "dtype": dtype,
        "architecture": to_mapping(config),
        "card": pack.card,
    }
    files = {
        DOCUMENT: (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode(),
        TENSORS: data,
        SUBWORDS: pack.tokenizer.subwords.model_bytes,
        CARD: pack_card(document).encode(),
    }
    if path.suffix == ARCHIVE:
        with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name, content in files.items():
                # A fixed time: the same pack gives the same archive.
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    else:
        with atomic_folder(path) as folder:
            for name, content in files.items():
                (folder / name).write_bytes(content)
    pack.fingerprint = mark
    return mark


def load_pack(path: str | Path, *, device: str | torch.device = "cpu", dtype: str = "fp32") -> Pack:
    """Reads a pack's folder or archive and checks that it is whole and unchanged."""
    path = Path(path)
    files = _read_files(path, (DOCUMENT, TENSORS, SUBWORDS))
    document = _parse_document(path, files[DOCUMENT])
    try:
        tensors: dict[str, Tensor] = safetensors_torch.load(files[TENSORS])
    except SafetensorError as error:
        raise CheckpointError(f"{path}: {TENSORS} is truncated or damaged ({error}). Get the pack again from a copy.") from None
    try:
        subwords = Subwords(files[SUBWORDS], f"{path}/{SUBWORDS}")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: {SUBWORDS} is damaged ({error}). Get the pack again from a copy.") from None
    config = from_mapping(ModelConfig, document["architecture"], "architecture")
    pack = Pack(
        side=document["side"],
        languages=tuple(document["languages"]),
        recipe=Recipe.parse(document["recipe"]),
        base=document["base"],
        tokenizer=Tokenizer(subwords, document["codes"], document["code_placement"]),
        parameters={},
        card=document["card"],
        fingerprint=document["fingerprint"],
    )
    _check_tensors(path, pack, tensors, config)
    # In the recipe's order: safetensors gives them in any, and the sum of a gradient's norm depends on it.
    pack.parameters |= {name: nn.Parameter(tensors[name]) for name in pack.expected_shapes(config)}
    if pack_fingerprint(pack, tensors) != document["fingerprint"]:
        raise CheckpointError(
            f"{path}: what is stored does not have the fingerprint {document['fingerprint'][:16]}… of {DOCUMENT}; the pack was "
            "changed or damaged after it was made. Get it again from a copy."
        )
    return pack.to(device, named_dtype(dtype))


def read_pack_document(path: str | Path) -> dict[str, Any]:
    """pack.json alone, checked: for looking at a pack without loading it."""
    return _parse_document(Path(path), _read_files(Path(path), (DOCUMENT,))[DOCUMENT])


def check_place(path: Path) -> None:
    """A pack may take the place of another one, but of nothing else: a folder that is written to is replaced whole."""
    check_file(path) if path.suffix == ARCHIVE else places.check_place(path, PACK)


def check_unclaimed(path: Path, own: Iterable[Path]) -> None:
    """A pack at `path` may be replaced unasked where one of `own` is the same: then it is not lost. Any other one stays."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    try:
        there = read_pack_document(path)
    except GraftError:
        what = "something that cannot be read as a pack"
    else:
        if any(_stored_fingerprint(one) == there["fingerprint"] for one in own):
            return
        what = f"another pack, {', '.join(there['languages'])} ({there['side']}): {there['recipe']}"
    raise GraftError(
        f"{path} is there already: {what}. It was not made by this run, and stays as it is. Name another place (-o), or delete "
        "it first if it is no longer needed."
    )


def _stored_fingerprint(path: Path) -> str | None:
    try:
        return str(read_pack_document(path)["fingerprint"])
    except GraftError:
        return None  # not there, or damaged


def is_pack(path: Path) -> bool:
    return (path / DOCUMENT).is_file() or path.suffix == ARCHIVE or (path.is_file() and zipfile.is_zipfile(path))


def pack_fingerprint(pack: Pack, tensors: Mapping[str, Tensor]) -> str:
    """sha256 over what makes a pack do what it does: tensors, vocabulary, side, languages, recipe and base."""
    parts = [pack.side, pack.languages, str(pack.recipe), pack.base, pack.tokenizer.fingerprint]
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode())
    hash_tensors(digest, tensors)
    return digest.hexdigest()


def _read_files(path: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """The named files of a folder or an archive; nothing else in them is looked at."""
    try:
        if path.is_dir():
            return {name: (path / name).read_bytes() for name in names}
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in names}
    except FileNotFoundError as error:
        if not path.exists():
            raise GraftError(f"there is no pack {path}; make one with `graftmt add LANG`.") from None
        missing = Path(error.filename).name
        if missing == DOCUMENT and not (path / TENSORS).exists():
            inside = path / "pack"
            hint = f"did you mean {inside}?" if (inside / DOCUMENT).is_file() else "give the folder or the file of one."
            raise CheckpointError(f"{path} is not a pack, for it has no {DOCUMENT}; {hint}") from None
        raise CheckpointError(f"{path} is not a whole pack: it lacks {missing}. {AGAIN}") from None
    except KeyError as error:
        raise CheckpointError(f"{path} is not a whole pack: {error.args[0]}. {AGAIN}") from None
    except zipfile.BadZipFile as error:
        raise CheckpointError(f"{path} is not a pack, or it is truncated ({error}). {AGAIN}") from None
    except (NotImplementedError, RuntimeError, EOFError, zlib.error) as error:  # an archive of a kind that we do not write
        raise CheckpointError(f"{path} is damaged ({error}). {AGAIN}") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None


def _parse_document(path: Path, content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise CheckpointError(f"{path}: {DOCUMENT} is damaged ({error}). Get the pack again from a copy.") from None
    if not isinstance(document, dict) or document.get("kind") != "pack":
        raise CheckpointError(f"{path}: {DOCUMENT} does not describe a pack; give the folder or archive of one.")
    if not isinstance(document.get("format"), int) or document["format"] > FORMAT:
        raise CheckpointError(
            f"{path} has format {document.get('format')!r}; this version of graftmt reads up to {FORMAT}. Upgrade graftmt."
        )
    missing = [key for key, kind in REQUIRED.items() if not isinstance(document.get(key), kind)]
    if missing or document["side"] not in ("source", "target"):
        raise CheckpointError(f"{path}: {DOCUMENT} lacks {', '.join(missing) or 'a side'}, or not of the right kind. {AGAIN}")
    for key in ("languages", "codes"):
        if not all(isinstance(language, str) and language for language in document[key]) or not document["languages"]:
            raise CheckpointError(f"{path}: {DOCUMENT} has {key} that are none: {document[key]}. {AGAIN}")
    return document


def _check_tensors(path: Path, pack: Pack, tensors: Mapping[str, Tensor], config: ModelConfig) -> None:
    """Exactly the tensors that recipe, vocabulary and architecture say, in their shapes."""
    expected = pack.expected_shapes(config)
    for words, names in (
        ("lacks", expected.keys() - tensors.keys()),
        ("has unexpected", tensors.keys() - expected.keys()),
    ):
        if names:
            listed = ", ".join(sorted(names)[:5]) + (" …" if len(names) > 5 else "")
            raise CheckpointError(f"{path} {words} tensors, for the recipe {str(pack.recipe)!r}: {listed}. {AGAIN}")
    for name, shape in expected.items():
        found = tuple(tensors[name].shape)
        if found != shape:
            raise CheckpointError(f"{path}: tensor {name} has shape {found}; its recipe and vocabulary say {shape}. {AGAIN}")
        if tensors[name].dtype not in DTYPES.values():
            raise CheckpointError(f"{path}: tensor {name} is of {tensors[name].dtype}, which no pack has. {AGAIN}")


def pack_card(document: Mapping[str, Any]) -> str:
    """README.md of a pack: what a person who finds it wants to know first."""
    card = document["card"]
    languages = ", ".join(document["languages"])
    option = f"--packs {'+'.join(document['languages'])}-{document['side']}"
    lines = [
        f"# A graftmt language pack: {languages} as {document['side']}",
        "",
        "It adds what a multilingual base needs to translate "
        f"{'from' if document['side'] == 'source' else 'into'} {languages}, and changes nothing in the base.",
        "",
        "| | |",
        "|---|---|",
        f"| for the base | `{document['base']}` |",
        f"| fingerprint | `{document['fingerprint']}` |",
        f"| recipe | `{document['recipe']}` |",
        f"| parameters | {document['parameters']:,} ({document['dtype']}), {document['bytes'] / 1e6:.1f} MB |",
        f"| vocabulary rows | {document['rows']:,} |",
    ]
    counts = card.get("initialisation") or {}
    if counts:
        lines.append("| rows began as | " + ", ".join(f"{rule} {count:,}" for rule, count in counts.items()) + " |")
    facts = {key: value for key, value in card.items() if isinstance(value, str | int | float)}
    lines += [f"| {key.replace('_', ' ')} | {f'{value:,}' if type(value) is int else value} |" for key, value in facts.items()]
    if parent := card.get("parent"):
        lines.append(f"| continues | `{parent['fingerprint']}` (version {parent.get('version', 1)}) |")
    lines += _score_lines(card)
    if samples := card.get("samples"):
        lines += ["", "## Samples", ""]
        for sample in samples:
            lines += [f"- {sample['direction']}: {sample['source']}", f"  → {sample['translation']}"]
            if sample["translation"] != sample["reference"]:
                lines.append(f"  (reference: {sample['reference']})")
    lines += ["", f"Use it: `graftmt translate --base BASE {option} --source XX --target YY < input > output`.", ""]
    return "\n".join(lines)


def kind_of(entry: Mapping[str, Any]) -> str:
    """Of an entry of a card's scores: how its direction was trained, or which way was taken."""
    trained = "zero-shot" if entry.get("zero_shot") else "few lines" if entry.get("few_lines") else "trained"
    return entry.get("route") or trained


def _score_lines(card: Mapping[str, Any]) -> list[str]:
    scores = card.get("scores")
    if not scores:
        return []
    before = (card.get("parent") or {}).get("scores_here") or {}
    pivot = next((entry["pivot"]["through"] for entry in scores.values() if entry.get("pivot")), None)
    columns = ["direction", "", "BLEU", "chrF", "lines"]
    columns += [f"chrF through {pivot}"] * (pivot is not None) + ["chrF before"] * bool(before)
    lines = ["", "## Scores", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for direction, entry in scores.items():
        cells = [direction, kind_of(entry), f"{entry['bleu']:.1f}", f"{entry['chrf']:.1f}", str(entry.get("lines", ""))]
        if pivot is not None:
            cells.append(f"{entry['pivot']['chrf']:.1f}" if entry.get("pivot") else "")
        if before:
            cells.append(f"{before[direction]['chrf']:.1f}" if direction in before else "")
        lines.append(f"| {' | '.join(cells)} |")
    return lines
