"""Closed forms of distributed training: memory, traffic, pipelines, number formats. Pure functions, no torch."""
