"""A small bank on disk, whole and without a fault, for tests to break one thing in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.bank.layout import Bank


def text(english: str, chinese: str = "中文") -> dict[str, str]:
    return {"en": english, "zh": chinese}


COMMON: dict[str, Any] = {
    "level": 2,
    "title": text("A title", "标题"),
    "prompt": text("What is it?\n", "是什么？\n"),
    "hints": [text("Look."), text("Look again.")],
    "explanation": text("It is so."),
    "follow_ups": [{"question": text("Why?"), "answer": text("Because.")}],
    "sources": [{"title": "A paper", "where": "section 2"}],
}

OPTIONS = [
    {"text": text("Twice as much.", "两倍。"), "correct": True, "why": text("Two halves.")},
    {"text": text("Three times as much.", "三倍的量。"), "why": text("That is another thing.")},
    {"text": text("Four times as much.", "四倍的量。"), "why": text("So is that.")},
]

QUESTIONS: dict[str, dict[str, Any]] = {
    "choice": {"kind": "choice", **COMMON, "options": OPTIONS},
    "multi": {"kind": "multi", **COMMON, "options": OPTIONS},
    "order": {
        "kind": "order",
        **COMMON,
        "items": [text("First.", "第一"), text("Second.", "第二"), text("Third.", "第三"), text("Fourth.", "第四")],
    },
    "number": {
        "kind": "number",
        **COMMON,
        "prompt": text("Which fraction idles with {p} stages and {m} microbatches?", "{p} 个 stage、{m} 个？"),
        "parameters": {"p": {"choices": [2, 4]}, "m": {"min": 8, "max": 9}},
        "answer": {
            "function": "pipeline.bubble_fraction",
            "arguments": {"num_stages": "p", "num_microbatches": "m", "schedule": "'gpipe'"},
        },
        "unit": "fraction",
        "convention": text("Idle / makespan.", "空闲 / makespan。"),
        "working": text("({p}-1)/({m}+{p - 1}) = {answer}", "(所求) ({p}-1)/({m}+{p - 1}) = {answer}"),
    },
    "predict": {
        "kind": "predict",
        **COMMON,
        "world_size": 2,
        "program": "import torch.distributed as dist\n\nprint(dist.get_rank())\n",
        "outcome": "prints",
        "expect": "0\n1\n",
        "options": [
            {"text": text("`0 1`", "打印 `0 1`"), "correct": True, "why": text("Two ranks.")},
            {"text": text("`0 0`", "打印 `0 0`"), "why": text("They differ.")},
            {"text": text("`1 2`", "打印 `1 2`"), "why": text("They count from 0.")},
        ],
    },
    "open": {
        "kind": "open",
        **COMMON,
        "rubric": [
            {"point": text("Says that it is so.", "说了如此。"), "weight": 2},
            {"point": text("Says why.", "说了原因。"), "weight": 1},
            {"point": text("Says when it is not.", "说了例外。"), "weight": 1},
            {"point": text("Gives a figure.", "给了数字。"), "weight": 1},
        ],
        "model_answer": text("It is so, because it is.", "如此，因为如此。"),
    },
    "code": {
        "kind": "code",
        **COMMON,
        "interface": ["def add(tensor, group=None)", "class Adder(module, *, scale=1)", "Adder.finish(times)"],
        "points": {"values": 4, "discipline": 2},
    },
}

ANSWER = '''"""Adds."""

import torch
import torch.distributed as dist


def add(tensor: torch.Tensor, group: dist.ProcessGroup | None = None) -> None:
    tensor.add_(1)
    tensor.mul_(2)
    tensor.sub_(3)


class Adder(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, *, scale: int = 1) -> None:
        super().__init__()
        self.module = module
        self.scale = scale

    def finish(self, times):
        return times * self.scale
'''

STARTER = '''"""Adds."""

import torch


def add(tensor, group=None):
    raise NotImplementedError


class Adder(torch.nn.Module):
    def __init__(self, module, *, scale=1):
        raise NotImplementedError

    def finish(self, times):
        raise NotImplementedError
'''

CHECKS = '''"""Checks."""

from kit.grading import Scenario, compare

ADD = Scenario(None)


@ADD.completes
def test_every_rank_finishes(run):
    """No rank hangs."""


@ADD.check("values")
def test_it_adds(run):
    """The sum is right."""
    compare(run.ranks, run.expected, what="sum", rank=0)
'''

EDITS = [
    ("tensor.add_(1)", "tensor.add_(2)", ["test_it_adds"]),
    ("tensor.mul_(2)", "tensor.mul_(3)", ["test_it_adds"]),
    ("tensor.sub_(3)", "tensor.sub_(4)", ["test_it_adds"]),
    ("    tensor.add_(1)\n", "", ["test_it_adds"]),
    ("self.scale = scale", "self.scale = 0", ["test_it_adds"]),
    ("tensor.mul_(2)", "raise ValueError", ["test_every_rank_finishes", "test_it_adds"]),
]
MUTANTS = {
    "mutants": [
        {
            "name": f"wrong-{number}",
            "what": text("It is wrong."),
            "edits": [{"find": find, "replace": replace}],
            "caught_by": caught_by,
        }
        for number, (find, replace, caught_by) in enumerate(EDITS, 1)
    ]
}

Change = Callable[[dict[str, Any]], object]


class BankBuilder:
    """Writes questions, and hands out the bank that they make."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "questions").mkdir(parents=True)
        (root / "reference").mkdir()

    @property
    def bank(self) -> Bank:
        return Bank(self.root)

    def write(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return target

    def question(self, kind: str, question_id: str = "", change: Change | None = None) -> str:
        """A question of that kind, valid until `change` gets at its values; its files too."""
        question_id = question_id or f"topic/{kind}"
        topic, slug = question_id.split("/")
        values = copy.deepcopy(QUESTIONS[kind])
        if change is not None:
            change(values)
        self.write(f"questions/{question_id}.yaml", as_yaml(values))
        self.readme(topic)
        if kind == "code":
            self.write(f"questions/{question_id}.py", STARTER)
            self.write(f"questions/{topic}/test_{slug}.py", CHECKS)
            self.write(f"reference/{question_id}.py", ANSWER)
            self.write(f"reference/{question_id}.variants/one.py", ANSWER.replace("times * ", "times*"))
            self.write(f"reference/{question_id}.variants/two.py", ANSWER + "\n\nUNUSED = 1\n")
            self.mutants(question_id)
        return question_id

    def readme(self, topic: str) -> None:
        """The topic's README, which names every question that the topic has by now."""
        slugs = [path.stem for path in sorted((self.root / "questions" / topic).glob("*.yaml"))]
        english = "\n".join(f"{number}. `{slug}`: a part." for number, slug in enumerate(slugs, 1))
        chinese = "\n".join(f"{number}. `{slug}`：一部分。" for number, slug in enumerate(slugs, 1))
        self.write(
            f"questions/{topic}/README.md",
            f"# A topic\n\n## In this order\n\n{english}\n\n## 中文说明\n\n建议的顺序：\n\n{chinese}\n",
        )

    def mutants(self, question_id: str, change: Change | None = None) -> None:
        values = copy.deepcopy(MUTANTS)
        if change is not None:
            change(values)
        self.write(f"reference/{question_id}.mutants.yaml", as_yaml(values))

    def edit(self, path: str, old: str, new: str) -> None:
        target = self.root / path
        before = target.read_text(encoding="utf-8")
        assert before.count(old) == 1, (old, before)
        target.write_text(before.replace(old, new), encoding="utf-8")


def as_yaml(values: dict[str, Any]) -> str:
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)


@pytest.fixture
def build(tmp_path: Path) -> BankBuilder:
    return BankBuilder(tmp_path / "bank")
