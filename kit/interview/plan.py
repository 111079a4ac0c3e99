"""What an interview asks: parts with their minutes, and in each part questions with the seeds of their draws."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kit.bank.draw import below
from kit.errors import KitError
from kit.interview.record import Plan, PlanPart, Question

if TYPE_CHECKING:
    from kit.bank.document import Document, Location
    from kit.bank.load import Header

LEAST_MINUTES, MOST_MINUTES = 5, 480
SEEDS = 10**6
SEED_LIMIT = 2**63  # what a progress database can keep
LEVEL = 2

# How long a question takes to ask and to answer, in minutes; it can be asked where there is most of that.
MINUTES = {"choice": 2, "multi": 3, "order": 3, "predict": 3, "number": 4, "open": 10, "code": 15}
MOST = 0.75


@dataclass(frozen=True, slots=True)
class Shape:
    """One part of every interview: its share of the time, and which kinds it asks. A warm-up is a level easier."""

    name: str
    share: float
    kinds: tuple[str, ...]
    easier: int = 0

    @property
    def shortest(self) -> int:
        """Minutes of its shortest question."""
        return min(MINUTES[kind] for kind in self.kinds)


SHAPES = (
    Shape("warm_up", 0.12, ("choice", "multi", "order"), easier=1),
    Shape("estimation", 0.16, ("number",)),
    Shape("design", 0.2, ("open",)),
    Shape("coding", 0.36, ("code",)),
    Shape("debugging", 0.16, ("predict",)),
)


def make_plan(
    headers: Sequence[Header], minutes: float, levels: Sequence[int], topics: Sequence[str], seed: int
) -> Plan:
    """The same plan for the same arguments and bank.

    headers: of the whole bank. levels, topics: empty means the middle level and every topic. A part whose questions do
    not fit into its time, or that has none, gives its time to the others. Raises KitError where nothing is left.
    """
    if not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        raise KitError(f"an interview takes {LEAST_MINUTES} to {MOST_MINUTES} minutes, got {minutes:g}")
    rng = random.Random(f"interview {seed}")
    wanted = [header for header in headers if not topics or header.topic in topics]
    levels = tuple(levels) or (LEVEL,)
    shapes = [shape for shape in SHAPES if any(header.kind in shape.kinds for header in wanted)]
    while shapes:
        whole = sum(shape.share for shape in shapes)
        late = [shape for shape in shapes if shape.share / whole * minutes < MOST * shape.shortest]
        if not late:
            break
        shapes.remove(max(late, key=lambda shape: shape.shortest))
    if not shapes:
        raise KitError("no question fits this interview", hint="give it more topics or more minutes")
    whole = sum(shape.share for shape in shapes)
    used: set[str] = set()
    parts = []
    begun, ended = 0.0, 0.0  # of the whole; in the plan in tenths of a minute, which add up to what was asked for
    for shape in shapes:
        of_part = shape.share / whole * minutes
        begun, ended = ended, ended + of_part
        chosen = choose(shape, of_part, [header for header in wanted if header.id not in used], levels, used, rng)
        used |= {header.id for header in chosen}
        asked = tuple(Question(header.id, below(SEEDS, rng)) for header in chosen)
        parts.append(PlanPart(shape.name, round(round(ended, 1) - round(begun, 1), 1), asked))
    return Plan(seed, tuple(parts))


def choose(
    shape: Shape, minutes: float, headers: Sequence[Header], levels: Sequence[int], used: set[str], rng: random.Random
) -> list[Header]:
    """As many as the time allows, at least one: nearest to the levels first, of topics that were not asked yet."""
    near = [max(1, level - shape.easier) for level in levels]
    topics = {name.split("/")[0] for name in used}
    found = sorted((header for header in headers if header.kind in shape.kinds), key=lambda header: header.id)
    ranks = {header.id: rng.random() for header in found}
    chosen: list[Header] = []
    left = minutes
    while found:
        taken = topics | {header.topic for header in chosen}
        header = min(
            found,
            key=lambda each: (min(abs(each.level - level) for level in near), each.topic in taken, ranks[each.id]),
        )
        if chosen and MINUTES[header.kind] > left:
            break
        chosen.append(header)
        found.remove(header)
        left -= MINUTES[header.kind]
    return chosen


def left_out(plan: Plan) -> list[str]:
    """Parts that the plan does not have: their questions did not fit into its time, or there was none."""
    return [shape.name for shape in SHAPES if shape.name not in [part.name for part in plan.parts]]


def other_levels(plan: Plan, headers: Sequence[Header], levels: Sequence[int]) -> dict[str, list[int]]:
    """Part -> levels of its questions that nobody asked for; a warm-up is a level easier. Empty without levels."""
    known = {header.id: header.level for header in headers}
    found = {}
    for part in plan.parts:
        easier = next(shape.easier for shape in SHAPES if shape.name == part.name)
        wanted = {max(1, level - easier) for level in levels}
        others = sorted({known[asked.id] for asked in part.questions} - wanted) if levels else []
        if others:
            found[part.name] = others
    return found


# --- as a file -------------------------------------------------------------------------------------------------------


def to_yaml(plan: Plan) -> str:
    """A plan that is written down asks every candidate the same, with the same numbers."""
    import yaml

    values = {
        "seed": plan.seed,
        "parts": [
            {
                "name": part.name,
                "minutes": part.minutes,
                "questions": [{"id": asked.id, "seed": asked.seed} for asked in part.questions],
            }
            for part in plan.parts
        ],
    }
    head = "# A plan of an interview: shardkit interview --plan FILE asks exactly this.\n"
    return head + str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def from_yaml(text: str, shown: str, headers: Sequence[Header]) -> Plan:
    """Raises KitError with file and line for what is no plan, and for a question that the bank does not have."""
    from kit.bank.document import parse

    document = parse(text, shown)
    require_keys(document, [], document.values, ("seed", "parts"))
    known = {header.id: header for header in headers}
    listed = document.values["parts"]
    if not isinstance(listed, list) or not listed:
        raise document.error(["parts"], "parts: expected a list of parts, at least one")
    parts = tuple(read_part(document, index, part, known) for index, part in enumerate(listed))
    asked = [question.id for part in parts for question in part.questions]
    twice = next((name for name in asked if asked.count(name) > 1), None)
    if twice is not None:
        raise document.error(["parts"], f"{twice} is asked twice")
    return Plan(read_whole(document, ["seed"], document.values["seed"]), parts)


def read_part(document: Document, index: int, part: Any, known: dict[str, Header]) -> PlanPart:
    place: tuple[str | int, ...] = ("parts", index)
    require_keys(document, place, part, ("name", "minutes", "questions"))
    names = [shape.name for shape in SHAPES]
    if part["name"] not in names:
        raise document.error([*place, "name"], f"name: expected one of {', '.join(names)}, got {part['name']!r}")
    minutes = part["minutes"]
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not 0 < minutes <= MOST_MINUTES:
        raise document.error([*place, "minutes"], f"minutes: expected more than 0 to {MOST_MINUTES}, got {minutes!r}")
    if not isinstance(part["questions"], list) or not part["questions"]:
        raise document.error([*place, "questions"], "questions: expected a list of questions, at least one")
    asked = []
    for number, question in enumerate(part["questions"]):
        at: tuple[str | int, ...] = (*place, "questions", number)
        require_keys(document, at, question, ("id", "seed"))
        if not isinstance(question["id"], str) or question["id"] not in known:
            from kit.bank.closest import closest

            near = closest(str(question["id"]), known)
            advice = f"; closest: {', '.join(near)}" if near else ""
            raise document.error([*at, "id"], f"no question {question['id']!r}{advice}")
        asked.append(Question(question["id"], read_whole(document, [*at, "seed"], question["seed"])))
    return PlanPart(part["name"], float(minutes), tuple(asked))


def require_keys(document: Document, place: Location, values: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(values, dict):
        raise document.error(place, f"expected {', '.join(keys)}")
    missing, unknown = [key for key in keys if key not in values], [key for key in values if key not in keys]
    if missing:
        raise document.error(place, f"{missing[0]} is missing")
    if unknown:
        raise document.error([*place, unknown[0]], f"unknown key {unknown[0]!r}; known: {', '.join(keys)}")


def read_whole(document: Document, place: Location, value: Any) -> int:
    if type(value) is not int or not 0 <= value < SEED_LIMIT:
        raise document.error(place, f"{place[-1]}: expected a whole number from 0 to 2^63 - 1, got {value!r}")
    return value
