"""Our own kind of text: SentencePiece BPE over lowercase segments with inline case markers, one `subwords.model`. Layer 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graftmt.text.kinds import TextKind
from graftmt.text.learning import train_subwords
from graftmt.text.subwords import LARGEST_MODEL, Subwords
from graftmt.text.tokenizer import FILE, KIND, Tokenizer, tokenizer_fingerprint


class InlineCased(TextKind):
    """Texts that are `Tokenizer`s; their options are their languages and where codes stand."""

    name = KIND
    largest_file = LARGEST_MODEL

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return (FILE,)

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> Tokenizer:
        return Tokenizer(Subwords(files[FILE], f"{where}/{FILE}"), options["languages"], options["code_placement"])

    def fingerprint(self, files: Mapping[str, bytes], options: Mapping[str, Any]) -> str:
        return tokenizer_fingerprint(files[FILE], options["languages"], options["code_placement"])

    def learn(self, texts: Mapping[str, Iterable[str]], *, sizes: Mapping[str, int], **options: Any) -> Tokenizer:
        """`options` are those of `train_subwords`."""
        return Tokenizer(train_subwords(texts, sizes=sizes, **options), ())

    def open_file(self, path: Path) -> Tokenizer:
        return Tokenizer(Subwords.load(path), ())
