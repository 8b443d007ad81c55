"""Fingerprints written anew after a change, as a forger would: what is refused then is refused for what it is.

The hashes are made here from the bytes alone, since graftmt's own functions take what they have checked already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from graftmt.configuration import to_mapping
from graftmt.model import ModelConfig
from robustness.tensors import split

INDEX = "graftmt-index.json"
TORCH_NAMES = {
    "F32": "torch.float32",
    "F16": "torch.float16",
    "BF16": "torch.bfloat16",
    "F64": "torch.float64",
    "I64": "torch.int64",
}


def sign(files: dict[str, bytes]) -> bool:
    """Gives the document of these files of a base or a pack its right fingerprint; False where there can be none."""
    if INDEX in files:
        return _sign_index(files)
    name = "base.json" if "base.json" in files else "pack.json"
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError, LookupError):
        document = json.loads(files[name])
        mark = (_base_mark if name == "base.json" else _pack_mark)(document, files)
        if document["fingerprint"] == mark:
            return True
        document["fingerprint"] = mark
        files[name] = json.dumps(document).encode()
        return True
    return False


def _sign_index(files: dict[str, bytes]) -> bool:
    """The same for the index of a folder of packs, whose revision is a hash of what it offers."""
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
        document = json.loads(files[INDEX])
        entries = sorted(document["offers"], key=lambda offer: offer["name"])
        document["revision"] = hashlib.sha256(json.dumps(entries, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
        files[INDEX] = json.dumps(document).encode()
        return True
    return False


def _base_mark(document: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    plain = to_mapping(ModelConfig())
    chosen = {key: value for key, value in document["architecture"].items() if value != plain[key]}
    digest = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode())
    digest.update(_tokenizer_mark(document["languages"], document["code_placement"], files["subwords.model"]).encode())
    _add_tensors(digest, files["model.safetensors"])
    return digest.hexdigest()


def _pack_mark(document: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    tokenizer = _tokenizer_mark(document["codes"], document["code_placement"], files["subwords.model"])
    parts = [document["side"], document["languages"], document["recipe"], document["base"], tokenizer]
    if document["format"] > 1:
        parts += [document["partners"], document["few"]]
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode())
    _add_tensors(digest, files["pack.safetensors"])
    return digest.hexdigest()


def _tokenizer_mark(languages: Any, placement: str, model: bytes) -> str:
    described = json.dumps([1, placement, languages], ensure_ascii=False).encode()
    return hashlib.sha256(described + b"\n" + model).hexdigest()


def _add_tensors(digest: Any, data: bytes) -> None:
    header, values = split(data)
    for name in sorted(set(header) - {"__metadata__"}):
        entry = header[name]
        start, end = entry["data_offsets"]
        digest.update(f"{name} {TORCH_NAMES[entry['dtype']]} {tuple(entry['shape'])}".encode())
        digest.update(values[start:end])
