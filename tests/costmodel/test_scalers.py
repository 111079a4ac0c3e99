"""Loss scalers against torch's own kernel, and against histories worked out by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import scalers
from kit.errors import KitError

HISTORIES = st.text(alphabet=".x", min_size=1, max_size=60)


@given(HISTORIES, st.integers(1, 5), st.sampled_from([1.0, 65536.0, 2.0**126]))
def test_torch_s_kernel_agrees(history: str, interval: int, initial: float) -> None:
    """torch._amp_update_scale_, which also refuses to grow beyond what fp32 holds."""
    scale, tracker = torch.tensor(initial), torch.tensor(0, dtype=torch.int32)
    for step in history:
        torch._amp_update_scale_(scale, tracker, torch.tensor(float(step == "x")), 2.0, 0.5, interval)
    state = scalers.after("torch", history, initial_scale=initial, growth_interval=interval)
    assert (state.scale, state.num_clean) == (scale.item(), tracker.item())
    assert state.num_skipped == history.count("x")


@given(HISTORIES, st.integers(2, 5))
def test_without_hysteresis_three_of_them_agree(history: str, interval: int) -> None:
    """Far from floors, with hysteresis 1, torch, DeepSpeed with ZeRO and Megatron do the same."""
    found = {
        scalers.after(name, history, 2.0**40, interval, *extra).scale
        for name, extra in (("torch", ()), ("deepspeed", (1,)), ("megatron", (1,)))
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("implementation", "history", "exponent"),
    [
        # Window 3, hysteresis 2, from 2^10.
        ("deepspeed", "x x x", 8),
        ("megatron", "x x x", 8),
        ("deepspeed", "x . x", 9),
        ("megatron", "x . x", 9),
        ("deepspeed", "x ... x", 11),
        ("megatron", "x ... x", 11),
        ("deepspeed", ".. x ..", 10),
        ("megatron", ".. x ..", 10),
    ],
)
def test_hysteresis_by_hand(implementation: str, history: str, exponent: int) -> None:
    assert scalers.after(implementation, history, 2.0**10, 3, 2).scale == 2.0**exponent


def test_consecutive_hysteresis_is_refilled_by_any_clean_step() -> None:
    usual = scalers.after("deepspeed", "x . x . x", 2.0**10, 100, 2)
    consecutive = scalers.after("deepspeed", "x . x . x", 2.0**10, 100, 2, consecutive_hysteresis=True)
    assert (usual.scale, consecutive.scale) == (2.0**8, 2.0**10)


def test_the_fused_optimizer_counts_from_the_step_after() -> None:
    grown = [scalers.after("deepspeed_fused", "." * steps, 1024, 3).scale for steps in range(9)]
    assert grown == [1024] * 4 + [2048] * 3 + [4096] * 2
    assert scalers.after("deepspeed_fused", "x ....", 1024, 3).scale == 1024


def test_floors() -> None:
    assert scalers.after("megatron", "x x x x", 2, 10, 1, min_scale=1).scale == 1
    assert scalers.after("deepspeed_fused", "x x x x", 2).scale == 1
    assert scalers.after("torch", "x x x x", 2).scale == 0.125
    with pytest.raises(KitError, match="DeepSpeed ends the run: overflow with the loss scale at its minimum, 1"):
        scalers.after("deepspeed", "x x x", 2, hysteresis=1)


@pytest.mark.parametrize("implementation", scalers.SCALERS)
def test_steps_to_a_scale_are_the_fewest(implementation: str) -> None:
    steps = scalers.steps_to_scale(implementation, 2**12, 2**10, 7)
    assert scalers.scale_after(implementation, steps, initial_scale=2**10, growth_interval=7) == 2**12
    assert scalers.scale_after(implementation, steps - 1, initial_scale=2**10, growth_interval=7) == 2**11


@pytest.mark.parametrize(("implementation", "lost"), [("torch", 0), ("deepspeed", 0), ("megatron", 17)])
def test_steps_lost_at_the_start(implementation: str, lost: int) -> None:
    assert scalers.steps_lost_to_reach(implementation, 65536) == lost


def test_a_history_in_numbers_and_in_letters() -> None:
    assert scalers.scale_after("torch", 3, 2, 3, 1, initial_scale=1024, growth_interval=3) == 512
    assert scalers.scale_after_history("torch", "3*. 2*x 3*. x", 1024, 3) == 512


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: scalers.after("apex", "."),
            "implementation must be one of torch, deepspeed, deepspeed_fused, megatron, got 'apex'",
        ),
        (lambda: scalers.after("torch", "ok"), "history: expected words like '.', 'x', '..x' or '2000*.', got 'ok'"),
        (lambda: scalers.after("torch", "*."), "history: expected words like '.', 'x', '..x' or '2000*.', got '*.'"),
        (lambda: scalers.after("torch", ".", hysteresis=2), "torch's scaler has no hysteresis, got 2"),
        (lambda: scalers.after("torch", ".", min_scale=1), "torch's scaler has no smallest scale, got 1"),
        (
            lambda: scalers.after("megatron", ".", consecutive_hysteresis=True),
            "only deepspeed's scaler has consecutive_hysteresis, not megatron's",
        ),
        (
            lambda: scalers.after("megatron", ".", 0.5),
            "initial_scale must be above 0 and at least min_scale=1, got 0.5",
        ),
        (lambda: scalers.scale_after("torch", -1), "clean_before must be a whole number from 0 to 1000000, got -1"),
        (lambda: scalers.steps_lost_to_reach("torch", 0), "usable_scale=0 is below what the scale can reach, 0"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
