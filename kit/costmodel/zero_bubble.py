"""Schedules whose backward is split in two, in closed form: ZB-H1, ZB-H2, ZBV, DualPipe, and the older ones beside.

The letters differ by source. Zero Bubble (arXiv 2401.10241): F forward, B the input's gradient alone, W the weight's.
DeepSeek-V3 (arXiv 2412.19437): F, B the *whole* backward, W its weight part. torch.distributed.pipelining: F, B the
whole backward (FULL_BACKWARD), I the input's gradient, W the weight's. Here: forward_s, input_grad_s, weight_grad_s.
Stages take equal time, communication is free.
"""

from __future__ import annotations

from kit.costmodel.arguments import exact, one_of, quantity, quotient, whole
from kit.costmodel.pipeline import chunks_in_flight, microbatches_in_flight, slots
from kit.errors import KitError

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2", "zbv", "dualpipe")
PASSES = ("forward", "input_grad", "weight_grad")


def bubble_s(
    schedule: str,
    num_stages: int,
    forward_s: float = 1,
    input_grad_s: float = 1,
    weight_grad_s: float = 1,
    num_chunks: int = 1,
    overlapped_s: float | None = None,
) -> int | float:
    """Idle time of a rank in a step, of enough microbatches; all its chunks of one microbatch take the times given.

    gpipe, 1f1b (p-1)(F+I+W); interleaved 1/v of it; zb_h1 (p-1)(F+I-W), which DeepSeek calls ZB1P and writes F+B-2W;
    zb_h2 (p-1)(F+I-2W); zbv 0, given F = I = W (KitError otherwise: its schedule is then found by search);
    dualpipe (p/2-1)(F&B + B - 3W) with B = I + W and F&B = `overlapped_s`, a forward and a backward run together, by
    default F + B. Never below 0. `bubble_s("zb_h1", 8, 1, 1, 1)` -> 7; 1f1b 21; dualpipe 6.
    Sources: Zero Bubble, Table 2 and section 6; DeepSeek-V3, Table 2.
    """
    one_of("schedule", schedule, SCHEDULES)
    p = whole("num_stages", num_stages)
    f, i, w = pass_times(forward_s, input_grad_s, weight_grad_s)
    v = whole("num_chunks", num_chunks)
    if v > 1 and schedule != "interleaved":
        raise KitError(f"num_chunks={v} needs schedule 'interleaved', got {schedule!r}")
    if overlapped_s is not None and schedule != "dualpipe":
        raise KitError(f"overlapped_s is for schedule 'dualpipe', got {schedule!r}")
    if schedule in ("gpipe", "1f1b", "interleaved"):
        return exact((p - 1) * (f + i + w) / v)
    if schedule == "zbv":
        if not f == i == w:
            raise KitError("zbv has a closed form for forward_s = input_grad_s = weight_grad_s only, where it idles 0")
        return 0
    if schedule == "dualpipe":
        if p % 2:
            raise KitError(f"dualpipe needs an even number of stages, got {p}")
        both = f + i + w if overlapped_s is None else quantity("overlapped_s", overlapped_s)
        return exact(max(0, (p // 2 - 1) * (both + i + w - 3 * w)))
    return exact(max(0, (p - 1) * (f + i - (1 if schedule == "zb_h1" else 2) * w)))


def bubble_fraction(
    schedule: str,
    num_stages: int,
    num_microbatches: int,
    forward_s: float = 1,
    input_grad_s: float = 1,
    weight_grad_s: float = 1,
    num_chunks: int = 1,
) -> int | float:
    """Idle / makespan: `bubble_s` over itself and m(F+I+W). `bubble_fraction("zb_h1", 8, 16)` -> 7/55.

    The closed forms want microbatches enough to fill the schedule: m of at least p, for zb_h2 of 2p-1, for dualpipe
    of 2p (its own implementation's condition) and even, interleaved a multiple of p. KitError otherwise.
    """
    p, m = whole("num_stages", num_stages), whole("num_microbatches", num_microbatches)
    idle = bubble_s(schedule, p, forward_s, input_grad_s, weight_grad_s, num_chunks)
    if schedule in ("gpipe", "1f1b", "interleaved"):
        slots(p, m, schedule, num_chunks)
    else:
        least = {"zb_h1": p, "zb_h2": 2 * p - 1, "zbv": p, "dualpipe": 2 * p}[schedule]
        if m < least or (schedule == "dualpipe" and m % 2):
            even = "an even number of " if schedule == "dualpipe" else ""
            raise KitError(f"{schedule} on {p} stages needs {even}at least {least} microbatches, got {m}")
    busy = m * sum(pass_times(forward_s, input_grad_s, weight_grad_s))
    return exact(idle / (idle + busy))


def peak_activations(
    schedule: str, num_stages: int, num_microbatches: int, rank: int = 0, num_chunks: int = 1
) -> int | float:
    """Microbatches' worth of one stage's activations that a rank holds at its peak, weights' share taken as the whole.

    gpipe m, 1f1b p - rank, interleaved chunks / v, zb_h1 p, zb_h2 2p-1, zbv p, dualpipe p + 1. For zb_h1 and zb_h2
    it is the bound over all ranks; `peak_activation_bytes` is exact. `peak_activations("dualpipe", 8, 16)` -> 9.
    Sources: Zero Bubble, Table 2 and section 6; DeepSeek-V3, Table 2.
    """
    one_of("schedule", schedule, SCHEDULES)
    p = whole("num_stages", num_stages)
    whole("rank", rank, at_least=0, at_most=p - 1)
    if schedule in ("gpipe", "1f1b"):
        return microbatches_in_flight(p, num_microbatches, schedule, rank)
    if schedule == "interleaved":
        return quotient(chunks_in_flight(p, num_microbatches, num_chunks, rank), whole("num_chunks", num_chunks))
    return {"zb_h1": p, "zb_h2": 2 * p - 1, "zbv": p, "dualpipe": p + 1}[schedule]


def peak_activation_bytes(
    schedule: str,
    num_stages: int,
    rank: int,
    input_grad_bytes: int | float,
    weight_grad_bytes: int | float,
) -> int | float:
    """zb_h1: (p-i) M_B + i M_W on rank i from 0; zb_h2: (2p-2i-1) M_B + 2i M_W.

    M_B: what one microbatch keeps for its whole backward; M_W: what is left of it for the weights' gradient once the
    input's is done. `peak_activation_bytes("zb_h1", 4, 1, 34, 32)` -> 3 x 34 + 32 = 134. Source: Zero Bubble, Table 2
    and section 2.3 (workers are counted from 1 there).
    """
    one_of("schedule", schedule, ("1f1b", "zb_h1", "zb_h2"))
    p = whole("num_stages", num_stages)
    i = whole("rank", rank, at_least=0, at_most=p - 1)
    m_b = exact(quantity("input_grad_bytes", input_grad_bytes))
    m_w = exact(quantity("weight_grad_bytes", weight_grad_bytes))
    if schedule == "1f1b":
        return exact((p - i) * m_b)
    return exact((p - i) * m_b + i * m_w if schedule == "zb_h1" else (2 * p - 2 * i - 1) * m_b + 2 * i * m_w)


def param_copies(schedule: str) -> int:
    """How often the parameters of a stage are held: 2 with dualpipe, whose ranks serve both directions; else 1."""
    return 2 if one_of("schedule", schedule, SCHEDULES) == "dualpipe" else 1


def pass_flops(which: str, seq_len: int, microbatch_size: int, hidden_size: int) -> int:
    """FLOPs of one layer: forward sbh(24h+4s), input_grad sbh(24h+8s), weight_grad sbh 24h.

    `pass_flops("weight_grad", 2048, 1, 4096)` -> 824,633,720,832. Source: Zero Bubble, Table 1.
    """
    s, h = whole("seq_len", seq_len), whole("hidden_size", hidden_size)
    one_of("which", which, PASSES)
    attention = {"forward": 4, "input_grad": 8, "weight_grad": 0}[which] * s
    return s * whole("microbatch_size", microbatch_size) * h * (24 * h + attention)


def pass_bytes(which: str, seq_len: int, microbatch_size: int, hidden_size: int, num_heads: int) -> int:
    """One layer's activations: kept for the whole backward, sb(34h+5as), or for the weights' part alone, 32sbh.

    `pass_bytes("weight_grad", 2048, 1, 4096, 32)` -> 268,435,456. Source: Zero Bubble, Table 1 (M_B, M_W).
    """
    s, b = whole("seq_len", seq_len), whole("microbatch_size", microbatch_size)
    h, a = whole("hidden_size", hidden_size), whole("num_heads", num_heads)
    one_of("which", which, ("input_grad", "weight_grad"))
    return 32 * s * b * h if which == "weight_grad" else s * b * (34 * h + 5 * a * s)


def pass_times(forward_s: float, input_grad_s: float, weight_grad_s: float) -> tuple[float, float, float]:
    return (
        quantity("forward_s", forward_s),
        quantity("input_grad_s", input_grad_s),
        quantity("weight_grad_s", weight_grad_s),
    )
