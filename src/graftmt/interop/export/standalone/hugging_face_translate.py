"""Translates lines with the Hugging Face model in this folder. graftmt is not needed; README.md says what is.

    python translate.py SOURCE TARGET < input.txt > output.txt
    python translate.py --check                                 # are all files as they were exported?

In Python: Translator(folder).translate(["a line", …])
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LONGEST = 1024  # tokens of a line


def beside(name: str) -> Any:
    """A Python file next to this one, whether or not the folder is on Python's path."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exported = beside("exported_folder")


class Translator:
    """One direction; `generation_config.json` says how to search."""

    def __init__(self, folder: str | Path = HERE) -> None:
        self.folder = exported.Folder(folder)
        self.about = self.folder.about

        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        self.torch = torch
        if self.about["texts"] is None:
            self.tokenizer = self.folder.opened(lambda: AutoTokenizer.from_pretrained(self.folder.path))
        else:
            self.source, self.target = (self.folder.text(side) for side in ("source", "target"))
            self.vocabulary = self.folder.opened(lambda: json.loads((self.folder.path / "vocabulary.json").read_bytes()))
            self.ids = {token: number for number, token in enumerate(self.vocabulary["source"]) if token is not None}
        self.model = self.folder.opened(lambda: AutoModelForSeq2SeqLM.from_pretrained(self.folder.path).eval())

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

    def translate(self, lines: list[str], **options: Any) -> list[str]:
        """One translation for each line; `options` go to generate."""
        ids = [self.encode(line) for line in lines]
        for number, line in enumerate(ids, 1):
            if len(line) > LONGEST:
                raise exported.TooLong(number, len(line), LONGEST)
        padding, longest = self.model.config.pad_token_id, max(map(len, ids), default=0)
        inputs = self.torch.tensor([[*line, *[padding] * (longest - len(line))] for line in ids])
        options = {"max_new_tokens": min(LONGEST, 3 * longest + 20), "max_length": None, **options}
        with self.torch.inference_mode():
            found = self.model.generate(input_ids=inputs, attention_mask=(inputs != padding).long(), **options).tolist()
        return [" ".join(self.decode(one).split()) if line.strip() else "" for one, line in zip(found, lines, strict=True)]


def opened(source: str, target: str) -> Callable[[list[str]], list[str]]:
    from transformers.utils import logging

    logging.disable_progress_bar()  # standard error is for errors
    return Translator().translate


if __name__ == "__main__":
    sys.exit(exported.main(__doc__, HERE, opened, at_once=64))
