"""Lower layers never import upper ones, siblings do not import each other, and the core stays light to import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "graftmt"

# From bottom to top. Members of the first and the last layer may import each other, those of the others may not.
LAYERS = (
    {
        "errors",
        "files",
        "folders",
        "documents",
        "places",
        "checked",
        "configuration",
        "progress",
        "partial",
        "workers",
        "options",
        "ray_cluster",
        "mistaken",
    },
    {"text", "model", "evaluation", "tensor_files", "devices", "base_card", "translation_options", "run_options"},
    {"base"},
    {"data", "packs", "decoding"},
    {"engines"},
    {"translation_requests"},
    {"training", "translator", "prepare"},
    {"augmentation", "assessment", "bulk", "interop", "sharing"},
    {"adding", "server"},
    {"demo", "experiments", "pairs"},
    {"api"},
    {"cli", "__main__", "__init__"},
)
LAYER_OF = {member: layer for layer, members in enumerate(LAYERS) for member in members}
OPEN_LAYERS = (0, len(LAYERS) - 1)

CORE_PACKAGES = {"torch", "numpy", "sentencepiece", "safetensors", "sacrebleu", "yaml", "typer", "rich"}
BESIDE_TORCH = {("model", "compiled"): {"triton"}}
"""What torch for CUDA brings along, where the import is guarded."""
NOT_CORE = {("prepare",), ("augmentation",), ("server",), ("demo",), ("evaluation", "plots")}
NOT_CORE |= {("interop", "export", "standalone")}


def source_files(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def parts_of(path: Path, package: Path) -> tuple[str, ...]:
    """("evaluation", "plots") for evaluation/plots.py, ("evaluation", "__init__") for evaluation/__init__.py."""
    return path.relative_to(package).with_suffix("").parts


def imported_modules(node: ast.AST, inside: tuple[str, ...]) -> Iterator[str]:
    """The absolute dotted names that one statement or call imports; `inside` is the importing file, package first."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = ".".join(inside[: -node.level]) if node.level else ""
        module = ".".join(name for name in (start, node.module) if name)
        # What is imported from a package may itself be a module.
        yield from (f"{module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        name = node.args[0].value
        if function in ("import_module", "__import__") and isinstance(name, str):
            yield name


def layer_violations(package: Path) -> list[str]:
    """One line per import that goes up or sideways, and per module that no layer names."""
    members = {child.stem for child in package.iterdir() if child.suffix == ".py" or any(child.rglob("*.py"))}
    found = [f"{member} is in no layer" for member in sorted(members - LAYER_OF.keys())]
    for path in source_files(package):
        parts = parts_of(path, package)
        importer = parts[0]
        for node in ast.walk(parse(path)):
            for module in imported_modules(node, (package.name, *parts)):
                root, *rest = module.split(".")
                if root != package.name:
                    continue
                # A name that is no module of the package is defined in its __init__.
                imported = rest[0] if rest and rest[0] in members else "__init__"
                if not may_import(importer, imported):
                    line = getattr(node, "lineno", 0)
                    found.append(f"{path.relative_to(package)}:{line}: {importer} imports {imported}")
    return found


def may_import(importer: str, imported: str) -> bool:
    if importer == imported or not {importer, imported} <= LAYER_OF.keys():
        return True  # a member without a layer is reported by itself
    above, below = LAYER_OF[importer], LAYER_OF[imported]
    return below < above or (below == above and above in OPEN_LAYERS)


def statements_run_on_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements but those inside functions, which run later, and under TYPE_CHECKING, which never run."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from statements_run_on_import(statement.orelse)
            continue
        yield statement
        for block in ("body", "orelse", "finalbody"):
            yield from statements_run_on_import(getattr(statement, block, []))
        for handler in getattr(statement, "handlers", []):
            yield from statements_run_on_import(handler.body)


def heavy_imports(package: Path) -> list[str]:
    """One line per import, in the core and outside functions, of something that only an extra installs."""
    found = []
    for path in source_files(package):
        parts = parts_of(path, package)
        if any(parts[: len(prefix)] == prefix for prefix in NOT_CORE):
            continue
        for statement in statements_run_on_import(parse(path).body):
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            for module in imported_modules(statement, (package.name, *parts)):
                root = module.split(".")[0]
                if root not in CORE_PACKAGES | BESIDE_TORCH.get(parts, set()) | {package.name} | sys.stdlib_module_names:
                    found.append(f"{path.relative_to(package)}:{statement.lineno}: imports {root}")
    return found


def test_imports_respect_the_layers() -> None:
    assert layer_violations(PACKAGE) == []


def test_the_core_imports_core_packages_only() -> None:
    assert heavy_imports(PACKAGE) == []


def make_package(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "graftmt"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


# Modules for the made-up imports to find.
TREE = {
    "__init__.py": "",
    "errors.py": "",
    "files.py": "",
    "model/__init__.py": "",
    "data/corpus.py": "",
    "cli/app.py": "",
}


@pytest.mark.parametrize(
    ("file", "text", "violation"),
    [
        ("model/layers.py", "import graftmt.data.corpus", "model imports data"),
        ("model/layers.py", "from graftmt.data.corpus import Corpus", "model imports data"),
        ("model/layers.py", "from graftmt import data", "model imports data"),
        ("model/layers.py", "from ..data import corpus", "model imports data"),
        ("model/layers.py", "def later():\n    from graftmt.data import corpus", "model imports data"),
        ("model/layers.py", "import importlib\nimportlib.import_module('graftmt.data')", "model imports data"),
        ("model/layers.py", "from graftmt import __version__", "model imports __init__"),
        ("text/subwords.py", "from graftmt.model import layers", "text imports model"),
        ("errors.py", "import graftmt.model", "errors imports model"),
        ("utils.py", "", "utils is in no layer"),
    ],
)
def test_a_violation_is_found(tmp_path: Path, file: str, text: str, violation: str) -> None:
    found = layer_violations(make_package(tmp_path, TREE | {file: text}))
    assert len(found) == 1
    assert violation in found[0]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("data/batches.py", "from graftmt.model import layers\nfrom . import corpus\nfrom ..errors import DataError"),
        ("files.py", "from graftmt.errors import GraftError"),
        ("__main__.py", "from graftmt.cli.app import main"),
        ("cli/show.py", "from graftmt import __version__\nimport graftmt"),
    ],
)
def test_what_is_allowed_is_not_reported(tmp_path: Path, file: str, text: str) -> None:
    assert layer_violations(make_package(tmp_path, TREE | {file: text})) == []


@pytest.mark.parametrize(
    ("file", "text", "reported"),
    [
        ("data/corpus.py", "import duckdb", True),
        ("data/corpus.py", "try:\n    import zstandard\nexcept ImportError:\n    zstandard = None", True),
        ("data/corpus.py", "class Reader:\n    from zstandard import ZstdDecompressor", True),
        ("data/corpus.py", "def read():\n    import zstandard", False),
        ("data/corpus.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import duckdb", False),
        ("data/corpus.py", "import json, torch.nn\nfrom yaml import safe_load", False),
        ("demo/text.py", "import babel", False),
        ("evaluation/plots.py", "import matplotlib", False),
        ("evaluation/tables.py", "import matplotlib", True),
    ],
)
def test_heavy_imports_are_found_where_they_run(tmp_path: Path, file: str, text: str, reported: bool) -> None:
    assert bool(heavy_imports(make_package(tmp_path, TREE | {file: text}))) == reported
