"""What `graftmt export --to hugging-face` made of post-norm models: Marian's layers, and the text of other exports. Layer 5."""

from __future__ import annotations

from graftmt.interop.importing.families.exported import Exported
from graftmt.interop.importing.families.marian import marian_architecture
from graftmt.interop.importing.family import ForeignFolder
from graftmt.interop.importing.weights import Weights
from graftmt.model import ModelConfig
from graftmt.places import EXPORT_DOCUMENT


class ExportedMarian(Exported):
    name = "graftmt-export-marian"
    title = "graftmt's own exports of Marian models"

    def recognises(self, folder: ForeignFolder) -> bool:
        return folder.model_type == "marian" and (folder.path / EXPORT_DOCUMENT).exists()

    def architecture(self, folder: ForeignFolder, weights: Weights) -> ModelConfig:
        return marian_architecture(folder, "separate")
