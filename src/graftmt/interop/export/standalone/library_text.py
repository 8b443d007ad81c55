"""Text ↔ tokens with a tokenizer.json. Needs: pip install tokenizers."""

import tokenizers


class Text:
    """The text of one side of the model in this folder."""

    def __init__(self, path: str) -> None:
        self.tokenizer = tokenizers.Tokenizer.from_file(path)

    def encode(self, line: str) -> list[str]:
        """Tokens of a line; those that the model's vocabulary lacks count as unknown."""
        return list(self.tokenizer.encode(line, add_special_tokens=False).tokens) if line.strip() else []

    def decode(self, tokens: list[str]) -> str:
        decoder = self.tokenizer.decoder
        return str(decoder.decode(tokens)) if decoder is not None else " ".join(tokens)
