"""What the screen of a mock interview says, in both languages."""

from __future__ import annotations

from typing import Literal

WORDS: dict[str, dict[Literal["en", "zh"], str]] = {
    "mock_head": {
        "en": "Part {number} of {count}: {part}, question {place} of {places}",
        "zh": "第 {number}/{count} 部分：{part}，第 {place}/{places} 题",
    },
    "mock_clock": {"en": "{left} left of this part's {planned}", "zh": "本部分 {planned} 分钟，还剩 {left}"},
    "mock_over_time": {"en": "this part is {over} over its time", "zh": "本部分已超时 {over}"},
    "mock_keys": {"en": "p pause, part next part, q leave", "zh": "p 暂停，part 下一部分，q 离开"},
    "mock_taken": {"en": "Taken down.", "zh": "已记下。"},
    "mock_skipped": {"en": "Skipped.", "zh": "已跳过。"},
    "mock_next_part": {"en": "On to the next part.", "zh": "进入下一部分。"},
    "mock_unchanged": {"en": "Nothing was changed, so nothing is handed in.", "zh": "内容没有改动，未提交。"},
    "mock_late": {
        "en": "The time of this part is used up. Questions of it that are not asked: {count}.",
        "zh": "本部分时间已用完，有 {count} 题未问。",
    },
    "mock_follow_up": {"en": "A follow-up", "zh": "追问"},
    "mock_ask_follow_up": {
        "en": "In a few words, an empty line ends it; e editor, s skip",
        "zh": "简短作答，空行结束；e 用编辑器，s 跳过",
    },
    "mock_ask_code": {
        "en": "w write the starter, g FILE grade, d done, ? hint, s skip",
        "zh": "w 写出起始代码，g 文件 评分，d 完成，? 提示，s 跳过",
    },
    "mock_written": {"en": "Written: {path}. Edit it, then g.", "zh": "已写到 {path}。改好后输入 g。"},
    "mock_there": {
        "en": "{path} is there already and stays as it is. Edit it, then g.",
        "zh": "{path} 已经存在，没有改动。改好后输入 g。",
    },
    "mock_not_graded": {
        "en": "Nothing has been graded yet; g FILE grades, s skips.",
        "zh": "还没有评过分；g 文件 评分，s 跳过。",
    },
    "mock_grading": {"en": "Grading {path} on several ranks.", "zh": "正在多个 rank 上评分：{path}"},
    "mock_paused": {"en": "Paused; the clock stands. Enter: go on", "zh": "已暂停，计时停止。回车：继续"},
    "mock_resumed": {"en": "The clock runs again.", "zh": "继续计时。"},
    "mock_nothing": {"en": "An answer, or a key.", "zh": "请作答，或按键。"},
    "mock_debrief": {
        "en": "The interview is over. Now mark what you said in words.",
        "zh": "面试部分结束。现在给自己的文字回答打分。",
    },
    "mock_your_answer": {"en": "Your answer", "zh": "你的回答"},
    "mock_our_answer": {"en": "What a strong answer says", "zh": "好的回答会说"},
    "mock_ask_compare": {
        "en": "Did yours say it? y yes, n no, q leave",
        "zh": "你说到了吗？y 是，n 否，q 离开",
    },
    "mock_left": {"en": "Kept. To go on: {command}", "zh": "已保存。继续：{command}"},
    "mock_not_kept": {"en": "Left; nothing is kept (--no-save).", "zh": "已离开；没有保存（--no-save）。"},
    "mock_end": {
        "en": "Questions asked: {asked} of {all}; {score} on average over those asked.",
        "zh": "{all} 题中问了 {asked} 题，所问题目平均 {score}。",
    },
    "mock_card": {
        "en": "The scorecard, with answers and what to study next: {path}",
        "zh": "评分卡（含答案与下一步建议）：{path}",
    },
    "mock_plan": {"en": "An interview of {minutes} minutes: {parts}", "zh": "一场 {minutes} 分钟的面试：{parts}"},
    "mock_plan_part": {"en": "{part} {minutes}", "zh": "{part} {minutes}"},
    "mock_no_verdicts": {
        "en": "What was right is told at the end. Seed {seed}.",
        "zh": "对错在最后公布。种子 {seed}。",
    },
    "mock_left_out": {
        "en": "Left out, for want of time or of questions: {parts}",
        "zh": "因时间或题目不足而省略：{parts}",
    },
    "mock_other_level": {
        "en": "{part}: of level {levels}, since nothing nearer was left",
        "zh": "{part}：等级 {levels}，没有更接近的题目",
    },
    "mock_seed": {"en": "Seed {seed}.", "zh": "种子 {seed}。"},
    "mock_plan_written": {"en": "Written: {path}", "zh": "已写到 {path}"},
    "mock_nobody": {"en": "no name", "zh": "未命名"},
    "mock_resumed_of": {
        "en": "Goes on: {name}, begun {begun}, question {number} of {count}",
        "zh": "继续：{name}，开始于 {begun}，第 {number}/{count} 题",
    },
    "mock_other": {
        "en": "Also left: {name}, begun {begun}; --name says which one is meant",
        "zh": "还有未完成的：{name}，开始于 {begun}；用 --name 指定",
    },
    "mock_kept": {
        "en": "Every line is kept; you may leave and go on with --resume.",
        "zh": "每一行都会保存；可以随时离开，用 --resume 继续。",
    },
    "share_over": {"en": "The interview is over.", "zh": "面试结束了。"},
    "share_keys": {
        "en": "Enter next, b back, a number, q quit",
        "zh": "回车下一题，b 上一题，输入题号跳转，q 退出",
    },
    "share_follow": {"en": "This screen follows by itself; q quit", "zh": "本页会自动跟随；q 退出"},
    "share_head": {"en": "Question {number} of {count}", "zh": "第 {number}/{count} 题"},
}
