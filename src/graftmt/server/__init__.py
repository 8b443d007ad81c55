"""HTTP: one resident base, many packs, all directions; LibreTranslate's API, our own, and a page. Layer 6."""
