"""Adding a language to a base, step by step: the text, what it looks like, the training, the verdict. Layer 6."""
