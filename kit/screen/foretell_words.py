"""What `predict` says, in both languages."""

from __future__ import annotations

from typing import Literal

WORDS: dict[str, dict[Literal["en", "zh"], str]] = {
    "foretell_what": {
        "en": "This launch has been made. What did it measure? What counts: {part}.",
        "zh": "这次运行已经完成，猜猜它测到了什么。统计范围：{part}。",
    },
    "foretell_part": {"en": "from the mark {mark!r} to its end", "zh": "从标记 {mark!r} 到它结束"},
    "foretell_whole": {"en": "the whole run", "zh": "整个运行"},
    "foretell_program": {"en": "What every rank runs", "zh": "每个 rank 运行的程序"},
    "foretell_inputs": {"en": "What rank 0 is given", "zh": "rank 0 的输入"},
    "foretell_more": {"en": "and {count} more", "zh": "还有 {count} 项"},
    "foretell_computes": {"en": "What rank 0 computes, in virtual time", "zh": "rank 0 的计算（虚拟时间）"},
    "foretell_each": {"en": "{count} x {what}, {time} each on average", "zh": "{count} 次 {what}，平均每次 {time}"},
    "foretell_operations": {
        "en": "What rank 0 communicates, however often",
        "zh": "rank 0 的通信（不计次数）",
    },
    "foretell_communication": {
        "en": "Its communication is under way for {time}, hidden or not.",
        "zh": "通信总共进行了 {time}，含被掩盖的部分。",
    },
    "foretell_ask_traffic": {
        "en": "How many bytes does rank {rank} send?",
        "zh": "rank {rank} 发送多少字节？",
    },
    "foretell_ask_bubble": {
        "en": "How large is the bubble: idle time / makespan, mean over ranks?",
        "zh": "bubble 多大（空闲时间 / 总时长，各 rank 平均）？",
    },
    "foretell_ask_exposed": {
        "en": "How long does communication hold rank {rank} up (exposed)?",
        "zh": "rank {rank} 因通信而停住多久（暴露的通信）？",
    },
    "foretell_ask_memory": {
        "en": "By how much does rank {rank} grow at most after the hold {since!r}?",
        "zh": "在 hold {since!r} 之后，rank {rank} 的内存最多增加多少？",
    },
    "foretell_how_B": {
        "en": "With its unit: 52.5 GB, 48.9 GiB or 5.25e10 B; s skip, q quit",
        "zh": "请带单位，例如 52.5 GB、48.9 GiB 或 5.25e10 B；s 跳过，q 退出",
    },
    "foretell_how_s": {
        "en": "With its unit: 12 ms or 0.012 s; s skip, q quit",
        "zh": "请带单位，例如 12 ms 或 0.012 s；s 跳过，q 退出",
    },
    "foretell_how_fraction": {
        "en": "As 3/8, 0.375 or 37.5%; s skip, q quit",
        "zh": "写成 3/8、0.375 或 37.5% 都可以；s 跳过，q 退出",
    },
    "foretell_negative": {"en": "nothing measured here is below zero", "zh": "这里的量都不会是负数"},
    "foretell_traffic": {"en": "bytes sent", "zh": "发送字节"},
    "foretell_bubble": {"en": "bubble", "zh": "bubble"},
    "foretell_exposed": {"en": "exposed", "zh": "暴露的通信"},
    "foretell_memory": {"en": "memory", "zh": "内存"},
    "foretell_measured": {"en": "Guessed and measured", "zh": "猜测与实测"},
    "foretell_right": {"en": "you: {guess}; measured: {measured}", "zh": "你猜 {guess}；实测 {measured}"},
    "foretell_off": {
        "en": "you: {guess}; measured: {measured}; yours is {times} x that",
        "zh": "你猜 {guess}；实测 {measured}；你的是实测的 {times} 倍",
    },
    "foretell_skipped": {"en": "measured: {measured}", "zh": "实测 {measured}"},
    "foretell_score": {
        "en": "{got} of {most} points (2 within {percent} of it, 1 within a quarter)",
        "zh": "{got}/{most} 分（误差 {percent} 以内 2 分，四分之一以内 1 分）",
    },
    "foretell_nothing": {
        "en": "This launch measured nothing to be foretold: no traffic, no virtual time, no memory.",
        "zh": "这次运行没有可以预测的量：没有通信、虚拟时间或内存读数。",
    },
}
