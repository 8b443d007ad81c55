"""Python files that exported folders get a copy of. They import nothing of graftmt. Layer 5."""
