"""Translates lines with the Hugging Face model in this folder. graftmt is not needed; README.md says what is.

    python translate.py SOURCE TARGET < input.txt > output.txt

In Python: Translator(folder).translate(["a line", …])
"""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

LONGEST = 1024  # tokens of a line


class Translator:
    """One direction; `generation_config.json` says how to search."""

    def __init__(self, folder: str | Path = Path(__file__).parent) -> None:
        self.folder = Path(folder)
        self.about = json.loads((self.folder / "export.json").read_text(encoding="utf-8"))
        self.model = AutoModelForSeq2SeqLM.from_pretrained(self.folder).eval()
        if self.about["texts"] is None:
            self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        else:
            self.source, self.target = (self.text(side) for side in ("source", "target"))
            self.vocabulary = json.loads((self.folder / "vocabulary.json").read_text(encoding="utf-8"))
            self.ids = {token: number for number, token in enumerate(self.vocabulary["source"]) if token is not None}

    def text(self, side: str) -> Any:
        """Text ↔ tokens of one side: a class in a Python file of this folder."""
        about = self.about["texts"][side]
        spec = importlib.util.spec_from_file_location(about["module"], self.folder / f"{about['module']}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.Text(str(self.folder / about["file"]))

    def encode(self, line: str) -> list[int]:
        if self.about["texts"] is None:
            return list(self.tokenizer(line).input_ids)
        unknown = self.ids["<unk>"]
        text = [self.ids.get(token, unknown) for token in self.source.encode(line)]
        return [*self.about["before"], *text, *self.about["after"]]

    def decode(self, output: list[int]) -> str:
        """The text of a translation, without what the decoder started from and without its end."""
        start = 1 + len(self.about["forced"])
        ends = {self.model.config.eos_token_id, self.model.config.pad_token_id}
        length = next((number for number, one in enumerate(output[start:]) if one in ends), len(output))
        ids = output[start : start + length]
        if self.about["texts"] is None:
            return str(self.tokenizer.decode(ids, skip_special_tokens=True))
        return str(self.target.decode([self.vocabulary["target"][one] or "<unk>" for one in ids]))

    @torch.inference_mode()
    def translate(self, lines: list[str], **options: Any) -> list[str]:
        """One translation for each line; `options` go to generate."""
        ids = [self.encode(line) for line in lines]
        padding, longest = self.model.config.pad_token_id, max(map(len, ids), default=0)
        if longest > LONGEST:
            raise ValueError(f"a line has {longest} tokens, and at most {LONGEST} can be translated; split it")
        inputs = torch.tensor([[*line, *[padding] * (longest - len(line))] for line in ids])
        options = {"max_new_tokens": min(LONGEST, 3 * longest + 20), "max_length": None, **options}
        found = self.model.generate(input_ids=inputs, attention_mask=(inputs != padding).long(), **options).tolist()
        return [" ".join(self.decode(one).split()) if line.strip() else "" for one, line in zip(found, lines, strict=True)]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    translator = Translator()
    known = translator.about["directions"][0]
    if sys.argv[1:] != [known["source"], known["target"]]:
        sys.exit(f"this folder translates {known['source']} {known['target']} only")
    lines = sys.stdin.read().split("\n")
    if lines[-1] == "":
        del lines[-1]
    for start in range(0, len(lines), 64):
        for translation in translator.translate(lines[start : start + 64]):
            print(translation)
