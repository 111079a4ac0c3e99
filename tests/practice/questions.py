"""Small questions made by hand."""

from __future__ import annotations

from typing import Any

from kit.bank.schema import (
    ChoiceQuestion,
    MultiQuestion,
    NumberQuestion,
    OpenQuestion,
    OrderQuestion,
    PredictQuestion,
)


def both(text: str) -> dict[str, str]:
    return {"en": text, "zh": f"中文 {text}"}


def base(kind: str, slug: str) -> dict[str, Any]:
    return {
        "id": f"topic/{slug}",
        "kind": kind,
        "level": 1,
        "title": both(f"title of {slug}"),
        "prompt": both(f"prompt of {slug}"),
        "hints": [both("first hint"), both("second hint")],
        "explanation": both("the explanation"),
        "follow_ups": [{"question": both("why so"), "answer": both("because")}],
        "sources": [{"title": "A paper", "where": "section 1"}],
    }


def options(*is_correct: bool) -> list[dict[str, Any]]:
    return [
        {"text": both(f"option {number}"), "correct": correct, "why": both(f"reason {number}")}
        for number, correct in enumerate(is_correct)
    ]


def choice(slug: str = "choice") -> ChoiceQuestion:
    return ChoiceQuestion.model_validate({**base("choice", slug), "options": options(True, False, False)})


def multi(slug: str = "multi") -> MultiQuestion:
    return MultiQuestion.model_validate({**base("multi", slug), "options": options(True, False, True, False)})


def number(slug: str = "number") -> NumberQuestion:
    return NumberQuestion.model_validate(
        {
            **base("number", slug),
            "prompt": both("A tensor of {size} bytes on {n} ranks: how much does a rank send?"),
            "parameters": {"size": {"choices": [8_000_000_000]}, "n": {"choices": [4]}},
            "answer": {
                "function": "collectives.all_reduce_bytes",
                "arguments": {"buffer_bytes": "size", "world_size": "n"},
            },
            "unit": "B",
            "convention": both("GB = 1e9 bytes"),
            "tolerance": 0.01,
            "working": both("2({n}-1)/{n} x {size} = {answer}"),
        }
    )


def order(slug: str = "order") -> OrderQuestion:
    return OrderQuestion.model_validate({**base("order", slug), "items": [both(f"item {place}") for place in range(4)]})


def predict(slug: str = "predict") -> PredictQuestion:
    """Its right option is the first, and its output looks like Markdown."""
    program = "import torch.distributed as dist\n\nif dist.get_rank() == 1:\n    print('*', [1])\n"
    wanted = options(True, False, False)
    wanted[0]["text"] = both("`* [1]`")
    return PredictQuestion.model_validate(
        {
            **base("predict", slug),
            "world_size": 2,
            "program": program,
            "outcome": "prints",
            "expect": "* [1]",
            "options": wanted,
        }
    )


def open_ended(slug: str = "open") -> OpenQuestion:
    """Four points that weigh 1, 2, 3 and 4."""
    return OpenQuestion.model_validate(
        {
            **base("open", slug),
            "rubric": [{"point": both(f"point {place}"), "weight": place + 1} for place in range(4)],
            "model_answer": both("the model answer"),
        }
    )
