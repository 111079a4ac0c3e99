"""What `hunt` says, in both languages."""

from __future__ import annotations

from typing import Literal

WORDS: dict[str, dict[Literal["en", "zh"], str]] = {
    "hunt_head": {"en": "A candidate's answer to {id}, level {level}", "zh": "候选人对 {id} 的作答，{level} 级"},
    "hunt_task": {
        "en": "Somewhere in it is one mistake. The question itself: {command}",
        "zh": "代码里有一处错误。查看原题：{command}",
    },
    "hunt_ask_line": {
        "en": "Which line is wrong? Its number, or where something is missing a line next to it; "
        "? hint, s skip, fix: put it right yourself, q quit",
        "zh": "哪一行有错？输入行号；如果是缺了代码，输入相邻的行号。? 提示，s 跳过，fix 改为自己动手修，q 退出",
    },
    "hunt_ask_symptom": {
        "en": "What shows first when it runs? One letter; s skip, q quit",
        "zh": "运行时最先暴露的是什么？输入一个字母；s 跳过，q 退出",
    },
    "hunt_ask_rank": {
        "en": "Which rank does the diagnosis name? A number from 0, or - for none; s skip, q quit",
        "zh": "诊断信息会点名哪个 rank？从 0 开始的编号，不点名写 -；s 跳过，q 退出",
    },
    "hunt_ask_ratio": {
        "en": "How many times the expected values? n is the world size: n, 1/n, 0, -1; - where no one factor fits; "
        "s skip, q quit",
        "zh": "结果是正确值的多少倍？n 表示 world size，例如 n、1/n、0、-1；没有统一倍数写 -；s 跳过，q 退出",
    },
    "hunt_wants_line": {"en": "a line number, {range}", "zh": "请输入行号 {range}"},
    "hunt_wants_symptom": {"en": "a letter, {range}", "zh": "请输入字母 {range}"},
    "hunt_wants_rank": {"en": "a rank from 0, or -", "zh": "请输入 rank 编号，或 -"},
    "hunt_wants_ratio": {
        "en": "a factor, as n, 1/n, 2 or sqrt(n), or -",
        "zh": "请输入倍数，例如 n、1/n、2 或 sqrt(n)，或 -",
    },
    "hunt_hint_function": {"en": "It is in {name}.", "zh": "错误在 {name} 里。"},
    "hunt_hint_outside": {"en": "It is outside of any function.", "zh": "错误不在任何函数里。"},
    "hunt_hint_lines": {"en": "It is within lines {first} to {last}.", "zh": "错误在第 {first} 到 {last} 行之间。"},
    "symptom_hang": {
        "en": "It hangs, or ranks issue operations that do not fit together.",
        "zh": "卡住，或各 rank 发出的操作对不上。",
    },
    "symptom_crash": {"en": "A rank crashes: it raises.", "zh": "某个 rank 抛异常崩溃。"},
    "symptom_race": {
        "en": "A race: a buffer is touched while its operation is in flight.",
        "zh": "数据竞争：操作还在途，缓冲区就被读写。",
    },
    "symptom_refused": {
        "en": "Refused: it uses what the question forbids.",
        "zh": "被拒绝：用了题目禁止的接口。",
    },
    "symptom_values": {"en": "It runs, and values are wrong.", "zh": "能跑完，但数值错误。"},
    "symptom_traffic": {
        "en": "Values hold; traffic is too much, too little or of the wrong kind.",
        "zh": "数值正确，但通信过多、过少或方式不对。",
    },
    "symptom_memory": {"en": "Values hold; it keeps too much memory.", "zh": "数值正确，但占用内存过多。"},
    "symptom_time": {
        "en": "Values hold; it takes too long: too little overlaps, or ranks idle.",
        "zh": "数值正确，但太慢：重叠不够，或 rank 空等。",
    },
    "symptom_discipline": {
        "en": "Values hold; a rule of conduct is broken (works left unwaited, global state changed, ...).",
        "zh": "数值正确，但行为不规范（有操作没 wait、改了全局状态等）。",
    },
    "hunt_running": {"en": "Running it on several ranks.", "zh": "正在多个 rank 上运行。"},
    "hunt_no_torch": {
        "en": "torch is not installed, so it was not run and the line alone counts.",
        "zh": "没有安装 torch，因此没有运行，只计行号。",
    },
    "hunt_not_run": {"en": "It was not run, so the line alone counts.", "zh": "没有运行，只计行号。"},
    "hunt_passed": {
        "en": "Nothing failed on this machine, which cannot measure all that the bank does; the line alone counts.",
        "zh": "在这台机器上没有检查失败（有些指标这里测不了），只计行号。",
    },
    "hunt_guesses": {"en": "Your guesses", "zh": "你的判断"},
    "hunt_part_line": {"en": "line", "zh": "行号"},
    "hunt_part_symptom": {"en": "symptom", "zh": "现象"},
    "hunt_part_rank": {"en": "rank", "zh": "rank"},
    "hunt_part_ratio": {"en": "factor", "zh": "倍数"},
    "hunt_line_is": {"en": "you: {given}; wrong: {right}", "zh": "你答 {given}；有错的是 {right}"},
    "hunt_is": {"en": "you: {given}; seen: {right}", "zh": "你答 {given}；实际 {right}"},
    "hunt_also": {
        "en": "you: {given}; that shows too, but first: {right}",
        "zh": "你答 {given}，也会出现，但最先的是 {right}",
    },
    "hunt_nothing": {"en": "nothing", "zh": "未答"},
    "hunt_none": {"en": "none", "zh": "无"},
    "hunt_times": {"en": "{ratio} times, at world_size={size}", "zh": "{ratio} 倍（world_size={size}）"},
    "hunt_word_hang": {"en": "hangs", "zh": "卡住"},
    "hunt_word_crash": {"en": "crashes", "zh": "崩溃"},
    "hunt_word_race": {"en": "race", "zh": "竞争"},
    "hunt_word_refused": {"en": "refused", "zh": "被拒绝"},
    "hunt_word_values": {"en": "values", "zh": "数值"},
    "hunt_word_traffic": {"en": "traffic", "zh": "通信"},
    "hunt_word_memory": {"en": "memory", "zh": "内存"},
    "hunt_word_time": {"en": "time", "zh": "时间"},
    "hunt_word_discipline": {"en": "discipline", "zh": "规范"},
    "hunt_mistake": {"en": "The mistake", "zh": "错在哪里"},
    "hunt_legend": {"en": "-  in this file    +  in the right one", "zh": "-  本文件    +  正确写法"},
    "hunt_score": {"en": "{got} of {most} points", "zh": "{got}/{most} 分"},
    "hunt_hints": {"en": "hints used: {count}", "zh": "用了 {count} 条提示"},
    "hunt_ask_end": {
        "en": "f: write the file, to put it right; Enter: the end",
        "zh": "f：写出文件，自己改对；回车：结束",
    },
    "hunt_again": {"en": "the same again: {command}", "zh": "再来一次：{command}"},
    "hunt_fix": {"en": "put it right: {command}", "zh": "自己改对：{command}"},
    "hunt_wrote": {"en": "wrote {path}", "zh": "已写出 {path}"},
    "hunt_watch": {"en": "graded at every save: {command}", "zh": "每次保存自动评分：{command}"},
    "hunt_grade": {"en": "graded once: {command}", "zh": "评分一次：{command}"},
    "hunt_read": {"en": "the question: {command}", "zh": "题目：{command}"},
}
