"""Folders that `graftmt export --to hugging-face` wrote: M2M-100's layers, and a text that export.json describes. Layer 5."""

from __future__ import annotations

from typing import Any, TypedDict

from graftmt.documents import check_fields, read_document
from graftmt.errors import CheckpointError
from graftmt.interop.export_card import FileFacts, check_files
from graftmt.interop.importing.families.m2m_100 import M2M100Layout
from graftmt.interop.importing.family import ForeignFolder
from graftmt.interop.importing.weights import Weights
from graftmt.places import EXPORT_DOCUMENT
from graftmt.text import BaseText
from graftmt.text.stored import StoredText, TextDocument


class ExportDocument(TypedDict):
    """What is read of export.json."""

    text: TextDocument


class ExportFiles(TypedDict, total=False):
    """What is read of it before."""

    files: dict[str, FileFacts]
    text: TextDocument


READ = ("config.json", "model.safetensors")
"""What is read besides the text."""


class Exported(M2M100Layout):
    name = "graftmt-export"
    title = "graftmt's own exports"
    text_family = ""

    def recognises(self, folder: ForeignFolder) -> bool:
        return folder.model_type == "m2m_100" and (folder.path / EXPORT_DOCUMENT).exists()

    def weights(self, folder: ForeignFolder) -> Weights:
        """A file that is not as it was exported is named, before anything is read of it."""
        document = read_document(folder.path / EXPORT_DOCUMENT, "the export")
        if isinstance(document.get("files"), dict):  # those of format 1 have no hashes
            _check_files(folder, document)
        return super().weights(folder)

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
            raise _damaged(folder, error) from None
        stored = StoredText.of(document, [])
        text = stored.base_text(stored.read_files(folder.path), str(folder.path))
        if (len(text.side("source")), len(text.side("target"))) != rows:
            raise CheckpointError(
                f"{folder.path}: its text and its matrices have different numbers of rows; restore it from a copy."
            )
        return text


def _check_files(folder: ForeignFolder, document: dict[str, Any]) -> None:
    """Those that the import reads."""
    try:
        check_fields(document, ExportFiles)
    except ValueError as error:
        raise _damaged(folder, error) from None
    names = {*READ, *(document["text"]["files"] if "text" in document else ())}
    try:
        check_files(folder.path, {name: stated for name, stated in document["files"].items() if name in names})
    except CheckpointError as error:
        raise CheckpointError(f'{error} If it was changed on purpose, take "files" out of {EXPORT_DOCUMENT}.') from None


def _damaged(folder: ForeignFolder, error: Exception) -> CheckpointError:
    return CheckpointError(f"{folder.path / EXPORT_DOCUMENT} is damaged ({error}). Restore it from a copy.")
