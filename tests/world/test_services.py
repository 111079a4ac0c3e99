"""Layers that the deciding process evaluates: values, charges, and what goes wrong."""

from __future__ import annotations

import pytest
import torch

from kit.world import Charged, World, WorldError
from tests.world.programs_services import between_operations, scaled, wrong_call


@pytest.mark.parametrize("transport", ["switchboard", "gloo"])
def test_a_service_computes_for_the_rank_that_calls(zygote, transport):
    seen = []

    def scale(rank, x, name):
        seen.append((rank, name))
        return (x * (10 + rank)).tolist() if name == "small" else x * (10 + rank)

    world = World(3, zygote=zygote, transport=transport, services={"scale": scale})
    result = world.run(scaled, [torch.tensor([1.5, float(rank)], dtype=torch.float64) for rank in range(3)])
    for rank in range(3):
        assert result.ranks[rank]["small"] == [1.5 * (10 + rank), rank * (10.0 + rank)]
        assert result.ranks[rank]["large"] == ((rank + 1) * (10.0 + rank), (rank + 1) * (10.0 + rank), 300_000)
    assert sorted(seen) == [(rank, name) for rank in range(3) for name in ("large", "small")]


def test_a_charge_stands_in_the_log_where_the_call_was(zygote):
    def work(rank, number):
        return Charged(None, seconds=1.0 + rank, what="F", label="layer", microbatch=number)

    trace = World(2, zygote=zygote, services={"work": work}).run(between_operations).trace
    for rank in range(2):
        log = [(event.kind, event.seconds, event.what, event.microbatch) for event in trace.events(rank)]
        assert log == [
            ("issue", 0.0, "", None),
            ("compute", 1.0 + rank, "F", 0),
            ("wait", 0.0, "", None),
            ("compute", 1.0 + rank, "F", 1),
        ]


def refuse(rank, kind):
    if kind == "value":
        raise ValueError(f"no such microbatch {kind!r}")
    if kind == "key":
        return {}["missing"]
    if kind == "bare":
        return object()
    return torch.zeros(2) + torch.zeros(3)


@pytest.mark.parametrize(
    ("service", "arguments", "name", "text"),
    [
        ("refuse", ["value"], "ValueError", "no such microbatch 'value'"),
        ("refuse", ["key"], "RuntimeError", "KeyError: 'missing'"),
        ("refuse", ["bare"], "RuntimeError", "value is a object"),
        ("refuse", ["shapes"], "RuntimeError", "size of tensor a (2) must match the size of tensor b (3)"),
        ("refuse", [], "RuntimeError", "missing 1 required positional argument: 'kind'"),
        ("reuse", ["value"], "ValueError", "no service 'reuse'; there are: refuse"),
    ],
)
def test_what_a_service_raises_is_raised_in_the_rank(zygote, service, arguments, name, text):
    world = World(1, zygote=zygote, services={"refuse": refuse})
    raised, message = world.run(wrong_call, [{"service": service, "arguments": arguments}]).ranks[0]
    assert raised == name
    assert text in message


def test_an_error_of_a_service_is_told_at_the_line_of_the_program(zygote):
    with pytest.raises(WorldError) as caught:
        World(2, zygote=zygote, services={"work": refuse}).run(between_operations)
    assert caught.value.kind == "crash"
    assert "RuntimeError" in str(caught.value)
    assert "programs_services.py" in caught.value.site
