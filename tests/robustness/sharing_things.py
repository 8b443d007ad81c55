"""Models of other programs that can be damaged, bases made of them, and a folder that packs are shared from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robustness.contents import say_base
from robustness.isolation import Outcome, command_line
from robustness.readers import SHORT, Case, Reader, Thing, command, output_of
from robustness.world import FOREIGN, import_languages

LINE = "one, two; ένα δύο\n"


def sharing_things() -> list[Thing]:
    found = []
    for family, weights in FOREIGN.items():
        kinds = ("bytes", "documents", "members", *(("tensors",) if weights == "safetensors" else ()))
        found += [
            Thing(
                name=f"foreign-{family}",
                path=f"foreign-{family}",
                readers=_import_readers(family),
                kinds=kinds,
                foreign=True,
                weight=3,
            ),
            Thing(
                name=f"imported-{family}",
                path=f"imported-{family}",
                readers=_imported_readers("hugging-face" if family == "m2m-100" else "ctranslate2"),
                kinds=("bytes", "documents", "members", "tensors"),
                signed=True,
                weight=2,
            ),
        ]
    return [
        *found,
        Thing(name="exported", path="exported", readers=_exported_readers(), kinds=("bytes", "documents", "members"), weight=2),
        Thing(
            name="shop", path="shop", readers=_shop_readers(), kinds=("bytes", "documents", "members"), weight=3, signed=True
        ),
    ]


def _import_readers(family: str) -> tuple[Reader, ...]:
    def arguments(case: Case, *more: str) -> list[str]:
        return ["import", str(case.thing), "-o", str(case.output / "base"), *import_languages(family), "-q", *more]

    def then_use(case: Case) -> Callable[[], None]:
        """What was accepted is a base like any other."""

        def run() -> None:
            if _code(command_line(*arguments(case))) == 0:
                used = _code(command_line("translate", "-b", str(case.output / "base"), "-s", "en", "-t", "ru", *SHORT))
                assert used == 0, "a base that was imported cannot be used"
            else:
                raise SystemExit(1)

        return run

    return (
        Reader(name="import, translate", action=then_use, stdin=LINE, weight=2),
        command("import --json", lambda case: arguments(case, "--json")),
        command("import --dtype", lambda case: arguments(case, "--dtype", "bf16")),
    )


def _code(action: Callable[[], None]) -> int:
    try:
        action()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _imported_readers(exported: str) -> tuple[Reader, ...]:
    def base(name: str, *more: str) -> Callable[[Case], list[str]]:
        return lambda case: [*name.split(), *(() if name == "inspect" else ("-b",)), str(case.thing), *more]

    return (
        command("inspect", base("inspect")),
        command("inspect --json", base("inspect", "--json")),
        Reader(name="Base.load", action=lambda case: lambda: say_base(case.thing), result=output_of, weight=2),
        command("translate", base("translate", "-s", "en", "-t", "ru", *SHORT), stdin=LINE, result=output_of, weight=2),
        command("verify", base("verify", "-n", "1", "--beam", "1")),
        _export("en", "ru", to=exported),
    )


def _exported_readers() -> tuple[Reader, ...]:
    """What is damaged is named, replaced by the same model, or refused; nothing reads the model itself."""

    def again(case: Case) -> list[str]:
        given = ["-b", str(case.world / "base"), "-s", "en", "-t", "fr", "--to", "ctranslate2"]
        return ["export", *given, "-o", str(case.thing), "-q"]

    return (
        command("inspect", lambda case: ["inspect", str(case.thing)]),
        command("inspect --json", lambda case: ["inspect", str(case.thing), "--json"]),
        command("import", lambda case: ["import", str(case.thing), "-o", str(case.output / "base"), "-q"]),
        command("translate", lambda case: ["translate", "-b", str(case.thing), "-s", "en", "-t", "fr", *SHORT], stdin=LINE),
        command("export", again, resumes=True),
    )


def _export(source: str, target: str, *, side: str = "", to: str = "hugging-face") -> Reader:
    """With a `side`, of a pack on the world's base."""

    def arguments(case: Case) -> list[str]:
        models = ["-b", str(case.world / "base"), "-p", str(case.thing)] if side else ["-b", str(case.thing)]
        return ["export", *models, "-s", source, "-t", target, "--to", to, "-o", str(case.output / "out"), "-q"]

    return command("export", arguments, result=lambda case, outcome: digests(case.output / "out", "model.*"))


def digests(folder: Path, pattern: str) -> dict[str, str]:
    """A hash of each file below a folder."""
    paths = sorted(path for path in folder.rglob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def base_sharers() -> tuple[Reader, ...]:
    """The newer readers of every base."""
    return (
        command("serve", lambda case: ["serve", "-b", str(case.thing), "--port", "0"], result=output_of),
        _push(),
        _export("en", "fr"),
    )


def pack_sharers(side: str, language: str) -> tuple[Reader, ...]:
    """The newer readers of every pack."""
    source, target = (language, "fr") if side == "source" else ("en", language)
    serve = ["--port", "0"]
    return (
        command(
            "serve", lambda case: ["serve", "-b", str(case.world / "base"), "-p", str(case.thing), *serve], result=output_of
        ),
        _push(),
        _export(source, target, side=side),
    )


def _push() -> Reader:
    return command(
        "push",
        lambda case: ["push", str(case.thing), str(case.output / "shop"), "--name", "it", "-q"],
        result=lambda case, outcome: digests(case.output / "shop", "*.safetensors"),
    )


def _shop_readers() -> tuple[Reader, ...]:
    def pulled(case: Case, outcome: Outcome) -> Any:
        return digests(case.output / "pulled", "*.safetensors")

    def pull(name: str) -> Callable[[Case], list[str]]:
        return lambda case: ["pull", str(case.thing), name, "-o", str(case.output / "pulled"), "-q"]

    return (
        command("packs list", lambda case: ["packs", "list", str(case.thing)]),
        command("packs list --json", lambda case: ["packs", "list", str(case.thing), "--json"]),
        command("packs index", lambda case: ["packs", "index", str(case.thing)], resumes=True),
        command("pull base", pull("base"), result=pulled, weight=2),
        command("pull pack", pull("el-source"), result=pulled, weight=2),
        command("pull archive", pull("uk-target"), result=pulled),
        command("push", lambda case: ["push", str(case.world / "packs/el-trained"), str(case.thing), "-q"], resumes=True),
        command(
            "serve",
            lambda case: ["serve", "-b", str(case.world / "base"), "-p", str(case.thing), "--port", "0"],
        ),
    )
