"""How a wrong answer shows: which proof fails first, and how, at which rank, and off by what factor."""

from __future__ import annotations

import re

from kit.bank.hunted import Seen, Symptom
from kit.grading.result import CheckResult, GradeResult

_OF_LAUNCH: dict[str, Symptom] = {
    "hang": "hang",
    "deadline": "hang",
    "mismatch": "hang",
    "race": "race",
    "refused": "refused",
}
_OF_PROOF: dict[str, Symptom] = {
    "values": "values",
    "traffic": "traffic",
    "memory": "memory",
    "time": "time",
    "discipline": "discipline",
}
_RANK = re.compile(r"\brank (\d+)\b")


def seen_in(result: GradeResult) -> Seen | None:
    """None where nothing failed on this machine."""
    first = result.first_failure
    if first is None:
        return None
    failed = [check for check in result.checks if check.verdict == "failed"]
    return Seen(
        symptom_of(first),
        frozenset(map(symptom_of, failed)),
        first.world_size,
        ranks_in(first),
        first.diagnosis.ratio if first.diagnosis is not None else None,
    )


def symptom_of(check: CheckResult) -> Symptom:
    """Of a check that failed."""
    if check.launch_kind:
        return _OF_LAUNCH.get(check.launch_kind, "crash")
    return _OF_PROOF[check.proof]


def ranks_in(check: CheckResult) -> tuple[int, ...]:
    """The rank that the comparison met first; of a claim or a launch those that its sentence names."""
    found = check.diagnosis
    if found is not None and found.rank is not None:
        return (found.rank,)
    sentence = found.headline if found is not None else check.message.partition("\n")[0]
    return tuple(dict.fromkeys(int(number) for number in _RANK.findall(sentence)))
