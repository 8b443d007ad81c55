"""A layout says whose code is read from which matrix, and kinds of text are found again."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from graftmt.errors import ConfigError
from graftmt.text import Layout, Subwords, Tokenizer
from graftmt.text.kinds import TextKind, default_kind, text_kind
from graftmt.text.protocol import LAYOUTS, SIDES
from graftmt.text.stored import StoredText, describe, files_to_store


def test_a_code_is_read_from_one_matrix() -> None:
    for whose, at_decoder in product(("source", "target", None), (False, True)):
        if whose == "target" and at_decoder:
            with pytest.raises(ConfigError, match="both"):
                Layout(source_code="target", decoder_code=True)
            continue
        layout = Layout(source_code=whose, decoder_code=at_decoder)  # type: ignore[arg-type]
        for matrix in SIDES:
            read = layout.codes_in(matrix)
            assert read is None or layout.code_matrix(read) == matrix
        for side in SIDES:  # a pack knows of its base's layout what its name says
            named = LAYOUTS[layout.placement(side)]
            assert named.code_matrix(side) == layout.code_matrix(side)
            assert named.codes_in(side) == layout.codes_in(side)


@pytest.mark.parametrize("placement", LAYOUTS)
def test_a_named_layout_is_called_by_its_name(placement: str) -> None:
    assert {LAYOUTS[placement].placement(side) for side in SIDES} == {placement}  # type: ignore[index]


def test_a_code_stands_before_or_after_the_text() -> None:
    before, after = Layout(), Layout(source_code="source", decoder_code=True, code_after_text=True)
    assert (before.source_prefix([9]), before.source_suffix([9], 2)) == ([9], [2])
    assert (after.source_prefix([9]), after.source_suffix([9], 2)) == ([], [2, 9])
    assert (after.source_prefix([]), after.source_suffix([], 2)) == ([], [2])


@pytest.mark.parametrize("placement", LAYOUTS)
def test_our_kind_is_found_again(plain: Subwords, placement: str) -> None:
    text = Tokenizer(plain, ["en", "fr"], placement)  # type: ignore[arg-type]
    assert text_kind(text.kind) is default_kind()
    assert describe(text) == {}
    stored = StoredText.of({"code_placement": placement}, ["en", "fr"])
    files = files_to_store(text)
    assert stored.names == tuple(files)
    assert stored.fingerprint(files) == text.fingerprint
    again = stored.base_text(files, "here")
    assert (again.fingerprint, again.options(), again.files()) == (text.fingerprint, text.options(), text.files())


def test_no_codes_are_written_where_there_are_none(plain: Subwords) -> None:
    text = Tokenizer(plain, ["en", "fr"], "none")
    assert (text.source_prefix("en", "fr"), text.source_suffix("en", "fr")) == ([], [text.end_id])
    assert text.decoder_prefix("fr") == [text.end_id]


def test_a_kind_need_not_be_learned(tmp_path: Path) -> None:
    class Fixed(TextKind):
        name = "fixed"

        def file_names(self, options: object) -> tuple[str, ...]:
            return ()

        def read(self, files: object, options: object, where: str) -> None:
            return None

    with pytest.raises(ConfigError, match="'fixed'"):
        Fixed().learn({}, sizes={})
    with pytest.raises(ConfigError, match=r"model\.bin"):
        Fixed().open_file(tmp_path / "model.bin")
