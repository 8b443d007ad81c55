"""Foreign models become bases: their weights, architecture and text in our own terms, exactly.

`families` has a file for each family of models; what cannot be represented is refused by name.
"""
