"""The calculations behind `calc`: held against printed figures, against the functions, and against their own lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kit.costmodel import formats, kv_cache, pipeline, plan, roofline, shapes, training, zero_bubble
from kit.costmodel import memory as memory_model
from kit.costmodel import traffic as traffic_model
from kit.costmodel.breakdown import FUNCTIONS, NAME, Calculation, Quantity, Table, figure, put_in
from kit.costmodel.calculations import bubble, flops, format, gemm, kv, memory, time, traffic
from kit.costmodel.calculations import plan as plans
from kit.costmodel.calculations.chosen import known_model
from kit.errors import KitError

FIGURES = {"layers": 6, "hidden": 64, "heads": 8, "kv_heads": 4, "ffn": 128, "vocab": 1001}
EXPERTS = {**FIGURES, "experts": 8, "experts_per_token": 2, "expert_ffn": 32, "shared_experts": 1, "dense_layers": 1}
GPT = {**FIGURES, "kv_heads": 8, "ffn": 256, "family": "gpt", "positions": 64}
EVALUATED = {name: getattr(math, name, None) for name in FUNCTIONS} | {"max": max, "min": min, "round": round}
EVALUATED["inf"] = math.inf


def evaluated(expression: str) -> float:
    return eval(expression, {"__builtins__": {}}, EVALUATED)


def every_calculation() -> Iterator[tuple[str, Callable[[], Calculation]]]:
    """Each command over what changes its formulas."""
    for zero in range(4):
        for recompute in ("none", "selective", "full"):
            for sp in (False, True):
                for kind, shape in (("llama", FIGURES), ("gpt", GPT)):
                    how: dict[str, Any] = {"zero": zero, "dp": 4, "tp": 2, "cp": 2, "sp": sp, "recompute": recompute,
                                           "seq": 64, "microbatches": 8, "recipe": "megatron_fp16"}  # fmt: skip
                    for schedule, pp, stage in (("1f1b", 1, 0), ("gpipe", 4, 3), ("interleaved", 2, 0)):
                        more = {**how, "schedule": schedule, "pp": pp, "stage": stage, "chunks": 1}
                        more |= {"chunks": 3} if schedule == "interleaved" else {}
                        yield (f"memory {kind} {more}", lambda s=shape, m=more: memory.calculate(None, s, **m))
    for model in ("deepseek-v3", "mixtral-8x7b"):
        for zero in (0, 3):
            layout: dict[str, Any] = {"zero": zero, "ep": 8, "dp": 16, "tp": 2, "etp": 1, "pp": 2, "stage": 1}
            yield f"memory {model} {zero}", lambda n=model, m=layout: memory.calculate(n, **m)
    yield "memory params", lambda: memory.calculate(params=7.5e9, dp=64, zero=2, profile="a100")
    for schedule in zero_bubble.SCHEDULES:
        times = {} if schedule == "zbv" else {"forward": 0.01, "backward": 0.025}
        chunks = 3 if schedule == "interleaved" else 1
        target = 0.05 if schedule in pipeline.SCHEDULES else None
        yield (
            f"bubble {schedule}",
            lambda s=schedule, c=chunks, t=target, k=times: bubble.calculate(8, 32, s, c, target=t, **k),
        )
    for model in ("gpt3-175b", "llama3.1-8b", "deepseek-v3", "mixtral-8x7b"):
        for recompute in ("none", "selective", "full"):
            used: dict[str, Any] = {"batch": 4, "recompute": recompute, "causal": recompute == "full"}
            yield f"flops {model} {used}", lambda n=model, k=used: flops.calculate(2048, n, gpus=64, step=1e3, **k)
        cached: dict[str, Any] = {"batch": 4, "tp": 2, "profile": "h100", "dtype": "fp8_e4m3", "reserved": 4e9}
        yield f"kv {model}", lambda n=model, k=cached: kv.calculate(4096, n, **k)
        for phase in roofline.PHASES:
            yield f"gemm {model} {phase}", lambda n=model, p=phase: gemm.layer(n, {}, 2, 1024, p, tp=2)
    for name in (*formats.FORMATS, *formats.INTEGERS):
        value = None if name == "e8m0" else 1.3
        yield f"format {name}", lambda n=name, v=value: format.calculate([n], v)
    yield "format all", format.calculate
    yield "gemm", lambda: gemm.calculate(3, 4096, 1000, "fp8_e4m3", count=5)
    yield "time", lambda: time.training_run(2e12, 2048, "llama3.1-70b", mfu=0.4, price=2, batch=1024, seq=8192,
                                            save=60, mtbf=21600, restart=300)  # fmt: skip
    yield "time achieved", lambda: time.training_run(3e11, 1024, params=175e9, achieved=140e12, recompute="full")
    for operation, algorithm in (*(("all_reduce", name) for name in time.ALGORITHMS), ("broadcast", "binomial_tree"),
                                 ("broadcast", "ring"), ("all_gather", "ring"), ("all_to_all", "ring")):  # fmt: skip
        for ranks in (8, 16):
            yield (
                f"time {operation} {algorithm} {ranks}",
                lambda o=operation, a=algorithm, n=ranks: time.collective(o, 1e9, n, "h100", a),
            )
    yield "time alone", lambda: time.collective("all_reduce", 1e9, 1)
    yield "time ideal", lambda: time.collective("all_reduce", 1e9, 4, "ideal")
    for gpus, seq, overlap in ((8, 4096, True), (16, 32768, False)):
        yield (
            f"plan {gpus}",
            lambda g=gpus, s=seq, o=overlap: plans.calculate(g, "llama2-7b", batch=64, seq=s, overlap=o),
        )
    yield "plan none", lambda: plans.calculate(2, "gpt3-175b", batch=64)
    for strategy in traffic.STRATEGIES:
        for keep in (False, True):
            sharded: dict[str, Any] = {"strategy": strategy, "dp": 16, "keep_params": keep, "microbatches": 4}
            sharded |= {"shard_size": 8} if strategy == "hsdp" else {}
            yield f"traffic {sharded}", lambda k=sharded: traffic.calculate("llama3.1-8b", **k)
    for stage in range(3):
        for method in traffic.CP_METHODS:
            axes: dict[str, Any] = {"strategy": "zero3", "tp": 2, "sp": stage > 0, "pp": 3, "cp": 2, "ep": 4, "dp": 8,
                                    "stage": stage, "cp_method": method, "chunks": 2, "seq": 64, "microbatch": 3,
                                    "microbatches": 6, "recompute": "full" if stage else "none"}  # fmt: skip
            yield f"traffic {axes}", lambda k=axes: traffic.calculate(None, EXPERTS, **k)
    for strategy, every in (("ddp", "microbatch"), ("fsdp", "step")):
        synced: dict[str, Any] = {"strategy": strategy, "sync_every": every, "dp": 8, "microbatches": 4}
        yield f"traffic {synced}", lambda k=synced: traffic.calculate(params=1e9, **k)


CALCULATIONS = list(every_calculation())


@pytest.mark.parametrize("calculate", [it for _, it in CALCULATIONS], ids=[name for name, _ in CALCULATIONS])
def test_numbers_put_in_come_to_the_value(calculate: Callable[[], Calculation]) -> None:
    """What is shown is what the function says: the values are the functions', the formulas are written beside them."""
    it = calculate()
    for line in it.breakdown:
        # Long fractions are shown with nine digits, and differences of them lose some.
        assert evaluated(line.numbers) == pytest.approx(line.value, rel=1e-7, abs=0), line
    text = json.dumps(it.to_json(), allow_nan=False)
    assert json.loads(text)["command"] == it.command


