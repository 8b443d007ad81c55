"""More training text for a new language: its pairs with the base's other languages, real or back-translated. Layer 5.

The paper's Section 3.1 ("Data augmentation") and Table 29: with text in English only, a new language's zero-shot directions
are poor; a thousand lines for each other language, even machine-translated ones, mend most of that.
"""
