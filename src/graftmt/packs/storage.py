"""Packs on disk: a folder, or the same files in one archive that can be sent around. Layer 3.

`pack.json`, `pack.safetensors`, the files of its text and a `README.md` for people. Written atomically; read with every check
that can be made without the base, whose fingerprint is compared when a composition is made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import torch
from safetensors import torch as safetensors_torch
from torch import nn

from graftmt import places
from graftmt.base import check_fingerprint
from graftmt.configuration import from_mapping
from graftmt.devices import AnyDtype, dtype_name, named_dtype
from graftmt.documents import LARGEST_DOCUMENT, LONGEST_MESSAGE, check_fields, parse_document
from graftmt.errors import CheckpointError, ConfigError, GraftError
from graftmt.files import as_path, atomic_file, atomic_folder
from graftmt.model import ModelConfig, architecture_document
from graftmt.packs.archive import AGAIN, ARCHIVE, CARD, DOCUMENT, TENSORS, open_pack, write_archive
from graftmt.packs.card import PackCard, pack_card
from graftmt.packs.component import SCOPED, Side
from graftmt.packs.pack import Pack
from graftmt.packs.parts import Setting, tensor_shapes
from graftmt.packs.recipe import Recipe, UnknownComponentError
from graftmt.packs.registry import packages_of
from graftmt.places import PACK, check_file
from graftmt.tensor_files import TensorFile, hash_tensors
from graftmt.text import CodePlacement, Text, check_language_names
from graftmt.text.stored import StoredText, TextDocument, describe, files_to_store

FORMAT = 2
"""Raised when the files' meaning changes; a reader refuses a newer one and keeps reading the older ones.