@pytest.mark.parametrize("calculate", [it for _, it in CALCULATIONS], ids=[name for name, _ in CALCULATIONS])
def test_formulas_use_lines_before_them_by_name(calculate: Callable[[], Calculation]) -> None:
    before: dict[str, float] = {}
    it = calculate()
    for line in it.breakdown:
        names = [name for name in re.findall(rf"(?<![\w.]){NAME.pattern}", line.formula) if name not in FUNCTIONS]
        known = {name: before[name] for name in names if name in before}
        known |= {name: value for name, value in it.inputs.items()
                  if name in names and name not in known and type(value) in (int, float)}  # fmt: skip
        digits = 17 if it.command == "format" else 9
        pattern = re.escape(line.formula)
        for name in sorted(set(names), key=len, reverse=True):
            shown = re.escape(figure(known[name], digits)) if name in known else r"[\w.+-]+"
            pattern = re.sub(rf"(?<![\w.]){name}(?!\w)", lambda _, text=shown: text, pattern)
        assert re.fullmatch(pattern, line.numbers), line
        assert line.name not in before, "a name stands for one line"
        before[line.name] = line.value


def test_infinity_is_null_in_json() -> None:
    endless = {"reach": Quantity(math.inf, "B")}
    shown = Calculation("gemm", {"peak": math.inf}, (), endless, (), Table({"reach": "B"}, ((math.inf,),))).to_json()
    assert '"value": null' in json.dumps(shown, allow_nan=False)


