"""What an answer says about how well a question is known, as FSRS wants to hear it."""

from __future__ import annotations

from kit.progress.records import Rating, Verdict

MOST_POINTS = 0.9  # of an answer in words: from here on it is known
HALF = 0.6
SURE = 0.95


def rate(verdict: Verdict, score: float, num_hints: int = 0, confidence: float | None = None) -> Rating | None:
    """again: not known; hard: with a hint, or in parts; good; easy: without a hint and sure of it beforehand.

    None for a skipped question, which says nothing. `score` counts for answers that are marked by points.
    """
    if verdict == "skipped":
        return None
    if verdict == "wrong" or (verdict == "marked" and score < HALF):
        return "again"
    if num_hints or (verdict == "marked" and score < MOST_POINTS):
        return "hard"
    return "easy" if confidence is not None and confidence >= SURE else "good"
