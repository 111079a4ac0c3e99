"""Interviews: the record, both sides as state machines without I/O, and scorecards."""
