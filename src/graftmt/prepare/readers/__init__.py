"""Readers: each turns the files of one format into `Source`s by split, streaming. One format a file."""

from graftmt.prepare.readers.archives import StoredFile, find_files
from graftmt.prepare.readers.language_labels import parse_languages
from graftmt.prepare.readers.stored_parts import Limits

__all__ = ["Limits", "StoredFile", "find_files", "parse_languages"]
