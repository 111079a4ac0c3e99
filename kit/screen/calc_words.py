"""What results of calculations are called, in both languages. Inputs keep the names of their options."""

from __future__ import annotations

from kit.screen.words import Language

# name -> English, Chinese
LABELS = {
    # memory
    "rank_params": ("parameters on the rank", "本 rank 参数量"),
    "params_bytes": ("parameters", "参数"),
    "grads_bytes": ("gradients", "梯度"),
    "optimizer_bytes": ("optimizer state", "优化器状态"),
    "state_bytes": ("model state", "模型状态合计"),
    "activation_bytes": ("activations", "激活"),
    "recomputed_bytes": ("one layer recomputed", "重算中的一层"),
    "gathered_bytes": ("two layers gathered", "all-gather 出的两层"),
    "total_bytes": ("total", "总计"),
    "memory_share": ("share of the GPU's memory", "占显存比例"),
    # traffic
    "dp_bytes": ("data parallelism", "数据并行"),
    "dp_inside_bytes": ("data parallelism, inside shard groups", "数据并行（分片组内）"),
    "dp_between_bytes": ("data parallelism, between groups", "数据并行（组间）"),
    "tp_bytes": ("tensor parallelism", "张量并行"),
    "pp_bytes": ("pipeline", "流水线并行"),
    "cp_bytes": ("context parallelism", "上下文并行"),
    "ep_bytes": ("experts", "专家并行"),
    # bubble
    "bubble_fraction": ("bubble", "bubble"),
    "bubble_over_ideal": ("bubble over ideal", "bubble（相对理想时长）"),
    "bubble_s": ("idle", "空闲"),
    "busy_s": ("busy", "计算"),
    "makespan_s": ("makespan", "总时长"),
    "in_flight": ("microbatches in flight", "在途 microbatch"),
    "microbatches_needed": ("microbatches for the target", "达到目标所需 microbatch 数"),
    "schedule": ("schedule", "调度"),
    # flops
    "forward_flops": ("forward", "forward"),
    "model_flops": ("model FLOPs, forward and backward", "模型 FLOPs（forward + backward）"),
    "recomputed_flops": ("recomputed", "重算"),
    "iteration_flops": ("iteration", "一次迭代"),
    "flops_per_token": ("for each token", "每个 token"),
    "rule_flops": ("by 6ND", "按 6ND"),
    "share_of_rule": ("model FLOPs over 6ND", "模型 FLOPs / 6ND"),
    "mfu": ("MFU", "MFU"),
    "hfu": ("HFU", "HFU"),
    # kv
    "bytes_per_token": ("for each token", "每个 token"),
    "sequence_bytes": ("for each sequence", "每个序列"),
    "cache_bytes": ("cache", "cache 合计"),
    "times_smaller": ("times smaller than with MHA", "相对 MHA 缩小倍数"),
    "weight_bytes": ("weights", "权重"),
    "sequences_that_fit": ("sequences that fit", "放得下的序列数"),
    # format
    "format": ("format", "格式"),
    "bits": ("bits", "位数"),
    "exponent_bits": ("exponent", "指数位"),
    "mantissa_bits": ("mantissa", "尾数位"),
    "largest": ("largest", "最大值"),
    "smallest_normal": ("min normal", "最小正规数"),
    "smallest_subnormal": ("min subnormal", "最小非正规数"),
    "epsilon": ("epsilon", "epsilon"),
    "unit_roundoff": ("unit roundoff", "unit roundoff"),
    "largest_exact_integer": ("exact integers", "精确整数上限"),
    "rounded": ("the value in it", "舍入后"),
    "error": ("error", "误差"),
    # time
    "train_flops": ("FLOPs of the run", "训练总 FLOPs"),
    "cluster_flops_per_s": ("all GPUs", "全部 GPU"),
    "train_s": ("time", "训练时间"),
    "gpu_hours": ("GPU hours", "GPU 小时"),
    "cost": ("cost", "费用"),
    "num_steps": ("steps", "步数"),
    "step_s": ("step", "每步"),
    "tokens_per_s": ("tokens each second", "每秒 token 数"),
    "checkpoint_interval_s": ("checkpoint every", "checkpoint 间隔"),
    "goodput": ("goodput", "goodput"),
    "wall_s": ("time with failures", "计入故障的时间"),
    "algorithm": ("algorithm", "算法"),
    "collective_s": ("time", "耗时"),
    "algorithm_bytes_per_s": ("algorithm bandwidth", "算法带宽（algbw）"),
    "bus_bytes_per_s": ("bus bandwidth", "总线带宽（busbw）"),
    # gemm
    "product": ("product", "矩阵乘"),
    "flops": ("FLOPs", "FLOPs"),
    "bytes": ("bytes moved", "访存字节"),
    "intensity": ("intensity", "计算强度"),
    "ridge_point": ("ridge point", "ridge point"),
    "compute_s": ("compute", "计算"),
    "memory_s": ("memory", "访存"),
    "time_s": ("time", "耗时"),
    "attainable_flops_per_s": ("attainable", "可达 FLOP/s"),
    "bound_by": ("bound by", "瓶颈"),
    # plan
    "layouts": ("layouts tried", "候选布局"),
    "layouts_that_fit": ("layouts that fit", "放得下的布局"),
    "fits": ("fits", "放得下"),
    "place": ("#", "#"),
    "memory_bytes": ("memory", "显存"),
    "other_bytes": ("gathered or recomputed layers", "all-gather 或重算的层"),
    "tensor_s": ("tensor parallelism, exposed", "张量并行（暴露）"),
    "context_s": ("context parallelism, exposed", "上下文并行（暴露）"),
    "pipeline_s": ("pipeline messages", "流水线通信"),
    "data_s": ("data parallelism, exposed", "数据并行（暴露）"),
    # words
    "compute": ("compute", "计算"),
    "memory": ("memory", "访存"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
}


def label(language: Language, name: str) -> str:
    """A name without a label is shown as it is."""
    if name not in LABELS:
        return name
    english, chinese = LABELS[name]
    return chinese if language == "zh" else english
