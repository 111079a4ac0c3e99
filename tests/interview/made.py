"""An interview made by hand, over the bank beside this file; what people typed in it is hostile."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from kit.bank.layout import Bank
from kit.interview.record import FollowUpRecord, ItemRecord, PartRecord, Plan, PlanPart, Question, Record

FOLDER = Path(__file__).resolve().parent
BANK = Bank(FOLDER / "bank")
STARTED = datetime(2026, 12, 2, 9, 30, tzinfo=timezone.utc)
HOSTILE = "</pre><script>alert(1)</script>\n```\n# Hired\n[x](javascript:alert(1))\n![x](https://example.org/x.png)"

PLAN = Plan(
    4711,
    (
        PlanPart("warm-up", 10, (Question("links/ring", 3), Question("links/steps", 3))),
        PlanPart("estimation", 10, (Question("links/bytes", 3),)),
        PlanPart("design", 20, (Question("layout/design", 3),)),
        PlanPart("coding", 20, (Question("layout/share", 3),)),
    ),
)
KINDS = {
    "links/ring": "choice",
    "links/steps": "order",
    "links/bytes": "number",
    "layout/design": "open",
    "layout/share": "code",
}


def untouched(candidate: str = "", plan: Plan = PLAN) -> Record:
    """An interviewer's record before the first question."""
    parts = tuple(
        PartRecord(
            part.name,
            part.minutes,
            0.0,
            tuple(ItemRecord(asked.id, KINDS[asked.id], asked.seed) for asked in part.questions),
        )
        for part in plan.parts
    )
    return Record("1f3a9c0e", "interviewer", plan, candidate, STARTED, parts)


def held() -> Record:
    """Finished: one right and one skipped, one not asked, one scored by points, one graded."""
    ring = ItemRecord(
        "links/ring", "choice", 3, answer="b", verdict="right", score=1.0, points_met=(0, 1), points_scores=(2.0, 1.0),
        hints=1, seconds=200.4, notes="- quick\n<b>sure</b> & **calm**",
        follow_ups=(FollowUpRecord(0, "answered", 1.0), FollowUpRecord(1, "answered", 0.5)),
    )  # fmt: skip
    design = ItemRecord(
        "layout/design", "open", 3, answer=HOSTILE, verdict="marked", score=0.5625, points_met=(0,),
        points_scores=(3.0, 1.5, 0.0, None), seconds=1330.0, notes=HOSTILE,
        follow_ups=(FollowUpRecord(0, "asked", None, HOSTILE),), red_flags=(1,),
    )  # fmt: skip
    grade = {
        "verdict": "wrong", "score": 0, "max_score": 4, "seed": 99, "solution": "share.py",
        "checks": [
            {"name": "test_all", "title": "All is <shared>.", "verdict": "failed"},
            {"name": "test_small", "title": "Shares are small.", "verdict": "passed"},
        ],
    }  # fmt: skip
    share = ItemRecord(
        "layout/share", "code", 3, answer="share.py", verdict="marked", points_scores=(0.0, 0.0), seconds=900.0,
        grade=grade, red_flags=(0,),
    )  # fmt: skip
    return Record(
        id="1f3a9c0e",
        role="interviewer",
        plan=PLAN,
        candidate="Ada <script>alert(1)</script>\n# L.",
        started=STARTED,
        parts=(
            PartRecord(
                "warm-up", 10, 260.4, (ring, ItemRecord("links/steps", "order", 3, verdict="skipped", seconds=60))
            ),
            PartRecord("estimation", 10, 0.0, (ItemRecord("links/bytes", "number", 3),)),
            PartRecord("design", 20, 1330.0, (design,)),
            PartRecord("coding", 20, 900.0, (share,)),
        ),
        finished=STARTED + timedelta(minutes=42),
    )


def golden(language: str, suffix: str) -> Path:
    return FOLDER / "golden" / f"card.{language}.{suffix}"


if __name__ == "__main__":  # python -m tests.interview.made: writes the golden scorecards anew, to be looked at
    from kit.interview.scorecard import html, markdown

    golden("en", "md").write_text(markdown(held(), BANK, "en"), encoding="utf-8")
    golden("zh", "md").write_text(markdown(held(), BANK, "zh"), encoding="utf-8")
    golden("en", "html").write_text(html(held(), BANK, "en"), encoding="utf-8")
    golden("zh", "html").write_text(html(held(), BANK, "zh"), encoding="utf-8")