1: partners and few are on the card, and no part of the fingerprint. 2: they are fields of pack.json, and part of it. A pack
whose recipe has no parts for trained directions is the same with any partners, and is written as format 1.
"""
LONGEST_RECIPE = 8_000
"""Characters."""


class _Required(TypedDict):
    fingerprint: str
    base: str
    side: Literal["source", "target"]
    languages: list[str]
    recipe: str
    code_placement: CodePlacement
    codes: list[str]
    rows: int
    parameters: int
    bytes: int
    dtype: Literal["fp32", "bf16", "fp16"]
    architecture: dict[str, Any]
    card: PackCard


class PackDocument(_Required, total=False):
    """pack.json, apart from its kind and format; partners and few are required of format 2."""

    partners: list[str]
    few: list[str]
    packages: list[str]
    """Those besides graftmt whose components the recipe has; only where there are any."""
    text: TextDocument
    """Where the text is not of our own kind."""


def save_pack(pack: Pack, path: str | Path, config: ModelConfig, *, dtype: AnyDtype = "fp32", replace: bool = True) -> str:
    """Writes the pack as a folder, or as one file where `path` ends in .graftpack; returns its fingerprint.

    `config` is the architecture of its base: with it the pack can be checked where the base is not at hand. Without `replace`
    another pack in this place stays, and is an error.
    """
    path, dtype, precision = as_path(path, "the pack's place"), dtype_name(dtype), named_dtype(dtype)
    check_place(path)
    tensors = {name: tensor.detach().to("cpu", precision).contiguous() for name, tensor in pack.parameters.items()}
    digest = _begun(pack.side, pack.languages, pack.recipe, pack.base, pack.tokenizer.fingerprint, _scope(pack))
    hash_tensors(digest, tensors)
    mark = digest.hexdigest()
    if not replace and (there := another_pack(path, [mark])):
        raise GraftError(
            f"{path} is there already: {there}. It stays as it is. Choose another path, or say save(path, replace=True)."
        )
    data, text_files = safetensors_torch.save(tensors), files_to_store(pack.tokenizer)
    scope = {"partners": list(pack.partners), "few": list(pack.few)} if pack.recipe.scoped else {}
    document = {
        "kind": "pack",
        "format": FORMAT if scope else 1,
        "fingerprint": mark,
        "base": pack.base,
        "side": pack.side,
        "languages": list(pack.languages),
        "recipe": str(pack.recipe),
        **_text_fields(pack.tokenizer, pack.side),
        **describe(pack.tokenizer),
        **scope,
        "rows": len(pack.tokenizer),
        "parameters": pack.size,
        "bytes": len(data) + sum(map(len, text_files.values())),
        "dtype": dtype,
        "architecture": architecture_document(config),
        **({"packages": packages} if (packages := packages_of(pack.recipe)) else {}),
        "card": {key: value for key, value in pack.card.items() if key not in scope},
    }
    files = {
        DOCUMENT: (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode(),
        TENSORS: data,
        **text_files,
        CARD: pack_card(document).encode(),
    }
    _parse_document(path, files[DOCUMENT])  # what could not be read again is not written
    if path.suffix == ARCHIVE:
        with atomic_file(path) as temporary:
            write_archive(temporary, files)
    else:
        with atomic_folder(path) as folder:
            for name, content in files.items():
                (folder / name).write_bytes(content)
    pack.fingerprint = mark
    return mark


def load_pack(path: str | Path, *, device: str | torch.device = "cpu", dtype: AnyDtype = "fp32") -> Pack:
    """Reads a pack's folder or archive and checks that it is whole and unchanged.

    Sizes are compared before memory is taken for them, and the fingerprint before the files of the text are opened.
    """
    path, precision = as_path(path, "the pack"), named_dtype(dtype)
    with open_pack(path) as files:
        document = _parse_document(path, files.read(DOCUMENT, LARGEST_DOCUMENT))
        recipe, config = _recipe_of(path, document), _architecture_of(path, document)
        stored = StoredText.of(document, document["codes"])
        text_files = {name: files.read(name, stored.kind.largest_file) for name in stored.names}
        file = TensorFile(*files.open(TENSORS), f"{path}: {TENSORS}")
        rows = _check_tensors(file, document, recipe, config)
        partners, few = scope_of(document)
        digest = _begun(
            document["side"],
            document["languages"],
            recipe,
            document["base"],
            stored.fingerprint(text_files),
            None if document["format"] == 1 else (partners, few),
        )
        tensors = dict(file.weights(digest))
    if digest.hexdigest() != document["fingerprint"]:
        raise CheckpointError(
            f"{path}: {', '.join([TENSORS, *text_files])} and {DOCUMENT} do not have the fingerprint "
            f"{document['fingerprint'][:16]}… of {DOCUMENT}; the pack was changed or damaged after it was made. {AGAIN}"
        )
    tokenizer = stored.text(text_files, str(path))
    if len(tokenizer) != rows:
        raise CheckpointError(f"{path}: its vocabulary has {len(tokenizer)} rows, and embedding.weight {rows}. {AGAIN}")
    for key, value in _text_fields(tokenizer, document["side"]).items():
        if document[key] != value:
            raise CheckpointError(f"{path}: {DOCUMENT} says {key} {document[key]}, and the files of its text {value}. {AGAIN}")
    pack = Pack(
        side=document["side"],
        languages=tuple(document["languages"]),
        recipe=recipe,
        base=document["base"],
        tokenizer=tokenizer,
        parameters={},
        partners=partners,
        few=few,
        card=document["card"],
        fingerprint=document["fingerprint"],
        architecture=config,
    )
    # In the recipe's order: a file has them in any, and the sum of a gradient's norm depends on it.
    pack.parameters |= {name: nn.Parameter(tensors[name]) for name in pack.expected_shapes(config)}
    return pack.to(device, precision)


def _text_fields(text: Text, side: Side) -> dict[str, Any]:
    """What pack.json says of any text."""
    return {"code_placement": text.layout.placement(side), "codes": list(text.languages)}


def read_pack_document(path: str | Path) -> dict[str, Any]:
    """pack.json alone, checked: for looking at a pack without loading it."""
    path = Path(path)
    with open_pack(path) as files:
        return _parse_document(path, files.read(DOCUMENT, LARGEST_DOCUMENT))


def scope_of(document: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A pack's partners and few, where its format has them."""
    place = document["card"] if document["format"] == 1 else document
    return tuple(place.get("partners", ())), tuple(place.get("few", ()))


def uncovered(document: Mapping[str, Any]) -> str:
    """What decides translations, and is not part of the pack's fingerprint; empty where nothing is."""
    if document["format"] == 1 and Recipe.parse(document["recipe"]).scoped:
        return f"card.partners and card.few, which say where parts with {SCOPED} are used (format 1)"
    return ""


def check_place(path: Path) -> None:
    """A pack may take the place of another one, but of nothing else: a folder that is written to is replaced whole."""
    check_file(path) if path.suffix == ARCHIVE else places.check_place(path, PACK)


def check_unclaimed(path: Path, own: Iterable[Path]) -> None:
    """A pack at `path` may be replaced unasked where one of `own` is the same: then it is not lost. Any other one stays."""
    if there := another_pack(path, filter(None, map(_stored_fingerprint, own))):
        raise GraftError(
            f"{path} is there already: {there}. It was not made by this run, and stays as it is. Name another place (-o), or "
            "delete it first if it is no longer needed."
        )


