"""The house: no function over 60 lines, no file over 350, no import cycle, no two modules or folders of one name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_layers import imported_modules, make_package, parse, parts_of, source_files, statements_run_on_import

PACKAGE = Path(__file__).parents[1] / "src" / "graftmt"
LONGEST_FUNCTION, LONGEST_FILE = 60, 350
KERNELS = ("jit", "kernel")
"""Decorators of Triton kernels. A kernel is one function, however long."""
ONE_PER_COMMAND = ("cli",)
"""A verb's file is called as the module or the package that does its work."""
OF_A_KIND = ("families", "kinds", "texts", "targets")
"""Folders of variants: a module there has the name of its variant, such as nllb, in each of them."""
DATA = ("demo/base", "demo/packs", "experiments/profiles")
"""Folders of data alone that have the name of what they hold, as the module has that reads it."""
COMPONENTS = "graftmt.packs.components."


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(kernel in ast.unparse(decorator) for decorator in function.decorator_list for kernel in KERNELS)


def long_functions(package: Path) -> list[str]:
    """One line per function that does not fit a screen; its decorators are not counted."""
    found = []
    for path in source_files(package):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_kernel(node):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    found.append(f"{path.relative_to(package)}:{node.lineno}: {node.name} has {length} lines")
    return found


def long_files(package: Path) -> list[str]:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in source_files(package)}
    return [f"{path.relative_to(package)} has {length} lines" for path, length in lengths.items() if length > LONGEST_FILE]


def module_name(path: Path, package: Path) -> str:
    parts = (package.name, *parts_of(path, package))
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, package: Path, modules: set[str]) -> Iterator[str]:
    """The modules of the package that importing this one imports."""
    inside = (package.name, *parts_of(path, package))
    for statement in statements_run_on_import(parse(path).body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for name in imported_modules(statement, inside):
                yield name if name in modules else name.rpartition(".")[0]


def import_cycles(package: Path) -> list[str]:
    """One line per cycle, from module to module."""
    paths = {module_name(path, package): path for path in source_files(package)}
    graph = {
        name: sorted({found for found in imports_of(path, package, set(paths)) if found in paths} - {name})
        for name, path in paths.items()
    }
    cycles: list[str] = []
    finished: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            cycles.append(" → ".join([*trail[trail.index(name) :], name]))
        elif name not in finished:
            for found in graph[name]:
                visit(found, [*trail, name])
            finished.add(name)

    for name in graph:
        visit(name, [])
    return cycles


def shared_names(package: Path) -> list[str]:
    """Names that two modules have, or two folders, or a module and a folder."""
    files = [path for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    modules = {path for path in files if path.suffix == ".py" and path.stem != "__init__" and path.parent.name not in OF_A_KIND}
    folders = {parent for path in files for parent in path.parents if package in parent.parents}
    excepted = {package / folder for folder in DATA} | {folder for folder in folders if folder.name in OF_A_KIND}
    named = (path for path in modules | folders - excepted if path.relative_to(package).parts[0] not in ONE_PER_COMMAND)
    return sorted(name for name, count in Counter(path.stem for path in named).items() if count > 1)


def named_components(package: Path) -> list[str]:
    """One line per import, wherever it stands, of a kind of component by its module. The registry finds them all."""
    folder = package / "packs" / "components"
    found = set()
    for path in source_files(package):
        if path.parent != folder:
            inside = (package.name, *parts_of(path, package))
            modules = (module for node in ast.walk(parse(path)) for module in imported_modules(node, inside))
            found |= {f"{path.relative_to(package)}: {name}" for name in modules if name.startswith(COMPONENTS)}
    return sorted(found)


def test_a_function_fits_a_screen() -> None:
    assert long_functions(PACKAGE) == []


def test_a_file_is_one_concept() -> None:
    assert long_files(PACKAGE) == []


def test_no_module_imports_itself_through_others() -> None:
    assert import_cycles(PACKAGE) == []


def test_a_modules_name_is_its_own() -> None:
    assert shared_names(PACKAGE) == []


def test_components_are_known_to_the_registry_alone() -> None:
    assert named_components(PACKAGE) == []


def test_there_is_one_way_to_lock() -> None:
    users = {path.stem for path in source_files(PACKAGE) if "fcntl" in path.read_text(encoding="utf-8")}
    assert users == {"folders"}


LONG = "def long():\n" + "    pass\n" * LONGEST_FUNCTION


@pytest.mark.parametrize(
    ("files", "check", "finding"),
    [
        ({"model/layers.py": LONG}, long_functions, "long has 61 lines"),
        ({"model/layers.py": f"@triton.jit\n{LONG}"}, long_functions, None),
        ({"model/layers.py": "\n" * (LONGEST_FILE + 1)}, long_files, "has 351 lines"),
        ({"model/one.py": "from graftmt.model import two", "model/two.py": "import graftmt.model.one"}, import_cycles, "→"),
        ({"model/one.py": "from . import two", "model/two.py": "def later():\n    from . import one"}, import_cycles, None),
        ({"data/a.py": "def later():\n    from graftmt.packs.components import lora"}, named_components, "lora"),
        ({"packs/a.py": "from .components.lora import LowRank"}, named_components, "lora"),
        ({"packs/a.py": "from graftmt.packs import components"}, named_components, None),
        ({"packs/components/a.py": "from graftmt.packs.components.lora import LowRank"}, named_components, None),
        ({"model/text.py": "", "data/text.py": ""}, shared_names, "text"),
        ({"model/text.py": "", "text/__init__.py": ""}, shared_names, "text"),
        ({"model/text/__init__.py": "", "data/text/__init__.py": ""}, shared_names, "text"),
        ({"model/text.py": "", "data/text/a.yaml": ""}, shared_names, "text"),
        ({"model/add.py": "", "cli/add.py": ""}, shared_names, None),
        ({"text/families/nllb.py": "", "model/families/nllb.py": ""}, shared_names, None),
    ],
)
def test_what_is_not_in_order_is_found(tmp_path: Path, files: dict[str, str], check, finding: str | None) -> None:  # type: ignore[no-untyped-def]
    package = make_package(tmp_path, {"__init__.py": "", "model/__init__.py": "", "data/__init__.py": "", **files})
    found = check(package)
    assert (finding is None and not found) or (finding is not None and len(found) == 1 and finding in found[0])
