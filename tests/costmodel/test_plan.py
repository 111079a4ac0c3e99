"""The search over layouts: what it lists, what fits, and what decides."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from kit.costmodel import activations, collectives, flops, memory, plan, shapes, step
from kit.errors import KitError


def small(**options):
    """A Llama of 12 layers, 6 heads of 32, on one node of round figures unless told otherwise."""
    given = {"profile": "a100", "seq_len": 96, "global_batch_size": 12, **options}
    shape = shapes.shape_of(
        num_layers=given.pop("num_layers", 12), hidden_size=192, num_heads=6, num_kv_heads=given.pop("num_kv_heads", 6),
        ffn_size=768, vocab_size=1000, gated=True, linear_biases=False, norm="rmsnorm", tied_embeddings=False,
    )  # fmt: skip
    return shape, given


def test_every_layout_that_divides_and_no_other() -> None:
    shape, given = small()
    found = {it.layout for it in plan.search(shape, 12, max_microbatch_size=4, max_context_parallel=4, **given)}
    by_hand = set()
    for t, p, c, b in itertools.product(range(1, 13), range(1, 13), range(1, 5), range(1, 5)):
        d, left = divmod(12, t * p * c)
        if left or 6 % t or 768 % t or 96 % t or p > 12 or 12 % d or (12 // d) % b or (c > 1 and 96 % (2 * c * t)):
            continue
        for stage in (0, 1, 2, 3) if d * c > 1 else (0,):
            for recomputation in ("none", "selective", "full"):
                by_hand.add(step.Layout(d, t, p, c, stage, b, 12 // d // b, recomputation))
    assert found == by_hand


def test_context_parallelism_cuts_the_sequence_in_twice_as_many_parts() -> None:
    shape, given = small()
    given["seq_len"] = 60
    assert {it.layout.context_parallel for it in plan.search(shape, 4, **given)} == {1, 2}  # 60 is no multiple of 8
    given["seq_len"] = 96
    assert {it.layout.context_parallel for it in plan.search(shape, 4, **given)} == {1, 2, 4}


def test_key_value_heads_bound_tensor_parallelism() -> None:
    shape, given = small(num_kv_heads=2)
    assert {it.layout.tensor_parallel for it in plan.search(shape, 12, **given)} == {1, 2, 6}
    shape, given = small(num_kv_heads=3)
    assert {it.layout.tensor_parallel for it in plan.search(shape, 12, **given)} == {1, 3, 6}


def test_ranks_that_divide_neither_heads_nor_batch_go_into_the_pipeline() -> None:
    found = plan.search("llama2-7b", 7, global_batch_size=5, max_context_parallel=1)
    assert {it.layout.pipeline_parallel for it in found} == {7}


def test_those_that_fit_come_first_and_the_fastest_before() -> None:
    found = plan.search("llama2-70b", 32, "a100", 4096, 64)
    fitting = [it for it in found if it.fits]
    assert fitting and len(fitting) < len(found)
    assert found[: len(fitting)] == tuple(sorted(fitting, key=lambda it: (it.step_s, it.memory_bytes)))
    for it in found:
        assert it.fits is (it.memory_bytes <= 0.9 * 80e9) is (it.reason == "")


def test_the_reason_names_what_is_held() -> None:
    worst = plan.search("llama2-70b", 32, "a100", 4096, 64)[-1]
    assert worst.reason.startswith(f"needs {worst.memory_bytes / 1e9:.1f} GB of 72.0: state ")
    assert f"activations {worst.activation_bytes / 1e9:.1f}" in worst.reason


def test_memory_is_that_of_the_memory_model_on_the_fullest_stage() -> None:
    shape, given = small(num_layers=10)
    for it in plan.search(shape, 12, **given):
        layout = it.layout
        stages = range(layout.pipeline_parallel)
        t, p, c = layout.tensor_parallel, layout.pipeline_parallel, layout.context_parallel
        held = [
            memory.rank_state_bytes_of(shape, "megatron_bf16", layout.zero_stage, layout.data_parallel, t, p, stage, c)
            + activations.stage_bytes_of(
                shape, 96, layout.microbatch_size, t, t > 1, layout.recomputation, c, p, layout.num_microbatches, stage
            )
            for stage in stages
        ]
        assert it.state_bytes + it.activation_bytes == pytest.approx(max(held))


def test_what_is_gathered_and_recomputed_is_held_too() -> None:
    shape, given = small()
    found = {it.layout: it for it in plan.search(shape, 12, **given)}
    for layout, it in found.items():
        expected = 0.0
        t, c = layout.tensor_parallel, layout.context_parallel
        if layout.recomputation == "full":
            expected += activations.layer_bytes_of(shape, 96, layout.microbatch_size, t, t > 1, "none", c)
        if layout.zero_stage == 3:
            expected += 2 * 2 * (4 * 192 * 192 + 3 * 192 * 768) // t
        assert it.other_bytes == expected


def test_compute_alone_on_links_that_cost_nothing() -> None:
    """One FLOP a second, communication free: FLOPs of the model over ranks, and the bubble of the slowest stage."""
    shape, given = small(profile="ideal", efficiency=0.5, usable=1.0)
    once = flops.iteration_flops_of(shape, 12, 96, "none", True)
    for it in plan.search(shape, 12, **given):
        layout = it.layout
        assert (it.tensor_s, it.context_s, it.pipeline_s, it.data_s) == (0, 0, 0, 0)
        m, p = layout.num_microbatches, layout.pipeline_parallel
        assert it.bubble_s == pytest.approx(it.compute_s * (p - 1) / m)
        if p == 1 and layout.recomputation == "none" and layout.tensor_parallel in (1, 2):
            assert it.compute_s == pytest.approx(once / 12 / 0.5)
            assert it.mfu == pytest.approx(0.5)
        assert it.tokens_per_s == pytest.approx(12 * 96 / it.step_s)


def test_recomputation_runs_the_layers_again_and_not_the_logits() -> None:
    shape, given = small(profile="ideal", efficiency=1.0, usable=1.0)
    found = plan.search(shape, 12, **given)
    seconds = {
        how: row(found, **{**DP_ONLY, "recomputation": how, "zero_stage": 0}).compute_s
        for how in ("none", "selective", "full")
    }
    for how, got in seconds.items():
        assert got == pytest.approx(flops.iteration_flops_of(shape, 12, 96, how, True) / 12)
    assert seconds["none"] < seconds["selective"] < seconds["full"]


@pytest.mark.parametrize("overlap", [False, True])
def test_a_step_of_every_axis_by_hand(overlap: bool) -> None:
    """dp 2, tp 2, pp 3, cp 2 on 24 ranks of three nodes, microbatch 1, m = 6."""
    shape, given = small()
    it = row(
        plan.search(shape, 24, overlap=overlap, **given), data_parallel=2, tensor_parallel=2, pipeline_parallel=3,
        context_parallel=2, zero_stage=1, microbatch_size=1, recomputation="none",
    )  # fmt: skip
    m, p, inside, between = 6, 3, (3.4e-6, 300e9), (14e-6, 25e9)
    rate = 2 * 0.6 * 312e12  # two ranks share a sequence
    products = flops.layer_gemms(shape, 96, 1, 2)
    forward = (4 * flops.flops_of(products, True) + flops.logit_forward_flops(1, 96, 192, 500)) / rate
    core = 4 * 3 * flops.core_of(products, True) / rate
    tensor = 4 * 10 * collectives.all_gather_s(48 * 192 * 2, 2, *inside)
    ring = 4 * (4 * inside[0] + (1 + 1 + 2) * 2 * 48 * 96 * 2 / inside[1])
    context = max(0, ring - core) if overlap else ring
    message = between[0] + 96 * 192 * 2 / 4 / between[1]
    once = 3 * forward + tensor + context
    params = max(sum(memory.rank_params_of(shape, 2, 3, stage)) for stage in range(3))
    gather, reduce = (collectives.all_gather_s(each * params, 4, *inside) for each in (2, 4))
    data = max(0, gather - forward * overlap) + max(0, reduce - 2 * forward * overlap)
    assert it.compute_s == pytest.approx(m * 3 * forward)
    assert it.context_s == pytest.approx(m * context)
    assert it.bubble_s == pytest.approx((p - 1) * once)
    assert it.pipeline_s == pytest.approx((m + p - 1) * 2 * message)
    assert it.data_s == pytest.approx(data)
    assert it.step_s == pytest.approx((m + p - 1) * (once + 2 * message) + data)


def test_the_stage_with_most_parameters_decides_how_much_is_reduced() -> None:
    """13 layers on 12 stages: one in the middle has two layers, which are more than a layer and a small vocabulary."""
    shape, given = small(num_layers=13)
    it = row(
        plan.search(shape, 24, overlap=False, **given), tensor_parallel=1, pipeline_parallel=12, context_parallel=1,
        zero_stage=1, microbatch_size=1, recomputation="none",
    )  # fmt: skip
    params = [sum(memory.rank_params_of(shape, 1, 12, stage)) for stage in range(12)]
    gather, reduce = (collectives.all_gather_s(each * max(params), 2, 3.4e-6, 300e9) for each in (2, 4))
    assert max(params) not in (params[0], params[-1])
    assert it.data_s == pytest.approx(gather + reduce)


def row(found, **wanted):
    """The one plan whose layout has these figures."""
    (it,) = (it for it in found if all(getattr(it.layout, key) == value for key, value in wanted.items()))
    return it


DP_ONLY = {
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "context_parallel": 1,
    "microbatch_size": 1,
    "recomputation": "none",
}


def test_data_parallel_communication_without_overlap() -> None:
    """Rings over all 16 ranks, across nodes: fp32 gradients, bf16 parameters; ZeRO-2 and 3 once a microbatch."""
    shape, given = small(global_batch_size=64)
    found = plan.search(shape, 16, overlap=False, **given)
    psi = shapes.params_of(shape)
    gather, reduce = (collectives.on_profile_s("all_gather", each * psi, 16, "a100") for each in (2, 4))
    seconds = [row(found, zero_stage=stage, **DP_ONLY).data_s for stage in (0, 1, 2, 3)]
    assert seconds == pytest.approx([2 * reduce, gather + reduce, gather + 4 * reduce, 4 * (2 * gather + reduce)])


def test_what_backward_is_long_enough_to_hide_costs_nothing() -> None:
    rows = plan.search("llama2-7b", 8, "h100", 4096, 64)
    assert row(rows, zero_stage=3, **DP_ONLY).data_s == 0
    slow = plan.search("llama2-7b", 8, "ethernet", 4096, 64)
    assert row(slow, zero_stage=3, **DP_ONLY).data_s > row(slow, zero_stage=1, **DP_ONLY).data_s > 0


def test_a_group_is_slow_as_soon_as_one_of_its_kind_leaves_the_node() -> None:
    shape, given = small()
    inside, between = (plan.job_of(shape, n, **given) for n in (6, 12))
    assert step.tier_of(inside, 1, 6).bytes_per_s == 300e9
    assert step.tier_of(between, 1, 6).bytes_per_s == 25e9  # ranks 6 to 11, on nodes of eight
    assert step.tier_of(between, 1, 4).bytes_per_s == 300e9
    assert step.tier_of(between, 4, 3).bytes_per_s == 25e9


@pytest.mark.parametrize(("recomputation", "halves"), [("none", 10), ("full", 14)])
def test_tensor_parallel_communication(recomputation: str, halves: int) -> None:
    shape, given = small()
    it = row(
        plan.search(shape, 6, **given), tensor_parallel=6, pipeline_parallel=1, context_parallel=1, microbatch_size=1,
        recomputation=recomputation, zero_stage=0,
    )  # fmt: skip
    once = collectives.on_profile_s("all_gather", 96 * 192 * 2, 6, "a100")
    assert it.tensor_s == pytest.approx(12 * 12 * halves * once)


def test_pipeline_messages_cross_nodes_where_a_stage_fills_one() -> None:
    shape, given = small()
    whole_node = step.Layout(4, 2, 2, 1, 1, 1, 3, "none")
    job = plan.job_of(shape, 16, **given)
    assert step.message_s(job, whole_node) == pytest.approx(14e-6 + 96 * 192 * 2 / 2 / 25e9)
    assert step.message_s(dataclasses.replace(job, world_size=4), dataclasses.replace(whole_node, data_parallel=1)) == (
        pytest.approx(3.4e-6 + 96 * 192 * 2 / 2 / 300e9)
    )


def test_tensor_parallelism_belongs_inside_a_node() -> None:
    """Of the fastest layouts of 405B on 1024 H100, none takes tp across nodes."""
    found = plan.search("llama3.1-405b", 1024, "h100", 8192, 1024, max_context_parallel=1, max_microbatch_size=1)
    assert all(it.layout.tensor_parallel <= 8 for it in found[:20])
    across = next(it for it in found if it.fits and it.layout.tensor_parallel == 16)
    assert across.tensor_s > 0.3 * across.step_s


def test_the_fewest_gpus() -> None:
    """7e9 parameters at 18 bytes are 121 GB: two GPUs of 80; with ZeRO-3, 16 of 70B are just too few."""
    assert plan.fewest_gpus("llama2-7b", "h100") == 2
    assert plan.fewest_gpus("llama2-70b", "h100") == 32
    assert not any(it.fits for it in plan.search("llama2-70b", 16, "h100", 4096, 16))


def test_one_layout_by_its_figures_is_that_of_the_search() -> None:
    found = plan.search("llama2-7b", 8, "h100", 4096, 64)
    it = row(
        found,
        tensor_parallel=2,
        pipeline_parallel=2,
        context_parallel=1,
        zero_stage=1,
        microbatch_size=2,
        recomputation="selective",
    )
    given = {"tensor_parallel": 2, "pipeline_parallel": 2, "microbatch_size": 2, "recomputation": "selective"}
    assert plan.planned("llama2-7b", 8, "h100", 4096, 64, **given) == it
    assert plan.step_s("llama2-7b", 8, "h100", 4096, 64, **given) == it.step_s
    assert plan.memory_bytes("llama2-7b", 8, 4096, 64, **given) == it.memory_bytes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plan.search("deepseek-v3", 8), "activations are modelled for dense models without MLA only"),
        (lambda: plan.search("llama2-7b", 8, efficiency=0), "efficiency must be above 0 and at most 1, got 0"),
        (
            lambda: plan.search("llama2-7b", 8, "a100", dtype="fp8_e4m3"),
            "profile a100 has no peak of fp8_e4m3, only of float64, float32, tf32, float16, bfloat16",
        ),
        (lambda: plan.planned("llama2-7b", 8, tensor_parallel=3), "world_size=8 is no multiple of tp x pp x cp = 3"),
        (lambda: plan.planned("llama2-7b", 8, zero_stage=7), "zero_stage must be a whole number from 0 to 3, got 7"),
        (
            lambda: plan.search("llama2-7b", 37 * 41, global_batch_size=1),
            "no layout of 1517 ranks divides this model and a batch of 1",
        ),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
