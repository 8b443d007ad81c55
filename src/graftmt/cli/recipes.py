"""`graftmt recipes`: the paper's models and ours as recipes, and what a recipe of one's own has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graftmt.cli.declared import AsJson
from graftmt.cli.output import json_text
from graftmt.errors import ConfigError, nearest

if TYPE_CHECKING:
    from graftmt.packs.component import Side


def recipes(
    recipe: Annotated[
        str | None,
        typer.Argument(help="Recipe or number to check and count (default: list all)"),
    ] = None,
    side: Annotated[
        str | None,
        typer.Option("--side", help="source (default) or target"),
    ] = None,
    number: Annotated[int | None, typer.Option("--id", help="Number of one of the paper's models, or of graftmt's own")] = None,
    size: Annotated[
        str | None, typer.Option("--size", help="Size of the base: tiny, iwslt, base (default), big, big-12-2")
    ] = None,
    norm: Annotated[
        str | None, typer.Option("--norm", help="Norms of the base: pre (default), or post as in the paper")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", min=2, help="Rows of the pack's vocabulary (default: 4152, Greek's)"),
    ] = None,
    components: Annotated[bool, typer.Option("--components", help="List the components that a recipe can have")] = False,
    as_json: AsJson = False,
) -> None:
    """List recipes with their parameters, or check your own recipe. Components
    are joined by +, such as embed + enc-first-layer + init:alignment. See all
    of them, those of other packages too, with --components.

    Examples:
      graftmt recipes --side target
      graftmt recipes --id 31 --json
      graftmt recipes "embed + enc-adapters-{1,2,3} (d=1024)" --side source

    More: docs/recipes.md
    """
    if side is not None:
        check_choice("--side", side, ("source", "target"))
    from graftmt.packs.recipe import papers_number

    if components and (recipe is not None or number is not None):
        raise ConfigError("--components shows all kinds of components; leave the recipe and --id out.")
    if components:
        return show_components(as_json)
    if recipe is not None and number is None and (number := papers_number(recipe)) is not None:
        recipe = None
    if recipe is None:
        given = [name for name, value in (("--size", size), ("--norm", norm), ("--rows", rows)) if value is not None]
        if given:
            raise ConfigError(f"{given[0]} is for a recipe of your own; give one, as in: graftmt recipes 'embed' {given[0]} …")
        show_paper(side, number, as_json)
    elif number is not None:
        raise ConfigError("--id chooses one of the paper's rows; give it or a recipe, not both.")
    else:
        chosen: Side = "target" if side == "target" else "source"
        facts = describe(recipe, chosen, size or "base", norm or "pre", 4152 if rows is None else rows)
        print(json_text(facts, indent=2)) if as_json else show_recipe(facts)


def check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{option} is {value!r}{nearest(value, known) or '.'} Expected {' or '.join(known)}.")


def show_paper(side: str | None, number: int | None, as_json: bool) -> None:
    from graftmt.experiments.paper import OURS, ROWS, row, totals

    chosen = (*ROWS, *OURS) if number is None else (row(number),)
    documents = [candidate.document() for candidate in chosen if side in (None, candidate.side)]
    if not documents:
        raise ConfigError(f"({number}) is a {chosen[0].side} pack; leave out --side {side}.")
    if as_json:
        print(json_text(documents, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if number is None:
        show_components()
    table = Table(title="The paper's incremental models, and ours, from 101 on: the name, then the recipe")
    table.add_column("id", justify="right")
    # One column for both: at 80 columns no part of a recipe is cut, and it can be copied.
    table.add_column("model", overflow="fold")
    table.add_column("side")
    for name in ("paper", "computed"):
        table.add_column(name, justify="right", no_wrap=True)
    for facts in documents:
        mark = " *" if facts["agrees"] is False else ""
        table.add_row(
            str(facts["id"]),
            Text.assemble((facts["name"], "dim"), "\n", facts["recipe"]),
            facts["side"],
            facts["paper_parameters"] or "—",
            f"{facts['computed_parameters']:,}{mark}",
        )
    console = Console()
    console.print(table)
    for facts in documents:
        if facts["note"]:
            console.print(Text(f"{'* ' if facts['agrees'] is False else ''}({facts['id']}) {facts['note']}"))
    if number is not None:
        return
    whole = Table(title="Whole models")
    whole.add_column("model")
    for name in ("size", "rows", "paper", "computed"):
        whole.add_column(name, justify="right", no_wrap=True)
    whole.add_column("where the rows come from", overflow="fold")
    for total in totals():
        counts = (f"{total['rows']:,}", total["paper_parameters"], f"{total['computed_parameters']:,}")
        whole.add_row(total["name"], total["size"], *counts, total["assumption"])
    console.print(whole)


def show_components(as_json: bool = False) -> None:
    """What a recipe can consist of, a line for each form."""
    from graftmt.packs.registry import kinds, package_of

    lines = [
        {"form": line.form, "meaning": line.meaning, "sides": line.sides, "package": package_of(kind) or "graftmt"}
        for kind in kinds()
        for line in kind.descriptions
    ]
    if as_json:
        print(json_text(lines, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Components; also with dec- for enc-, and first, last or 1,2,3 for all")
    table.add_column("form", overflow="fold", min_width=30)
    table.add_column("what the pack has of its own", overflow="fold")
    table.add_column("sides", overflow="fold", max_width=14)
    for line in lines:
        of = "" if line["package"] == "graftmt" else f" (of the package {line['package']})"
        table.add_row(Text(line["form"]), Text(line["meaning"] + of), Text(line["sides"]))
    Console().print(table)


def describe(text: str, side: Side, size: str, norm: str, rows: int) -> dict[str, Any]:
    """A recipe on an architecture: its canonical form and every tensor of a pack for one language."""
    import math

    from graftmt.model import named_size
    from graftmt.packs.parts import shapes_of_vocabulary
    from graftmt.packs.recipe import Recipe

    check_choice("--norm", norm, ("pre", "post"))
    recipe = Recipe.parse(text)
    config = named_size(size, norm=norm)
    shapes = shapes_of_vocabulary(recipe, config, side=side, rows=rows)
    groups: dict[str, dict[str, Any]] = {}
    for name, shape in shapes.items():
        path = name.split(".")
        group = groups.setdefault(".".join(path[:2]) if path[0] in ("encoder", "decoder") else path[0], {})
        if path[2:] and path[2].isdigit():
            layers = group.setdefault("layers", [])
            layers += [int(path[2]) + 1] if int(path[2]) + 1 not in layers else []
        group["tensors"] = group.get("tensors", 0) + 1
        group["parameters"] = group.get("parameters", 0) + math.prod(shape)
    return {
        "recipe": str(recipe),
        "in_directions_not_trained": str(recipe.shared()),
        "side": side,
        "size": size,
        "norm": norm,
        "rows": rows,
        "parameters": sum(map(math.prod, shapes.values())),
        "groups": groups,
        "tensors": {name: list(shape) for name, shape in shapes.items()},
    }


def show_recipe(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(facts["recipe"]), show_footer=True)
    table.add_column("part", footer=f"a {facts['side']} pack for {facts['size']}, {facts['norm']}-norm")
    table.add_column("layers")
    table.add_column("tensors", justify="right", footer=str(len(facts["tensors"])))
    table.add_column("parameters", justify="right", footer=f"{facts['parameters']:,}")
    for name, group in facts["groups"].items():
        layers = ", ".join(map(str, group.get("layers", ())))
        table.add_row(name, layers, str(group["tensors"]), f"{group['parameters']:,}")
    console = Console()
    console.print(table)
    if facts["recipe"] != (shared := facts["in_directions_not_trained"]):
        words = (
            "What stands before @trained is learned last, in a stage of its own, and is for directions with whole text only; "
        )
        console.print(Text(f"{words}all others have {shared!r}."))
