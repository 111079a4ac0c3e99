"""Everything that a person sees in a terminal; the only user of rich."""
