"""What a grade found: every check at every size, the verdict, and the score. The shape of `--json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.grading.diagnosis import Diagnosis
from kit.grading.scenario import PROOFS

SCHEMA = 1
VERDICTS = ("passed", "wrong", "crashed", "hung", "refused", "not_started", "kit_error")
# How a launch that failed counts, by the kind of its WorldError.
_OF_LAUNCH = {
    "hang": "hung",
    "deadline": "hung",
    "crash": "crashed",
    "memory": "crashed",
    "output": "crashed",
    "refused": "refused",
    "mismatch": "hung",
    "race": "wrong",
}


def launch_verdict(kind: str) -> str:
    """ "hung" for a launch that failed with a WorldError of kind "hang"."""
    return _OF_LAUNCH.get(kind, "crashed")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check at one world size on one transport. verdict: "passed", "failed", "not_run" or "kit_error".

    launch_kind is the WorldError's kind where the ranks did not finish; diagnosis has a failed comparison in parts;
    suspicions are the ranks' own words, so advice and no proof; site is the solution's line where it is known.
    is_beyond_machine: it did not run because this machine cannot show what it looks at, and nothing else is at fault.
    printed is what ranks wrote, as ("rank 0, stdout", text), where the check failed.
    """

    name: str
    title: str
    proof: str
    world_size: int
    transport: str
    verdict: str
    message: str = ""
    duration_s: float = 0.0
    launch_kind: str = ""
    site: str = ""
    diagnosis: Diagnosis | None = None
    suspicions: tuple[str, ...] = ()
    printed: tuple[tuple[str, str], ...] = ()
    is_beyond_machine: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "proof": self.proof,
            "world_size": self.world_size,
            "transport": self.transport,
            "verdict": self.verdict,
            "message": self.message,
            "duration_s": round(self.duration_s, 4),
        }


@dataclass(frozen=True, slots=True)
class ProofRow:
    """One of the five proofs. state: "passed", "failed", "not_run" or "none" where the question has no such check."""

    proof: str
    state: str
    points: int
    max_points: int
    num_checks: int
    num_failed: int


@dataclass(frozen=True, slots=True)
class GradeResult:
    """A graded file. message is for verdicts that no check explains (not_started, kit_error)."""

    question: str
    solution: str
    verdict: str
    seed: int
    points: dict[str, int]
    checks: tuple[CheckResult, ...]
    duration_s: float
    message: str = ""

    @property
    def max_score(self) -> int:
        return sum(self.points.values())

    @property
    def score(self) -> int:
        """Without values the score is 0; then the points of each proof that holds."""
        rows = self.rows()
        if self.verdict in ("not_started", "kit_error") or rows[0].state != "passed":
            return 0
        return sum(row.points for row in rows)

    def rows(self) -> tuple[ProofRow, ...]:
        """The five proofs in their order."""
        return tuple(self._row(proof) for proof in PROOFS)

    def _row(self, proof: str) -> ProofRow:
        checks = [check for check in self.checks if check.proof == proof]
        failed = [check for check in checks if check.verdict in ("failed", "kit_error")]
        # gloo is not tried once the switchboard has shown a failure; that says nothing about this proof.
        unrun = [check for check in checks if check.verdict == "not_run" and check.transport == "switchboard"]
        held = any(check.verdict == "passed" for check in checks)
        state = "failed" if failed else "not_run" if unrun or not held else "passed"
        if not checks:
            state = "not_run" if proof in self.points else "none"
        most = self.points.get(proof, 0)
        return ProofRow(proof, state, most if state == "passed" else 0, most, len(checks), len(failed))

    @property
    def first_failure(self) -> CheckResult | None:
        """The failure to read first: a launch that failed, else values, else the others, at the smallest size."""
        failed = [check for check in self.checks if check.verdict in ("failed", "kit_error")]
        order = {proof: index for index, proof in enumerate(PROOFS)}
        return min(
            failed,
            key=lambda check: (
                check.verdict != "kit_error",
                not check.launch_kind,
                check.transport != "switchboard",
                order[check.proof],
                check.world_size,
            ),
            default=None,
        )

    @property
    def failed_checks(self) -> frozenset[str]:
        """Names of the checks that fail at some size on some transport."""
        return frozenset(check.name for check in self.checks if check.verdict in ("failed", "kit_error"))

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "question": self.question,
            "solution": self.solution,
            "verdict": self.verdict,
            "score": self.score,
            "max_score": self.max_score,
            "seed": self.seed,
            "duration_s": round(self.duration_s, 3),
            "checks": [check.to_json() for check in self.checks],
        }


def verdict_of(checks: tuple[CheckResult, ...]) -> str:
    """The verdict that these checks come to. One that did not run on the switchboard is not passed.

    What this machine cannot measure is left out: its proof has not run, and gives no points.
    """
    if not checks or any(check.verdict == "kit_error" for check in checks):
        return "kit_error"
    failed = [check for check in checks if check.verdict == "failed"]
    if not failed:
        # Where nothing failed, gloo was left out only for what it lacks.
        unrun = [
            check
            for check in checks
            if check.verdict == "not_run" and check.transport == "switchboard" and not check.is_beyond_machine
        ]
        return "kit_error" if unrun or all(check.verdict == "not_run" for check in checks) else "passed"
    of_launches = [launch_verdict(check.launch_kind) for check in failed if check.launch_kind]
    for verdict in ("refused", "crashed", "hung"):
        if verdict in of_launches:
            return verdict
    return "wrong"
