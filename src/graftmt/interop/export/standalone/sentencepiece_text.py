"""Text ↔ tokens with a SentencePiece model. Needs: pip install sentencepiece."""

import sentencepiece


class Text:
    """The text of one side of the model in this folder."""

    def __init__(self, path: str) -> None:
        self.model = sentencepiece.SentencePieceProcessor(model_file=path)

    def encode(self, line: str) -> list[str]:
        """Tokens of a line; those that the model's vocabulary lacks count as unknown."""
        return list(self.model.encode(line, out_type=str)) if line.strip() else []

    def decode(self, tokens: list[str]) -> str:
        return str(self.model.decode(tokens)).replace("\u2581", " ").strip()
