"""What the screens say around a question, in both languages."""

from __future__ import annotations

from typing import Literal

from kit.screen.candidate_words import WORDS as CANDIDATE_WORDS
from kit.screen.foretell_words import WORDS as FORETELL_WORDS
from kit.screen.hunt_words import WORDS as HUNT_WORDS
from kit.screen.interviewer_words import WORDS as INTERVIEWER_WORDS
from kit.screen.progress_words import WORDS as PROGRESS_WORDS
from kit.screen.quiz_words import WORDS as QUIZ_WORDS

Language = Literal["en", "zh"]

WORDS: dict[str, dict[Language, str]] = {
    **PROGRESS_WORDS,
    **INTERVIEWER_WORDS,
    **CANDIDATE_WORDS,
    **HUNT_WORDS,
    **FORETELL_WORDS,
    **QUIZ_WORDS,
    # kinds of questions
    "code": {"en": "code", "zh": "编程"},
    "choice": {"en": "choice", "zh": "单选"},
    "multi": {"en": "multi", "zh": "多选"},
    "number": {"en": "number", "zh": "数值"},
    "order": {"en": "order", "zh": "排序"},
    "predict": {"en": "predict", "zh": "预测"},
    "open": {"en": "open", "zh": "问答"},
    "level": {"en": "level {level}", "zh": "{level} 级"},
    # the list
    "head_id": {"en": "ID", "zh": "ID"},
    "head_kind": {"en": "KIND", "zh": "题型"},
    "head_level": {"en": "LEVEL", "zh": "级别"},
    "head_title": {"en": "TITLE", "zh": "标题"},
    # parts of a question
    "interface": {"en": "Interface", "zh": "接口"},
    "forbidden": {
        "en": "Yours to write, so not to be called or subclassed",
        "zh": "要你自己实现，不能调用，也不能继承",
    },
    "points": {"en": "Points", "zh": "分值"},
    "unit": {"en": "In {unit}, or with a unit of your own", "zh": "单位 {unit}，也可以自带单位"},
    "unit_B": {
        "en": "With its unit: 12 GB, 11.2 GiB or 1.2e10 B",
        "zh": "请带单位，例如 12 GB、11.2 GiB 或 1.2e10 B",
    },
    "unit_s": {"en": "With its unit: 35 ms or 0.035 s", "zh": "请带单位，例如 35 ms 或 0.035 s"},
    "unit_fraction": {"en": "As 3/8, 0.375 or 37.5%", "zh": "写成 3/8、0.375 或 37.5% 都可以"},
    "unit_count": {"en": "A plain number: 1536, 1.5e3 or 3/2", "zh": "直接写数，例如 1536、1.5e3 或 3/2"},
    "requires": {"en": "Study first: {ids}", "zh": "建议先做：{ids}"},
    "as_of": {"en": "As of {month}", "zh": "截至 {month}"},
    "hint": {"en": "Hint {number} of {count}", "zh": "提示 {number}/{count}"},
    "explanation": {"en": "Explanation", "zh": "解析"},
    "working": {"en": "Worked with these numbers", "zh": "代入本题数字"},
    "convention": {"en": "Convention", "zh": "口径"},
    "follow_ups": {"en": "An interviewer would go on", "zh": "面试官可能追问"},
    "sources": {"en": "Sources", "zh": "出处"},
    "answer": {"en": "Answer", "zh": "答案"},
    "no_reference": {"en": "The bank has no reference for this question.", "zh": "题库中没有这道题的参考实现。"},
    "next_code": {"en": "Begin: {command}", "zh": "开始做：{command}"},
    "more_hints": {"en": "A hint ({count} left): {command}", "zh": "看提示（还有 {count} 条）：{command}"},
    # calculations
    "calc_breakdown": {"en": "Breakdown", "zh": "逐步计算"},
    # timelines
    "timeline_F": {"en": "forward", "zh": "forward"},
    "timeline_B": {"en": "backward", "zh": "backward"},
    "timeline_I": {"en": "input gradient", "zh": "输入梯度"},
    "timeline_W": {"en": "weight gradient", "zh": "权重梯度"},
    "timeline_number": {"en": "number: microbatch", "zh": "数字为 microbatch 编号"},
    "timeline_wait": {"en": "waits", "zh": "等待"},
    "timeline_collective": {"en": "collective", "zh": "集合通信"},
    "timeline_busy": {"en": "busy", "zh": "计算"},
    "timeline_bubble": {"en": "bubble", "zh": "bubble"},
    "timeline_exposed": {"en": "exposed comm.", "zh": "暴露的通信"},
    "timeline_in_flight": {"en": "in flight", "zh": "在途 microbatch"},
    "timeline_unseen": {
        "en": "A column is {column}; {count} spans fill too little of one to be named above.",
        "zh": "每列 {column}；有 {count} 段太短，占不满半列，上图没有单独标出。",
    },
    "timeline_left_out": {
        "en": "{count} of {size} ranks are left out: {ranks}",
        "zh": "{size} 个 rank 中略去 {count} 个：{ranks}",
    },
    "timeline_extremes": {
        "en": "Bubble from {least} (rank {least_rank}) to {most} (rank {most_rank}).",
        "zh": "bubble 最小 {least}（rank {least_rank}），最大 {most}（rank {most_rank}）。",
    },
    "timeline_same": {"en": "Every rank has a bubble of {bubble}.", "zh": "各 rank 的 bubble 都是 {bubble}。"},
    "timeline_sum": {
        "en": "makespan {makespan}, bubble {bubble} (idle / makespan, mean over {size} ranks), profile {profile}",
        "zh": "总时长 {makespan}，bubble {bubble}（空闲 / 总时长，{size} 个 rank 的平均），硬件 profile：{profile}",
    },
    "timeline_empty": {
        "en": "Nothing in this run takes virtual time under the profile {profile}.",
        "zh": "在硬件 profile {profile} 下，这次运行没有任何一步消耗虚拟时间。",
    },
}


def say(language: Language, key: str, *parts: object, **values: object) -> str:
    return WORDS[key][language].format(*parts, **values)
