"""Models of other programs: imported as bases (`importing`), made of bases with packs (`export`), or used to search."""
