"""YAML files with line numbers in every complaint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kit.errors import KitError

Location = Sequence[int | str]


class ContentError(KitError):
    """A file of the bank breaks a rule: `path:line: what`."""

    def __init__(self, path: str, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}")
        self.path = path
        self.line = line
        self.what = what


class WrongKey(yaml.MarkedYAMLError):
    pass


class Loader(yaml.CSafeLoader):
    """The safe loader in C, which also refuses a key that is given twice."""

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, ScalarNode):
                raise WrongKey(problem="a key must be a word, not a list or mapping", problem_mark=key.start_mark)
            if key.value in first:
                what = f"duplicate key {key.value!r}, first on line {first[key.value]}"
                raise WrongKey(problem=what, problem_mark=key.start_mark)
            first[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML mapping and where it came from."""

    path: str
    text: str
    values: dict[str, Any]
    _nodes: list[Node] = field(default_factory=list)

    def line(self, location: Location, *, of_key: bool = False) -> int:
        """Line of the value at `location`, as far as it exists; of its key with `of_key`."""
        if not self._nodes:  # composed only when something is wrong
            root = yaml.compose(self.text, Loader=yaml.CSafeLoader)
            assert root is not None, "the text was parsed before"
            self._nodes.append(root)
        node: Node = self._nodes[0]
        line = node.start_mark.line
        for step in location:
            if isinstance(node, MappingNode):
                found = next((pair for pair in node.value if pair[0].value == step), None)
                if found is None:
                    break
                node = found[1]
                line = (found[0] if of_key else node).start_mark.line
            elif isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line
            else:
                break
        return int(line) + 1

    def error(self, location: Location, what: str, *, of_key: bool = True) -> ContentError:
        return ContentError(self.path, self.line(location, of_key=of_key), what)


def read_text(path: Path, shown: str) -> str:
    """The text of a file of the bank. Raises KitError where it cannot be read or is not UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise KitError(f"{shown}: cannot be read: {error.strerror}") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ContentError(shown, line, f"not UTF-8 text (byte 0x{content[error.start]:02x})") from error


def parse(text: str, shown: str) -> Document:
    """A YAML mapping. Raises ContentError on malformed YAML, a duplicate key, or anything but a mapping."""
    values = parse_any(text, shown)
    if values is None:
        raise ContentError(shown, 1, "empty file; expected a mapping of keys")
    if not isinstance(values, dict):
        raise ContentError(shown, 1, f"expected a mapping of keys, got {kind_of(values)}")
    return Document(shown, text, values)


def parse_any(text: str, shown: str) -> Any:
    try:
        return yaml.load(text, Loader=Loader)  # a subclass of the safe loader
    except WrongKey as error:
        assert error.problem_mark is not None
        raise ContentError(shown, error.problem_mark.line + 1, str(error.problem)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ContentError(shown, mark.line + 1 if mark else 1, f"malformed YAML: {advice(error)}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ContentError(shown, first_unprintable_line(text), f"malformed YAML: {reason(error)}") from error


def advice(error: yaml.MarkedYAMLError) -> str:
    """The parser's complaint, with the cure of the commonest one."""
    problem = str(error.problem)
    if problem.startswith("mapping values are not allowed"):
        return f"{problem} (quote a text that contains ': ')"
    if "found character '\\t'" in problem or "cannot start any token" in problem:
        return f"{problem} (indent with spaces, quote a text that begins with a sign)"
    return problem


def reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return " ".join(str(getattr(error, "reason", error)).split())


def first_unprintable_line(text: str) -> int:
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def kind_of(value: object) -> str:
    """What a YAML value is, in words: `a list`, `the number 8`, `true`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value!r}"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= 40 else f"a text ({value[:30]!r}...)"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    return f"a {type(value).__name__}"
