"""A parsed file held against its model: what pydantic found, as lines that say what to do."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kit.bank import schema
from kit.bank.closest import closest
from kit.bank.document import ContentError, Document, Location, kind_of

M = TypeVar("M", bound=BaseModel)

PATTERNS = {
    schema.NOT_BLANK: "must not be empty",
    schema.YEAR_MONTH: "expected a month as 2026-12",
    schema.WEB_ADDRESS: "expected an address that begins with https://",
    schema.DOTTED_NAME: "expected a name of torch, as torch.distributed.all_reduce",
    schema.COST_FUNCTION: "expected a function of the cost model, as pipeline.bubble_fraction",
    schema.MUTANT_NAME: "expected small letters, digits and hyphens, as summed-not-averaged",
    schema.BUG_ID: "expected a letter and a number, as D01",
    schema.COVERED: "expected F or C and a number from docs/coverage.md, as F12 or C3",
}

EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
}

OWN_RULES = {"scalar", "unit", "points", "options", "parameter", "parameters", "names", "program", "aside"}


def validate(model: type[M], document: Document, values: dict[str, Any]) -> M:
    """The model of `values`. Raises ContentError for the first problem in the order of lines."""
    found = problems(model, document, values)
    if isinstance(found, list):
        raise found[0]
    return found


def problems(model: type[M], document: Document, values: dict[str, Any]) -> M | list[ContentError]:
    """The model, or every problem of the file in the order of lines."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        details = error.errors(include_url=False)
    deeper = [detail["loc"] for detail in details]
    misspelt = {
        (*detail["loc"][:-1], meant)
        for detail in details
        if detail["type"] == "extra_forbidden"
        for meant in closest(str(detail["loc"][-1]), keys_at(model, detail["loc"][:-1]), limit=1)
    }
    shown = [
        problem(model, document, detail)
        for detail in details
        if not is_consequence(detail["type"], detail["loc"], deeper, misspelt)
    ]
    return sorted(shown, key=lambda each: each.line)


def is_consequence(kind: str, location: Location, deeper: Sequence[Location], misspelt: Collection[Location]) -> bool:
    """Whether another problem of the file explains this one.

    A misspelt key is also missing, and entries that failed are not counted, so that a list looks too short.
    """
    if kind == "missing":
        return location in misspelt
    length = len(location)
    return kind == "too_short" and any(len(each) > length and each[:length] == location for each in deeper)


def problem(model: type[BaseModel], document: Document, detail: ErrorDetails) -> ContentError:
    location = tuple(step for step in detail["loc"] if step != "[key]")
    kind = detail["type"]
    if kind == "extra_forbidden" or detail["loc"][-1:] == ("[key]",):
        return document.error(location, unknown_key(str(location[-1]), keys_at(model, location[:-1])))
    if kind == "missing":
        where = path_of(location[:-1])
        return document.error(location, f"missing key {location[-1]!r}{f' in {where}' if where else ''}")
    where = path_of(location)
    return document.error(location, f"{where}: {sentence(detail)}" if where else sentence(detail))


def unknown_key(key: str, known: list[str]) -> str:
    near = closest(key, known, limit=1)
    if near:
        return f"unknown key {key!r} (did you mean {near[0]!r}?)"
    return f"unknown key {key!r} (known here: {', '.join(known)})"


def keys_at(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that the mapping at `location` of a file may have."""
    annotation: Any = model
    for step in location:
        annotation = below(annotation, step)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [name for name in annotation.model_fields if name != "id"]
    return [str(name) for name in get_args(get_args(annotation)[0])]  # a dict whose keys are literals


def below(annotation: Any, step: int | str) -> Any:
    """The type of the entry `step` of a model, a mapping or a list, which may also be None."""
    if type(None) in get_args(annotation):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_fields[str(step)].annotation
    return get_args(annotation)[0 if isinstance(step, int) else 1]


def path_of(location: Location) -> str:
    """`("options", 2, "text")` -> `options[2].text`, counted from 0."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


def sentence(detail: ErrorDetails) -> str:
    """What was expected and what is there."""
    kind, given, bounds = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in OWN_RULES:
        return detail["msg"]
    if kind == "string_type":
        return f"expected a text, got {kind_of(given)}{quoting(given)}"
    if kind in EXPECTED:
        return f"expected {EXPECTED[kind]}, got {kind_of(given)}{writing(kind, given)}"
    if kind == "string_pattern_mismatch":
        return f"{PATTERNS[bounds['pattern']]}, got {given!r}" if given else PATTERNS[bounds["pattern"]]
    if kind in ("too_short", "too_long"):
        limit = bounds.get("min_length", bounds.get("max_length"))
        return (
            f"expected at {'least' if kind == 'too_short' else 'most'} {limit} entries, got {bounds['actual_length']}"
        )
    if kind in ("greater_than_equal", "less_than_equal", "less_than"):
        limit = bounds.get("ge", bounds.get("le", bounds.get("lt")))
        word = {"greater_than_equal": "at least", "less_than_equal": "at most", "less_than": "less than"}[kind]
        return f"must be {word} {limit:g}, got {given}"
    return detail["msg"]


def quoting(given: object) -> str:
    """Why YAML did not read a text, where one was probably meant."""
    if isinstance(given, bool):
        return " (YAML reads yes, no, on and off as true or false: quote the text)"
    if isinstance(given, int | float | datetime.date):
        return " (quote the text)"
    return ""


def writing(kind: str, given: object) -> str:
    """YAML 1.1 reads 1e-3 as a text."""
    is_number = kind == "float_type" and isinstance(given, str) and "e" in given.lower()
    return " (write 0.001 or 1.0e-3: YAML takes 1e-3 for a text)" if is_number else ""
