"""What a scorecard says, in both languages."""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "zh"]

WORDS: dict[str, dict[Language, str]] = {
    "title": {"en": "Interview scorecard", "zh": "面试评分表"},
    "title_of": {"en": "Interview scorecard: {candidate}", "zh": "面试评分表：{candidate}"},
    "colon": {"en": ": ", "zh": "："},
    "comma": {"en": ", ", "zh": "，"},
    # the head
    "held": {"en": "Held as", "zh": "形式"},
    "role_candidate": {"en": "mock interview", "zh": "模拟面试"},
    "role_interviewer": {"en": "interview, scored by the interviewer", "zh": "正式面试，由面试官评分"},
    "date": {"en": "Date", "zh": "日期"},
    "time": {"en": "Time", "zh": "用时"},
    "time_of": {"en": "{used} of {planned}", "zh": "{used}，计划 {planned}"},
    "score": {"en": "Score", "zh": "得分"},
    "score_of": {
        "en": "{score}, over {count} of {all} questions",
        "zh": "{score}（{all} 题中考察了 {count} 题）",
    },
    "no_score": {"en": "no question was answered", "zh": "没有作答任何题目"},
    "plan": {"en": "Plan", "zh": "方案"},
    "plan_of": {
        "en": "seed {seed}, fingerprint {fingerprint}",
        "zh": "seed {seed}，指纹 {fingerprint}",
    },
    "plan_compares": {
        "en": "Scorecards with the same fingerprint asked the same questions with the same numbers.",
        "zh": "指纹相同的评分表，题目和数值完全一致，可以直接比较。",
    },
    "unfinished": {"en": "This interview is not finished.", "zh": "这场面试还没有结束。"},
    # profile
    "topics": {"en": "Topic profile", "zh": "各主题表现"},
    "head_topic": {"en": "Topic", "zh": "主题"},
    "head_questions": {"en": "Questions", "zh": "题数"},
    "head_asked": {"en": "Asked", "zh": "已问"},
    "head_score": {"en": "Score", "zh": "得分"},
    "head_part": {"en": "Part", "zh": "环节"},
    "head_planned": {"en": "Planned", "zh": "计划"},
    "head_used": {"en": "Used", "zh": "实际"},
    "parts": {"en": "Parts and time", "zh": "各环节用时"},
    "part_warm_up": {"en": "Warm-up", "zh": "热身"},
    "part_estimation": {"en": "Estimation", "zh": "估算"},
    "part_design": {"en": "Design", "zh": "设计"},
    "part_coding": {"en": "Coding", "zh": "编程"},
    "part_debugging": {"en": "Debugging", "zh": "排错"},
    "minutes": {"en": "{minutes} min", "zh": "{minutes} 分钟"},
    "clock": {"en": "{minutes}:{seconds:02d} min", "zh": "{minutes} 分 {seconds:02d} 秒"},
    "none": {"en": "none", "zh": "无"},
    "not_asked": {"en": "not asked", "zh": "未考察"},
    # what to study
    "study": {"en": "What to study next", "zh": "接下来学什么"},
    "study_unknown": {"en": "No question was answered, so nothing is known.", "zh": "没有作答任何题目，无从判断。"},
    "study_nothing": {"en": "No answer was weak.", "zh": "没有明显薄弱的回答。"},
    "study_before": {"en": "comes before {id}", "zh": "是 {id} 的前置知识"},
    "study_again": {"en": "{score} here", "zh": "本次得分 {score}"},
    "study_topic": {"en": "the weakest topic", "zh": "最薄弱的主题"},
    "study_command": {"en": "Practise", "zh": "练习"},
    # answers
    "answers": {"en": "Answers", "zh": "作答记录"},
    "kind_code": {"en": "code", "zh": "编程"},
    "kind_choice": {"en": "choice", "zh": "单选"},
    "kind_multi": {"en": "multi", "zh": "多选"},
    "kind_number": {"en": "number", "zh": "数值"},
    "kind_order": {"en": "order", "zh": "排序"},
    "kind_predict": {"en": "predict", "zh": "预测"},
    "kind_open": {"en": "open", "zh": "问答"},
    "level": {"en": "level {level}", "zh": "{level} 级"},
    "question": {"en": "Question", "zh": "题目"},
    "no_question": {
        "en": "The bank at hand does not have this question.",
        "zh": "当前题库中没有这道题。",
    },
    "answer": {"en": "Answer", "zh": "回答"},
    "no_answer": {"en": "No answer was written down.", "zh": "没有记录回答。"},
    "right_answer": {"en": "Right answer", "zh": "正确答案"},
    "explanation": {"en": "Explanation", "zh": "解析"},
    "strong_answer": {"en": "A strong answer", "zh": "好的回答"},
    "on_ranks": {"en": "On {count} ranks.", "zh": "在 {count} 个 rank 上运行。"},
    "asked_of": {"en": "{count} of {all}", "zh": "{count}/{all}"},
    "overall": {"en": "Overall", "zh": "总评"},
    "model_answer": {"en": "Model answer", "zh": "参考回答"},
    "points": {"en": "Points", "zh": "得分点"},
    "point_of": {"en": "{got} of {most}", "zh": "{got}/{most}"},
    "not_scored": {"en": "not scored, of {most}", "zh": "未评分，共 {most}"},
    "follow_ups": {"en": "Follow-ups", "zh": "追问"},
    "follow_up_asked": {"en": "asked", "zh": "已追问"},
    "red_flags": {"en": "Red flags seen", "zh": "出现的危险信号"},
    "notes": {"en": "Notes", "zh": "备注"},
    "grade": {"en": "Grade of the file", "zh": "代码评测"},
    "grade_of": {
        "en": "{verdict}, {score} of {max_score} points, seed {seed}",
        "zh": "{verdict}，{score}/{max_score} 分，seed {seed}",
    },
    "failed_check": {"en": "failed: {title}", "zh": "未通过：{title}"},
    "hints": {"en": "hints: {count}", "zh": "提示 {count} 条"},
    "right": {"en": "right", "zh": "正确"},
    "wrong": {"en": "wrong", "zh": "错误"},
    "marked": {"en": "scored", "zh": "已评分"},
    "unmarked": {"en": "not scored", "zh": "未评分"},
    "skipped": {"en": "skipped", "zh": "跳过"},
    "passed": {"en": "passed", "zh": "通过"},
    "crashed": {"en": "crashed", "zh": "运行出错"},
    "hung": {"en": "hung", "zh": "卡死"},
    "refused": {"en": "refused", "zh": "违规"},
    "not_started": {"en": "not started", "zh": "未开始"},
    "kit_error": {"en": "could not be graded", "zh": "无法评测"},
    "made_by": {"en": "Made by shardkit.", "zh": "由 shardkit 生成。"},
}  # fmt: skip


def say(language: Language, key: str, **values: object) -> str:
    return WORDS[key][language].format(**values)
