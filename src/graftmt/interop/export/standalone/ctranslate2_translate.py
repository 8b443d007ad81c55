"""Translates lines with the CTranslate2 model in this folder. graftmt is not needed; README.md says what is.

    python translate.py SOURCE TARGET < input.txt > output.txt
    python translate.py --check                                 # are all files as they were exported?

In Python: Translator(folder).translate(["a line", …], "SOURCE", "TARGET")
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LONGEST = 1024  # tokens of a line: beyond them CTranslate2 would cut it off without a word


def beside(name: str) -> Any:
    """A Python file next to this one, whether or not the folder is on Python's path."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exported = beside("exported_folder")


class Translator:
    def __init__(self, folder: str | Path = HERE, **options: Any) -> None:
        """`options` go to ctranslate2.Translator: device, compute_type, inter_threads, intra_threads …"""
        self.folder = exported.Folder(folder)
        self.about = self.folder.about

        import ctranslate2

        self.source, self.target = (self.folder.text(side) for side in ("source", "target"))
        self.model = self.folder.opened(lambda: ctranslate2.Translator(str(folder), **options))

    def translate(self, lines: list[str], source: str, target: str, *, beam_size: int = 5, **options: Any) -> list[str]:
        """One translation for each line; `options` go to translate_batch."""
        around = self.folder.direction(source, target)
        texts = [self.source.encode(line) for line in lines]
        tokens = [[*around["before"], *text, *around["after"]] for text in texts]
        for number, line in enumerate(tokens, 1):
            if len(line) > LONGEST:
                raise exported.TooLong(number, len(line), LONGEST)
        prefix = around["decoder"]
        found = self.model.translate_batch(
            tokens,
            target_prefix=[prefix] * len(tokens) if prefix else None,
            suppress_sequences=[[token] for token in self.about["never"]],
            beam_size=beam_size,
            max_decoding_length=min(LONGEST, 3 * max(map(len, tokens), default=0) + 20),
            **options,
        )
        outputs = [self.target.decode(one.hypotheses[0][len(prefix) :]) for one in found]
        return [" ".join(output.split()) if text else "" for text, output in zip(texts, outputs, strict=True)]


def opened(source: str, target: str) -> Callable[[list[str]], list[str]]:
    translator = Translator()
    return lambda lines: translator.translate(lines, source, target)


if __name__ == "__main__":
    sys.exit(exported.main(__doc__, HERE, opened, at_once=256))
