"""The base: a Transformer, its subwords and its languages, as one immutable folder known by its fingerprint.

Layer 2, between the text and model layers it joins and everything that uses a base. The folder holds `base.json`,
`model.safetensors`, the files of its text (of our own kind: `subwords.model`) and a `README.md` written by `save`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypedDict

import torch
from torch import Tensor

from graftmt.base_card import BaseCard, model_card
from graftmt.checked import is_known, remember
from graftmt.configuration import from_mapping, to_mapping
from graftmt.devices import AnyDevice, AnyDtype, choose_device, dtype_name, named_dtype
from graftmt.documents import LONGEST_MESSAGE, check_fields, read_document, write_json
from graftmt.errors import CheckpointError, ConfigError, GraftError, first_few
from graftmt.files import as_path, atomic_folder, write_text
from graftmt.mistaken import instead_of_base
from graftmt.model import ModelConfig, Transformer, architecture_document, load_tensors, parameter_shapes
from graftmt.places import BASE, check_place
from graftmt.tensor_files import hash_tensors, open_tensors, write_tensors
from graftmt.text import BaseText, CodePlacement, check_language_names, languages_of
from graftmt.text.stored import StoredText, TextDocument, check_against, check_base_text, describe, files_to_store, text_fields

FORMAT = 1
"""Raised when the folder's meaning changes; a reader refuses a newer one and keeps reading the older ones."""


DOCUMENT, TENSORS, CARD = "base.json", "model.safetensors", "README.md"

MOST_ROWS = 2**24
"""Of a vocabulary: sixty times those of the largest models."""


class _Required(TypedDict):
    fingerprint: str
    languages: list[str]
    code_placement: CodePlacement
    rows: int
    architecture: dict[str, Any]
    card: BaseCard


class BaseDocument(_Required, total=False):
    """base.json, apart from its kind and format."""

    dtype: Literal["fp32", "bf16", "fp16"]
    parameters: int
    target_rows: int
    """Where the target's vocabulary is another one."""
    text: TextDocument
    """Where the text is not of our own kind."""


@dataclass(repr=False)
class Base:
    """A multilingual model that already exists. Nothing in graftmt changes its tensors after it is made."""

    model: Transformer
    tokenizer: BaseText
    card: dict[str, Any] = field(default_factory=dict)
    """What is known of it: how it was trained, on what, its scores."""
    fingerprint: str = ""
    """Empty until it is stored or loaded: the hash is that of the stored tensors, whatever precision runs."""
    folder: Path | None = field(default=None, compare=False)
    """Where it was loaded from or stored last."""

    def __repr__(self) -> str:
        """What it is, without its tensors."""
        mark = self.fingerprint[:16] or "none yet"
        return f"<Base {self.folder or 'in memory'}: {first_few(self.languages)}, fingerprint {mark}>"

    @property
    def languages(self) -> tuple[str, ...]:
        """All that it reads or writes."""
        return languages_of(self.tokenizer)

    @property
    def source_languages(self) -> tuple[str, ...]:
        return self.tokenizer.source_languages

    @property
    def target_languages(self) -> tuple[str, ...]:
        return self.tokenizer.target_languages

    @classmethod
    def create(cls, config: ModelConfig, tokenizer: BaseText) -> Base:
        """A new base with fresh weights from torch's current random state; which row is padding is the text's to say."""
        check_base_text(tokenizer, "a new base")
        return cls(build_model(replace(config, padding_id=tokenizer.side("source").padding_id), tokenizer), tokenizer)

    @classmethod
    def load(
        cls, folder: str | Path, *, device: AnyDevice = "cpu", dtype: AnyDtype = "fp32", verify: bool | None = None
    ) -> Base:
        """Reads a base folder, checks that it is whole, and puts it on `device` ready to translate.

        The weights are copied into memory of the process, hashed and converted on the way, a window at a time: the base does
        not follow its files, whatever becomes of them. It takes the memory of the weights as they run, and of a window; on
        another device, of the largest tensor too. Processes that are forked later share it. The fingerprint is compared before
        the files of the text are opened, without hashing a file again that has had it and has not changed since
        (`checked`). `verify=True` hashes in any case; with `verify=False` changed files go unnoticed.
        """
        folder, precision, device = as_path(folder, "the base"), named_dtype(dtype), choose_device(device)
        stored = _Stored.open(folder)
        tensors = {name: tensor.to(device) for name, tensor in stored.weights(precision, verify)}
        text = stored.text()
        with torch.device("meta"):
            model = build_model(stored.config, text)
        load_tensors(model, tensors, str(folder))
        return cls(model.to(device).eval(), text, stored.document["card"], stored.document["fingerprint"], folder)

    def save(self, folder: str | Path, *, dtype: AnyDtype = "fp32", card: Mapping[str, Any] | None = None) -> str:
        """Writes the folder atomically, storing tensors as `dtype`; returns the fingerprint.

        A base in the folder is replaced; a folder with anything else in it stays, and is an error.
        """
        folder, dtype, precision = as_path(folder, "the base's folder"), dtype_name(dtype), named_dtype(dtype)
        check_base_place(folder)
        tensors = {name: tensor.to("cpu", precision).contiguous() for name, tensor in parameters(self.model).items()}
        mark = fingerprint(tensors, self.model.config, self.tokenizer)
        files = files_to_store(self.tokenizer)
        document = {
            "kind": "base",
            "format": FORMAT,
            "fingerprint": mark,
            "languages": list(self.languages),
            **text_fields(self.tokenizer),
            **describe(self.tokenizer),
            "parameters": sum(tensor.numel() for tensor in tensors.values()),
            "dtype": dtype,
            "architecture": architecture_document(self.model.config),
            "card": dict(self.card if card is None else card),
        }
        _check_document(document, folder)  # what could not be read again is not written
        with atomic_folder(folder) as temporary:
            write_tensors(temporary / TENSORS, tensors)
            for name, content in files.items():
                (temporary / name).write_bytes(content)
            write_json(temporary / DOCUMENT, document)
            write_text(temporary / CARD, model_card(document))
        self.fingerprint, self.folder = mark, folder
        return mark


