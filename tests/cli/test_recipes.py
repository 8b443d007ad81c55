"""`graftmt recipes`: the paper's rows, and a recipe of one's own."""

from __future__ import annotations

import json
import math

import pytest


def test_the_papers_rows_are_listed_with_the_whole_models(graftmt) -> None:
    shown = graftmt("recipes")
    assert shown.code == 0
    for words in ("(7) + enc-adapters-{1,2,3} (d=1024)", "embed + enc-adapters-1,2,3(1024)", "5,279,232", "80.2M", "255M"):
        assert words in shown.stdout
    assert "7,380,992 *" in shown.stdout
    assert "* (36) The paper contradicts itself" in shown.stdout


def test_every_kind_of_component_has_its_line(graftmt) -> None:
    lines = json.loads(graftmt("recipes", "--components", "--json").stdout)
    forms = [line["form"] for line in lines]
    assert forms[0] == "embed"
    assert {"enc-adapters-all(512)", "enc-lora-all(16)", "enc-first-layer", "code:none"} <= set(forms)
    assert {line["package"] for line in lines} == {"graftmt"}
    for command in ((), ("--components",)):
        shown = graftmt("recipes", *command).stdout
        assert all(form in shown for form in forms)
    assert graftmt("recipes", "embed", "--components").code == 1


@pytest.mark.parametrize("side", ["source", "target"])
def test_lora_is_counted_by_layer(graftmt, side: str) -> None:
    text = "embed + enc-lora-1,2(57)" if side == "source" else "embed + dec-lora-1,2(57)"
    facts = json.loads(graftmt("recipes", text, "--side", side, "--json").stdout)
    stack, maps = ("encoder", 6) if side == "source" else ("decoder", 10)
    assert facts["groups"][f"{stack}.lora"]["layers"] == [1, 2]
    assert facts["groups"][f"{stack}.lora"]["tensors"] == 2 * 2 * maps


def test_json_is_an_array_of_rows(graftmt) -> None:
    rows = json.loads(graftmt("recipes", "--json").stdout)
    assert [row["id"] for row in rows if row["id"] > 100] == [*range(101, 111), *range(123, 127), *range(111, 123)]
    assert len(rows) == 47 + 26
    assert rows[0] == {
        "id": 7,
        "table": 2,
        "name": "Only embed",
        "corpus": "TED",
        "base": "base",
        "side": "source",
        "languages": ["el"],
        "recipe": "embed",
        "data": "EL-EN",
        "paper_parameters": "2.13M",
        "computed_parameters": 4152 * 512,
        "agrees": True,
        "note": None,
    }


def test_rows_are_chosen_by_side_and_number(graftmt) -> None:
    assert {row["side"] for row in json.loads(graftmt("recipes", "--side", "target", "--json").stdout)} == {"target"}
    (row,) = json.loads(graftmt("recipes", "--id", "31", "--json").stdout)
    assert (row["id"], row["recipe"]) == (31, "embed + dec-last-layer + enc-adapters-last(1024)")
    shown = graftmt("recipes", "--id", "31").stdout
    assert "7,380,992" in shown
    assert "Whole models" not in shown
    for number in ("31", "(31)"):
        assert graftmt("recipes", number).stdout == shown


def test_a_recipe_of_ones_own_is_counted(graftmt) -> None:
    arguments = (
        "embed + enc-adapters-{1,2,3} (d=1024)",
        "--size",
        "base",
        "--norm",
        "post",
        "--rows",
        "4152",
        "--side",
        "source",
    )
    facts = json.loads(graftmt("recipes", *arguments, "--json").stdout)
    assert (facts["recipe"], facts["parameters"]) == ("embed + enc-adapters-1,2,3(1024)", 5_279_232)
    assert facts["groups"]["encoder.adapters"]["layers"] == [1, 2, 3]
    assert sum(group["parameters"] for group in facts["groups"].values()) == facts["parameters"]
    assert sum(map(math.prod, facts["tensors"].values())) == facts["parameters"]
    shown = graftmt("recipes", *arguments)
    assert shown.code == 0
    for words in ("embed + enc-adapters-1,2,3(1024)", "5,279,232", "1, 2, 3"):
        assert words in shown.stdout


@pytest.mark.parametrize(("code", "codes"), [("", [1, 512]), (" + code:none", None), (" + code:proxy:ru", None)])
def test_a_target_packs_code_is_one_of_its_rows_where_it_is_learned(graftmt, code: str, codes: list[int] | None) -> None:
    facts = json.loads(graftmt("recipes", "embed" + code, "--side", "target", "--rows", "100", "--json").stdout)
    assert facts["tensors"].get("code.weight") == codes
    assert facts["parameters"] == 100 * 512


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("embed + enc-adaptors-all(64)",), "character 9: 'enc-adaptors-all(64)' is no component; did you mean"),
        (("embed + dec-last-layer",), "the decoder belongs to the target language"),
        (("embed", "--size", "bass"), "did you mean 'base'?"),
        (("embed", "--norm", "Post"), "did you mean 'post'?"),
        (("--side", "sauce"), "did you mean 'source'?"),
        (("embed", "--id", "7"), "not both"),
        (("--rows", "10"), "--rows is for a recipe of your own"),
        (("--id", "38"), "no incremental model (38)"),
        (("--id", "7", "--side", "target"), "(7) is a source pack"),
    ],
)
def test_what_cannot_be_meant_is_an_error(graftmt, arguments: tuple[str, ...], words: str) -> None:
    result = graftmt("recipes", *arguments)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