def test_profiles_without_limits_are_described_in_words() -> None:
    for it in (gemm.calculate(1, 2, 3, profile="ideal"), time.collective("broadcast", 8, 4, "ideal")):
        assert not any("inf" in note.en or "inf" in note.zh for note in it.convention)


def test_figures_in_a_formula() -> None:
    assert put_in("2 * hidden / tp + 1e-9 * max(tp, 2**-tp)", {"hidden": 8, "tp": 2}) == (
        "2 * 8 / 2 + 1e-9 * max(2, 2**-2)"
    )
    assert (figure(6.0), figure(10**20), figure(1 / 3), figure(0.05)) == ("6", "1e+20", "0.333333333", "0.05")
    with pytest.raises(KeyError):
        put_in("hidden", {})


# Printed figures.


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.88)])
def test_memory_is_that_of_figure_1_of_zero(zero: int, gigabytes: float) -> None:
    """arXiv 1910.02054, Figure 1: 7.5 billion parameters on 64 ranks."""
    it = memory.calculate(params=7.5e9, dp=64, zero=zero)
    assert it.results["state_bytes"].value == pytest.approx(gigabytes * 1e9, rel=0.003)
    assert it.results["total_bytes"] == it.results["state_bytes"]


def test_flops_of_gpt3_are_those_of_its_table() -> None:
    """GPT-3, arXiv 2005.14165, Table D.1: 3.14e23 FLOPs by 6ND for 300e9 tokens."""
    it = time.training_run(300e9, 1024, "gpt3-175b", mfu=0.5)
    assert it.results["train_flops"].value == pytest.approx(3.14e23, rel=0.002)


def test_a_run_takes_34_days_as_ptdp_says() -> None:
    """PTD-P, arXiv 2104.04473, section 5.1: 175B, 300e9 tokens, 1024 GPUs at 140 TFLOP/s each, 34 days."""
    it = time.training_run(300e9, 1024, params=175e9, achieved=140e12, recompute="full")
    assert round(it.results["train_s"].value / 86400) == 34  # type: ignore[operator]


def test_a_cache_of_llama2_7b_is_half_a_mebibyte_a_token() -> None:
    """2 x 32 layers x 4096 x 2 bytes: 524288."""
    assert kv.calculate(4096, "llama2-7b").results["bytes_per_token"].value == 524288
    assert kv.calculate(1, "deepseek-v3").results["bytes_per_token"].value == 70272  # arXiv 2412.19437, 61 x 576 x 2


def test_bubbles_of_one_schedule_and_of_all() -> None:
    it = bubble.calculate(4, 8)
    assert it.results["bubble_fraction"].value == pytest.approx(3 / 11)
    assert it.results["bubble_over_ideal"].value == pytest.approx(3 / 8)
    assert it.table is not None
    rows = {row[0]: row[1:] for row in it.table.rows}
    assert rows["gpipe"] == (pytest.approx(3 / 11), 9, 8) and rows["1f1b"][2] == 4
    assert rows["interleaved x2"][0] == pytest.approx(3 / 19) and rows["zbv"][0] == 0
    assert "dualpipe" in rows  # 8 microbatches are just enough for 4 stages
    odd = bubble.calculate(3, 6).table
    assert odd is not None and "dualpipe" not in [row[0] for row in odd.rows]


def test_formats_are_those_of_the_paper() -> None:
    """FP8 Formats for Deep Learning, arXiv 2209.05433, Table 1."""
    it = format.calculate(["fp8_e4m3"]).results
    assert (it["largest"].value, it["smallest_subnormal"].value) == (448, 2**-9)
    assert format.calculate(["bf16"], 257).results["rounded"].value == 256
    everything = format.calculate().table
    assert everything is not None and len(everything.rows) == len(formats.FORMATS)


# The functions.


