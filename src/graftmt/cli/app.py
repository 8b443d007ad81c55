"""The command line: one file per verb, wired here. The top layer."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from graftmt import __version__
from graftmt.cli import (
    add,
    augment,
    compare,
    demo,
    evaluate,
    experiment,
    export,
    import_model,
    inspect,
    packs,
    prepare,
    pull,
    push,
    recipes,
    retrain,
    serve,
    train,
    translate,
    verify,
)
from graftmt.cli.help import set_help
from graftmt.cli.output import BROKEN_PIPE, drop_output, finish_output, open_streams
from graftmt.errors import ConfigError, GraftError, printable
from graftmt.progress import announce, on_standard_error
from graftmt.workers import end_with_parent

USAGE_ERROR: Any = typer.BadParameter.__base__
"""Typer has it from click, and lately under a private name."""


MEANT = {
    "export": {
        **dict.fromkeys(("--dtype", "--compute-type", "--precision"), "--quantization"),
        **dict.fromkeys(("--format", "--engine"), "--to"),
        **dict.fromkeys(("--overwrite", "--replace", "--fresh"), "--force"),
    }
}
"""By command: options that it has by another name, as other commands or programs call them."""


class Commands(TyperGroup):
    """All commands. What was typed comes back in error messages without its control characters."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of VERBS; left to itself, typer has groups such as `prepare` last."""
        return [name for name, _, _ in VERBS]

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _harmless():
            return super().make_context(*arguments, **options)

    def invoke(self, *arguments: Any) -> Any:
        with _harmless():
            return super().invoke(*arguments)


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except USAGE_ERROR as error:
        command = getattr(error.ctx, "info_name", None) or ""
        if meant := MEANT.get(command, {}).get(getattr(error, "option_name", "")):
            error.possibilities = [meant]
        error.message = printable(error.message)
        raise


app = typer.Typer(
    name="graftmt",
    cls=Commands,
    help="Add languages to a multilingual translation model without retraining or forgetting.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"graftmt {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """What every command takes."""
    context.with_resource(on_standard_error())


VERBS: tuple[tuple[str, typer.Typer | Callable[..., object], str], ...] = (
    ("demo", demo.demo, "Add two languages to a small model, in two minutes."),
    ("prepare", prepare.app, "Make a corpus of downloads: read, clean, join, align, split."),
    ("train", train.train, "Train a base, a multilingual Transformer."),
    ("import", import_model.import_model, "Make a base of NLLB-200, M2M-100, OPUS-MT and others."),
    ("add", add.add, "Add a language to a base: train a small pack."),
    ("augment", augment.augment, "Add lines in the base's other languages to a text."),
    ("retrain", retrain.retrain, "Train all weights with new languages, to compare with packs."),
    ("recipes", recipes.recipes, "List what a pack can train, and count parameters."),
    ("translate", translate.translate, "Translate standard input or large files."),
    ("serve", serve.serve, "Serve translations over HTTP, with a page to try them."),
    ("evaluate", evaluate.evaluate, "Score many directions: BLEU, chrF, wrong languages."),
    ("compare", compare.compare, "Test whether two evaluations differ by more than chance."),
    ("experiment", experiment.app, "Run the paper's tables and figures, and write reports."),
    ("export", export.export, "Write a base with packs for CTranslate2 or Hugging Face."),
    ("push", push.push, "Share a base or a pack, on the Hub or in a web folder."),
    ("pull", pull.pull, "Download a base or a pack, and check it."),
    ("packs", packs.app, "List what a place offers, or index a folder to share."),
    ("verify", verify.verify, "Prove that packs leave the base unchanged."),
    ("inspect", inspect.inspect, "Show what a base, a pack or a run is, and check it."),
)
"""Each command with its line in `graftmt --help`, in the order there, which is the README's."""

for name, verb, summary in VERBS:
    if isinstance(verb, typer.Typer):
        app.add_typer(verb, name=name, short_help=summary)
    else:
        app.command(name, short_help=summary)(verb)

set_help(app)


def calm_threads() -> None:
    """Threads that wait for each other let go of their core soon. Left to itself, OpenMP spins, and next to other programs that
    takes many times as long as the work; libgomp reads this when torch is imported."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def spare_memory() -> None:
    """As `set_up_torch` has it for training, but before a base is loaded: torch reads it with the first tensor on a GPU."""
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


def leave_together(code: object) -> None:
    """One of several processes of `torchrun` ends here, with all its work done and saved: torch's own end of a process now and
    then aborts over a thread of a process group ("terminate called without an active exception")."""
    if os.environ.get("WORLD_SIZE", "1") != "1" and (code is None or isinstance(code, int)):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def is_out_of_memory(error: Exception) -> bool:
    """torch.OutOfMemoryError, by name: importing torch here would slow every command down. On a CPU it has none of its own."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)


def interrupted() -> NoReturn:
    announce("graftmt: interrupted")
    sys.exit(130)


def main() -> None:
    """Errors a user can meet are one paragraph and exit code 1; a traceback comes with --debug alone."""
    calm_threads()
    spare_memory()
    end_with_parent()
    open_streams()
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")  # it may stand anywhere, also after the command
    try:
        run(debug)
    except SystemExit as leaving:
        finish_output()
        leave_together(leaving.code)
        raise


def check_arguments(arguments: list[str]) -> None:
    """Paths are kept in JSON and YAML, which are UTF-8; and no path may be a link that leads to itself."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"the argument {argument!r} is not valid UTF-8; rename the file, or link to it.") from None
        for path in (argument, argument.partition("=")[2]):
            try:
                os.stat(path)
            except (OSError, ValueError) as error:
                if getattr(error, "errno", None) == errno.ELOOP:
                    raise ConfigError(f"{path} is a link that leads to itself; give another path.") from None


def run(debug: bool) -> NoReturn:
    """The command, and its exit code as SystemExit."""
    try:
        check_arguments(sys.argv)
        app()
        sys.exit(0)
    except (GraftError, OSError) as error:
        if debug:
            raise
        announce(f"graftmt: {error}")
        sys.exit(1)
    except (RuntimeError, MemoryError) as error:
        if debug or not is_out_of_memory(error):
            raise
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        announce(
            f"graftmt: out of memory{': ' * bool(reason)}{reason}. Use a smaller batch (--batch-tokens, or batch_tokens with "
            "more accumulate when training), a smaller beam or less text at once."
        )
        sys.exit(1)
    except SystemExit as leaving:
        # The reader of our output has gone (`| head`): typer and rich make that exit code 1 without a word. It is no error.
        # Python must not complain at exit either.
        if isinstance(leaving.__context__, BrokenPipeError):
            drop_output()
            sys.exit(BROKEN_PIPE)
        if isinstance(getattr(leaving.__context__, "__cause__", None), KeyboardInterrupt):  # what typer makes of it
            interrupted()
        raise
    except KeyboardInterrupt:
        interrupted()
