"""Translates lines with the CTranslate2 model in this folder. graftmt is not needed; README.md says what is.

    python translate.py SOURCE TARGET < input.txt > output.txt

In Python: Translator(folder).translate(["a line", …], "SOURCE", "TARGET")
"""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2

LONGEST = 1024  # tokens of a line: beyond them CTranslate2 would cut it off without a word


class Translator:
    def __init__(self, folder: str | Path = Path(__file__).parent, **options: Any) -> None:
        """`options` go to ctranslate2.Translator: device, compute_type, inter_threads, intra_threads …"""
        self.folder = Path(folder)
        self.about = json.loads((self.folder / "export.json").read_text(encoding="utf-8"))
        self.model = ctranslate2.Translator(str(self.folder), **options)
        self.source, self.target = (self.text(side) for side in ("source", "target"))

    def text(self, side: str) -> Any:
        """Text ↔ tokens of one side: a class in a Python file of this folder."""
        about = self.about["texts"][side]
        spec = importlib.util.spec_from_file_location(about["module"], self.folder / f"{about['module']}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.Text(str(self.folder / about["file"]))

    def direction(self, source: str, target: str) -> dict[str, Any]:
        """The tokens that stand around the text of a direction."""
        found: list[dict[str, Any]] = self.about["directions"]
        for one in found:
            if (one["source"], one["target"]) == (source, target):
                return one
        known = ", ".join(f"{one['source']} {one['target']}" for one in found)
        raise ValueError(f"this folder has no {source} {target}; it has: {known}")

    def translate(self, lines: list[str], source: str, target: str, *, beam_size: int = 5, **options: Any) -> list[str]:
        """One translation for each line; `options` go to translate_batch."""
        around = self.direction(source, target)
        texts = [self.source.encode(line) for line in lines]
        tokens = [[*around["before"], *text, *around["after"]] for text in texts]
        for number, line in enumerate(tokens, 1):
            if len(line) > LONGEST:
                raise ValueError(f"line {number} has {len(line)} tokens, and at most {LONGEST} can be translated; split it")
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


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    translator = Translator()
    lines = sys.stdin.read().split("\n")
    if lines[-1] == "":
        del lines[-1]
    for start in range(0, len(lines), 256):
        for translation in translator.translate(lines[start : start + 256], *sys.argv[1:]):
            print(translation)
