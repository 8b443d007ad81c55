"""The base: a Transformer, its subwords and its languages, as one immutable folder known by its fingerprint.

Layer 2, between the text and model layers it joins and everything that uses a base. The folder holds `base.json`,
`model.safetensors`, `subwords.model` and a `README.md` written by `save`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from graftmt.configuration import from_mapping, to_mapping
from graftmt.errors import CheckpointError, ConfigError, GraftError, nearest
from graftmt.files import atomic_folder, read_json, write_json, write_text
from graftmt.model import ModelConfig, Transformer
from graftmt.text import Subwords, Tokenizer

FORMAT = 1
"""Raised when the folder's meaning changes; a reader refuses a newer one and keeps reading the older ones."""

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

DOCUMENT, TENSORS, SUBWORDS, CARD = "base.json", "model.safetensors", "subwords.model", "README.md"

REQUIRED = {"fingerprint": str, "languages": list, "code_placement": str, "rows": int, "architecture": dict, "card": dict}
"""What base.json must hold to be read; the rest is for people."""


@dataclass
class Base:
    """A multilingual model that already exists. Nothing in graftmt changes its tensors after it is made."""

    model: Transformer
    tokenizer: Tokenizer
    card: dict[str, Any] = field(default_factory=dict)
    """What is known of it: how it was trained, on what, its scores."""
    fingerprint: str = ""
    """Empty until it is stored or loaded: the hash is that of the stored tensors, whatever precision runs."""

    @property
    def languages(self) -> tuple[str, ...]:
        return self.tokenizer.languages

    @classmethod
    def create(cls, config: ModelConfig, tokenizer: Tokenizer) -> Base:
        """A new base with fresh weights from torch's current random state."""
        return cls(Transformer.build(config, len(tokenizer.vocabulary)), tokenizer)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "cpu", dtype: str = "fp32", verify: bool = True) -> Base:
        """Reads a base folder, checks that it is whole, and puts it on `device` ready to translate.

        `verify` recomputes the fingerprint, which reads every byte once more; turn it off for very large bases.
        """
        folder, precision = Path(folder), named_dtype(dtype)
        document = read_base_document(folder)
        config = architecture_of(document, folder)
        tokenizer = Tokenizer(Subwords.load(folder / SUBWORDS), document["languages"], document["code_placement"])
        tensors = read_tensors(folder / TENSORS, "the base")
        rows = len(tokenizer.vocabulary)
        if document["rows"] != rows:
            raise CheckpointError(
                f"{folder}: base.json says {document['rows']} vocabulary rows but subwords.model and the language codes "
                f"give {rows}; the files are not of one base. Restore the folder from a copy."
            )
        if verify and fingerprint(tensors, config, tokenizer) != document["fingerprint"]:
            raise CheckpointError(
                f"{folder}: the stored tensors do not have the fingerprint {document['fingerprint'][:16]}… of base.json; "
                "the base was changed or damaged. Restore the folder from a copy."
            )
        with torch.device("meta"):
            model = Transformer.build(config, rows)
        load_tensors(model, {name: tensor.to(precision) for name, tensor in tensors.items()}, str(folder))
        return cls(model.to(device).eval(), tokenizer, document["card"], document["fingerprint"])

    def save(self, folder: str | Path, *, dtype: str = "fp32", card: Mapping[str, Any] | None = None) -> str:
        """Writes the folder atomically, storing tensors as `dtype`; returns the fingerprint.

        A base that lies there is replaced; a folder with anything else in it stays, and is an error.
        """
        folder, precision = Path(folder), named_dtype(dtype)
        check_base_place(folder)
        tensors = {name: tensor.to("cpu", precision).contiguous() for name, tensor in parameters(self.model).items()}
        mark = fingerprint(tensors, self.model.config, self.tokenizer)
        document = {
            "kind": "base",
            "format": FORMAT,
            "fingerprint": mark,
            "languages": list(self.languages),
            "code_placement": self.tokenizer.code_placement,
            "rows": len(self.tokenizer.vocabulary),
            "parameters": sum(tensor.numel() for tensor in tensors.values()),
            "dtype": dtype,
            "architecture": to_mapping(self.model.config),
            "card": dict(self.card if card is None else card),
        }
        with atomic_folder(folder) as temporary:
            write_tensors(temporary / TENSORS, tensors)
            (temporary / SUBWORDS).write_bytes(self.tokenizer.subwords.model_bytes)
            write_json(temporary / DOCUMENT, document)
            write_text(temporary / CARD, model_card(document))
        self.fingerprint = mark
        return mark


