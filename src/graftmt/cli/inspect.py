"""`graftmt inspect`: what a base, a pack, a run or an exported model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from graftmt.cli.declared import AsJson
from graftmt.cli.output import json_text, plain
from graftmt.errors import GraftError
from graftmt.places import EXPORT, EXPORT_DOCUMENT


def inspect(
    folder: Annotated[Path, typer.Argument(help="A base, a pack (folder or file), a run or an export")],
    plot: Annotated[Path | None, typer.Option("--plot", help="Folder for the curves of a run: loss.png, chrf.png")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a base, a pack, a run or an exported model is, and check it.
    A base or a pack whose tensors do not have its fingerprint is an error, and
    an exported model with a file that was changed. For a run, see its latest
    checkpoint and scores.

    Examples:
      graftmt inspect runs/demo/base --json
      graftmt inspect runs/demo/packs/el-source
      graftmt inspect runs/mine --plot curves
    """
    facts = describe(folder)
    if plot is not None:
        from graftmt.training.journal import plot_run

        facts["plots"] = [str(path) for path in plot_run(folder, plot)]
    if as_json:
        print(json_text(facts, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    if facts["kind"] == "pack":
        facts["codes"] = codes_in_words(facts)
    table = Table(title=plain(folder), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in facts.items():
        table.add_row(plain(key), plain(readable(value)))
    Console().print(table)


def codes_in_words(facts: dict[str, Any]) -> str:
    """The language codes that a pack brings: those it has learned, and copies of the base's."""
    from graftmt.packs import Recipe

    code = Recipe.parse(facts["recipe"]).code
    learned = code.own_codes.partition(".")[0] in facts["parameters_of"]
    own = [f"{', '.join(facts['languages'])} (learned)"] if learned else []
    copied = [f"{', '.join(facts['codes'])} (the base's)"] if facts["codes"] else []
    return "; ".join([*own, *copied]) or ("none of its own" if str(code).startswith("code:learned") else str(code))


def readable(value: Any) -> str:
    """A value as a person reads it: lists with commas, mappings a line each, four digits of a number."""
    if isinstance(value, dict):
        return "\n".join(f"{key}: {on_one_line(item)}" for key, item in value.items())
    return on_one_line(value)


def on_one_line(value: Any) -> str:
    if isinstance(value, dict):
        entries = ((key, on_one_line(item), isinstance(item, dict)) for key, item in value.items())
        return ", ".join(f"{key} ({item})" if nested else f"{key} {item}" for key, item, nested in entries)
    if isinstance(value, list):
        return ", ".join(map(on_one_line, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def describe(folder: Path) -> dict[str, Any]:
    from graftmt.packs import is_pack

    if (folder / "base.json").is_file():
        return describe_base(folder)
    if is_pack(folder):
        return describe_pack(folder)
    if (folder / EXPORT_DOCUMENT).is_file():
        return describe_export(folder)
    if (folder / "config.yaml").is_file():
        return describe_run(folder)
    if not folder.exists():
        raise GraftError(f"there is no {folder}; give a base, a pack, a run or an export.")
    if not folder.is_dir():
        raise GraftError(f"{folder} is a file, and not that of a pack; give a base, a pack, a run or an export.")
    raise GraftError(
        f"{folder} holds neither a base (base.json), nor a pack (pack.json), nor a run (config.yaml), nor an export "
        f"({EXPORT_DOCUMENT})."
    )


def describe_base(folder: Path) -> dict[str, Any]:
    """base.json, and whether the tensors still have its fingerprint."""
    from graftmt.base import check_stored, read_base_document, read_base_text

    document = read_base_document(folder)
    check_stored(folder)
    text = read_base_text(folder)
    if text.source_languages != text.target_languages:
        document["languages"] = {"reads": list(text.source_languages), "writes": list(text.target_languages)}
    card = {key: value for key, value in document.pop("card").items() if key != "config"}
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    return {**document, "unchanged": True, "bytes": sizes, "training": card}


def describe_pack(path: Path) -> dict[str, Any]:
    """pack.json, and whether the tensors still have its fingerprint."""
    from graftmt.packs import load_pack, read_pack_document
    from graftmt.packs.storage import uncovered

    document = read_pack_document(path)
    pack = load_pack(path)  # refuses a pack whose files no longer have its fingerprint
    not_covered = {"fingerprint_does_not_cover": what} if (what := uncovered(document)) else {}
    hidden = {"config", "text", "samples", "unchanged", *not_covered, *document}  # what was checked is not what a card says
    card = {key: value for key, value in document.pop("card").items() if key not in hidden}
    tensors: dict[str, int] = {}
    for name, parameter in pack.parameters.items():
        group = ".".join(name.split(".")[:3]) if name.startswith(("encoder", "decoder")) else name.split(".")[0]
        tensors[group] = tensors.get(group, 0) + parameter.numel()
    return {**document, "unchanged": True, **not_covered, "parameters_of": tensors, **card}


def describe_export(folder: Path) -> dict[str, Any]:
    """export.json, and whether the files still have its hashes; the page may be edited."""
    from graftmt.interop.export_card import PAGE, check_files, is_as_written, read_card

    card = read_card(folder)
    facts = {key: card[key] for key in ("kind", "format", "to", "quantization", "base")}
    packs = {f"{'+'.join(pack['languages'])}-{pack['side']}": pack for pack in card["packs"]}
    facts["packs"] = {name: {key: pack[key] for key in ("recipe", "fingerprint")} for name, pack in packs.items()}
    facts["directions"] = [f"{one['source']}-{one['target']}" for one in card["directions"]]
    if card["format"] == 1:
        note = "made by an earlier version, without checksums; export it again to have them"
        return {**facts, "unchanged": None, "note": note}
    files = card["files"]
    check_files(folder, {name: stated for name, stated in files.items() if name != PAGE})
    if PAGE in files and not is_as_written(folder, PAGE, files[PAGE]):
        facts["edited"] = PAGE
    others = {path.name for path in folder.iterdir()} - {*EXPORT.files(folder)} if EXPORT.files else set()
    if others:
        facts["other_files"] = sorted(others)
    return {**facts, "unchanged": True, "bytes": {name: stated["bytes"] for name, stated in files.items()}}


def describe_run(folder: Path) -> dict[str, Any]:
    """Where a run stands: its latest checkpoint and scores."""
    from graftmt.configuration import from_mapping, load_yaml
    from graftmt.training import PackConfig, RetrainConfig, TrainConfig
    from graftmt.training.checkpoints import Checkpoints, way_out

    values = load_yaml(folder / "config.yaml")
    kind = PackConfig if "recipe" in values else RetrainConfig if "method" in values else TrainConfig
    config = from_mapping(kind, values)
    checkpoints = Checkpoints(folder / "checkpoints", 1)
    latest = checkpoints.latest()
    facts: dict[str, Any] = {
        "kind": "run",
        "stages": [stage.name for stage in config.stages],
        "checkpoint": latest.name if latest else None,
    }
    if isinstance(config, PackConfig):
        facts |= {"languages": list(config.languages), "side": config.side, "recipe": config.recipe}
        facts["pack"] = str(folder / "pack") if (folder / "pack" / "pack.json").is_file() else None
    else:
        if isinstance(config, RetrainConfig):
            facts |= {"method": config.method, "parent": str(config.base), "new_languages": list(config.new)}
        facts["base"] = str(folder / "base") if (folder / "base" / "base.json").is_file() else None
    if latest is not None:
        with way_out("start over in another folder"):
            state = checkpoints.read_document(latest)["state"]
        validations = state.pop("validations")
        total = config.stages[state["stage"]].steps
        facts |= {
            "stage": state["stage"] + 1,
            "step": f"{state['step']} of {total}",
            "seconds": round(state["seconds"], 1),
        }
        if state["best_score"] is not None:  # it has been validated
            facts["best_step"] = state["best_step"]
        facts["last_validation"] = validations[-1] if validations else None
    return facts
