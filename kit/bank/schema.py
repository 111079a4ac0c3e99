"""What a question may contain: one strict model for each kind, as its YAML file spells it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from kit.bank.closest import closest
from kit.bank.document import kind_of
from kit.costmodel import units

Proof = Literal["values", "traffic", "memory", "time", "discipline"]
Language = Literal["en", "zh"]
Outcome = Literal["prints", "hangs", "raises", "race", "mismatch"]

NOT_BLANK = r"\S"
YEAR_MONTH = r"^\d{4}-(0[1-9]|1[0-2])$"
WEB_ADDRESS = r"^https?://\S+$"
MUTANT_NAME = r"^[a-z0-9]+(-[a-z0-9]+)*$"
BUG_ID = r"^[A-Z]+\d+[a-z]?$"
DOTTED_NAME = r"^torch(\.[A-Za-z_]\w*)+$"
COST_FUNCTION = r"^[a-z_]+\.[a-z0-9_]+$"
COVERED = r"^[FC][1-9]\d*$"


def scalar(value: object) -> int | float | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("scalar", "expected a number or a text, got {kind}", {"kind": kind_of(value)})
    return value


def known_unit(unit: str) -> str:
    if unit in units.UNITS:
        return unit
    near = closest(unit, units.UNITS)
    meant = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(units.UNITS)}"
    raise PydanticCustomError("unit", "unknown unit '{unit}' ({meant})", {"unit": unit, "meant": meant})


def program_text(program: str) -> str:
    try:
        compile(program, "program", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        what = "does not compile: line {line} of it: {reason}"
        raise PydanticCustomError(
            "program", what, {"line": line, "reason": getattr(error, "msg", str(error))}
        ) from None
    return program


def all_differ(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PydanticCustomError("names", "'{name}' is there twice", {"name": twice[0]})
    return names


Line = Annotated[str, Field(pattern=NOT_BLANK)]
YearMonth = Annotated[str, Field(pattern=YEAR_MONTH)]
DottedName = Annotated[str, Field(pattern=DOTTED_NAME)]
Count = Annotated[int, Field(ge=1)]
Scalar = Annotated[int | float | str, PlainValidator(scalar)]
Program = Annotated[str, Field(pattern=NOT_BLANK), AfterValidator(program_text)]
WorldSize = Annotated[int, Field(ge=1, le=8)]


class Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Text(Model):
    """What a person reads, in both languages."""

    en: Line
    zh: Line

    def get(self, language: Language) -> str:
        return self.en if language == "en" else self.zh


class FollowUp(Model):
    question: Text
    answer: Text


class Source(Model):
    title: Line
    where: Line  # section, table or line
    url: Annotated[str, Field(pattern=WEB_ADDRESS)] | None = None
    date: YearMonth | None = None


class Experiment(Model):
    """A program for the switchboard, run by every rank, and what comes of it.

    `expect` is all that the ranks print, in the order of ranks, of a program that `prints`; a part of the error's text
    of one that `raises`; a part of the diagnosis of the others.
    """

    world_size: WorldSize
    program: Program
    outcome: Outcome
    expect: Line


class BaseQuestion(Model):
    id: str  # given by the path, never written in the file
    level: Annotated[int, Field(ge=1, le=4)]
    title: Text
    prompt: Text
    tags: Annotated[tuple[Line, ...], Field(strict=False)] = ()
    requires: Annotated[tuple[Line, ...], Field(strict=False)] = ()
    hints: Annotated[tuple[Text, ...], Field(strict=False, min_length=2)]
    explanation: Text
    follow_ups: Annotated[tuple[FollowUp, ...], Field(strict=False, min_length=1)]
    sources: Annotated[tuple[Source, ...], Field(strict=False, min_length=1)]
    as_of: YearMonth | None = None
    covers: Annotated[
        tuple[Annotated[str, Field(pattern=COVERED)], ...], Field(strict=False), AfterValidator(all_differ)
    ] = ()
    proof: Experiment | None = None  # that a claim of the question is true

    @property
    def topic(self) -> str:
        return self.id.split("/")[0]


class CodeQuestion(BaseQuestion):
    kind: Literal["code"]
    interface: Annotated[tuple[Line, ...], Field(strict=False, min_length=1)]
    # What would be the answer.
    forbidden: Annotated[tuple[DottedName, ...], Field(strict=False), AfterValidator(all_differ)] = ()
    points: Annotated[dict[Proof, Count], Field(min_length=1)]
    shared_dir: bool = False

    @field_validator("points")
    @classmethod
    def values_are_scored(cls, points: dict[Proof, int]) -> dict[Proof, int]:
        if "values" not in points:
            raise PydanticCustomError("points", "no points for 'values', without which a score is 0")
        return points


class Option(Model):
    text: Text
    correct: bool = False
    why: Text


def exactly_one_is_correct(options: tuple[Option, ...]) -> tuple[Option, ...]:
    count = sum(option.correct for option in options)
    if count != 1:
        what = "{count} options have 'correct: true', and this kind takes exactly 1"
        raise PydanticCustomError("options", what, {"count": count})
    return options


Options = Annotated[tuple[Option, ...], Field(strict=False, min_length=3, max_length=6)]
OneCorrect = Annotated[Options, AfterValidator(exactly_one_is_correct)]


class ChoiceQuestion(BaseQuestion):
    kind: Literal["choice"]
    options: OneCorrect


class MultiQuestion(BaseQuestion):
    kind: Literal["multi"]
    options: Options

    @field_validator("options")
    @classmethod
    def some_are_correct_and_some_wrong(cls, options: tuple[Option, ...]) -> tuple[Option, ...]:
        count = sum(option.correct for option in options)
        if not 0 < count < len(options):
            what = "{count} of {total} options are correct, and kind 'multi' takes at least 1 correct and 1 wrong"
            raise PydanticCustomError("options", what, {"count": count, "total": len(options)})
        return options


class Parameter(Model):
    """Where a parameter's value is drawn from: `choices`, or whole numbers from `min` to `max`, both included."""

    choices: Annotated[tuple[Scalar, ...], Field(strict=False, min_length=1)] | None = None
    min: int | None = None
    max: int | None = None

    @model_validator(mode="after")
    def is_choices_or_range(self) -> Parameter:
        has_range = self.min is not None and self.max is not None
        if (self.choices is None) != has_range or (self.min is None) != (self.max is None):
            raise PydanticCustomError("parameter", "expected either 'choices' or both 'min' and 'max'")
        if self.min is not None and self.max is not None and self.min > self.max:
            what = "min {min} is above max {max}"
            raise PydanticCustomError("parameter", what, {"min": self.min, "max": self.max})
        return self


