"""Models of other programs: imported as bases (`importing`), and bases with packs handed on to them (`export`)."""
