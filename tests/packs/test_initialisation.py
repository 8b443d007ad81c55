from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graftmt.errors import ConfigError
from graftmt.packs.initialisation import InitialisationMethod, initialise
from graftmt.text import PADDING_ID, Subwords, Tokenizer, Vocabulary, train_subwords
from graftmt.text.protocol import BYTES

METHODS: tuple[InitialisationMethod, ...] = get_args(InitialisationMethod)
LINES = ["the quick brown fox jumps over 12 lazy dogs", "the other dogs quickly overtake the brown fox"] * 10
KNOWN, UNKNOWN = "abdefghrtx12", "жщλω"  # characters: the base has the former, and none of the latter
DIM = 16


@pytest.fixture(scope="module")
def base() -> Tokenizer:
    return Tokenizer(train_subwords({"en": LINES}, merges=60), ["en", "fr", "de"])


@pytest.fixture(scope="module")
def with_bytes() -> Subwords:
    return train_subwords({"en": LINES}, merges=60, byte_fallback=True)


@pytest.fixture(scope="module")
def base_weight(base: Tokenizer) -> Tensor:
    return torch.randn(len(base), DIM, generator=torch.Generator().manual_seed(1))


new_pieces = st.builds(str.__add__, st.sampled_from(["", "▁"]), st.text(KNOWN + UNKNOWN, min_size=1, max_size=6))
vocabularies = st.builds(
    Vocabulary,
    st.lists(new_pieces | st.sampled_from(["▁", "▁the", "fox", "o", "<0xCE>"]), unique=True, max_size=12),
    st.lists(st.sampled_from(["en", "de", "el"]), unique=True),
)


def expected_row(base: Tokenizer, weight: Tensor, symbol: str) -> Tensor:
    return weight[base.vocabulary.id(symbol)]


@given(vocabulary=vocabularies, method=st.sampled_from(METHODS), seed=st.integers(0, 2**40), cut=st.floats(0, 1))
def test_every_row_follows_its_rule(
    base: Tokenizer, base_weight: Tensor, vocabulary: Vocabulary, method: InitialisationMethod, seed: int, cut: float
) -> None:
    rows = round(cut * len(vocabulary))
    translations = {symbol: {"▁the": 1.0} for symbol in vocabulary.symbols if "λ" in symbol}
    made = initialise(vocabulary, base, base_weight, method=method, seed=seed, rows=rows, translations=translations)
    noise = initialise(vocabulary, base, base_weight, method="random", seed=seed, trained_codes=vocabulary.languages).weight
    assert made.weight.shape == (rows, DIM) and made.weight.dtype == torch.float32
    assert len(made.rules) == rows == sum(made.counts.values())
    assert made.counts == {rule: made.rules.count(rule) for rule in set(made.rules)}
    for row, (symbol, rule) in enumerate(zip(vocabulary.symbols, made.rules, strict=False)):
        shared, code = symbol in base.vocabulary.symbols, symbol.startswith("<lang:")
        if row == PADDING_ID:
            assert rule == "padding" and not made.weight[row].any()
        elif shared and (method != "random" or code):
            assert rule == ("base code" if method == "random" else "overlap")
            assert torch.equal(made.weight[row], expected_row(base, base_weight, symbol))
        elif rule == "random":
            assert torch.equal(made.weight[row], noise[row])
        elif rule == "alignment":
            assert method == "alignment" and torch.equal(made.weight[row], expected_row(base, base_weight, "▁the"))
        else:
            assert rule == "pieces" and method in ("pieces", "alignment") and base.spell(symbol)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_alone_decides(base: Tokenizer, base_weight: Tensor, method: InitialisationMethod) -> None:
    vocabulary = Vocabulary(["▁the", "жж", "щ"], ["en"])
    before = torch.get_rng_state()
    one, same, other = (
        initialise(vocabulary, base, base_weight, method=method, seed=seed, translations={}).weight for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_random_rows_are_as_long_as_those_of_a_new_model(base: Tokenizer) -> None:
    vocabulary = Vocabulary([f"ж{number}" for number in range(500)], [])
    made = initialise(vocabulary, base, torch.zeros(len(base), 64), method="random", seed=0)
    assert made.counts == {"random": 506, "padding": 1}
    assert made.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)


def test_random_copies_the_codes_that_are_not_trained(base: Tokenizer, base_weight: Tensor) -> None:
    vocabulary = Vocabulary(["▁the"], ["en", "fr", "de", "el"])
    made = initialise(vocabulary, base, base_weight, method="random", seed=0, trained_codes={"en"})
    assert made.rules[vocabulary.first_code_id :] == ["random", "base code", "base code", "random"]
    assert made.rules[vocabulary.id("▁the")] == "random"
    assert torch.equal(made.weight[vocabulary.code("fr")], base_weight[base.vocabulary.code("fr")])


