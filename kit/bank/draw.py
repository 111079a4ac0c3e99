"""What one sitting shows of a question, drawn by a seed: parameters of a `number`, positions of options and items."""

from __future__ import annotations

import importlib
import inspect
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kit.bank.arithmetic import evaluate, names_in
from kit.costmodel import units
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.bank.schema import Language, NumberQuestion, Option, Parameter, Question, Text

Value = int | float | str

PLACEHOLDER = re.compile(r"\{([^{}\n]+)\}")
QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True)
class Draw:
    """A question as it is shown with one seed.

    `order[position]` is the index in the file of what stands at that position; empty where nothing is shuffled.
    `answer` is what the cost model computes, in base units; None for the other kinds.
    """

    question: Question
    seed: int
    order: tuple[int, ...]
    parameters: Mapping[str, Value]
    answer: int | float | None

    def text(self, text: Text, language: Language) -> str:
        """A text of this question with the drawn numbers filled in."""
        return fill(text.get(language), self.values())

    def prompt(self, language: Language) -> str:
        return self.text(self.question.prompt, language)

    def working(self, language: Language) -> str:
        """How the number comes about. Raises KitError for another kind."""
        if self.question.kind != "number":
            raise KitError(f"{self.question.id} is of kind {self.question.kind} and has no working")
        return self.text(self.question.working, language)

    def options(self, language: Language) -> list[str]:
        """Options or items as they are shown; none for the other kinds."""
        question = self.question
        texts = [option.text for option in options_of(question)]
        if question.kind == "order":
            texts = list(question.items)
        return [self.text(texts[index], language) for index in self.order]

    def values(self) -> dict[str, Value]:
        """What placeholders may use: the parameters, and the answer in the question's unit."""
        if self.answer is None or self.question.kind != "number":
            return dict(self.parameters)
        return {**self.parameters, "answer": shown_answer(self.question, self.answer)}


def options_of(question: Question) -> tuple[Option, ...]:
    """The options as the file gives them; none for kinds that have none."""
    if question.kind == "choice" or question.kind == "multi" or question.kind == "predict":
        return question.options
    return ()


def draw(question: Question, seed: int) -> Draw:
    """The question as `seed` shows it; the same on every machine and version of Python."""
    rng = random.Random(f"{question.id} {seed}")
    options = options_of(question)
    if options:
        return Draw(question, seed, shuffled(len(options), rng), {}, None)
    if question.kind == "order":
        return Draw(question, seed, disordered(len(question.items), rng), {}, None)
    if question.kind == "number":
        parameters = {name: drawn(parameter, rng) for name, parameter in question.parameters.items()}
        return Draw(question, seed, (), parameters, compute(question, parameters))
    return Draw(question, seed, (), {}, None)


def below(limit: int, rng: random.Random) -> int:
    """0 .. limit-1. `random()` is the one method whose sequence Python promises to keep."""
    return int(rng.random() * limit)


def shuffled(count: int, rng: random.Random) -> tuple[int, ...]:
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = below(last + 1, rng)
        order[last], order[other] = order[other], order[last]
    return tuple(order)


def disordered(count: int, rng: random.Random) -> tuple[int, ...]:
    """A shuffle that is not the right order already."""
    right = tuple(range(count))
    while (order := shuffled(count, rng)) == right:
        pass
    return order


def drawn(parameter: Parameter, rng: random.Random) -> Value:
    if parameter.choices is not None:
        return parameter.choices[below(len(parameter.choices), rng)]
    assert parameter.min is not None and parameter.max is not None, "the schema asks for choices or a range"
    return parameter.min + below(parameter.max - parameter.min + 1, rng)


def compute(question: NumberQuestion, parameters: Mapping[str, Value]) -> int | float:
    """The answer in base units, from the cost model. Raises KitError where function or arguments are wrong."""
    function = cost_function(question.answer.function)
    arguments = {name: argument(expression, parameters) for name, expression in question.answer.arguments.items()}
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        raise KitError(f"{question.answer.function}{inspect.signature(function)}: {error}") from error
    answer = function(**arguments)
    if isinstance(answer, bool) or not isinstance(answer, int | float) or not math.isfinite(answer):
        raise KitError(f"{question.answer.function} gives {answer!r}, which is not a number to ask for")
    return answer


def argument(expression: Value, parameters: Mapping[str, Value]) -> Value:
    """A number, a quoted text, the name of a parameter, or arithmetic over parameters."""
    if not isinstance(expression, str):
        return expression
    quoted = QUOTED.fullmatch(expression.strip())
    if quoted:
        return quoted[1]
    if expression.strip() in parameters:
        return parameters[expression.strip()]
    return evaluate(expression, parameters)


def cost_function(name: str) -> Callable[..., object]:
    """`"pipeline.bubble_fraction"` of kit.costmodel. Raises KitError where there is none of that name."""
    module_name, function_name = name.split(".")
    try:
        module = importlib.import_module(f"kit.costmodel.{module_name}")
    except ModuleNotFoundError:
        raise KitError(f"kit.costmodel has no module {module_name!r}") from None
    function = getattr(module, function_name, None)
    if not inspect.isfunction(function) or function.__module__ != module.__name__:
        raise KitError(f"kit.costmodel.{module_name} has no function {function_name!r}")
    return function


def shown_answer(question: NumberQuestion, answer: int | float) -> str:
    """The answer as a person reads it, in the question's unit."""
    base = units.unit_named(question.unit).dimension
    return units.show(units.convert(answer, base, question.unit), question.unit)


def fill(text: str, values: Mapping[str, Value]) -> str:
    """`{p}` and `{p - 1}` become numbers; other braces stay as they are."""
    return PLACEHOLDER.sub(lambda found: filled(found, values), text)


def filled(found: re.Match[str], values: Mapping[str, Value]) -> str:
    expression = found[1].strip()
    if expression in values:
        return plain(values[expression])
    try:
        names = names_in(expression)
    except KitError:
        return found[0]
    return plain(evaluate(expression, values)) if names and names <= set(values) else found[0]


def plain(value: Value) -> str:
    """As it may stand inside a formula: `2048`, `7.5`, `0.0909091`."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
