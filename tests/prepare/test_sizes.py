"""Sizes are read with their units, and what is none is not taken for one."""

from __future__ import annotations

import pytest

from graftmt.prepare.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("200GB", 2e11), (" 1.5 MB ", 1.5e6), ("12", 12), ("3k", 3000), ("2GiB", 2e9), ("0.1234567 t", 123456700000)],
)
def test_sizes_are_read_with_their_units(text: str, size: float) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "1e9", "9PB", "1,5GB", "lots", "9" * 400])
def test_what_is_no_size(text: str) -> None:
    assert parse_size(text) is None
