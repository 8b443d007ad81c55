"""What the components of packs say about their export. Layer 5."""

from __future__ import annotations

from graftmt.errors import ExportError
from graftmt.packs import Composition


def check_components(composition: Composition) -> None:
    """An `ExportError` that names each component no other program can hold, with its own reason."""
    reasons = []
    for pack in (composition.source, composition.target):
        for component in () if pack is None else pack.recipe.components:
            export = component.export(composition.model.config)
            if export.how == "impossible":
                assert pack is not None
                reasons.append(f"the pack {pack.name}: {export.reason}")
    if reasons:
        raise ExportError(" ".join(reasons))