def check_base_place(folder: Path) -> None:
    """A base may take the place of another one, but of nothing else: a folder that is written to is replaced whole."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise GraftError(f"{folder} is a file, and a base is a folder; name another one.")
    names = {path.name for path in folder.iterdir()}
    others = sorted(names - {DOCUMENT, TENSORS, SUBWORDS, CARD})
    if not names or (DOCUMENT in names and not others):
        return
    what = f"a base with other things beside it ({', '.join(others[:3])})" if DOCUMENT in names else "not empty and no base"
    raise GraftError(f"{folder} is {what}, and stays as it is. Name a new folder for the base, such as {folder / 'base'}.")


def read_base_document(folder: Path) -> dict[str, Any]:
    """base.json, checked: the right kind, a format this version can read, no key missing."""
    if not folder.is_dir():
        raise GraftError(f"there is no base folder {folder}; make one with `graftmt train` or `graftmt demo`.")
    document = read_json(folder / DOCUMENT, "the base")
    if document.get("kind") != "base":
        raise CheckpointError(f"{folder}/base.json is of kind {document.get('kind')!r}, not a base.")
    if not isinstance(document.get("format"), int) or document["format"] > FORMAT:
        raise CheckpointError(
            f"{folder} has format {document.get('format')!r}; this version of graftmt reads up to {FORMAT}. Upgrade graftmt."
        )
    missing = [key for key, kind in REQUIRED.items() if not isinstance(document.get(key), kind)]
    if missing:
        raise CheckpointError(
            f"{folder}/base.json lacks {', '.join(missing)}, or not of the right kind; restore the folder from a copy."
        )
    architecture_of(document, folder)
    return document


def architecture_of(document: Mapping[str, Any], folder: Path) -> ModelConfig:
    """What base.json says of the model; where that cannot be, the file is damaged."""
    try:
        return from_mapping(ModelConfig, document["architecture"], "architecture")
    except ConfigError as error:
        raise CheckpointError(
            f"{folder}/base.json is damaged ({str(error).rstrip('.')}). Restore the folder from a copy."
        ) from None


def read_tensors(path: Path, what: str) -> dict[str, Tensor]:
    """A safetensors file, or an error that says it is missing or damaged."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise CheckpointError(f"{what}: there is no file {path}; the folder is incomplete.") from None
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{what}: {path} is truncated or damaged ({error}). Restore it from a copy, or go back to an earlier checkpoint."
        ) from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A safetensors file. What the disk refuses is an OSError here as everywhere, not safetensors' own error."""
    try:
        save_file(dict(tensors), path)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(0o644)  # as other files: a base is served by users other than the one who made it


