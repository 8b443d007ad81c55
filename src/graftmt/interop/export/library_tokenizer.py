"""A tokenizer.json for the `tokenizers` library, from a SentencePiece model and the ids that its pieces are to have. Layer 5.

The ids may also have tokens that no text is cut into: those of the other side of a model. Their names begin with a mark that no
piece has, which decoding takes away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sentencepiece

from graftmt.text.foreign.model_file import message_fields, message_numbers
from graftmt.text.protocol import BOUNDARY, BYTES

_NORMALIZER, _TRAINER = 3, 2
_RULES, _MODEL_TYPE = 2, 3
_UNIGRAM, _BPE = 1, 2


class NoLibraryForm(ValueError):
    """A SentencePiece model that the library has no equivalent of."""


def library_tokenizer(
    model: bytes, tokens: Sequence[str], *, mark: str, unknown: int, special: Mapping[str, int], template: Sequence[str]
) -> str:
    """The tokenizer.json.

    `tokens`: a name for each id; `special`: tokens that are no text, by name; `template`: the special tokens of a sentence,
    with "$A" in the place of its text.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    rules, kind = _settings(model)
    core = _core(pieces, kind, tokens, unknown, models)
    tokenizer = Tokenizer(core)
    steps: list[Any] = [normalizers.Precompiled(rules)] if rules else []
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=BOUNDARY, prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(mark, ""),
            decoders.Replace(BOUNDARY, " "),
            *([decoders.ByteFallback()] if "<0x00>" in tokens else []),
            decoders.Fuse(),
            decoders.Strip(" ", 64, 0),
        ]
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=list(template), special_tokens=[(name, special[name]) for name in template if name != "$A"]
    )
    return str(tokenizer.to_str())


def _settings(model: bytes) -> tuple[bytes, int]:
    """The character rules, and the type of the model; fields that come again replace those before."""
    rules, kind = b"", _UNIGRAM
    for number, value in message_fields(model):
        if number == _NORMALIZER:
            rules = next((inner for field, inner in message_fields(value) if field == _RULES and inner), rules)
        if number == _TRAINER:
            kind = dict(message_numbers(value)).get(_MODEL_TYPE, kind)
    return rules, kind


def _core(pieces: Any, kind: int, tokens: Sequence[str], unknown: int, models: Any) -> Any:
    own = {pieces.id_to_piece(number): pieces.get_score(number) for number in range(pieces.get_piece_size())}
    byte_fallback = any(pieces.is_byte(number) for number in range(min(300, pieces.get_piece_size())))
    if kind == _UNIGRAM:
        return models.Unigram([(token, own.get(token, 0.0)) for token in tokens], unknown, byte_fallback)
    if kind != _BPE:
        raise NoLibraryForm("its SentencePiece model is of words or of characters")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return models.BPE(
        vocab=vocabulary,
        merges=_merges({token: score for token, score in own.items() if token in vocabulary and token not in BYTES}),
        unk_token=tokens[unknown],
        fuse_unk=True,
        byte_fallback=byte_fallback,
    )


def _merges(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Each pair of pieces that makes a third one, those of the best-scored one first."""
    found = []
    for piece, score in scores.items():
        for place in range(1, len(piece)):
            left, right = piece[:place], piece[place:]
            if left in scores and right in scores:
                found.append((-score, len(left), left, right))
    return [(left, right) for _, _, left, right in sorted(found)]


def tokenizer_config(special: Mapping[str, str], longest: int) -> str:
    """tokenizer_config.json; `special`: the tokens for bos_token, eos_token, pad_token and unk_token."""
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": longest,
        "padding_side": "right",
        **special,
    }
    return json.dumps(settings, ensure_ascii=False, indent=2) + "\n"
