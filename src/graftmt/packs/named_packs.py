"""Packs as options name them: paths with commas between, or NAME=PATH. Layer 3."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graftmt.errors import ConfigError
from graftmt.options import items
from graftmt.packs.archive import ARCHIVE, DOCUMENT, TENSORS
from graftmt.packs.storage import read_pack_document


def parse_packs(values: Iterable[str] | None) -> dict[str, Path] | list[Path]:
    """What --packs means: paths, or names with paths where any has a name."""
    given = items(*(values or ()))
    if not any("=" in item and not Path(item).exists() for item in given):
        paths = [Path(item) for item in given]
        _check_no_folder_of_packs(paths)
        return paths
    named: dict[str, Path] = {}
    for item in given:
        name, equals, path = item.partition("=")
        has_name = bool(equals) and not Path(item).exists()
        path = path if has_name else item
        if path:
            _check_no_folder_of_packs([Path(path)])
            name = name if has_name else _own_name(Path(path))
        if not path or name in named:
            problem = "has no path" if not path else f"is the second pack with the name {name!r}"
            raise ConfigError(f"--packs: {item!r} {problem}; write NAME=PATH, each name once.")
        named[name] = Path(path)
    return named


def _own_name(pack: Path) -> str:
    """What a translator calls a pack that is given no name: el-source, by languages and side."""
    document = read_pack_document(pack)
    return f"{'+'.join(document['languages'])}-{document['side']}"


def _check_no_folder_of_packs(paths: Iterable[Path]) -> None:
    """Packs are named one by one: of those in a folder, several may be for the same language, or for another base."""
    for folder in paths:
        inside = _packs_in(folder) if folder.is_dir() else []
        if not inside or inside == [Path("pack")]:  # the folder of a run, whose pack the reader of packs will name
            continue
        count, them = (f"{len(inside)} packs", "them") if len(inside) > 1 else ("1 pack", "it")
        raise ConfigError(
            f"--packs: {folder} is no pack; it holds {count}: {', '.join(map(str, inside))}. "
            f"Name {them}: -p {','.join(str(folder / one) for one in inside[:2])}"
        )


def _packs_in(folder: Path) -> list[Path]:
    """The packs, archives and packs of runs in a folder that is no pack itself."""
    if (folder / DOCUMENT).exists() or (folder / TENSORS).exists():  # a pack, or what is left of one
        return []
    places = [one for child in folder.iterdir() for one in (child, child / "pack")]
    found = [one for one in places if (one / DOCUMENT).is_file() or (one.suffix == ARCHIVE and one.is_file())]
    return sorted(one.relative_to(folder) for one in found)
