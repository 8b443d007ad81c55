"""Compositions: a base, perhaps a source pack, perhaps a target pack → a model for the directions they open. Layer 3.

A composition is a value. It shares the base's tensors and the packs', takes modules of its own to hold them, and
changes nothing in either: any number of compositions of one resident base can work side by side.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError, GraftError, LanguageError
from graftmt.model import ModelConfig, Transformer
from graftmt.model.embeddings import Embedding, ExtendedEmbedding, Projection
from graftmt.model.layers import ACTIVATIONS, DecoderLayer, EncoderLayer
from graftmt.packs.adapters import (
    AdaptedDecoderLayer,
    AdaptedEncoderLayer,
    AdaptedFeedForward,
    Adapter,
    ParallelAdapter,
)
from graftmt.packs.codec import ComposedCodec
from graftmt.packs.pack import Pack, codes_of, has_own_codes, lends_code
from graftmt.packs.parts import AdapterPart, Parts, Side
from graftmt.text import Codec

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Composition:
    """A model, and how text becomes its rows."""

    model: Transformer
    codec: Codec
    source: Pack | None
    target: Pack | None


def compose(base: Base, *, source: Pack | None = None, target: Pack | None = None, fold: bool = False) -> Composition:
    """The model of base and packs; `fold` makes parallel adapters part of the FFNs they stand beside (for inference).

    Source adapters come before target adapters on the same layer. Two packs that change the same parameter are an error.
    """
    for pack, side in ((source, "source"), (target, "target")):
        if pack is not None:
            check_fits(pack, base, side)  # type: ignore[arg-type]
    packs = [pack for pack in (source, target) if pack is not None]
    model = twin(base.model)
    _replace_parameters(model, packs)
    _add_adapters(model, packs, fold)
    _replace_embeddings(model, base, source, target)
    codec: Codec = ComposedCodec(base.tokenizer, source, target) if packs else base.tokenizer
    return Composition(model.eval(), codec, source, target)


def check_fits(pack: Pack, base: Base, side: Side) -> None:
    """A pack works on the side and on the base it was made for, and nowhere else."""
    if pack.side != side:
        raise ConfigError(f"the pack {pack.name} is for the {pack.side} side; it cannot be used as the {side} pack.")
    if not base.fingerprint:
        raise GraftError(
            "this base was never stored, so nothing can be known to belong to it; store it with base.save(folder)."
        )
    if pack.base != base.fingerprint:
        raise CheckpointError(
            f"the pack {pack.name} was made for the base {pack.base[:16]}…; this base is {base.fingerprint[:16]}…. "
            "Use the base it was made for, or train the pack again on this one."
        )
    known = [language for language in pack.languages if language in base.languages]
    if known:
        raise LanguageError(
            f"the pack {pack.name} is for {', '.join(known)}, which the base has already; packs are for other languages."
        )
    codes = codes_of(side, base.tokenizer), base.tokenizer.code_placement
    shapes = {name: tuple(parameter.shape) for name, parameter in pack.parameters.items()}
    if (pack.tokenizer.languages, pack.tokenizer.code_placement) != codes or shapes != pack.expected_shapes(base.model.config):
        raise CheckpointError(
            f"the pack {pack.name} names this base as its own, but has codes or tensors of another architecture; "
            "train it again on this base."
        )
    if pack.device != base.model.device:
        raise GraftError(
            f"the pack {pack.name} is on {pack.device} and the base on {base.model.device}; move it with pack.to(…)."
        )


def twin(module: Module) -> Module:
    """A tree of modules of its own around the same tensors, which take no gradients here."""
    aliases: dict[int, nn.Parameter] = {}

    def alias(parameter: nn.Parameter) -> nn.Parameter:
        return aliases.setdefault(id(parameter), nn.Parameter(parameter.detach(), requires_grad=False))

    def copied(part: nn.Module) -> nn.Module:
        result = copy.copy(part)
        result._parameters = {name: own if own is None else alias(own) for name, own in part._parameters.items()}
        result._buffers = dict(part._buffers)
        result._modules = {name: own if own is None else copied(own) for name, own in part._modules.items()}
        return result

    return copied(module)  # type: ignore[return-value]


def _replace_parameters(model: Transformer, packs: list[Pack]) -> None:
    """Tuned layers, norms and biases: the pack's parameter stands where the base's did."""
    owner: dict[str, Pack] = {}
    for pack in packs:
        for name in pack.parts(model.config).replaced:
            if name in owner:
                raise ConfigError(
                    f"the packs {owner[name].name} and {pack.name} both have their own {name}: they cannot be combined. "
                    "Use packs that tune different layers, or translate with --pivot."
                )
            owner[name] = pack
            module, _, attribute = name.rpartition(".")
            model.get_submodule(module)._parameters[attribute] = pack.parameters[name]


def _add_adapters(model: Transformer, packs: list[Pack], fold: bool) -> None:
    parts = [(pack, pack.parts(model.config)) for pack in packs]
    for stack, layers in (("encoder", model.encoder.layers), ("decoder", model.decoder.layers)):
        for number, layer in enumerate(layers):
            adapters = _adapters(parts, stack, number, model.config)
            _widen_ffn(layer, [own for own in adapters if isinstance(own, ParallelAdapter)], fold)
            if serial := [own for own in adapters if isinstance(own, Adapter)]:
                layers[number] = _adapted(layer, serial)


def _adapted(layer: nn.Module, adapters: list[Adapter]) -> nn.Module:
    if isinstance(layer, EncoderLayer):
        return AdaptedEncoderLayer(layer, adapters)
    assert isinstance(layer, DecoderLayer)
    return AdaptedDecoderLayer(layer, adapters)


def _adapters(packs: list[tuple[Pack, Parts]], stack: str, layer: int, config: ModelConfig) -> list[Adapter | ParallelAdapter]:
    """The adapters of one layer, the source pack's first, holding the packs' own parameters."""
    found: list[Adapter | ParallelAdapter] = []
    for pack, parts in packs:
        chosen: Mapping[int, AdapterPart] = parts.encoder_adapters if stack == "encoder" else parts.decoder_adapters
        if layer in chosen:
            part = chosen[layer]
            with torch.device("meta"):
                adapter: Adapter | ParallelAdapter = (
                    ParallelAdapter(config.model_dim, part.dim, ACTIVATIONS[config.activation])
                    if part.parallel
                    else Adapter(config.model_dim, part.dim, config.norm_epsilon)
                )
            for name, _ in list(adapter.named_parameters()):
                module, _, attribute = name.rpartition(".")
                own = pack.parameters[f"{stack}.adapters.{layer}.{name}"]
                adapter.get_submodule(module)._parameters[attribute] = own
            found.append(adapter)
    return found


def _widen_ffn(layer: nn.Module, adapters: list[ParallelAdapter], fold: bool) -> None:
    if adapters:
        adapted = AdaptedFeedForward(layer.ffn, adapters)  # type: ignore[arg-type]
        layer.ffn = adapted.folded() if fold else adapted


def _replace_embeddings(model: Transformer, base: Base, source: Pack | None, target: Pack | None) -> None:
    padding = model.config.padding_id
    placement = base.tokenizer.code_placement
    if source is not None:
        model.source_embedding = embedding_of(source.parameters["embedding.weight"], padding)
    if target is not None:
        matrix = target.parameters["embedding.weight"]
        model.target_embedding = embedding_of(matrix, padding)
        model.projection = Projection(target.parameters.get("output.weight", matrix), target.parameters.get("output.bias"))
    # The code that precedes source text is the target's or the source's own; the decoder's is always the target's.
    before_source = target if placement == "source" else source
    if before_source is not None and (rows := code_rows(before_source, base, base.model.source_embedding)) is not None:
        model.source_embedding = ExtendedEmbedding(model.source_embedding, rows)
    at_decoder = target if placement == "decoder" else None
    if at_decoder is not None and (rows := code_rows(at_decoder, base, base.model.target_embedding)) is not None:
        model.target_embedding = ExtendedEmbedding(model.target_embedding, rows)


def code_rows(pack: Pack, base: Base, matrix: Embedding | ExtendedEmbedding) -> nn.Parameter | None:
    """The rows that come after those of a matrix: the pack's own codes, or the base's one that it takes as it is."""
    if has_own_codes(pack.recipe, pack.side, base.tokenizer.code_placement):
        return pack.parameters["code.weight"]
    if lends_code(pack):
        row = base.tokenizer.vocabulary.code(pack.recipe.code.language)
        return nn.Parameter(matrix.weight[row : row + 1].detach(), requires_grad=False)
    return None


def embedding_of(weight: nn.Parameter, padding_id: int) -> Embedding:
    with torch.device("meta"):
        embedding = Embedding(padding_id + 1, 1, padding_id)
    embedding.weight = weight
    return embedding
