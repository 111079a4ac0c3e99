"""Questions on disk: find, load and validate them, draw and mark them, hold their rules."""
