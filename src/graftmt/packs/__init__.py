"""Language packs, the heart: recipe, parts, initialisation, composition, storage. Layer 3."""

from graftmt.packs.archive import is_pack
from graftmt.packs.component import Side
from graftmt.packs.composition import Composition, compose
from graftmt.packs.pack import Pack, check_recipe, create_pack, pack_tokenizer
from graftmt.packs.recipe import Recipe
from graftmt.packs.storage import load_pack, read_pack_document, save_pack

__all__ = [
    "Composition",
    "Pack",
    "Recipe",
    "Side",
    "check_recipe",
    "compose",
    "create_pack",
    "is_pack",
    "load_pack",
    "pack_tokenizer",
    "read_pack_document",
    "save_pack",
]
