"""`code:…`: the language code of a pack (Table 25): learned, none at all, or one of the base's as it is. Layer 3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, cast, get_args

from torch import Tensor, nn

from graftmt.base import Base
from graftmt.errors import ConfigError, nearest
from graftmt.model import ModelConfig
from graftmt.model.embeddings import ExtendedEmbedding
from graftmt.packs.component import CodeComponent, Component, Description, Export, Shape, Side, Written
from graftmt.packs.composition import Installation
from graftmt.packs.layer_choice import pattern
from graftmt.packs.pack import Beginning
from graftmt.packs.parts import Setting
from graftmt.text import CodePlacement, Text
from graftmt.text.aliases import english_in, find_language
from graftmt.text.protocol import LAYOUTS

CodeKind = Literal["learned", "none", "fixed", "proxy"]

WEIGHT = "code.weight"
NEAREST = "nearest"
LANGUAGE = re.compile(r"[^\s+:<>]+")
"""What a language's code may be spelt with, so that it can stand in a recipe."""

_WRITTEN = pattern(r"code:\s*(?P<kind>[^\s:]*)(?::(?P<language>\S*))?")


@dataclass(frozen=True, kw_only=True)
class LanguageCode(CodeComponent):
    """What is written to name the pack's language."""

    kind: CodeKind = "learned"
    language: str = "en"
    """The base's language whose code it starts from (learned) or is (fixed, proxy; proxy also `nearest`); none has none."""

    own_codes = WEIGHT
    position = 91
    descriptions = (
        Description("code:learned:en", "a language code of its own that starts as the base's for en: the default", "target"),
        Description("code:none", "no language code; code:fixed:en and code:proxy:ru take one of the base's as it is", "target"),
    )

    def __post_init__(self) -> None:
        if self.kind == "none":
            object.__setattr__(self, "language", "")
        elif not LANGUAGE.fullmatch(self.language) or (self.language == NEAREST and self.kind != "proxy"):
            raise ConfigError(f"code:{self.kind}:{self.language} names no language; expected a code such as 'en'.")

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        match = _WRITTEN.fullmatch(written.text)
        return None if match is None else [_read_code(written, match)]

    def __str__(self) -> str:
        return f"code:{self.kind}:{self.language}" if self.language else f"code:{self.kind}"

    @classmethod
    def names(cls, own: Sequence[Self]) -> list[str]:
        return [str(code) for code in own if code != cls()]

    @classmethod
    def suggestions(cls, text: str) -> Iterable[str]:
        return ["code:learned:en", "code:none", "code:fixed:en", "code:proxy:ru", f"code:proxy:{NEAREST}"]

    @classmethod
    def default(cls) -> Self:
        return cls()

    def clash(self, earlier: Component) -> str:
        return "is a second choice of code; leave one of them out." if isinstance(earlier, LanguageCode) else ""

    def naming(self, language: str) -> Self:
        return replace(self, language=language)

    def named_as_in(self, codes: Sequence[str]) -> Self:
        """The same with the base's own code for its language: `eng_Latn` for en, English or eng."""
        if not self.language or self.is_nearest or self.language in codes:
            return self
        known = english_in(codes) if self == LanguageCode() else find_language(self.language, codes, str(self))
        return self if known is None else self.naming(known)

    @property
    def is_nearest(self) -> bool:
        return self.kind == "proxy" and self.language == NEAREST

    def check_base(self, setting: Setting, base: Base) -> None:
        matrix, side = base.tokenizer.layout.code_matrix(setting.side), setting.side
        if matrix is None:
            if self == LanguageCode():
                return
            raise ConfigError(
                f"recipe {str(setting.recipe)!r}: a {side} pack has no language code of its own to choose, since this base "
                f"writes none of {side} languages. Leave the code out{', or train a target pack' if side == 'source' else ''}."
            )
        if self.is_nearest:
            raise ConfigError(f"{self}: which code is nearest is read from a model that knows the language; see --codes-from.")
        codes = base.tokenizer.side(matrix).languages
        if self.kind != "none" and self.language not in codes:
            raise ConfigError(
                f"recipe {str(setting.recipe)!r}: the base has no code of {self.language!r} to take; it has those of "
                f"{', '.join(codes)}. Name one of them, as in code:learned:{codes[0] if codes else 'en'}."
            )

    def is_own(self, side: Side, placement: CodePlacement) -> bool:
        """Whether a pack brings a row for each of its languages: the code must be one that is written for this side."""
        return self.kind == "learned" and LAYOUTS[placement].code_matrix(side) is not None

    def is_lent(self, placement: CodePlacement) -> bool:
        """Whether a base's row is put after the pack's matrix as it is: there the copy in the matrix moves in training."""
        return self.kind in ("fixed", "proxy") and placement == "decoder"

    def rows_of(self, text: Text, number: int, placement: CodePlacement) -> list[int]:
        """One after the text's own, where the pack has put some; none with `code:none`."""
        if self.kind == "none":
            return []
        if self.kind == "learned":
            return [len(text) + number]
        return [len(text) if self.is_lent(placement) else text.code(self.language)]

    def code_rows(self, setting: Setting) -> int:
        return setting.languages if self.is_own(setting.side, setting.code_placement) else 0

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        rows = self.code_rows(setting)
        return {WEIGHT: (rows, setting.config.model_dim)} if rows else {}

    def order(self, name: str) -> tuple[int, ...]:
        return (3,)  # after the embeddings, before all else

    def first_value(self, name: str, shape: Shape, beginning: Beginning) -> Tensor:
        base, side = beginning.base, beginning.base.tokenizer.layout.code_matrix(beginning.setting.side)
        assert side is not None, "a pack has codes of its own where the base writes some"
        matrix = base.model.target_embedding.weight if side == "target" else base.model.source_embedding.weight
        row = base.tokenizer.side(side).code(self.language)
        return matrix[row].detach().float().cpu().expand(shape[0], -1).clone()

    def install(self, installation: Installation) -> None:
        """Puts the rows after those of the matrix that is in use, whichever pack it is of."""
        model, base, side = installation.model, installation.base, installation.setting.side
        rows = self._rows(installation)
        if rows is None:
            return
        if base.tokenizer.layout.code_matrix(side) == "source":
            model.source_embedding = ExtendedEmbedding(model.source_embedding, rows)
        else:
            model.target_embedding = ExtendedEmbedding(model.target_embedding, rows)

    def _rows(self, installation: Installation) -> nn.Parameter | None:
        """The pack's own codes, or the base's one that it takes as it is."""
        base, side = installation.base, installation.setting.side
        placement = base.tokenizer.layout.placement(side)
        if self.is_own(side, placement):
            return installation.parameters[WEIGHT]
        if self.is_lent(placement):
            matrix = base.model.source_embedding if side == "source" else base.model.target_embedding
            row = base.tokenizer.side(side).code(self.language)
            return nn.Parameter(matrix.weight[row : row + 1].detach(), requires_grad=False)
        return None

    def export(self, config: ModelConfig) -> Export:
        return Export("weights")  # a row of the embedding matrix


def _read_code(written: Written, match: re.Match[str]) -> LanguageCode:
    known: tuple[str, ...] = get_args(CodeKind)
    named, language = match["kind"].lower(), match["language"]
    if named not in known:
        what = f"code:{named} is not known{nearest(named, known) or '.'} Expected code: with one of {', '.join(known)}."
        raise written.error(what, match.start("kind"))
    kind = cast(CodeKind, named)
    if language is None and kind in ("learned", "none"):
        return LanguageCode(kind=kind)
    at = match.start("language") if language is not None else match.end("kind")
    if kind == "none":
        raise written.error(f"no code has no language; write 'code:none' or 'code:fixed:{language or 'en'}'.", at)
    if not language or not LANGUAGE.fullmatch(language):
        raise written.error(f"expected one of the base's languages, as in 'code:{kind}:en'.", at)
    if language.lower() == NEAREST:
        language = NEAREST
        if kind != "proxy":
            raise written.error(f"'{NEAREST}' is for proxies; write 'code:proxy:{NEAREST}' or 'code:{kind}:en'.", at)
    return LanguageCode(kind=kind, language=language)
