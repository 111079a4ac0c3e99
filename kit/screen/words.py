"""What the screens say around a question, in both languages."""

from __future__ import annotations

from typing import Literal

from kit.screen.candidate_words import WORDS as CANDIDATE_WORDS
from kit.screen.foretell_words import WORDS as FORETELL_WORDS
from kit.screen.hunt_words import WORDS as HUNT_WORDS
from kit.screen.interviewer_words import WORDS as INTERVIEWER_WORDS
from kit.screen.progress_words import WORDS as PROGRESS_WORDS

Language = Literal["en", "zh"]

WORDS: dict[str, dict[Language, str]] = {
    **PROGRESS_WORDS,
    **INTERVIEWER_WORDS,
    **CANDIDATE_WORDS,
    **HUNT_WORDS,
    **FORETELL_WORDS,
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
    # quiz
    "question_of": {"en": "Question {number} of {count}", "zh": "第 {number}/{count} 题"},
    "ask_choice": {"en": "One letter; ? hint, s skip, q quit", "zh": "输入一个字母；? 提示，s 跳过，q 退出"},
    "ask_multi": {
        "en": "Every right letter, as in: a c; ? hint, s skip, q quit",
        "zh": "输入所有正确选项的字母，例如 a c；? 提示，s 跳过，q 退出",
    },
    "ask_number": {"en": "A number; ? hint, s skip, q quit", "zh": "输入数值；? 提示，s 跳过，q 退出"},
    "ask_predict": {"en": "One letter; ? hint, s skip, q quit", "zh": "输入一个字母；? 提示，s 跳过，q 退出"},
    "ask_order": {
        "en": "Every letter, first to last, as in: b a d c; ? hint, s skip, q quit",
        "zh": "按先后顺序输入所有字母，例如 b a d c；? 提示，s 跳过，q 退出",
    },
    "ask_open": {
        "en": "Your answer in words, an empty line ends it; e editor, ? hint, s skip, q quit",
        "zh": "用自己的话作答，空行结束；e 用编辑器，? 提示，s 跳过，q 退出",
    },
    "ask_point": {"en": "Did your answer say it? y yes, n no, q quit", "zh": "你的回答提到了吗？y 是，n 否，q 退出"},
    "compare": {
        "en": "Hold your answer against each of {count} points.",
        "zh": "对照以下 {count} 个要点，给自己的回答评分。",
    },
    "rubric": {"en": "Points of a whole answer", "zh": "完整回答的要点"},
    "weight": {"en": "({weight})", "zh": "（{weight} 分）"},
    "in_place": {"en": "In their place: {placed} of {count}", "zh": "位置正确：{placed}/{count}"},
    "right_order": {"en": "Right order", "zh": "正确顺序"},
    "on_ranks": {
        "en": "Every rank runs it; world size {count}.",
        "zh": "每个 rank 都运行这段程序，world size 为 {count}。",
    },
    "happens_prints": {"en": "What it prints, in the order of ranks", "zh": "实际输出（按 rank 顺序）"},
    "happens_hangs": {"en": "It hangs, and the diagnosis says", "zh": "程序会卡住，诊断信息中有"},
    "happens_raises": {"en": "It raises, and the error says", "zh": "程序会抛出异常，报错信息中有"},
    "happens_race": {"en": "It has a race, and the diagnosis says", "zh": "程序存在数据竞争，诊断信息中有"},
    "happens_mismatch": {
        "en": "Ranks do not fit together, and the diagnosis says",
        "zh": "各 rank 的操作不匹配，诊断信息中有",
    },
    "ask_next": {
        "en": "Enter: next question, b: bookmark, u: undo, q: quit",
        "zh": "回车：下一题，b：收藏，u：撤销，q：退出",
    },
    "ask_end": {"en": "Enter: the score, b: bookmark, u: undo", "zh": "回车：看成绩，b：收藏，u：撤销"},
    "not_taken": {"en": "That is no answer, and does not count: {why}", "zh": "这不是有效的答案，不计分：{why}"},
    "accepted": {
        "en": "letters a to {last}, or numbers 1 to {count}",
        "zh": "可以用字母 a 到 {last}，或数字 1 到 {count}",
    },
    "slip_unit": {"en": "right in {}, and you wrote {}", "zh": "单位换成 {} 就对了，而你写的是 {}"},
    "slip_bits": {"en": "8 times too large: bits for bytes", "zh": "是正确答案的 8 倍：把 bit 当成了字节"},
    "slip_bytes": {
        "en": "8 times too small: divided by 8 as if bytes were bits",
        "zh": "是正确答案的 1/8：把字节当成 bit，多除了一个 8",
    },
    "accepted_order": {
        "en": "every letter from a to {last} once, first to last",
        "zh": "字母 a 到 {last} 各写一次，按先后顺序",
    },
    "ask_confidence": {
        "en": "How sure are you, in percent? Enter: no answer",
        "zh": "有多大把握（百分比）？回车：不填",
    },
    "accepted_confidence": {"en": "a whole number from 0 to 100", "zh": "请输入 0 到 100 的整数"},
    "bookmarked": {"en": "Bookmarked.", "zh": "已收藏。"},
    "unbookmarked": {"en": "No longer bookmarked.", "zh": "已取消收藏。"},
    "keeps_none": {"en": "With --no-save no bookmark is kept.", "zh": "使用 --no-save 时不保存收藏。"},
    "nothing_to_undo": {"en": "There is nothing to undo.", "zh": "没有可以撤销的作答。"},
    "line_gone": {"en": "The last line is gone.", "zh": "已删除上一行。"},
    "nothing_due": {
        "en": "Nothing is due today. Something new: --new 5",
        "zh": "今天没有到期的题目。学习新题：--new 5",
    },
    "nothing_new": {"en": "All of these were answered before.", "zh": "这些题目都已经做过。"},
    "nothing_bookmarked": {"en": "None of these is bookmarked.", "zh": "这些题目都没有收藏。"},
    "accepted_point": {"en": "y or n", "zh": "请输入 y 或 n"},
    "no_more_hints": {"en": "There are no more hints.", "zh": "没有更多提示了。"},
    "right": {"en": "Right", "zh": "正确"},
    "wrong": {"en": "Wrong", "zh": "错误"},
    "marked": {"en": "Marked", "zh": "已评分"},
    "unmarked": {"en": "Not marked", "zh": "未评分"},
    "skipped": {"en": "Skipped", "zh": "已跳过"},
    "points_of": {"en": "{points} of {most} points", "zh": "{points}/{most} 分"},
    "open_points": {"en": "answers in words: {points} of {most} points", "zh": "问答题 {points}/{most} 分"},
    "your_answer": {"en": "Your answer: {given}", "zh": "你的答案：{given}"},
    "right_answer": {"en": "Right answer: {answer}", "zh": "正确答案：{answer}"},
    "within": {"en": " (accepted within {percent}%)", "zh": "（误差 {percent}% 以内算对）"},
    "option_right": {"en": "Right. ", "zh": "对。"},
    "option_wrong": {"en": "Wrong. ", "zh": "错。"},
    "colon": {"en": ": ", "zh": "："},
    "stop": {"en": ". ", "zh": "。"},
    "comma": {"en": ", ", "zh": "，"},
    "score": {"en": "{right} of {asked} right", "zh": "答对 {right}/{asked} 题"},
    "num_skipped": {"en": "{count} skipped", "zh": "跳过 {count} 题"},
    "num_unmarked": {"en": "{count} not marked", "zh": "未评分 {count} 题"},
    "num_left": {"en": "{count} not asked", "zh": "未作答 {count} 题"},
    "num_hints": {"en": "hints used: {count}", "zh": "用了 {count} 条提示"},
    "nothing_asked": {"en": "No question was answered.", "zh": "没有作答任何题目。"},
    "again": {"en": "The same questions again: --seed {seed}", "zh": "重做同样的题目：--seed {seed}"},
    "num_questions": {"en": "questions: {count}", "zh": "共 {count} 题"},
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
