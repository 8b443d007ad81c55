"""The proof that a base is unchanged: its stored and resident tensors, and its translations with and without packs. Layer 6."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

from graftmt.base import Base, check_stored, fingerprint, parameters, read_base_document
from graftmt.data import Direction
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.devices import AnyDevice, named_dtype
from graftmt.errors import ConfigError, GraftError
from graftmt.files import as_path
from graftmt.packs import Pack
from graftmt.tensor_files import hash_tensors
from graftmt.text import pieces_of
from graftmt.translation_requests import Request
from graftmt.translator import Translator


@dataclass(frozen=True)
class Verification:
    """Everything that was compared, and how it came out."""

    fingerprint: str
    stored_unchanged: bool
    """The folder's tensors have the fingerprint that is written next to them."""
    resident_unchanged: bool
    """The tensors in memory are, byte for byte, what they were before the packs were used."""
    outputs_identical: bool
    """Texts and scores of the base's own directions are equal to the last bit."""
    lines: int
    made_up: tuple[str, ...]
    """Source languages whose lines were made up of the base's vocabulary, since no text was given in them."""
    directions: tuple[str, ...]
    packs: tuple[str, ...]
    pack_directions: tuple[str, ...]
    """Directions of the packs that translated between the two looks at the base."""

    @property
    def base_unchanged(self) -> bool:
        return self.stored_unchanged and self.resident_unchanged and self.outputs_identical

    def to_dict(self) -> dict[str, Any]:
        return {"base_unchanged": self.base_unchanged, **asdict(self)}


def verify(
    base: Base | str | Path,
    packs: Mapping[str, Pack | str | Path] | Sequence[Pack | str | Path],
    *,
    texts: Mapping[str, Sequence[str]] | None = None,
    lines: int = 20,
    beam: int = 5,
    device: AnyDevice = "cpu",
) -> Verification:
    """Translates with the base alone, installs the packs, uses them, translates again, and compares.

    `base` is a folder, or a base that was loaded from one, which then is looked at where it is. `texts`: lines by language;
    strings made of the base's own vocabulary where there are none.
    """
    folder = _folder_of(base)
    if isinstance(base, Base):
        as_stored = _is_as_stored(base, folder)
    else:  # loading recomputes the fingerprint and refuses a folder that no longer has it: an error says more than a False
        base, as_stored = Base.load(folder, device=device, verify=True), True
    alone = Translator(base)
    directions = _base_directions(base)
    requests = [
        Request(line, *direction) for direction in directions for line in _lines(base, direction.source, texts or {}, lines)
    ]
    options = SearchOptions(beam=beam, max_length=100, batch_tokens=batch_tokens_for(str(base.model.device)))
    tensors = _digest(base)
    before = alone.translate_requests(requests, options)
    together = Translator(base, packs)
    used = []
    for request in _pack_requests(together):
        sources = _lines(base, request.source, texts or {}, 2)
        together.translate_requests([request._replace(line=line) for line in sources], options)
        used.append(str(Direction(request.source, request.target)))
    after = together.translate_requests(requests, options)
    return Verification(
        fingerprint=base.fingerprint,
        stored_unchanged=check_stored(folder) == base.fingerprint,
        resident_unchanged=as_stored and _digest(base) == tensors,
        outputs_identical=before == after,
        lines=len(requests),
        made_up=tuple(
            dict.fromkeys(direction.source for direction in directions if not _given(texts or {}, direction.source, 1))
        ),
        directions=tuple(map(str, directions)),
        packs=tuple(together.packs),
        pack_directions=tuple(used),
    )


def _folder_of(base: Base | str | Path) -> Path:
    """Where its files are."""
    if not isinstance(base, Base):
        return as_path(base, "the base")
    if base.folder is None:
        raise GraftError(
            "this base was made in memory and never stored, so there is nothing to compare it with; store it with "
            "base.save(folder) first."
        )
    return base.folder


def _is_as_stored(base: Base, folder: Path) -> bool:
    """Whether the tensors in memory are those of the fingerprint, as far as their precision can tell."""
    stored, running = read_base_document(folder).get("dtype"), base.model.source_embedding.weight.dtype
    if stored is None or torch.promote_types(running, named_dtype(stored)) != running:
        return True
    tensors = {name: tensor.to("cpu", named_dtype(stored)).contiguous() for name, tensor in parameters(base.model).items()}
    return fingerprint(tensors, base.model.config, base.tokenizer) == base.fingerprint


def _base_directions(base: Base) -> list[Direction]:
    """Of the first languages each into the next one that can be translated into."""
    directions = []
    for number, source in enumerate(base.source_languages[:6]):
        written = base.target_languages[:6]
        targets = [*written[number + 1 :], *written[: number + 1]]
        directions += [Direction(source, target) for target in targets if target != source][:1]
    return directions


def _pack_requests(translator: Translator) -> Iterator[Request]:
    """Each language of each pack with a language of the base, and each source pack with each target pack that it goes with.

    Packs are called by their names: there may be several for one language and side.
    """
    written, read = translator.base.target_languages[0], translator.base.source_languages[0]
    reading = {name: pack for name, pack in translator.packs.items() if pack.side == "source"}
    writing = {name: pack for name, pack in translator.packs.items() if pack.side == "target"}
    for name, pack in reading.items():
        yield from (Request("", language, written, source_pack=name) for language in pack.languages)
    for name, pack in writing.items():
        yield from (Request("", read, language, target_pack=name) for language in pack.languages)
    for source, target in product(reading, writing):
        pair = next(((a, b) for a in reading[source].languages for b in writing[target].languages if a != b), None)
        if pair is not None:
            with suppress(ConfigError):  # both tune the same layer: nobody can use these two together
                translator.composition(*pair, source_pack=source, target_pack=target)
                yield Request("", *pair, None, source, target)


def _lines(base: Base, language: str, texts: Mapping[str, Sequence[str]], count: int) -> list[str]:
    """The first lines that there are, or made-up ones: what is compared need not make sense."""
    if given := _given(texts, language, count):
        return given
    pieces = pieces_of(base.tokenizer.side("source"))
    step = max(1, len(pieces) // (8 * count))
    chosen = pieces[::step]
    return ["".join(chosen[8 * row : 8 * row + 8]).replace("▁", " ").strip() or "a" for row in range(count)]


def _given(texts: Mapping[str, Sequence[str]], language: str, count: int) -> list[str]:
    return [line for line in texts.get(language, ()) if line.strip()][:count]


def _digest(base: Base) -> str:
    digest = hashlib.sha256()
    hash_tensors(digest, parameters(base.model))
    return digest.hexdigest()
