"""More training text for a new language: its pairs with the base's other languages, real or back-translated. Layer 5.

The paper's Section 3.1 ("Data augmentation") and Table 29: with text in English only, a new language's zero-shot directions
are poor; a thousand lines for each other language, even machine-translated ones, mend most of that.
"""

from graftmt.augmentation.augment_options import AugmentOptions
from graftmt.augmentation.augmenting import AugmentResult, augment, augment_training
from graftmt.augmentation.back_translation import Teacher
from graftmt.augmentation.engines import Engine, map_chunks
from graftmt.augmentation.line_choice import Plan, Spec, make_plan

__all__ = [
    "AugmentOptions",
    "AugmentResult",
    "Engine",
    "Plan",
    "Spec",
    "Teacher",
    "augment",
    "augment_training",
    "make_plan",
    "map_chunks",
]