class Answer(Model):
    """The function of kit.costmodel that computes the answer, and its arguments as arithmetic over parameters."""

    function: Annotated[str, Field(pattern=COST_FUNCTION)]
    arguments: dict[str, Scalar]


class NumberQuestion(BaseQuestion):
    kind: Literal["number"]
    parameters: Annotated[dict[str, Parameter], Field(min_length=1)]
    answer: Answer
    unit: str
    convention: Text
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.01  # relative
    working: Text

    _unit = field_validator("unit")(staticmethod(known_unit))

    @field_validator("parameters")
    @classmethod
    def names_are_words(cls, parameters: dict[str, Parameter]) -> dict[str, Parameter]:
        for name in parameters:
            if not name.isidentifier() or name == "answer":
                what = "{name} cannot name a parameter; take a word other than 'answer'"
                raise PydanticCustomError("parameters", what, {"name": repr(name)})
        return parameters


class OrderQuestion(BaseQuestion):
    kind: Literal["order"]
    items: Annotated[tuple[Text, ...], Field(strict=False, min_length=3, max_length=9)]


class PredictQuestion(BaseQuestion):
    """What does this program do? Its fields are those of an Experiment, and it is answered like a choice."""

    kind: Literal["predict"]
    world_size: WorldSize
    program: Program
    outcome: Outcome
    expect: Line
    options: OneCorrect

    @field_validator("options")
    @classmethod
    def right_option_says_what_is_printed(
        cls, options: tuple[Option, ...], fields: ValidationInfo
    ) -> tuple[Option, ...]:
        expect = " ".join(str(fields.data.get("expect", "")).split())
        if fields.data.get("outcome") == "prints":
            for option in options:
                for language, text in (("en", option.text.en), ("zh", option.text.zh)):
                    if option.correct and expect not in " ".join(text.split()):
                        what = "the right option does not say {expect} in {language}, which is what is printed"
                        raise PydanticCustomError("options", what, {"expect": repr(expect), "language": repr(language)})
        return options

    @property
    def experiment(self) -> Experiment:
        return Experiment(world_size=self.world_size, program=self.program, outcome=self.outcome, expect=self.expect)


class RubricPoint(Model):
    point: Text
    weight: Count


class OpenQuestion(BaseQuestion):
    kind: Literal["open"]
    rubric: Annotated[tuple[RubricPoint, ...], Field(strict=False, min_length=4)]
    model_answer: Text


Question = (
    CodeQuestion | ChoiceQuestion | MultiQuestion | NumberQuestion | OrderQuestion | PredictQuestion | OpenQuestion
)

MODELS: dict[str, type[Question]] = {
    "code": CodeQuestion,
    "choice": ChoiceQuestion,
    "multi": MultiQuestion,
    "number": NumberQuestion,
    "order": OrderQuestion,
    "predict": PredictQuestion,
    "open": OpenQuestion,
}


class Edit(Model):
    """aside: it only goes along with the mistake, so that its lines are no answer to "which line is wrong?"."""

    find: Annotated[str, Field(min_length=1)]
    replace: str
    aside: bool = False


class Mutant(Model):
    """A wrong answer: small edits of the reference, and exactly the checks that fail on it.

    also_at: pieces of the mutated file, each in it once, that no edit touches and that are as wrong as what one does.
    """

    name: Annotated[str, Field(pattern=MUTANT_NAME)]
    bug: Annotated[str, Field(pattern=BUG_ID)] | None = None
    what: Text
    edits: Annotated[tuple[Edit, ...], Field(strict=False, min_length=1)]
    also_at: Annotated[tuple[Line, ...], Field(strict=False)] = ()
    caught_by: Annotated[tuple[Line, ...], Field(strict=False, min_length=1)]
    says: Line | None = None

    @field_validator("edits")
    @classmethod
    def one_edit_is_the_mistake(cls, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        if all(edit.aside for edit in edits):
            raise PydanticCustomError("aside", "all edits are aside; one has to be the mistake")
        return edits


class MutantFile(Model):
    mutants: Annotated[tuple[Mutant, ...], Field(strict=False, min_length=1)]

    @field_validator("mutants")
    @classmethod
    def names_differ(cls, mutants: tuple[Mutant, ...]) -> tuple[Mutant, ...]:
        names = [mutant.name for mutant in mutants]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise PydanticCustomError("names", "two mutants are called '{name}'", {"name": twice[0]})
        return mutants
