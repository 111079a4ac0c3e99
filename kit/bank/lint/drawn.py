"""A `number` question can be drawn, computed and read, whatever the seed gives."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING

from kit.bank.arithmetic import names_in
from kit.bank.draw import PLACEHOLDER, QUOTED, Draw, Value, compute, drawn
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding
from kit.bank.lint.texts import CODE
from kit.costmodel import units
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.bank.schema import Language, NumberQuestion, Parameter

LANGUAGES: tuple[Language, Language] = ("en", "zh")
MAX_COMBINATIONS = 500
MAX_FILLED = 24  # combinations whose texts are filled in as well
ZERO = re.compile(r"\b(zero|nothing|none)\b", re.IGNORECASE)

# One of these names the unit, in the prompt or in the convention that is shown with it.
NAMES_OF_UNITS = {
    "B": ("byte", "B = ", "B="),
    "bit": ("bit",),
    "FLOP": ("FLOP",),
    "FLOP/s": ("FLOP/s",),
    "B/s": ("B/s", "bytes per second"),
    "bit/s": ("bit/s", "bits per second"),
    "s": ("second", " ms", " s,", " s.", "day", "hour", "minute"),
    "fraction": ("fraction", "percent", "share", "over ", "ratio", " / "),
    "count": ("How many", "how many", "number", "count"),
}


def number_findings(entry: Entry) -> Iterator[Finding]:
    question = entry.question
    if question.kind != "number":
        return
    yield from unit_findings(entry, question)
    yield from placeholder_findings(entry, question)
    yield from argument_findings(entry, question)
    every = list(combinations(question.parameters))
    step = max(1, len(every) // MAX_FILLED)
    for number, parameters in enumerate(every):
        found = answer_finding(entry, question, parameters, is_filled=number % step == 0)
        if found is not None:
            yield found
            return


def answer_finding(
    entry: Entry, question: NumberQuestion, parameters: dict[str, Value], *, is_filled: bool
) -> Finding | None:
    """What is wrong with one draw: no answer, one that nobody would ask for, or a text that cannot be filled in."""
    drawn_as = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    try:
        answer = compute(question, parameters)
    except KitError as error:
        return entry.finding(("answer",), f"no answer with {drawn_as}: {error.message}", "change the parameters")
    said = f"{question.convention.en} {question.explanation.en} {question.working.en}"
    if answer < 0 or (answer == 0 and not ZERO.search(said)):
        advice = "change the parameters" if answer < 0 else "change the parameters, or explain the zero"
        return entry.finding(("answer",), f"the answer is {answer:g} with {drawn_as}", advice)
    if is_filled:
        shown = Draw(question, 0, (), parameters, answer)
        for location, text in entry.texts():
            for language in LANGUAGES:
                try:
                    shown.text(text, language)
                except KitError as error:
                    return entry.finding((*location, language), f"cannot be filled with {drawn_as}: {error.message}")
    return None


def unit_findings(entry: Entry, question: NumberQuestion) -> Iterator[Finding]:
    dimension = units.unit_named(question.unit).dimension
    said = f"{question.prompt.en} {question.convention.en}"
    if not any(name in said for name in (*NAMES_OF_UNITS[dimension], f" {question.unit}")):
        yield entry.finding(
            ("prompt",), f"neither prompt nor convention names the unit {question.unit!r}", "say what is asked for"
        )
    function = question.answer.function
    for word, meant in (("bytes", "B"), ("fraction", "fraction")):
        if word in function and dimension != meant:
            yield entry.finding(
                ("unit",), f"{function} gives {word}, and the unit is {question.unit!r}", f"take unit: {meant}"
            )


def placeholder_findings(entry: Entry, question: NumberQuestion) -> Iterator[Finding]:
    known = {*question.parameters, "answer"}
    for location, text in entry.texts():
        for language, written in (("en", text.en), ("zh", text.zh)):
            used = names_used(written)
            for name in sorted(used - known):
                yield entry.finding(
                    (*location, language), f"{{{name}}} is no parameter", f"known: {', '.join(sorted(known))}"
                )
            if language == "zh" and used != names_used(text.en):
                what = f"the Chinese fills in {shown_names(used)}, the English {shown_names(names_used(text.en))}"
                yield entry.finding((*location, language), what, "fill in the same in both")
            if "answer" in used and location[0] in ("title", "prompt", "hints", "convention"):
                yield entry.finding((*location, language), "{answer} is given away", "move it to working")
            if location == ("prompt",):
                for name in sorted(set(question.parameters) - used):
                    yield entry.finding((*location, language), f"the prompt does not say {{{name}}}", "name it")
            if location == ("working",) and "answer" not in used:
                yield entry.finding((*location, language), "the working does not end in {answer}", "add it")


def stray_placeholder_findings(entry: Entry) -> Iterator[Finding]:
    """Only texts of numbers are filled in; elsewhere a placeholder would be read as it stands."""
    if entry.question.kind == "number":
        return
    for location, text in entry.texts():
        for language in LANGUAGES:
            for found in re.findall(r"(?<![\\$\w}])\{[a-z_]\w*\}", CODE.sub("", text.get(language))):
                what = f"{found} is shown as it stands, since nothing fills it in"
                yield entry.finding((*location, language), what, "write the number, or put code into backquotes")


def names_used(written: str) -> set[str]:
    return {name for found in PLACEHOLDER.findall(written) for name in placeholder_names(found)}


def shown_names(names: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "nothing"


def placeholder_names(expression: str) -> set[str]:
    """Names inside a placeholder; none where the braces hold something else."""
    try:
        return names_in(expression)
    except KitError:
        return set()


def argument_findings(entry: Entry, question: NumberQuestion) -> Iterator[Finding]:
    used: set[str] = set()
    for name, expression in question.answer.arguments.items():
        if isinstance(expression, str) and not QUOTED.fullmatch(expression.strip()):
            try:
                used |= names_in(expression)
            except KitError as error:
                yield entry.finding(("answer", "arguments", name), error.message)
    for name in sorted(set(question.parameters) - used):
        yield entry.finding(("parameters", name), f"the answer does not depend on {name!r}", "use it or drop it")


def combinations(parameters: Mapping[str, Parameter]) -> Iterator[dict[str, Value]]:
    """All of them, or as many drawn ones where there are too many."""
    values = [domain(parameter) for parameter in parameters.values()]
    count = 1
    for each in values:
        count *= len(each)
    if count <= MAX_COMBINATIONS:
        for combination in product(*values):
            yield dict(zip(parameters, combination, strict=True))
        return
    for corner in islice(product(*((each[0], each[-1]) for each in values)), MAX_COMBINATIONS):
        yield dict(zip(parameters, corner, strict=True))
    rng = random.Random(0)
    for _ in range(MAX_COMBINATIONS):
        yield {name: drawn(parameter, rng) for name, parameter in parameters.items()}


def domain(parameter: Parameter) -> tuple[Value, ...] | range:
    if parameter.choices is not None:
        return parameter.choices
    assert parameter.min is not None and parameter.max is not None, "the schema asks for choices or a range"
    return range(parameter.min, parameter.max + 1)
