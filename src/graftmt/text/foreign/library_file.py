"""`tokenizer.json`: what of it is accepted, and what of it is kept. Layer 1.

Only steps that treat text as SentencePiece does are accepted. Any other regular expression could run for ever; steps that cut
bytes into pieces name their rows in another way. Special symbols are renamed, so that a text with `</s>` in it stays text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graftmt.documents import parse_json
from graftmt.text.foreign.model_file import check_character_rules
from graftmt.text.foreign.tokenizer_folder import tokens_by_id
from graftmt.text.protocol import BYTES

MOST_VALUES = 8_000_000
"""In a tokenizer.json: three times those of NLLB-200's."""
_DEEPEST = 4
_STEPS = {
    "normalizer": {"Sequence", "Precompiled", "Replace", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "Lowercase"},
    "pre_tokenizer": {"Sequence", "Metaspace", "WhitespaceSplit"},
    "decoder": {"Sequence", "Metaspace", "Replace", "Fuse", "Strip", "ByteFallback"},
}
_INNER = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}
_PATTERNS = {" {2,}", r"\s+", " +"}
"""Regular expressions that steps may have."""


@dataclass(frozen=True)
class LibraryFile:
    """A tokenizer.json that was accepted."""

    content: bytes
    """What is kept of it, as a tokenizer.json."""
    names: list[str | None]
    """Its tokens by their ids."""
    texts: frozenset[str]
    """The tokens that a text can have."""
    added: dict[str, int]
    """Special tokens that are listed apart from the vocabulary."""


def read_library_file(content: bytes, specials: Iterable[str]) -> LibraryFile:
    """A foreign tokenizer.json; `specials` are tokens that are no text. What is not accepted is a ValueError."""
    document = _document(content)
    check_steps(document)
    model = document["model"]
    added = _added_tokens(document)
    special = {name: row for name, row, is_special in added if is_special}
    words = [token for token in document["added_tokens"] if not token["special"]]
    reserved = {*special, *specials}
    vocabulary = _vocabulary(model)
    everything = dict(vocabulary)
    for name, row, _ in added:
        if everything.setdefault(name, row) != row:
            raise ValueError(f"the token {name!r:.60} has two ids")
    names = tokens_by_id(everything)
    texts = _reachable(model, vocabulary) - reserved | {token["content"] for token in words}
    kept = {
        "version": document.get("version", "1.0"),
        "truncation": None,
        "padding": None,
        "added_tokens": words,
        "normalizer": document.get("normalizer"),
        "pre_tokenizer": document.get("pre_tokenizer"),
        "post_processor": None,
        "decoder": document.get("decoder"),
        "model": _without(model, reserved),
    }
    return LibraryFile(json.dumps(kept, ensure_ascii=False).encode(), names, frozenset(texts), special)


def check_steps(document: dict[str, Any]) -> None:
    """A ValueError for a step that is not known here."""
    for stage, known in _STEPS.items():
        _check_step(document.get(stage), stage, known, 0)
    if "Metaspace" not in _types(document.get("pre_tokenizer")):
        raise ValueError("its pre_tokenizer has no Metaspace; only tokenizers made from SentencePiece models can be read")


def parse_library_file(content: bytes) -> dict[str, Any]:
    """A tokenizer.json that was kept, checked again."""
    document = _document(content)
    check_steps(document)
    _vocabulary(document["model"])
    return document


def _document(content: bytes) -> dict[str, Any]:
    document = parse_json(content, most=MOST_VALUES)
    if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
        raise ValueError("expected an object with a model")
    if document["model"].get("type") not in ("BPE", "Unigram"):
        raise ValueError(f"its model is of type {document['model'].get('type')!r:.40}; BPE and Unigram can be read")
    document.setdefault("added_tokens", [])
    return document