def world_size() -> int:
    """How many processes `torchrun` started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def choose_device(name: str) -> str:
    """`auto` is a GPU where there is one; a device that cannot be used is an error now rather than in mid-work."""
    if torch.cuda.is_available():
        # Padded batches of a shape not seen before took hundreds of milliseconds where the step itself takes fifty. What is
        # planned anew for each shape is, most likely, cuDNN's attention, which torch prefers on recent GPUs.
        torch.backends.cuda.enable_cudnn_sdp(False)
        # Started by torchrun, each process has a GPU of its own.
        if name in ("auto", "cuda"):
            return f"cuda:{os.environ['LOCAL_RANK']}" if world_size() > 1 else "cuda"
    if name == "auto":
        return "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise GraftError(f"device is {name!r} but torch sees no CUDA GPU here; use device=cpu.")
    try:
        if torch.device(name).type == "cpu" and name != "cpu":
            raise GraftError(f"device {name!r}: CPUs have no numbers here; use cpu.")
    except RuntimeError:  # whose message lists every backend that torch has a name for
        raise GraftError(
            f"device {name!r} cannot be used, for torch knows none of this name; use cpu, cuda, cuda:1 or auto."
        ) from None
    try:
        torch.zeros(1, device=name).item()  # "meta" has shapes alone
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise GraftError(f"device {name!r} cannot be used here ({reason}); use cpu, cuda or auto.") from None
    return name


def named_dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        hint = nearest(name, DTYPES) or "."
        raise ConfigError(f"unknown precision {name!r}{hint} Known: {', '.join(DTYPES)}.")
    return DTYPES[name]


def parameters(model: Transformer) -> dict[str, Tensor]:
    """What is stored of a model: each parameter once, tied ones under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_tensors(model: Transformer, tensors: Mapping[str, Tensor], where: str) -> None:
    """Gives the model these tensors, in place of its own; names and shapes must agree exactly."""
    expected = dict(model.named_parameters())
    wrong = sorted(expected.keys() ^ tensors.keys())
    if wrong:
        raise CheckpointError(f"{where}: tensors missing or not expected: {', '.join(wrong[:5])}{' …' * (len(wrong) > 5)}")
    for name, parameter in expected.items():
        if parameter.shape != tensors[name].shape:
            raise CheckpointError(
                f"{where}: tensor {name} has shape {tuple(tensors[name].shape)}; "
                f"the architecture says {tuple(parameter.shape)}."
            )
    # Modules that share a parameter (tied embeddings) keep sharing the new one.
    replaced = {id(parameter): torch.nn.Parameter(tensors[name]) for name, parameter in expected.items()}
    for module in model.modules():
        for name, own in list(module._parameters.items()):
            if own is not None:
                module._parameters[name] = replaced[id(own)]


def fingerprint(tensors: Mapping[str, Tensor], config: ModelConfig, tokenizer: Tokenizer) -> str:
    """sha256 over the stored tensors (name, dtype, shape, bytes), the architecture and the vocabulary."""
    digest = hashlib.sha256()
    # Only what differs from the defaults: a field that a later version adds does not change the bases of today.
    plain = to_mapping(ModelConfig())
    chosen = {key: value for key, value in to_mapping(config).items() if value != plain[key]}
    digest.update(json.dumps(chosen, sort_keys=True).encode())
    digest.update(tokenizer.fingerprint.encode())
    hash_tensors(digest, tensors)
    return digest.hexdigest()


def hash_tensors(digest: Any, tensors: Mapping[str, Tensor]) -> None:
    """Adds every tensor's name, dtype, shape and bytes to a hash, in the order of their names."""
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.view(torch.uint8).flatten().numpy().tobytes())


def model_card(document: Mapping[str, Any]) -> str:
    """README.md of a base folder: what a person who finds it wants to know first."""
    shape = document["architecture"]
    lines = [
        "# A graftmt base",
        "",
        f"A multilingual Transformer for {len(document['languages'])} languages: {', '.join(document['languages'])}.",
        "",
        "| | |",
        "|---|---|",
        f"| fingerprint | `{document['fingerprint']}` |",
        f"| parameters | {document['parameters']:,} ({document['dtype']}) |",
        f"| vocabulary rows | {document['rows']:,} |",
        f"| layers | {shape['encoder_layers']} encoder, {shape['decoder_layers']} decoder, {shape['norm']}-norm |",
        f"| width | {shape['model_dim']}, FFN {shape['ffn_dim']}, {shape['heads']} heads |",
    ]
    lines += [f"| {key} | {value} |" for key, value in document["card"].items() if isinstance(value, str | int | float)]
    lines += ["", "Translate with it: `graftmt translate --base FOLDER --source XX --target YY < input > output`.", ""]
    return "\n".join(lines)
