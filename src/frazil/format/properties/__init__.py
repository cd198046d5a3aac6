"""Table properties: their names, kinds and defaults."""
