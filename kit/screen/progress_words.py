"""What the screens of progress say, in both languages."""

from __future__ import annotations

from typing import Literal

WORDS: dict[str, dict[Literal["en", "zh"], str]] = {
    "progress_streak": {"en": "Days in a row", "zh": "连续天数"},
    "progress_days_in_a_row": {"en": "{days}, longest {longest}", "zh": "{days} 天（最长 {longest} 天）"},
    "progress_today_done": {"en": "today is done", "zh": "今天已完成"},
    "progress_today_open": {"en": "nothing answered today", "zh": "今天还没有作答"},
    "progress_answers": {"en": "Answers", "zh": "作答"},
    "progress_answers_to": {
        "en": "{answers}, to {answered} of {questions} questions",
        "zh": "共 {answers} 次，做过 {questions} 题中的 {answered} 题",
    },
    "progress_due": {"en": "Due", "zh": "待复习"},
    "progress_due_count": {
        "en": "{today} today, {soon} more within a week",
        "zh": "今天 {today} 题，一周内还有 {soon} 题",
    },
    "progress_bookmarks": {"en": "Bookmarks", "zh": "收藏"},
    "progress_num_bookmarks": {"en": "{count}", "zh": "{count} 题"},
    "progress_per_day": {"en": "Answers a day, the last two weeks", "zh": "最近两周每天的作答次数"},
    "progress_topics": {
        "en": "Strengths: the latest answer to each question",
        "zh": "各主题掌握情况（每题取最近一次作答）",
    },
    "progress_head_topic": {"en": "TOPIC", "zh": "主题"},
    "progress_head_score": {"en": "SCORE", "zh": "得分"},
    "progress_head_answered": {"en": "ANSWERED", "zh": "已做"},
    "progress_head_due": {"en": "DUE", "zh": "待复习"},
    "progress_calibration": {"en": "How sure, and how right", "zh": "把握与实际得分"},
    "progress_head_sure": {"en": "SURE", "zh": "把握"},
    "progress_head_answers": {"en": "ANSWERS", "zh": "次数"},
    "progress_brier": {
        "en": "Brier score {brier}: the mean of (sure - score) squared; 0 is perfect, always saying 50% gives 0.25.",
        "zh": "Brier 分数 {brier}：（把握 - 得分）平方的平均；0 最好，每次都说 50% 则为 0.25。",
    },
    "progress_too_sure": {
        "en": "On the whole {points} points too sure: {confidence} said, {score} reached.",
        "zh": "总体上高估了 {points} 个百分点：平均把握 {confidence}，实际得分 {score}。",
    },
    "progress_not_sure_enough": {
        "en": "On the whole {points} points not sure enough: {confidence} said, {score} reached.",
        "zh": "总体上低估了 {points} 个百分点：平均把握 {confidence}，实际得分 {score}。",
    },
    "progress_well_calibrated": {
        "en": "On the whole as sure as right: {confidence} said, {score} reached.",
        "zh": "总体上估计得很准：平均把握 {confidence}，实际得分 {score}。",
    },
    "progress_nothing": {
        "en": "No question was answered yet. Begin with: {command}",
        "zh": "还没有作答过任何题目。可以从这里开始：{command}",
    },
    "progress_next_due": {"en": "What is due: {command}", "zh": "复习到期的题目：{command}"},
    "progress_next_new": {"en": "Something new: {command}", "zh": "学习新题：{command}"},
    # one question
    "progress_gone": {"en": "This question is not in the bank.", "zh": "题库中没有这道题。"},
    "progress_due_on": {"en": "Due on {day}", "zh": "{day} 到期"},
    "progress_no_date": {"en": "Not scheduled: it was never answered", "zh": "尚未安排复习：还没有作答过"},
    "progress_stability": {
        "en": "after {days} days 90% still know it",
        "zh": "{days} 天后仍有 90% 的可能记得",
    },
    "progress_difficulty": {"en": "difficulty {difficulty} of 10", "zh": "难度 {difficulty}/10"},
    "progress_is_bookmarked": {"en": "bookmarked", "zh": "已收藏"},
    "progress_head_when": {"en": "WHEN", "zh": "时间"},
    "progress_head_mode": {"en": "IN", "zh": "方式"},
    "progress_head_verdict": {"en": "RESULT", "zh": "结果"},
    "progress_head_hints": {"en": "HINTS", "zh": "提示"},
    "progress_head_time": {"en": "TIME", "zh": "用时"},
    "progress_mode_quiz": {"en": "quiz", "zh": "测验"},
    "progress_mode_cram": {"en": "cram", "zh": "突击"},
    "progress_mode_hunt": {"en": "hunt", "zh": "找错"},
    "progress_mode_predict": {"en": "predict", "zh": "预测"},
    "progress_mode_interview": {"en": "interview", "zh": "面试"},
    "progress_mode_grade": {"en": "grade", "zh": "评分"},
    # files
    "progress_set_aside": {
        "en": "the progress file was damaged; it is now {path}, and a new one was begun",
        "zh": "进度文件已损坏，已改名为 {path}，并新建了一个",
    },
    "progress_carried": {
        "en": "the progress file was damaged; it is now {path}, and {kept} of its {count} answers, "
        "which could be read, are in a new one",
        "zh": "进度文件已损坏，已改名为 {path}，并新建了一个；原有 {count} 条作答记录，读出并保留了 {kept} 条",
    },
    "note": {"en": "note: {text}", "zh": "注意：{text}"},
    "progress_imported": {
        "en": "Answers: {added} new, {known} known already. Taken back: {undone}. Bookmarks changed: {bookmarks}. "
        "Interviews changed: {interviews}.",
        "zh": "作答记录：新增 {added} 条，已有 {known} 条。撤销：{undone} 条。收藏变更：{bookmarks} 条。"
        "面试变更：{interviews} 场。",
    },
}