def build_model(config: ModelConfig, text: BaseText) -> Transformer:
    """A new model of this architecture for this text; without memory under `torch.device("meta")`."""
    source, target = text.side("source"), text.side("target")
    return Transformer.build(
        config,
        len(source),
        target_rows=len(target),
        target_padding_id=target.padding_id,
        reads_padding=text.layout.decoder_start == "padding",
    )


@dataclass(frozen=True)
class _Stored:
    """A base folder whose base.json is sound; of its text, the files have been read."""

    folder: Path
    document: dict[str, Any]
    config: ModelConfig
    described: StoredText
    files: dict[str, bytes]

    @classmethod
    def open(cls, folder: Path) -> _Stored:
        document = read_base_document(folder)
        described = StoredText.of(document, document["languages"])
        return cls(folder, document, architecture_of(document, folder), described, described.read_files(folder))

    def text(self) -> BaseText:
        found = self.described.base_text(self.files, str(self.folder))
        check_against(found, self.document, self.config.padding_id, str(self.folder))
        return found

    def weights(self, dtype: torch.dtype | None, verify: bool | None) -> Iterator[tuple[str, Tensor]]:
        """Its tensors; after the last one an error, if they are not those of its fingerprint."""
        path, mark = self.folder / TENSORS, self.document["fingerprint"]
        begun = _begun(self.config, self.described.fingerprint(self.files))
        noted = f"{begun.hexdigest()} {mark}"  # the fingerprint is of architecture and text too
        with open_tensors(path, "the base") as file:
            rows = self.document["rows"]
            shapes = parameter_shapes(self.config, rows, self.document.get("target_rows"))
            file.check(shapes, f"the architecture in {DOCUMENT}, with {rows:,} rows,")
            assert file.found is not None
            known = verify is None and is_known(path, file.found, noted)
            yield from file.weights(None if known or verify is False else begun, dtype, known=known)
            if known or verify is False:
                return
            if begun.hexdigest() != mark:
                raise CheckpointError(
                    f"{self.folder}: {', '.join([TENSORS, *self.files])} and {DOCUMENT} do not have the fingerprint "
                    f"{mark[:16]}… of {DOCUMENT}; the base was changed or damaged. Restore it from a copy."
                )
            remember(path, file.found, file.look(), noted)