def test_memory_is_that_of_a_plan() -> None:
    """One layout by both commands."""
    for zero, recompute in ((1, "none"), (3, "full"), (2, "selective")):
        one = plan.planned("llama3.1-8b", 16, "h100", 4096, 64, 2, 2, 1, zero, 1, recompute)
        ways = {"zero": zero, "dp": 4, "tp": 2, "pp": 2, "seq": 4096, "microbatches": 16, "recompute": recompute}
        stages = [memory.calculate("llama3.1-8b", recipe="megatron_bf16", sp=True, stage=stage, **ways)  # type: ignore[arg-type]
                  for stage in (0, 1)]  # fmt: skip
        assert max(it.results["total_bytes"].value for it in stages) == pytest.approx(one.memory_bytes, rel=1e-12)  # type: ignore[type-var]


def test_experts_are_sharded_over_fewer_ranks() -> None:
    it = memory.calculate("deepseek-v3", dp=64, ep=8, zero=1)
    assert it.results["state_bytes"].value == memory_model.rank_state_bytes(
        "deepseek-v3", "zero", 1, 64, expert_parallel=8
    )
    assert it.inputs["etp"] == 1 and "ep" not in memory.calculate("gpt2").inputs


def test_traffic_adds_up_its_parts() -> None:
    it = traffic.calculate("llama3.1-8b", strategy="zero3", dp=8, microbatches=2, tp=2, pp=2, seq=1024)
    parts = [it.results[name].value for name in ("dp_bytes", "tp_bytes", "pp_bytes")]
    assert it.results["total_bytes"].value == pytest.approx(sum(parts))  # type: ignore[arg-type]
    num_params = memory_model.rank_params("llama3.1-8b", 2, 2, 1)
    assert parts[0] == traffic_model.zero_bytes(num_params, 8, 3, num_microbatches=2)
    assert it.inputs["stage"] == 1


def test_gemm_and_layer_are_the_roofline_s() -> None:
    one = gemm.calculate(1, 4096, 4096)
    assert one.results["time_s"].value == roofline.gemm_s(1, 4096, 4096)
    assert one.results["bound_by"].value == "memory"
    layer = gemm.layer("llama3.1-8b", {}, 4, 2048, "decode", tp=2)
    assert layer.results["time_s"].value == pytest.approx(
        roofline.layer_s("llama3.1-8b", 4, 2048, "decode", "bf16", "h100", 2)
    )
    assert layer.table is not None and {row[-1] for row in layer.table.rows} == {"memory"}


def test_a_plan_is_the_search_s_first() -> None:
    it, found = plans.calculate(8, "llama2-7b", batch=64, top=3), plan.search("llama2-7b", 8, "h100", 4096, 64)
    assert it.results["step_s"].value == found[0].step_s and it.results["mfu"].value == found[0].mfu
    assert it.results["layouts"].value == len(found) and it.results["fits"].value == "yes"
    assert it.table is not None and [row[-3] for row in it.table.rows] == [each.step_s for each in found[:3]]
    none = plans.calculate(2, "gpt3-175b", batch=64)
    assert none.results["fits"].value == "no" and "No layout fits" in none.convention[0].en


def test_a_collective_s_bus_bandwidth_is_that_of_the_link() -> None:
    """Long messages on one node: 450 GB/s an H100's links."""
    it = time.collective("all_reduce", 1e12, 8, "h100")
    assert it.results["bus_bytes_per_s"].value == pytest.approx(450e9, rel=1e-3)
    assert "bus_bytes_per_s" not in time.collective("all_reduce", 1e9, 1).results


def test_time_with_failures_is_longer() -> None:
    it = time.training_run(2e12, 2048, "llama3.1-70b", mfu=0.4, save=60, mtbf=21600)
    assert it.results["checkpoint_interval_s"].value == training.checkpoint_interval_s(60, 21600)
    assert it.results["wall_s"].value == pytest.approx(it.results["train_s"].value / 0.9254, rel=1e-4)  # type: ignore[operator]


def test_sequences_fit_beside_the_weights() -> None:
    it = kv.calculate(4096, "llama2-7b", profile="a100")
    fit = kv_cache.sequences_that_fit(80e9, 2 * shapes.model_params("llama2-7b"), 524288, 4096)
    assert it.results["sequences_that_fit"].value == fit == 30


# Models.


@pytest.mark.parametrize(
    ("written", "name"),
    [("llama-3.1-70b", "llama3.1-70b"), ("Llama 2 7B", "llama2-7b"), ("GPT-3 175B", "gpt3-175b"),
     ("deepseek_v3", "deepseek-v3"), ("gpt-2", "gpt2")],
)  # fmt: skip
def test_spellings_of_models(written: str, name: str) -> None:
    assert known_model(written) == name


