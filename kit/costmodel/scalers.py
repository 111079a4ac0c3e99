"""Dynamic loss scalers of torch, DeepSpeed and Megatron as state machines: (state, found_inf) -> state.

A step whose gradients hold an inf or NaN is skipped, and the scale may shrink; after enough clean steps it grows.
The three differ in hysteresis, in floors, and in which step grows the scale. Sources, read in 2026-12:
torch 2.13, torch/amp/grad_scaler.py and `_amp_update_scale_`; DeepSpeed, runtime/fp16/loss_scaler.py (with ZeRO) and
runtime/fp16/fused_optimizer.py (without); Megatron-LM, core/optimizer/grad_scaler.py and training/arguments.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from kit.costmodel.arguments import exact, one_of, quantity, whole
from kit.errors import KitError

FLOAT32_MAX = (2 - 2**-23) * 2.0**127


@dataclass(frozen=True, slots=True)
class Rules:
    """What a user sets. `hysteresis` overflows are forgiven but the last before the scale shrinks."""

    initial_scale: float
    growth_factor: float
    backoff_factor: float
    growth_interval: int
    hysteresis: int = 1
    min_scale: float = 0.0
    has_consecutive_hysteresis: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """`num_clean`: clean steps since the scale last moved or overflowed. `hysteresis`: overflows until it shrinks."""

    scale: float
    num_clean: int
    hysteresis: int
    num_skipped: int = 0


Scaler = Callable[[Rules, State, bool], State]


def torch_update(rules: Rules, state: State, found_inf: bool) -> State:
    """Shrinks on every overflow, without a floor; grows with the interval's last clean step, while fp32 holds it."""
    if found_inf:
        return State(state.scale * rules.backoff_factor, 0, state.hysteresis, state.num_skipped + 1)
    if state.num_clean + 1 < rules.growth_interval:
        return replace(state, num_clean=state.num_clean + 1)
    grown = state.scale * rules.growth_factor
    return replace(state, scale=grown if grown <= FLOAT32_MAX else state.scale, num_clean=0)


def megatron_update(rules: Rules, state: State, found_inf: bool) -> State:
    """Only growth refills the hysteresis: once it is used up, every further overflow shrinks the scale."""
    if found_inf:
        left = state.hysteresis - 1
        scale = max(state.scale * rules.backoff_factor, rules.min_scale) if left <= 0 else state.scale
        return State(scale, 0, left, state.num_skipped + 1)
    if state.num_clean + 1 < rules.growth_interval:
        return replace(state, num_clean=state.num_clean + 1)
    return replace(state, scale=state.scale * rules.growth_factor, num_clean=0, hysteresis=rules.hysteresis)


def deepspeed_update(rules: Rules, state: State, found_inf: bool) -> State:
    """With ZeRO: the last forgiven overflow stays used up until growth, or until any clean step if consecutive.

    Raises KitError where DeepSpeed ends the run: an overflow that would shrink a scale that is at its floor.
    """
    if found_inf:
        if state.hysteresis > 1:
            return State(state.scale, 0, state.hysteresis - 1, state.num_skipped + 1)
        if state.scale == rules.min_scale:
            raise KitError(f"DeepSpeed ends the run: overflow with the loss scale at its minimum, {rules.min_scale:g}")
        scale = max(state.scale * rules.backoff_factor, rules.min_scale)
        return State(scale, 0, state.hysteresis, state.num_skipped + 1)
    refilled = rules.hysteresis if rules.has_consecutive_hysteresis else state.hysteresis
    if state.num_clean + 1 < rules.growth_interval:
        return replace(state, num_clean=state.num_clean + 1, hysteresis=refilled)
    return replace(state, scale=state.scale * rules.growth_factor, num_clean=0, hysteresis=rules.hysteresis)


def deepspeed_fused_update(rules: Rules, state: State, found_inf: bool) -> State:
    """Without ZeRO: no hysteresis, stays at its floor, and grows one clean step later than the others, once.

    It counts clean steps before the present one, and their number must be a multiple of the interval above 0; so
    the first growth comes with clean step interval + 1, the next ones `interval` steps apart.
    """
    if found_inf:
        scale = max(state.scale * rules.backoff_factor, rules.min_scale)
        return State(scale, 0, state.hysteresis, state.num_skipped + 1)
    is_due = state.num_clean > 0 and state.num_clean % rules.growth_interval == 0
    scale = state.scale * rules.growth_factor if is_due else state.scale
    return replace(state, scale=scale, num_clean=state.num_clean + 1)


SCALERS: dict[str, tuple[Scaler, Rules]] = {
    "torch": (torch_update, Rules(2.0**16, 2.0, 0.5, 2000)),
    "deepspeed": (deepspeed_update, Rules(2.0**16, 2.0, 0.5, 1000, hysteresis=2, min_scale=1.0)),
    "deepspeed_fused": (deepspeed_fused_update, Rules(2.0**16, 2.0, 0.5, 1000, min_scale=1.0)),
    "megatron": (megatron_update, Rules(2.0**32, 2.0, 0.5, 1000, hysteresis=2, min_scale=1.0)),
}


