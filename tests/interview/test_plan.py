"""Plans: the same for the same seed, with every part that fits; as a file they say where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.bank.layout import find_bank
from kit.bank.load import Header, headers
from kit.errors import KitError
from kit.interview.plan import MINUTES, SEEDS, SHAPES, from_yaml, left_out, make_plan, other_levels, to_yaml
from kit.interview.record import Plan

KINDS = ("choice", "multi", "order", "number", "open", "code", "predict")
TOPICS = ("links", "layout", "memory")


def made_bank(num_each: int = 4) -> list[Header]:
    """For every topic, level and kind the same number of questions."""
    return [
        Header(f"{topic}/{kind}_{level}_{number}", kind, level, {"en": "t", "zh": "t"}, ())
        for topic in TOPICS
        for kind in KINDS
        for level in (1, 2, 3, 4)
        for number in range(num_each)
    ]


BANK = made_bank()
KNOWN = {header.id: header for header in BANK}


def ids(plan: Plan) -> list[str]:
    return [asked.id for part in plan.parts for asked in part.questions]


def test_the_same_seed_is_the_same_plan_and_another_is_another() -> None:
    plans = [make_plan(BANK, 60, (), (), seed) for seed in (7, 7, 8)]
    assert plans[0] == plans[1] and plans[0] != plans[2]
    assert make_plan(BANK[::-1], 60, (), (), 7) == plans[0]  # the order of files on a disk is no matter
    seeds = [asked.seed for part in plans[0].parts for asked in part.questions]
    assert len(set(seeds)) == len(seeds) and all(0 <= seed < SEEDS for seed in seeds)


def test_a_plan_stays_what_it_was() -> None:
    """A seed that was noted down brings the same on every version of Python."""
    first = make_plan(BANK, 60, (), (), 7).parts[0].questions[0]
    assert (first.id, first.seed) == ("links/choice_1_0", 316310)


def test_an_hour_has_every_part_and_each_asks_its_own_kinds() -> None:
    plan = make_plan(BANK, 60, (), (), 1)
    assert [part.name for part in plan.parts] == ["warm_up", "estimation", "design", "coding", "debugging"]
    for part, shape in zip(plan.parts, SHAPES, strict=True):
        kinds = [KNOWN[asked.id].kind for asked in part.questions]
        assert kinds and set(kinds) <= set(shape.kinds)
        assert len(kinds) == 1 or sum(MINUTES[kind] for kind in kinds) <= part.minutes
    assert sum(part.minutes for part in plan.parts) == pytest.approx(60, abs=0.3)
    assert len(set(ids(plan))) == len(ids(plan))


@pytest.mark.parametrize("minutes", [5, 15, 30, 60, 180, 480])
def test_all_of_the_time_is_given_to_the_parts_that_fit(minutes: float) -> None:
    plan = make_plan(BANK, minutes, (), (), 1)
    assert plan.parts and all(part.questions for part in plan.parts)
    assert sum(part.minutes for part in plan.parts) == pytest.approx(minutes, abs=0.3)
    assert ("coding" in [part.name for part in plan.parts]) == (minutes >= 60)


def test_levels_and_topics_are_those_that_were_asked_for_and_a_warm_up_is_easier() -> None:
    plan = make_plan(BANK, 60, (3,), ("links", "memory"), 1)
    found = {part.name: {KNOWN[asked.id].level for asked in part.questions} for part in plan.parts}
    assert found == {"warm_up": {2}, "estimation": {3}, "design": {3}, "coding": {3}, "debugging": {3}}
    assert {name.split("/")[0] for name in ids(plan)} == {"links", "memory"}


def test_a_level_that_is_not_there_gives_the_nearest() -> None:
    easy = [header for header in BANK if header.level <= 2]
    plan = make_plan(easy, 60, (4,), (), 1)
    assert {KNOWN[asked.id].level for part in plan.parts[1:] for asked in part.questions} == {2}


def test_questions_of_one_part_are_of_several_topics() -> None:
    for seed in range(10):
        part = make_plan(BANK, 60, (), (), seed).parts[0]
        assert len({asked.id.split("/")[0] for asked in part.questions}) == len(part.questions) > 1


def test_parts_of_one_interview_are_of_several_topics() -> None:
    wide = [Header(f"t{number}/{kind}", kind, 2, {"en": "t", "zh": "t"}, ()) for number in range(20) for kind in KINDS]
    for seed in range(10):
        asked = ids(make_plan(wide, 60, (), (), seed))
        assert len({name.split("/")[0] for name in asked}) == len(asked) > 6


def test_a_part_without_questions_gives_its_time_to_the_others() -> None:
    plan = make_plan([header for header in BANK if header.kind in ("open", "number")], 60, (), (), 1)
    assert [part.name for part in plan.parts] == ["estimation", "design"]
    assert sum(part.minutes for part in plan.parts) == pytest.approx(60, abs=0.2)


def test_what_a_plan_could_not_have_is_known() -> None:
    assert left_out(make_plan(BANK, 60, (), (), 1)) == []
    assert left_out(make_plan(BANK, 15, (), (), 1)) == ["design", "coding"]
    assert other_levels(make_plan(BANK, 60, (3,), (), 1), BANK, (3,)) == {}
    only = [header for header in BANK if header.kind != "code" or header.level == 2]
    assert other_levels(make_plan(only, 60, (3,), (), 1), only, (3,)) == {"coding": [2]}
    assert other_levels(make_plan(only, 60, (), (), 1), only, ()) == {}


@pytest.mark.parametrize("minutes", [0, 4.9, 481, float("nan"), float("inf")])
def test_an_interview_has_a_length(minutes: float) -> None:
    with pytest.raises(KitError, match="5 to 480 minutes"):
        make_plan(BANK, minutes, (), (), 1)


def test_no_question_is_no_plan() -> None:
    with pytest.raises(KitError, match="no question fits"):
        make_plan([header for header in BANK if header.kind == "code"], 10, (), (), 1)


# --- as a file -------------------------------------------------------------------------------------------------------


def test_a_plan_comes_back_from_its_file() -> None:
    for seed in range(5):
        plan = make_plan(BANK, 45 + seed, (), (), seed)
        assert from_yaml(to_yaml(plan), "plan.yaml", BANK) == plan


def test_the_real_bank_makes_every_part() -> None:
    everything = headers(find_bank(Path(__file__).resolve().parent.parent.parent))
    plan = make_plan(everything, 60, (), (), 3)
    assert [part.name for part in plan.parts] == [shape.name for shape in SHAPES]
    assert from_yaml(to_yaml(plan), "plan.yaml", everything) == plan


GOOD = """\
seed: 3
parts:
- name: design
  minutes: 20
  questions:
  - id: links/open_2_1
    seed: 5
  - id: links/open_2_2
    seed: 6
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("seed: 3", "seed: -1", 1, "whole number"),
        ("seed: 3", "sed: 3", 1, "seed is missing"),
        ("name: design", "name: desing", 3, "desing"),
        ("minutes: 20", "minutes: 0", 4, "more than 0"),
        ("minutes: 20", "minutes: true", 4, "more than 0"),
        ("minutes: 20", "minutes: .nan", 4, "more than 0"),
        ("id: links/open_2_1", "id: links/opne_2_1", 6, "closest: .*links/open_2_1"),
        ("seed: 5", "seed: 5.5", 7, "whole number"),
        ("seed: 6", "sede: 6", 8, "seed is missing"),
        ("seed: 6", "seed: 9223372036854775808", 9, "to 2"),
        ("id: links/open_2_1", "id: [a]", 6, "no question"),
        ("id: links/open_2_1", "id: {a: b}", 6, "no question"),
        ("    seed: 6", "    seed: 6\n    note: x", 10, "unknown key 'note'"),
        ("links/open_2_2", "links/open_2_1", 2, "asked twice"),
        ("seed: 5", "seed: [", 8, "malformed YAML"),
    ],
)
def test_a_wrong_plan_is_refused_where_it_is_wrong(old: str, new: str, line: int, says: str) -> None:
    assert from_yaml(GOOD, "plan.yaml", BANK).parts[0].minutes == 20
    with pytest.raises(KitError, match=f"^plan.yaml:{line}: .*{says}"):
        from_yaml(GOOD.replace(old, new), "plan.yaml", BANK)


@pytest.mark.parametrize("text", ["", "[]", "seed: 3\nparts: []\n", "seed: 3\nparts: {}\n", "seed: 3\nparts: [1]\n",
                                  "seed: 3\nparts: [{name: design, minutes: 5, questions: []}]\n"])  # fmt: skip
def test_an_empty_plan_is_none(text: str) -> None:
    with pytest.raises(KitError, match=r"^plan.yaml:\d+: "):
        from_yaml(text, "plan.yaml", BANK)
