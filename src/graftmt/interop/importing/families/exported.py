"""Folders that `graftmt export --to hugging-face` wrote: M2M-100's layers, and a text that export.json describes. Layer 5."""

from __future__ import annotations

from typing import TypedDict

from graftmt.documents import check_fields, read_document
from graftmt.errors import CheckpointError
from graftmt.interop.importing.families.m2m_100 import M2M100Layout
from graftmt.interop.importing.family import ForeignFolder
from graftmt.interop.importing.weights import Weights
from graftmt.places import EXPORT_DOCUMENT
from graftmt.text import BaseText
from graftmt.text.stored import StoredText, TextDocument


class ExportDocument(TypedDict):
    """What is read of export.json."""

    text: TextDocument


class Exported(M2M100Layout):
    name = "graftmt-export"
    title = "graftmt's own exports"
    text_family = ""

    def recognises(self, folder: ForeignFolder) -> bool:
        return folder.model_type == "m2m_100" and (folder.path / EXPORT_DOCUMENT).exists()

    def text(self, folder: ForeignFolder, weights: Weights, rows: tuple[int, int]) -> BaseText:
        document = read_document(folder.path / EXPORT_DOCUMENT, "the export")
        if "text" not in document:
            raise CheckpointError(
                f"{folder.path} has a text with inline casing, which cannot be imported. Use the base and the packs that "
                "it was made of."
            )
        try:
            check_fields(document, ExportDocument)
        except ValueError as error:
            raise CheckpointError(f"{folder.path / EXPORT_DOCUMENT} is damaged ({error}). Restore it from a copy.") from None
        stored = StoredText.of(document, [])
        text = stored.base_text(stored.read_files(folder.path), str(folder.path))
        if (len(text.side("source")), len(text.side("target"))) != rows:
            raise CheckpointError(
                f"{folder.path}: its text and its matrices have different numbers of rows; restore it from a copy."
            )
        return text
