"""A training run: how long, how much it costs, how large its batch is, and what failures and stragglers take of it.

N parameters, D tokens. A token costs 6N FLOPs forward and backward, 8N where every activation is computed again.
"""

from __future__ import annotations

import math

from kit.costmodel import flops
from kit.costmodel.arguments import exact, one_of, quantity, quotient, whole
from kit.errors import KitError


def train_time_s(
    num_params: int | float,
    num_tokens: int | float,
    num_gpus: int,
    achieved_flops_per_s: int | float,
    recomputation: str = "full",
) -> float:
    """8TP/(nX) with full recomputation, 6TP/(nX) with none; X is what one GPU achieves, not its peak.

    "selective" repeats attention's core alone and counts as 6. X must be counted the same way: PTD-P's includes what
    is computed again. `train_time_s(175e9, 300e9, 1024, 140e12) / 86400` -> 33.9 days.
    Source: PTD-P, arXiv 2104.04473, section 5.1, equation 4.
    """
    one_of("recomputation", recomputation, ("none", "selective", "full"))
    needed = flops.training_flops(num_params, num_tokens, 8 if recomputation == "full" else 6)
    return needed / (whole("num_gpus", num_gpus) * positive("achieved_flops_per_s", achieved_flops_per_s))


def train_time_from_mfu_s(
    num_params: int | float, num_tokens: int | float, num_gpus: int, peak_flops_per_s: int | float, mfu: float
) -> float:
    """6ND/(n peak MFU): recomputation is already inside the MFU. `(70e9, 2e12, 2048, 312e12, 0.4) / 86400` -> 38.0."""
    return flops.training_flops(num_params, num_tokens) / (
        whole("num_gpus", num_gpus) * positive("peak_flops_per_s", peak_flops_per_s) * fraction("mfu", mfu)
    )


def gpu_hours(time_s: int | float, num_gpus: int) -> float:
    """`gpu_hours(86400, 8)` -> 192."""
    return quantity("time_s", time_s) * whole("num_gpus", num_gpus) / 3600


def train_cost(time_s: int | float, num_gpus: int, price_per_gpu_hour: int | float) -> float:
    """In the currency of the price. `train_cost(86400, 8, 2.5)` -> 480."""
    return gpu_hours(time_s, num_gpus) * quantity("price_per_gpu_hour", price_per_gpu_hour)


def tokens_per_s(
    num_params: int | float,
    num_gpus: int,
    peak_flops_per_s: int | float,
    mfu: float,
    attention_flops_per_token: int | float = 0,
) -> float:
    """Of all GPUs: n peak MFU / (6N + attention). `tokens_per_s(7e9, 8, 312e12, 0.5)` -> 29714."""
    achieved = whole("num_gpus", num_gpus) * positive("peak_flops_per_s", peak_flops_per_s) * fraction("mfu", mfu)
    return achieved / token_flops(num_params, attention_flops_per_token)


def mfu_of_tokens_per_s(
    tokens_per_s: int | float,
    num_params: int | float,
    num_gpus: int,
    peak_flops_per_s: int | float,
    attention_flops_per_token: int | float = 0,
) -> float:
    """tokens/s (6N + attention) / (n peak); PaLM's attention term is 12 L H Q T for L layers, H heads of Q, T tokens.

    `mfu_of_tokens_per_s(238300, 540.35e9, 6144, 275e12)` -> 0.457. Source: PaLM, arXiv 2204.02311, appendix B.
    """
    each = token_flops(num_params, attention_flops_per_token)
    return flops.mfu(tokens_per_s, each, num_gpus, peak_flops_per_s)


def token_flops(num_params: int | float, attention_flops_per_token: int | float = 0) -> int | float:
    """6N + attention, forward and backward."""
    return 6 * positive("num_params", num_params) + quantity("attention_flops_per_token", attention_flops_per_token)


def num_steps(num_tokens: int | float, global_batch_size: int, seq_len: int) -> int:
    """Optimizer steps that see so many tokens; the last one may be short. `num_steps(300e9, 1536, 2048)` -> 95368."""
    batch_tokens = whole("global_batch_size", global_batch_size) * whole("seq_len", seq_len)
    return math.ceil(quantity("num_tokens", num_tokens) / batch_tokens)


def global_batch_size(microbatch_size: int, num_microbatches: int, data_parallel: int) -> int:
    """micro x accumulation x dp, in samples; TP, PP and CP ranks share theirs. `global_batch_size(4, 8, 16)` -> 512."""
    return (
        whole("microbatch_size", microbatch_size)
        * whole("num_microbatches", num_microbatches)
        * whole("data_parallel", data_parallel)
    )


def num_microbatches(global_batch_size: int, microbatch_size: int, data_parallel: int) -> int:
    """Accumulation steps of a rank. `num_microbatches(512, 4, 16)` -> 8. Raises KitError where it does not divide."""
    batch = whole("global_batch_size", global_batch_size)
    one_pass = whole("microbatch_size", microbatch_size) * whole("data_parallel", data_parallel)
    if batch % one_pass:
        raise KitError(
            f"global_batch_size={batch} is no multiple of microbatch_size x data_parallel = "
            f"{microbatch_size} x {data_parallel} = {one_pass}"
        )
    return batch // one_pass


def data_parallel(
    world_size: int, tensor_parallel: int = 1, pipeline_parallel: int = 1, context_parallel: int = 1
) -> int:
    """What the other axes leave: n/(tp pp cp). `data_parallel(1024, 8, 8)` -> 16. KitError where it does not divide.

    Expert parallelism takes its ranks from dp and is not divided by.
    """
    model_ranks = (
        whole("tensor_parallel", tensor_parallel)
        * whole("pipeline_parallel", pipeline_parallel)
        * whole("context_parallel", context_parallel)
    )
    n = whole("world_size", world_size)
    if n % model_ranks:
        raise KitError(f"world_size={n} is no multiple of tp x pp x cp = {model_ranks}")
    return n // model_ranks