def another_pack(path: Path, marks: Iterable[str]) -> str:
    """What would be lost if `path` were written, in words: nothing where it is free, or a pack of one of these fingerprints."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return ""
    try:
        there = read_pack_document(path)
    except GraftError:
        return "something that cannot be read as a pack"
    if there["fingerprint"] in marks:
        return ""
    return f"another pack, {', '.join(there['languages'])} ({there['side']}): {there['recipe']}, {there['fingerprint'][:16]}…"


def _stored_fingerprint(path: Path) -> str | None:
    try:
        return str(read_pack_document(path)["fingerprint"])
    except GraftError:
        return None  # not there, or damaged


def _scope(pack: Pack) -> tuple[Sequence[str], Sequence[str]] | None:
    return (pack.partners, pack.few) if pack.recipe.scoped else None


def _begun(
    side: str,
    languages: Sequence[str],
    recipe: Recipe,
    base: str,
    tokenizer: str,
    scope: tuple[Sequence[str], Sequence[str]] | None,
) -> hashlib._Hash:
    """The sha256 of what makes a pack do what it does, before its tensors; `tokenizer` is the fingerprint of one."""
    parts = [side, list(languages), str(recipe), base, tokenizer, *(map(list, scope) if scope is not None else ())]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode())


def _parse_document(path: Path, content: bytes) -> dict[str, Any]:
    try:
        document = parse_document(content)
        if document.get("kind") != "pack":
            raise ValueError("it does not describe a pack")
    except ValueError as error:
        raise CheckpointError(f"{path}: {DOCUMENT} is damaged ({error}). {AGAIN}") from None
    if type(document.get("format")) is not int or not 1 <= document["format"] <= FORMAT:
        raise CheckpointError(
            f"{path} has format {document.get('format')!r:.40}; this version of graftmt reads up to {FORMAT}. Upgrade graftmt."
        )
    try:
        check_fields(document, PackDocument)
        _check_pack(document)
    except ValueError as error:
        raise CheckpointError(f"{path}: {DOCUMENT} is damaged ({error}). {AGAIN}") from None
    partners, few = scope_of(document)
    check_language_names([*document["languages"], *document["codes"], *partners, *few], f"{path}: {DOCUMENT}")
    return document


def _check_pack(document: Mapping[str, Any]) -> None:
    """What types do not say, as a ValueError."""
    check_fingerprint(document["fingerprint"], "fingerprint")
    check_fingerprint(document["base"], "base")
    for key in ("partners", "few") if document["format"] > 1 else ():
        if key not in document:
            raise ValueError(f"{key} is missing")
    languages, codes = document["languages"], document["codes"]
    if not languages or len(set(languages)) < len(languages) or len(set(codes)) < len(codes):
        raise ValueError("languages and codes: expected different ones, and at least one language")
    if len(document["recipe"]) > LONGEST_RECIPE or not document["recipe"].isprintable():
        raise ValueError(f"recipe: expected a line of at most {LONGEST_RECIPE:,} characters")


def _recipe_of(path: Path, document: Mapping[str, Any]) -> Recipe:
    try:
        return Recipe.parse(document["recipe"])
    except UnknownComponentError as error:
        needed = ", ".join(document.get("packages", ()))
        hint = f"it was made with {needed}: install that" if needed else "upgrade graftmt, or install the package that has it"
        raise CheckpointError(
            f"{path}: its recipe {document['recipe']!r} has {error.component!r}, a component not installed here; {hint}."
        ) from None
    except ConfigError as error:
        raise CheckpointError(f"{path}: {DOCUMENT} is damaged: {str(error)[:LONGEST_MESSAGE]}") from None


def _architecture_of(path: Path, document: Mapping[str, Any]) -> ModelConfig:
    try:
        return from_mapping(ModelConfig, document["architecture"], "architecture")
    except ConfigError as error:
        reason = str(error)[:LONGEST_MESSAGE].rstrip(".")
        raise CheckpointError(f"{path}: {DOCUMENT} is damaged ({reason}). {AGAIN}") from None


def _check_tensors(file: TensorFile, document: Mapping[str, Any], recipe: Recipe, config: ModelConfig) -> int:
    """Exactly the tensors that recipe and architecture call for; returns the rows, which the vocabulary must have too."""
    side, matrix = document["side"], file.tensors.get("embedding.weight")
    rows = matrix.shape[0] if matrix is not None and matrix.shape else 0
    setting = Setting(
        recipe=recipe,
        config=config,
        side=side,
        rows=rows,
        languages=len(document["languages"]),
        code_placement=document["code_placement"],
    )
    file.check(tensor_shapes(setting), f"the recipe {str(recipe)!r}")
    return rows