def rules_of(
    implementation: str,
    initial_scale: float | None = None,
    growth_interval: int | None = None,
    hysteresis: int | None = None,
    min_scale: float | None = None,
    consecutive_hysteresis: bool | int = False,
) -> Rules:
    """The implementation's defaults, with what is given in their place."""
    one_of("implementation", implementation, SCALERS)
    defaults = SCALERS[implementation][1]
    if implementation in ("torch", "deepspeed_fused") and hysteresis not in (None, 1):
        raise KitError(f"{implementation}'s scaler has no hysteresis, got {hysteresis!r}")
    if implementation == "torch" and min_scale:
        raise KitError(f"torch's scaler has no smallest scale, got {min_scale!r}")
    if implementation != "deepspeed" and consecutive_hysteresis:
        raise KitError(f"only deepspeed's scaler has consecutive_hysteresis, not {implementation}'s")
    scale = quantity("initial_scale", defaults.initial_scale if initial_scale is None else initial_scale)
    floor = float(quantity("min_scale", defaults.min_scale if min_scale is None else min_scale))
    if scale <= 0 or scale < floor:
        raise KitError(f"initial_scale must be above 0 and at least min_scale={floor:g}, got {scale:g}")
    interval = defaults.growth_interval if growth_interval is None else growth_interval
    return replace(
        defaults,
        initial_scale=float(scale),
        growth_interval=whole("growth_interval", interval),
        hysteresis=whole("hysteresis", defaults.hysteresis if hysteresis is None else hysteresis),
        min_scale=floor,
        has_consecutive_hysteresis=bool(consecutive_hysteresis),
    )


def start(rules: Rules) -> State:
    return State(rules.initial_scale, 0, rules.hysteresis)


def after(
    implementation: str,
    history: str,
    initial_scale: float | None = None,
    growth_interval: int | None = None,
    hysteresis: int | None = None,
    min_scale: float | None = None,
    consecutive_hysteresis: bool | int = False,
) -> State:
    """The state after `history`: "." is a clean step, "x" an overflow, "2000*." two thousand clean ones.

    `after("megatron", "x . x x").scale` -> 2**30: the clean step does not give the hysteresis back.
    """
    rules = rules_of(implementation, initial_scale, growth_interval, hysteresis, min_scale, consecutive_hysteresis)
    update, state = SCALERS[implementation][0], start(rules)
    for word in history.split():
        number, star, steps = word.rpartition("*")
        if not steps or set(steps) - {".", "x"} or (star and not number.isascii()) or (star and not number.isdigit()):
            raise KitError(f"history: expected words like '.', 'x', '..x' or '2000*.', got {word!r}")
        for step in steps * (int(number) if star else 1):
            state = update(rules, state, step == "x")
    return state


def scale_after_history(
    implementation: str,
    history: str,
    initial_scale: float | None = None,
    growth_interval: int | None = None,
    hysteresis: int | None = None,
    min_scale: float | None = None,
) -> int | float:
    """The scale after `history` (see `after`). `("torch", "x x", initial_scale=65536)` -> 16384."""
    return exact(after(implementation, history, initial_scale, growth_interval, hysteresis, min_scale).scale)


def scale_after(
    implementation: str,
    clean_before: int = 0,
    overflows: int = 0,
    clean_after: int = 0,
    overflows_after: int = 0,
    initial_scale: float | None = None,
    growth_interval: int | None = None,
    hysteresis: int | None = None,
    min_scale: float | None = None,
) -> int | float:
    """The scale after so many clean steps, overflows in a row, clean steps, and overflows again.

    `scale_after("torch", clean_before=2000, overflows=1)` -> 65536: it grew once and shrank once.
    `scale_after("megatron", overflows=3, initial_scale=65536)` -> 16384: the first of three is forgiven.
    """
    named = (("clean_before", clean_before), ("overflows", overflows), ("clean_after", clean_after))
    counts = [whole(name, count, at_least=0, at_most=10**6) for name, count in named]
    counts.append(whole("overflows_after", overflows_after, at_least=0, at_most=10**6))
    history = " ".join(f"{count}*{step}" for count, step in zip(counts, ".x.x", strict=True))
    return scale_after_history(implementation, history, initial_scale, growth_interval, hysteresis, min_scale)


def steps_to_scale(
    implementation: str,
    target_scale: int | float,
    initial_scale: float | None = None,
    growth_interval: int | None = None,
) -> int:
    """Clean steps until the scale is `target_scale` or more. `("torch", 2**17)` -> 2000; deepspeed_fused -> 1001."""
    rules = rules_of(implementation, initial_scale, growth_interval)
    target = quantity("target_scale", target_scale)
    if target <= rules.initial_scale:
        return 0
    num_growths = math.ceil(math.log(target / rules.initial_scale) / math.log(rules.growth_factor) - 1e-12)
    return num_growths * rules.growth_interval + (implementation == "deepspeed_fused")


def steps_lost_to_reach(implementation: str, usable_scale: int | float, initial_scale: float | None = None) -> int:
    """Steps skipped at the start, while every scale above `usable_scale` overflows.

    `steps_lost_to_reach("megatron", 65536)` -> 17: sixteen halvings of 2^32, and one overflow forgiven.
    """
    rules = rules_of(implementation, initial_scale)
    usable = quantity("usable_scale", usable_scale)
    if usable <= 0 or usable < rules.min_scale:
        raise KitError(f"usable_scale={usable:g} is below what the scale can reach, {rules.min_scale:g}")
    update, state = SCALERS[implementation][0], start(rules)
    while state.scale > usable:
        state = update(rules, state, True)
    return state.num_skipped