def test_every_model_keeps_its_own_name() -> None:
    assert [known_model(name) for name in shapes.names()] == list(shapes.names())


def test_a_shape_is_as_good_as_a_name() -> None:
    own = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256}
    assert memory.calculate(None, own).results == memory.calculate("llama3.1-8b").results
    gpt2 = {"layers": 12, "hidden": 768, "heads": 12, "vocab": 50257, "positions": 1024, "family": "gpt"}
    assert memory.calculate(None, gpt2).results["rank_params"].value == 124439808


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: known_model("lama3.1-70b"), "no model 'lama3.1-70b'; closest: llama3.1-70b"),
    (lambda: memory.calculate(), "which model?"),
    (lambda: memory.calculate("gpt2", {"layers": 3}), "model 'gpt2' has its own shape; leave out layers"),
    (lambda: memory.calculate(None, {"layers": 3}), "missing: hidden, heads, ffn, vocab"),
    (lambda: memory.calculate(None, {**FIGURES, "experts": 4}), "missing: experts_per_token, expert_ffn"),
    (lambda: memory.calculate("gpt2", zero=7), "zero_stage must be a whole number from 0 to 3, got 7"),
    (lambda: memory.calculate("gpt3-175b", tp=7), "num_heads=96 cannot be split over tensor_parallel=7 ranks"),
    (lambda: memory.calculate("gpt2", dp=0), "dp must be a whole number of at least 1, got 0"),
    (lambda: memory.calculate("gpt2", recipe="zer"), "recipe must be one of zero,"),
    (lambda: memory.calculate("gpt2", pp=13), "num_layers=12 are fewer than pipeline_parallel=13 stages"),
    (lambda: memory.calculate("gpt2", ep=2), "expert_parallel=2 needs a mixture of experts"),
    (lambda: memory.calculate("deepseek-v3", seq=8), "activations are modelled for dense models without MLA only"),
    (lambda: memory.calculate("gpt2", seq=10, cp=3), "seq_len=10 cannot be split over context_parallel=3 ranks"),
    (lambda: memory.calculate("gpt2", seq=-4), "seq_len must be a whole number of at least 1, got -4"),
    (lambda: memory.calculate("gpt2", seq=8, schedule="zb"), "schedule must be one of gpipe, 1f1b, interleaved"),
    (lambda: memory.calculate(params=-1), "params must be a number of at least 0, got -1"),
    (lambda: memory.calculate("gpt2", params=1), "give one or the other"),
    (lambda: memory.calculate(params=1e9, tp=2), "tp need a shape"),
    (lambda: memory.calculate("gpt2", profile="h10"), "no hardware profile 'h10' (did you mean 'h100'?)"),
    (lambda: traffic.calculate("gpt2", strategy="zero4"), "strategy must be one of ddp, zero1"),
    (lambda: traffic.calculate("gpt2", strategy="hsdp", dp=8), "hsdp needs shard_size"),
    (lambda: traffic.calculate("gpt2", strategy="hsdp", dp=8, shard_size=3), "cannot be split over shard_size=3"),
    (lambda: traffic.calculate("gpt2", tp=2), "tp, pp, cp and ep send activations: give seq"),
    (lambda: traffic.calculate("gpt2", strategy="zero1", sync_every="step"), "zero1 has one way only"),
    (lambda: traffic.calculate("mixtral-8x7b", strategy="hsdp", dp=8, shard_size=8), "not modelled for experts"),
    (lambda: traffic.calculate("deepseek-v3", cp=2, seq=64), "context parallelism is not modelled for MLA"),
    (lambda: traffic.calculate(params=1e9, param_bytes=math.nan), "param_bytes must be a number of at least 0"),
    (lambda: traffic.calculate("gpt2", dp=8, shard_size=8), "shard_size is for hsdp, got strategy ddp"),
    (lambda: memory.calculate("gpt2", microbatches=-1), "microbatches must be a whole number of at least 1, got -1"),
    (lambda: memory.calculate("gpt2", recompute="all"), "recomputation must be one of none, selective, full"),
    (lambda: memory.calculate("gpt2", profile="ideal"), "profile ideal has memory without limit"),
    (lambda: kv.calculate(8, "gpt2", profile="unit"), "profile unit has memory without limit"),
    (lambda: kv.calculate(8, "gpt2", reserved=-1), "reserved must be a number of at least 0, got -1"),
    (lambda: traffic.calculate(params=1e9, pp=2), "pp need a shape"),
    (lambda: traffic.calculate("gpt2", pp=2, stage=2, seq=8), "stage must be a whole number from 0 to 1, got 2"),
    (lambda: bubble.calculate(4, 8, "1f2b"), "schedule must be one of gpipe, 1f1b"),
    (lambda: bubble.calculate(4, 7, "interleaved", 2), "microbatches in multiples of the ranks, got 7 on 4"),
    (lambda: bubble.calculate(4, 8, backward=3), "backward and weight_grad need forward"),
    (lambda: bubble.calculate(4, 8, forward=1, backward=2, weight_grad=2), "must be below it"),
    (lambda: bubble.calculate(4, 8, forward=0), "forward must be above 0"),
    (lambda: bubble.calculate(4, 8, "zb_h1", target=0.1), "schedule (with a target) must be one of gpipe"),
    (lambda: flops.calculate(0, "gpt2"), "seq must be a whole number of at least 1, got 0"),
    (lambda: flops.calculate(8, "gpt2", gpus=8), "MFU needs both gpus and step"),
    (lambda: flops.calculate(8, "gpt2", gpus=8, step=1e-9), "more than the peak of all GPUs"),
    (lambda: flops.calculate(8, "gpt2", gpus=8, step=1, dtype="fp4_e2m1"), "profile h100 has no peak of fp4_e2m1"),
    (lambda: kv.calculate(8, "llama3.1-8b", tp=3), "can neither be split nor replicated evenly"),
    (lambda: kv.calculate(8, "gpt2", dtype="bf17"), "format must be one of fp64"),
    (lambda: kv.calculate(8, None, {"layers": 2, "hidden": 8, "heads": 2}, profile="a100"), "missing: ffn, vocab"),
    (lambda: format.calculate(["fp9"]), "format must be one of fp64"),
    (lambda: format.calculate(["fp16"], 1e6), "overflows fp16, whose largest number is 65504"),
    (lambda: format.calculate(["fp16", "bf16"], 1), "a value is rounded to one format, got 2"),
    (lambda: time.training_run(1e9, 8, "gpt2"), "how fast? give mfu"),
    (lambda: time.training_run(1e9, 8, "gpt2", mfu=1.4), "mfu must be above 0 and at most 1, got 1.4"),
    (lambda: time.training_run(1e9, 8, "gpt2", mfu=0.4, recompute="full"), "an MFU leaves out what is recomputed"),
    (lambda: time.training_run(1e9, 8, "gpt2", mfu=0.4, batch=8), "needs both batch (sequences) and seq"),
    (lambda: time.training_run(1e9, 8, "gpt2", mfu=0.4, save=8), "checkpoints need both save"),
    (lambda: time.training_run(0, 8, "gpt2", mfu=0.4), "tokens must be above 0"),
    (lambda: time.collective("scan", 1, 2), "collective must be one of all_reduce"),
    (lambda: time.collective("all_gather", 1, 2, algorithm="double_tree"), "algorithm must be one of ring"),
    (lambda: time.collective("all_reduce", -1, 2), "buffer_bytes must be a number of at least 0, got -1"),
    (lambda: time.collective("all_reduce", 1, 12, algorithm="hierarchical"), "over full nodes of 8"),
    (lambda: gemm.calculate(0, 1, 1), "m must be a whole number of at least 1, got 0"),
    (lambda: gemm.layer("gpt2", {}, phase="backward"), "phase must be one of prefill, training, decode"),
    (lambda: plans.calculate(13, "gpt2", batch=10), "no layout of 13 ranks divides this model"),
    (lambda: plans.calculate(8, "deepseek-v3"), "activations are modelled for dense models without MLA only"),
    (lambda: plans.calculate(8, "gpt2", usable=2), "usable must be above 0 and at most 1, got 2"),
    (lambda: plans.calculate(8, "gpt2", top=0), "top must be a whole number of at least 1, got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("calculate", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_nonsense_is_refused_with_its_reason(calculate: Callable[[], object], message: str) -> None:
    with pytest.raises(KitError) as refused:
        calculate()
    assert message in refused.value.message


def test_the_closest_choice_is_offered() -> None:
    with pytest.raises(KitError) as refused:
        memory.calculate("gpt2", recipe="Megatron_BF16")
    assert refused.value.hint == "did you mean 'megatron_bf16'?"