def check_stored(folder: Path) -> str:
    """The fingerprint of a base folder, recomputed without holding its weights; an error where the folder does not have it."""
    stored = _Stored.open(folder)
    for _ in stored.weights(None, True):
        pass
    stored.text()
    return str(stored.document["fingerprint"])


def read_base_text(folder: Path) -> BaseText:
    """The text of a stored base alone; its fingerprint is not looked at."""
    return _Stored.open(folder).text()


def check_base_place(folder: Path) -> None:
    """A base may take the place of another one, but of nothing else: a folder that is written to is replaced whole."""
    check_place(folder, BASE)


def read_base_document(folder: Path) -> dict[str, Any]:
    """base.json, checked: the right kind, a format this version can read, every field of its type."""
    if not (folder / DOCUMENT).is_file() and (mistaken := instead_of_base(folder)):
        raise GraftError(f"there is no base folder {folder}: {mistaken}")
    if not folder.is_dir():
        raise GraftError(
            f"there is no base folder {folder}; make one with `graftmt import`, `graftmt train` or `graftmt demo`."
        )
    document = read_document(folder / DOCUMENT, "the base")
    _check_document(document, folder)
    return document


def _check_document(document: dict[str, Any], folder: Path) -> None:
    path = folder / DOCUMENT
    if document.get("kind") != "base":
        raise CheckpointError(f"{path} is of kind {document.get('kind')!r:.40}, not a base.")
    if type(document.get("format")) is not int or document["format"] > FORMAT:
        raise CheckpointError(
            f"{folder} has format {document.get('format')!r:.40}; this version of graftmt reads up to {FORMAT}. "
            "Upgrade graftmt."
        )
    try:
        check_fields(document, BaseDocument)
        _check_base(document)
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}). Restore the folder from a copy.") from None
    check_language_names(document["languages"], str(path))
    architecture_of(document, folder)


def _check_base(document: Mapping[str, Any]) -> None:
    """What types do not say, as a ValueError."""
    check_fingerprint(document["fingerprint"], "fingerprint")
    languages = document["languages"]
    if not languages or len(set(languages)) < len(languages):
        raise ValueError("languages: expected one or several different ones")
    for key in ("rows", "target_rows"):
        if not 1 <= document.get(key, 1) <= MOST_ROWS:
            raise ValueError(f"{key} is {document[key]}; expected 1 to {MOST_ROWS:,}")


def check_fingerprint(text: str, where: str) -> None:
    """A ValueError where this cannot be one."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError(f"{where} is {text!r:.80}; expected 64 hexadecimal digits")


def architecture_of(document: Mapping[str, Any], folder: Path) -> ModelConfig:
    """What base.json says of the model; where that cannot be, the file is damaged."""
    try:
        config = from_mapping(ModelConfig, document["architecture"], "architecture")
        if config.padding_id >= document["rows"]:
            raise ConfigError(f"architecture: padding_id is {config.padding_id}, and there are {document['rows']} rows.")
        if config.embeddings == "tied" and "target_rows" in document:
            raise ConfigError("architecture: embeddings are tied, and there are target_rows.")
    except ConfigError as error:
        reason = str(error)[:LONGEST_MESSAGE].rstrip(".")
        raise CheckpointError(f"{folder}/base.json is damaged ({reason}). Restore the folder from a copy.") from None
    return config


def parameters(model: Transformer) -> dict[str, Tensor]:
    """What is stored of a model: each parameter once, tied ones under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def fingerprint(tensors: Mapping[str, Tensor], config: ModelConfig, tokenizer: BaseText) -> str:
    """sha256 over the stored tensors (name, dtype, shape, bytes), the architecture and the vocabulary."""
    digest = _begun(config, tokenizer.fingerprint)
    hash_tensors(digest, tensors)
    return digest.hexdigest()


def _begun(config: ModelConfig, tokenizer: str) -> hashlib._Hash:
    """The hash before its tensors; `tokenizer` is the fingerprint of one."""
    digest = hashlib.sha256()
    # Only what differs from the defaults: a field that a later version adds does not change the bases of today.
    plain = to_mapping(ModelConfig())
    chosen = {key: value for key, value in to_mapping(config).items() if value != plain[key]}
    digest.update(json.dumps(chosen, sort_keys=True).encode())
    digest.update(tokenizer.encode())
    return digest