@pytest.mark.parametrize(("piece", "only"), [("▁theж", "▁the"), ("theж", "the"), ("жfox", "fox"), ("▁жo", "o"), ("▁2", "2")])
def test_one_base_piece_gives_its_row(base: Tokenizer, base_weight: Tensor, piece: str, only: str) -> None:
    made = initialise(Vocabulary([piece], []), base, base_weight, method="pieces", seed=0)
    assert made.rules[-1] == "pieces"
    assert base.spell(piece) == [only]
    assert torch.equal(made.weight[-1], expected_row(base, base_weight, only))


def test_several_base_pieces_give_their_mean_at_their_mean_length(base: Tokenizer, base_weight: Tensor) -> None:
    made = initialise(Vocabulary(["▁foxdogs"], []), base, base_weight, method="pieces", seed=0).weight[-1]
    parts = torch.stack([expected_row(base, base_weight, part) for part in ("▁fox", "do", "gs")])
    torch.testing.assert_close(made / made.norm(), parts.mean(0) / parts.mean(0).norm())
    torch.testing.assert_close(made.norm(), parts.norm(dim=1).mean())


@given(text=st.text(KNOWN + UNKNOWN, min_size=1))
def test_a_split_keeps_text_and_word_boundary(base: Tokenizer, text: str) -> None:
    kept = "".join(character for character in text if character in KNOWN)
    inside = base.spell(text)
    assert "".join(inside) == kept
    assert not any(part.startswith("▁") for part in inside)
    first = base.spell("▁" + text)
    assert "".join(first).removeprefix("▁") == kept
    assert "▁" not in first
    assert set(first + inside) <= set(base.subwords.pieces)


def test_bytes_count_only_where_there_is_nothing_else(with_bytes: Subwords) -> None:
    assert with_bytes.spell("▁жo") == ["o"]
    assert with_bytes.spell("ж") == with_bytes.spell("▁ж") == [f"<0x{value:02X}>" for value in "ж".encode()]


def test_what_the_base_cannot_spell_is_random(base: Tokenizer, base_weight: Tensor) -> None:
    assert "<0xCE>" in BYTES
    made = initialise(Vocabulary(["▁жщ", "ω", "<0xCE>"], ["el"]), base, base_weight, method="pieces", seed=0)
    assert made.rules[-4:] == ["random"] * 4


def test_translations_are_averaged_by_weight(base: Tokenizer, base_weight: Tensor) -> None:
    vocabulary = Vocabulary(["▁fox", "▁λ", "▁ω", "▁жo"], [])
    translations = {
        "▁fox": {"▁the": 1.0},  # the base has it, and knows better
        "▁λ": {"▁the": 3.0, "fox": 1.0, "no such": 9.0, "▁dogs": 0.0},
        "▁ω": {"no such": 1.0},
        "▁жo": {},
    }
    made = initialise(vocabulary, base, base_weight, method="alignment", seed=0, translations=translations)
    assert made.rules[-4:] == ["overlap", "alignment", "random", "pieces"]
    the, fox = expected_row(base, base_weight, "▁the"), expected_row(base, base_weight, "fox")
    mean = 0.75 * the + 0.25 * fox
    torch.testing.assert_close(made.weight[-3], mean / mean.norm() * (0.75 * the.norm() + 0.25 * fox.norm()))


def test_a_matrix_without_code_rows_and_one_in_half_precision(base: Tokenizer, base_weight: Tensor) -> None:
    vocabulary = Vocabulary(["▁the"], ["en"])
    half = base_weight[: base.vocabulary.first_code_id].bfloat16()
    made = initialise(vocabulary, base, half, method="overlap", seed=0)
    assert made.rules[-2:] == ["overlap", "random"]
    assert torch.equal(made.weight[-2], expected_row(base, half, "▁the").float())


def test_what_cannot_be_meant_is_refused(base: Tokenizer, base_weight: Tensor) -> None:
    vocabulary = Vocabulary(["▁the"], [])
    with pytest.raises(ConfigError, match="did you mean 'overlap'"):
        initialise(vocabulary, base, base_weight, method="overlaps", seed=0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="needs translations"):
        initialise(vocabulary, base, base_weight, method="alignment", seed=0)
    with pytest.raises(ConfigError, match="at most the vocabulary's 8"):
        initialise(vocabulary, base, base_weight, method="overlap", seed=0, rows=9)
    with pytest.raises(ConfigError, match="belongs to this tokenizer"):
        initialise(vocabulary, base, base_weight[:20], method="overlap", seed=0)
