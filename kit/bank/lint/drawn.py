"""A `number` question can be drawn, computed and read, whatever the seed gives."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING

from kit.bank.arithmetic import names_in
from kit.bank.draw import PLACEHOLDER, QUOTED, Value, compute, drawn
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding
from kit.costmodel import units
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.bank.schema import NumberQuestion, Parameter

MAX_COMBINATIONS = 500

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
    for parameters in combinations(question.parameters):
        try:
            compute(question, parameters)
        except KitError as error:
            drawn_as = ", ".join(f"{name} = {value}" for name, value in parameters.items())
            yield entry.finding(("answer",), f"no answer with {drawn_as}: {error.message}", "change the parameters")
            return


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
            used = {name for found in PLACEHOLDER.findall(written) for name in placeholder_names(found)}
            for name in sorted(used - known):
                yield entry.finding(
                    (*location, language), f"{{{name}}} is no parameter", f"known: {', '.join(sorted(known))}"
                )
            if "answer" in used and location[0] in ("title", "prompt", "hints", "convention"):
                yield entry.finding((*location, language), "{answer} is given away", "move it to working")
            if location == ("prompt",):
                for name in sorted(set(question.parameters) - used):
                    yield entry.finding((*location, language), f"the prompt does not say {{{name}}}", "name it")
            if location == ("working",) and "answer" not in used:
                yield entry.finding((*location, language), "the working does not end in {answer}", "add it")


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
