"""A foreign model becomes a base: found, recognised, checked, converted, stored. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from graftmt.base import Base, build_model, check_base_place
from graftmt.base_card import Origin
from graftmt.devices import DTYPES
from graftmt.documents import parse_json
from graftmt.errors import CheckpointError, ConfigError, DataError, first_few
from graftmt.files import LARGEST_TEXT, read_limited
from graftmt.interop.importing.family import Family, ForeignFolder, Names
from graftmt.interop.importing.family_registry import family_of
from graftmt.interop.importing.import_options import ImportOptions
from graftmt.interop.importing.origin import licence_in
from graftmt.interop.importing.sources import Found, find_source
from graftmt.interop.importing.weight_conversion import check_weights, read_parameters, size_of, stored_dtype
from graftmt.interop.importing.weights import Shape, Weights
from graftmt.model import ModelConfig, Transformer, load_tensors, parameter_shapes
from graftmt.places import check_new
from graftmt.progress import progress
from graftmt.text import BaseText
from graftmt.text.aliases import new_language

CONFIGURATION = "config.json"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A base that was imported and stored."""

    base: Base
    folder: Path
    family: Family
    dtype: str
    parameters: int
    note: str = ""
    """What may not be as it should, for a person."""

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "base": str(self.folder),
            "fingerprint": self.base.fingerprint,
            "family": self.family.name,
            "parameters": self.parameters,
            "dtype": self.dtype,
            "source_languages": list(self.base.source_languages),
            "target_languages": list(self.base.target_languages),
            "origin": self.base.card["origin"],
        }


def import_base(options: ImportOptions) -> Imported:
    """Does what the options ask. If it fails, nothing is written."""
    check_base_place(options.output)
    check_new(options.output)
    options = _with_codes(options)
    found = find_source(options.source, options.revision)
    folder = open_folder(found, options)
    family = family_of(folder, options.family)
    weights = family.weights(folder)
    config = family.architecture(folder, weights)
    names = family.names(config, weights)
    rows = _matrix_rows(config, names, weights, folder.path)
    expected = parameter_shapes(config, rows[0], None if rows[0] == rows[1] else rows[1])
    chosen = check_weights(weights, names, expected, family.unused(), folder.path)
    text = family.text(folder, weights, rows)
    _check_languages(options, text, folder.path)
    config = replace(config, padding_id=text.side("source").padding_id)
    dtype = stored_dtype(weights, names) if options.dtype is None else DTYPES[options.dtype]
    with progress("numbers read", size_of(expected)) as bar:
        parameters = read_parameters(weights, names, chosen, expected, dtype, folder.path, bar.update)
    model = _model(config, text, parameters, str(folder.path))
    base = Base(model, text, {"origin": origin_of(folder, found, family, options)})
    stored = next(name for name, kind in DTYPES.items() if kind == dtype)
    base.save(options.output, dtype=stored)
    return Imported(
        base=base,
        folder=options.output,
        family=family,
        dtype=stored,
        parameters=size_of(expected),
        note=_one_language(options, text),
    )


def _with_codes(options: ImportOptions) -> ImportOptions:
    """The same with codes for languages that are named in words."""
    sides = (options.source_languages, options.target_languages)
    source, target = (tuple(dict.fromkeys(map(new_language, names))) for names in sides)
    return replace(options, source_languages=source, target_languages=target)


def _check_languages(options: ImportOptions, text: BaseText, where: Path) -> None:
    """Whether the model's own codes leave room for what --from and --to say."""
    sides = (("--from", options.source_languages, "source"), ("--to", options.target_languages, "target"))
    for flag, asked, side in sides:
        own = text.source_languages if side == "source" else text.target_languages
        if asked and set(asked) != set(own):
            raise ConfigError(
                f"{flag}: {where} has codes of its own for what it {'reads' if side == 'source' else 'writes'}: "
                f"{first_few(own, 20)}. Leave {flag} out."
            )


def _one_language(options: ImportOptions, text: BaseText) -> str:
    """A model without codes for what it reads may read more than its files name."""
    if options.source_languages or len(text.source_languages) > 1 or text.source_languages == text.target_languages:
        return ""
    (name,) = text.source_languages
    return (
        f"note: its files name {name} alone as what it reads. If it reads more, import it again, before packs are made for it: "
        f"--from {name},…"
    )


def open_folder(found: Found, options: ImportOptions) -> ForeignFolder:
    """A model's folder with its configuration, or a file with weights that are no folder's."""
    empty = ForeignFolder(
        path=found.folder,
        name=found.name,
        source_languages=options.source_languages,
        target_languages=options.target_languages,
    )
    if not found.folder.is_dir():
        return empty
    if (found.folder / "base.json").exists():
        raise DataError(f"{found.folder} is a base of graftmt already; use it as it is: --base {found.folder}")
    return replace(
        empty,
        settings=_read_settings(found.folder / CONFIGURATION),
        tokenizer_settings=_read_settings(found.folder / "tokenizer_config.json"),
    )


def _read_settings(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} where there is no file."""
    try:
        found = parse_json(read_limited(path, LARGEST_TEXT))
        if not isinstance(found, dict):
            raise ValueError("expected an object")
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}); restore it from a copy.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    return found


def _matrix_rows(config: ModelConfig, names: Names, weights: Weights, where: Path) -> tuple[int, int]:
    """The rows of the matrices of source and target, as the weights have them."""

    def rows(parameter: str) -> int:
        name = next((name for name in names[parameter] if name in weights.found), None)
        if name is None:
            raise CheckpointError(f"{where}: its weights have none of the tensors {', '.join(names[parameter])}.")
        shape: Shape = weights.found[name].shape
        if len(shape) != 2 or not shape[0]:
            raise CheckpointError(f"{where}: the tensor {name} has shape {shape}; expected a row for each token.")
        return shape[0]

    source = rows("source_embedding.weight")
    return (source, source) if config.embeddings == "tied" else (source, rows("target_embedding.weight"))


def _model(config: ModelConfig, text: BaseText, parameters: Mapping[str, torch.Tensor], where: str) -> Transformer:
    with torch.device("meta"):
        model = build_model(config, text)
    load_tensors(model, parameters, where)
    return model.eval()


def origin_of(folder: ForeignFolder, found: Found, family: Family, options: ImportOptions) -> Origin:
    """What the card says of where it comes from."""
    origin = Origin(name=options.name or found.name, family=family.title)
    if found.revision:
        origin["revision"] = found.revision
    if licence := options.licence or licence_in(folder.path if folder.path.is_dir() else folder.path.parent):
        origin["licence"] = licence
    return origin
