"""Options that several commands share: lists with commas, and the names of packs on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graftmt.cli.declared import numbers
from graftmt.errors import ConfigError, GraftError
from graftmt.options import items
from graftmt.packs import load_pack, save_pack
from graftmt.packs.named_packs import parse_packs
from graftmt.translator import Translator


def test_lists_with_commas_may_have_blanks_and_gaps() -> None:
    assert items("en, fr,,de ", "el") == ["en", "fr", "de", "el"]
    assert items() == items("") == items(" , ") == []
    assert numbers("3, 2,2", "--tables") == [3, 2, 2]
    for text in ("2,b", "-1", "1.5", "²"):
        with pytest.raises(ConfigError, match=rf"--tables '{text}': '.*'.*2,3"):
            numbers(text, "--tables")


def test_without_names_packs_are_paths(grafted) -> None:
    assert parse_packs([f"{grafted.el}, {grafted.uk}", str(grafted.other)]) == [grafted.el, grafted.uk, grafted.other]
    assert parse_packs(None) == []


def test_beside_packs_with_names_one_without_is_called_as_the_translator_calls_it(grafted, tmp_path: Path) -> None:
    archive = tmp_path / "any.graftpack"
    save_pack(load_pack(grafted.uk), archive, Translator(grafted.base).base.model.config)
    named = parse_packs([f"a={grafted.other},{grafted.el}", str(archive)])
    assert named == {"a": grafted.other, "el-source": grafted.el, "uk-target": archive}
    own = Translator(grafted.base, [grafted.el, archive]).packs
    assert list(own) == ["el-source", "uk-target"]


@pytest.mark.parametrize("packs", ["x={uk},{el},{other}", "el-source={other},{el}", "{el},el-source={other}"])
def test_two_packs_of_one_name_are_an_error_that_says_which(grafted, packs: str) -> None:
    with pytest.raises(ConfigError, match=r"'el-source'.*NAME=PATH"):
        parse_packs([packs.format(**grafted._asdict())])


def test_what_is_no_pack_is_said_in_the_words_of_those_who_read_packs(grafted) -> None:
    with pytest.raises(GraftError, match="there is no pack nowhere"):
        parse_packs([f"a={grafted.el},nowhere"])


def test_reports_of_scores_and_proofs_have_these_names(graftmt, grafted, graft_corpus: Path) -> None:
    chosen = ("-b", str(grafted.base), "-p", f"a={grafted.other},{grafted.uk}", "--beam", "1", "-c", str(graft_corpus))
    scored = graftmt("evaluate", *chosen, "-d", "en-uk", "--lines", "2", "--json", "-q", "--device", "cpu")
    assert list(json.loads(scored.stdout)["packs"]) == ["a", "uk-target"], scored.stderr
    proved = graftmt("verify", *chosen, "-n", "2", "--json")
    assert json.loads(proved.stdout)["packs"] == ["a", "uk-target"], proved.stderr