def _check_step(step: Any, stage: str, known: set[str], depth: int) -> None:
    if step is None and depth == 0:
        return
    if not isinstance(step, dict) or step.get("type") not in known or depth > _DEEPEST:
        found = step.get("type") if isinstance(step, dict) else step
        raise ValueError(f"its {stage} has the step {found!r:.60}; known: {', '.join(sorted(known))}")
    if step["type"] == "Sequence":
        inner = step.get(_INNER[stage])
        if not isinstance(inner, list) or len(inner) > 10:
            raise ValueError(f"its {stage} has a Sequence without a list of up to 10 steps")
        for one in inner:
            _check_step(one, stage, known, depth + 1)
    if step["type"] == "Precompiled":
        rules = step.get("precompiled_charsmap")
        if rules is not None and not isinstance(rules, str):
            raise ValueError("its character rules are no text")
        check_character_rules(base64.b64decode(rules or "", validate=True))
    if step["type"] == "Metaspace" and (step.get("replacement") != "▁"):
        raise ValueError("its Metaspace writes spaces other than as ▁")
    if step["type"] == "Replace":
        pattern = step.get("pattern")
        pattern = pattern.get("Regex") if isinstance(pattern, dict) and "String" not in pattern else ""
        if pattern and pattern not in _PATTERNS:
            raise ValueError(f"its {stage} has the pattern {pattern!r:.60}; known: {', '.join(map(repr, sorted(_PATTERNS)))}")


def _types(step: Any) -> set[str]:
    if not isinstance(step, dict):
        return set()
    inner = step.get("pretokenizers") or []
    return {step["type"]}.union(*map(_types, inner))


def _vocabulary(model: dict[str, Any]) -> dict[str, int]:
    """The ids of the model's own tokens."""
    found = model.get("vocab")
    if model["type"] == "BPE":
        if not isinstance(found, dict) or not isinstance(model.get("merges"), list):
            raise ValueError("its BPE model has no vocabulary or no merges")
        tokens_by_id(found)
        unknown = model.get("unk_token")
        if unknown is not None and (not isinstance(unknown, str) or unknown not in found):
            raise ValueError(f"its unknown token {unknown!r:.60} is not in its vocabulary")
        for merge in model["merges"]:
            _pair(merge)
        return found
    if not isinstance(found, list) or not found:
        raise ValueError("its Unigram model has no vocabulary")
    for entry in found:
        is_pair = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)
        if not is_pair or not isinstance(entry[1], int | float) or isinstance(entry[1], bool) or not abs(entry[1]) < 1e9:
            raise ValueError(f"its vocabulary has the entry {entry!r:.60}; expected a token and a number")
    unknown = model.get("unk_id")
    if type(unknown) is not int or not 0 <= unknown < len(found):
        raise ValueError(f"its unknown token has the id {unknown!r:.40}; it has {len(found):,} tokens")
    ids = {entry[0]: row for row, entry in enumerate(found)}
    if len(ids) < len(found):
        raise ValueError("a token stands in its vocabulary twice")
    return ids


def _pair(merge: Any) -> tuple[str, str]:
    """The two parts of a merge, which older files write as one text."""
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"it has the merge {merge!r:.60}; expected two tokens")
    return parts[0], parts[1]


def _added_tokens(document: dict[str, Any]) -> list[tuple[str, int, bool]]:
    found = []
    for token in document["added_tokens"] if isinstance(document["added_tokens"], list) else [None]:
        fields = token if isinstance(token, dict) else {}
        name, row, special = fields.get("content"), fields.get("id"), fields.get("special")
        if not isinstance(name, str) or not name or type(row) is not int or not isinstance(special, bool):
            raise ValueError(f"it has the added token {token!r:.60}; expected content, id and special")
        found.append((name, row, special))
    return found


def _reachable(model: dict[str, Any], vocabulary: dict[str, int]) -> set[str]:
    """The tokens that a text can have: of a BPE model those that a merge makes, for others are made-up words."""
    if model["type"] == "Unigram":
        return set(vocabulary)
    made = {"".join(_pair(merge)) for merge in model["merges"]}
    return {name for name in vocabulary if len(name) == 1 or name in made or (model.get("byte_fallback") and name in BYTES)}


def _without(model: dict[str, Any], reserved: set[str]) -> dict[str, Any]:
    """The model with reserved tokens under names that no text has: a space, which is written as ▁ before the model sees it."""

    def renamed(name: str) -> str:
        return f" {name}" if name in reserved else name

    if model["type"] == "Unigram":
        return {**model, "vocab": [[renamed(name), score] for name, score in model["vocab"]]}
    pairs = [_pair(merge) for merge in model["merges"]]
    kept = [list(pair) for pair in pairs if not reserved & {*pair, "".join(pair)}]
    vocabulary = {renamed(name): row for name, row in model["vocab"].items()}
    unknown = model.get("unk_token")
    return {**model, "vocab": vocabulary, "merges": kept, "unk_token": None if unknown is None else renamed(unknown)}
