"""What translate.py is made with: the files of this folder, checked, and a command line that says errors in one paragraph."""

import hashlib
import importlib.util
import itertools
import json
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

CARD = "export.json"
MADE_AGAIN = "Copy the folder again from where it was made, or export the model again."
PAGES = (".md",)  # people edit them, as they do programs; but these must be there


class Problem(ValueError):
    """Something that whoever runs this can mend, said in one paragraph."""


class TooLong(Problem):
    """A line with more tokens than can be translated."""

    def __init__(self, number: int, tokens: int, most: int) -> None:
        super().__init__(f"line {number} has {tokens} tokens, and at most {most} can be translated; split it")
        self.given = number, tokens, most


class Folder:
    """The folder of an exported model; sizes are compared with export.json, which takes no time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.about = self.card()
        for name, file in self.about["files"].items():
            if not name.endswith(PAGES):
                self.check_size(name, None if name.endswith(".py") else file["bytes"])

    def card(self) -> dict[str, Any]:
        """export.json, which has a checksum of itself."""
        try:
            about: dict[str, Any] = json.loads((self.path / CARD).read_text(encoding="utf-8"))
            checksum = about.pop("checksum")
        except OSError as error:
            raise Problem(f"{self.path / CARD} cannot be read ({error.strerror}). {MADE_AGAIN}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Problem(f"{self.path / CARD} is damaged. {MADE_AGAIN}") from None
        if checksum != f"{zlib.crc32(json.dumps(about, sort_keys=True).encode()):08x}":
            raise Problem(f"{self.path / CARD} was changed or damaged. {MADE_AGAIN}")
        return about

    def check_size(self, name: str, expected: int | None) -> None:
        path = self.path / name
        try:
            found = path.stat().st_size
        except OSError as error:
            raise Problem(f"{path} cannot be read ({error.strerror}). {MADE_AGAIN}") from None
        if expected is not None and found != expected:
            kind = "truncated" if found < expected else "damaged"
            raise Problem(f"{path} is {kind}: it has {found:,} bytes, and {CARD} says {expected:,}. {MADE_AGAIN}")

    def check(self) -> None:
        """Every byte of every file."""
        for name, file in self.about["files"].items():
            self.check_size(name, file["bytes"])
            with (self.path / name).open("rb") as content:
                found = hashlib.sha256()
                while block := content.read(1 << 20):
                    found.update(block)
            if found.hexdigest() != file["sha256"]:
                raise Problem(f"{self.path / name} was changed or damaged: it has not the sha256 of {CARD}. {MADE_AGAIN}")

    def opened(self, make: Callable[[], Any]) -> Any:
        """What `make` loads from the folder; where that fails, the damaged file is looked for."""
        try:
            return make()
        except ImportError:
            raise
        except Exception as error:
            self.check()
            reason = str(error).strip().partition("\n")[0]
            raise Problem(f"the model in {self.path} cannot be loaded: {reason:.300}") from None

    def text(self, side: str) -> Any:
        """Text ↔ tokens of one side: a class in a Python file of this folder."""
        about = self.about["texts"][side]
        module = module_at(self.path / f"{about['module']}.py")
        return self.opened(lambda: module.Text(str(self.path / about["file"])))

    def direction(self, source: str, target: str) -> dict[str, Any]:
        """What export.json says of a direction."""
        found: list[dict[str, Any]] = self.about["directions"]
        for one in found:
            if (one["source"], one["target"]) == (source, target):
                return one
        known = ", ".join(f"{one['source']} {one['target']}" for one in found)
        raise Problem(f"this folder does not translate {source} {target}; it has: {known}")


def module_at(path: Path) -> Any:
    """A Python file as a module, wherever it is."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise Problem(f"{path} cannot be read ({error.strerror}). {MADE_AGAIN}") from None
    return module


# The command line

Translate = Callable[[list[str]], list[str]]
BROKEN_PIPE = 141  # by which a shell knows that the reader of a pipe has gone


def main(usage: str, path: Path, opened: Callable[[str, str], Translate], at_once: int) -> int:
    """The exit code; `opened` makes what translates lines from one language into another, `at_once` of them together."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & {*arguments}:
        print(usage.strip())
        return 0
    try:
        if arguments == ["--check"]:
            Folder(path).check()
            print(f"{path}: all files are as they were exported")
            return 0
        if len(arguments) != 2:
            directions = [f"{one['source']} {one['target']}" for one in Folder(path).about["directions"]]
            given = "nothing" if not arguments else " ".join(arguments)
            said = f"two languages are needed, and {given} was given. This folder translates {', '.join(directions)}"
            return failed(f"{said}: python {sys.argv[0]} {directions[0]} < input.txt > output.txt; more: --help", 2)
        folder = Folder(path)
        folder.direction(*arguments)
        try:
            translate_input(lambda: opened(*arguments), at_once)
        except (Problem, ImportError, BrokenPipeError):
            raise
        except Exception:
            folder.check()  # what no user can mend is a traceback, unless a damaged file explains it
            raise
    except Problem as problem:
        return failed(str(problem))
    except ImportError as error:
        name = (error.name or "a package").partition(".")[0]
        return failed(f"{name} is needed and cannot be imported ({error}). Install it: pip install {name}")
    except BrokenPipeError:  # as with `| head`: no error
        drop_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return failed("interrupted", 130)
    return 0


def failed(reason: str, code: int = 1) -> int:
    print(f"translate.py: {' '.join(reason.split())}", file=sys.stderr)
    return code


def translate_input(opened: Callable[[], Translate], at_once: int) -> None:
    """Standard input to standard output, both UTF-8 whatever the locale says; the model is loaded once there is text."""
    translate = None
    if sys.stdin is None or sys.stdout is None:
        raise Problem("standard input or standard output is closed; give it a file: < input.txt > output.txt")
    for done in itertools.count(0, at_once):
        try:
            lines = [*itertools.islice(sys.stdin.buffer, at_once)]
        except OSError as error:
            raise Problem(f"the input cannot be read: {error.strerror}") from None
        if not lines:
            return
        texts = [as_text(line, number) for number, line in enumerate(lines, done + 1)]
        translate = translate or opened()
        try:
            found = translate(texts)
        except TooLong as problem:
            number, *numbers = problem.given
            raise TooLong(done + number, *numbers) from None
        write("".join(f"{translation}\n" for translation in found))


def as_text(line: bytes, number: int) -> str:
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        wrong = f"its byte {error.start + 1} is 0x{line[error.start]:02x}"
        how = "Convert the text first, such as with: iconv -f ISO-8859-1 -t UTF-8"
        raise Problem(f"line {number} of the input is not UTF-8: {wrong}. {how}") from None


def write(text: str) -> None:
    try:
        sys.stdout.buffer.write(text.encode(errors="replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise Problem(f"the output cannot be written: {error.strerror}") from None


def drop_output() -> None:
    """What could not be written is not tried again: Python would complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