def scaled_learning_rate(
    learning_rate: float, base_batch_size: int, batch_size: int, rule: str = "linear"
) -> int | float:
    """lr k for a batch k times as large ("linear", SGD), or lr sqrt(k) ("sqrt", often with Adam): rules of thumb.

    `scaled_learning_rate(0.1, 256, 8192)` -> 3.2. Source: Goyal et al., arXiv 1706.02677, section 2.1; for "sqrt":
    Krizhevsky, arXiv 1404.5997.
    """
    k = whole("batch_size", batch_size) / whole("base_batch_size", base_batch_size)
    one_of("rule", rule, ("linear", "sqrt"))
    return quantity("learning_rate", learning_rate) * (k if rule == "linear" else math.sqrt(k))


def system_mtbf_s(component_mtbf_s: int | float, num_components: int) -> int | float:
    """Mean time between failures of n independent parts, each a stop: MTBF/n. `(3.6e6, 1000)` -> 3600."""
    return quotient(exact(positive("component_mtbf_s", component_mtbf_s)), whole("num_components", num_components))


def checkpoint_interval_s(save_s: int | float, mtbf_s: int | float, formula: str = "young") -> float:
    """Compute between two checkpoints that wastes least: sqrt(2 d M), for saves of d seconds that stop training.

    "daly" adds the next terms: sqrt(2dM) (1 + sqrt(d/2M)/3 + d/18M) - d, and M where d >= 2M. `(60, 21600)` -> 1610.
    Sources: Young, CACM 17(9), 1974; Daly, FGCS 22(3), 2006.
    """
    d, m = quantity("save_s", save_s), positive("mtbf_s", mtbf_s)
    one_of("formula", formula, ("young", "daly"))
    young = math.sqrt(2 * d * m)
    if formula == "young":
        return young
    return young * (1 + math.sqrt(d / (2 * m)) / 3 + d / (18 * m)) - d if d < 2 * m else float(m)


def lost_fraction(
    interval_s: int | float, save_s: int | float, mtbf_s: int | float, restart_s: int | float = 0
) -> float:
    """Of the time, to first order: d/(tau + d) saving, (tau/2 + d + r)/M redoing and restarting after failures.

    A failure falls anywhere in tau + d with equal chance; on average half of it is lost. tau is the compute between
    saves. `lost_fraction(1610, 60, 21600)` -> 0.0746. Source: Young 1974, with the restart of Daly 2006.
    Good while tau + d and r are far below M; what is above 1 means that the job makes no progress.
    """
    tau, d, m = positive("interval_s", interval_s), quantity("save_s", save_s), positive("mtbf_s", mtbf_s)
    return d / (tau + d) + ((tau + d) / 2 + quantity("restart_s", restart_s)) / m


def goodput(interval_s: int | float, save_s: int | float, mtbf_s: int | float, restart_s: int | float = 0) -> float:
    """1 - lost_fraction, at least 0: the share of time whose steps are kept. `goodput(1610, 60, 21600)` -> 0.925."""
    return max(0.0, 1 - lost_fraction(interval_s, save_s, mtbf_s, restart_s))


def goodput_of_outages(wall_s: int | float, num_failures: int | float, lost_per_failure_s: int | float) -> float:
    """The share left after so many interruptions of equal cost. `goodput_of_outages(54 * 86400, 466, 1000)` -> 0.9."""
    lost = quantity("num_failures", num_failures) * quantity("lost_per_failure_s", lost_per_failure_s)
    return max(0.0, 1 - lost / positive("wall_s", wall_s))


def straggler_step_s(
    step_s: int | float, slow_step_s: int | float, num_ranks: int, num_slow: int = 1, synchronous: bool | int = True
) -> float:
    """A synchronous step lasts as long as its slowest rank; without synchrony ranks go at their own rate.

    Then it is the step of the mean rate, n / sum of rates. `(0.5, 0.8, 100)` -> 0.8, and 0.50188 asynchronously.
    """
    n, slow = whole("num_ranks", num_ranks), whole("num_slow", num_slow, at_least=0)
    usual, late = positive("step_s", step_s), positive("slow_step_s", slow_step_s)
    if slow > n:
        raise KitError(f"num_slow={slow} is more than num_ranks={n}")
    if synchronous:
        return float(max([usual] * (slow < n) + [late] * (slow > 0)))
    return n / ((n - slow) / usual + slow / late)


def straggler_loss(step_s: int | float, slow_step_s: int | float) -> float:
    """Throughput lost when one rank slows every synchronous step: 1 - t/t_slow. `straggler_loss(0.5, 0.8)` -> 0.375."""
    usual = positive("step_s", step_s)
    return 1 - usual / max(usual, positive("slow_step_s", slow_step_s))


def straggler_chance(num_ranks: int, chance_per_rank_step: float) -> float:
    """Chance that at least one of n ranks is late in a step: 1 - (1 - q)^n. `(1024, 0.001)` -> 0.641."""
    q = quantity("chance_per_rank_step", chance_per_rank_step)
    if q > 1:
        raise KitError(f"chance_per_rank_step must be from 0 to 1, got {q!r}")
    return 1.0 - (1.0 - q) ** whole("num_ranks", num_ranks)


def positive(name: str, value: int | float) -> int | float:
    if quantity(name, value) == 0:
        raise KitError(f"{name} must be above 0, got {value!r}")
    return value


def fraction(name: str, value: float) -> float:
    if not 0 < quantity(name, value) <= 1:
        raise KitError(f"{name} must be above 0 and at most 1, got {value!r}")
    return value
