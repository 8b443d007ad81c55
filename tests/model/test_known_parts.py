"""Fast ways take classes that they know, not subclasses of them, and say once what they leave as it is."""

from __future__ import annotations

import logging

import pytest
from torch import nn

from graftmt.model import Transformer, named_size
from graftmt.model.known_parts import all_known, is_known, known_part, notice


class Doubled(nn.Linear):
    """Known by its parent alone, which computes something else."""


def test_every_part_of_the_transformer_is_known() -> None:
    for norm in ("pre", "post"):
        assert all_known("tests", Transformer.build(named_size("tiny", norm=norm), 20))


def test_a_subclass_of_a_known_class_is_not_known(caplog: pytest.LogCaptureFixture) -> None:
    @known_part
    class Wrapper(nn.Module):
        pass

    class Other(Wrapper):
        pass

    assert is_known(Wrapper()) and is_known(nn.Linear(2, 2))
    assert not is_known(Other()) and not is_known(Doubled(2, 2))
    model = Transformer.build(named_size("tiny"), 20)
    model.encoder.layers[0].ffn.up = Doubled(2, 2)  # type: ignore[union-attr]
    assert not all_known("tests", None, model.decoder, model.encoder)
    assert all_known("tests", model.decoder)


def test_a_notice_is_given_once_for_each_way_and_class(caplog: pytest.LogCaptureFixture) -> None:
    class Noticed(nn.Module):
        pass

    with caplog.at_level(logging.WARNING, logger="graftmt"):
        for way in ("one way", "one way", "another"):
            notice(way, Noticed())
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["one way", "another"]
    assert all("Noticed" in record.getMessage() for record in caplog.records)
