"""A whole quiz on the screen, its input given line by line."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from kit.bank.draw import Draw, draw
from kit.practice.quiz import Quiz, begin
from kit.screen.quiz import play, show_score
from kit.screen.words import Language
from tests.practice.questions import choice, multi, number, open_ended, order, predict
from tests.screen.pages import page, text_of

QUESTIONS = {question.id: question for question in (choice(), multi(), number(), order(), predict(), open_ended())}


def drawn(question_id: str) -> Draw:
    return draw(QUESTIONS[question_id], 1)


def played(
    monkeypatch: pytest.MonkeyPatch,
    lines: Sequence[str],
    language: Language = "en",
    *,
    plan: Sequence[str] = ("topic/choice", "topic/multi", "topic/number"),
    **options: bool,
) -> tuple[Quiz, str]:
    """The last state, and all that was shown."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    out = page(language, **options)
    monkeypatch.setattr("sys.stdout", out.file)
    quiz = play(out, begin(plan), drawn)
    show_score(out, quiz, 1)
    return quiz, text_of(out)


def right(question_id: str) -> str:
    shown = drawn(question_id)
    options = QUESTIONS[question_id].options  # type: ignore[union-attr]
    return "".join("abcdef"[place] for place, index in enumerate(shown.order) if options[index].correct)


def test_a_quiz_from_a_pipe_needs_an_answer_a_question_and_nothing_between(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown = played(monkeypatch, [right("topic/choice"), right("topic/multi"), "12 GB"])
    assert quiz.phase == "over" and quiz.score().right == 3
    assert "3 of 3 right\n" in shown
    assert "The same questions again: --seed 1" in shown
    for text in ("Question 3 of 3", "Right. reason 0", "the explanation", "1. why so", "because", "A paper, section 1"):
        assert text in shown


def test_answers_from_a_pipe_are_repeated_for_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["zzz", "s"])
    assert "> zzz\nThat is no answer, and does not count: no option 'z'" in shown


def test_the_end_of_the_input_shows_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown = played(monkeypatch, [right("topic/choice")])
    assert quiz.score().not_asked == 2
    assert shown.endswith("1 of 1 right, 2 not asked\nThe same questions again: --seed 1\n")
    _, shown = played(monkeypatch, [])
    assert shown.endswith("No question was answered.\n")


def test_hints_are_shown_one_by_one_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["?", "?", "?", "s", "q"])
    assert shown.index("Hint 1 of 2\n  first hint") < shown.index("Hint 2 of 2\n  second hint")
    assert shown.index("second hint") < shown.index("There are no more hints.") < shown.index("Skipped")
    assert "0 of 1 right, 1 skipped, 2 not asked, hints used: 2" in shown


def test_a_wrong_number_says_what_was_mistaken(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["s", "s", "12 GiB"])
    assert "Your answer: 12.88 GB (12 GiB)" in shown
    assert "Right answer: 12 GB (11.18 GiB) (accepted within 1%)" in shown
    assert "right in GB, and you wrote GiB" in shown


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("abc", "不计分：'abc' 不是数；请带单位，例如 12 GB、11.2 GiB 或 1.2e10 B"),
        ("5", "不计分：5 没有单位；请带单位，例如 12 GB、11.2 GiB 或 1.2e10 B"),
        ("1/0 GB", "不计分：'1/0 GB' 中除数为零"),
        ("9**9**9 B", "'9**9**9 B' 太大了"),
        ("12 ms", "'12 ms' 的单位是 ms，与题目要求的量不同；请带单位"),
        ("12,5 GB", "'12,5 GB' 不是数；逗号只能作千位分隔"),
        ("5 apples", "'5 apples' 中的单位 'apples' 无法识别；这里可用：B, KB"),
        ("5 Gb", "'Gb' 可能是 bit，也可能是字节：请写 Gbit、GB（1000 进制）或 GiB（1024 进制）"),
        ("5 G", "'G' 可能是 1000 进制，也可能是 1024 进制"),
        ("96 Gbit", "'96 Gbit' 的单位是 bit，而题目问的是字节"),
        ("12 GB (5 GiB)", "写了两个量，但二者并不相等"),
        ("1e", "缺少指数，应写成 1e9 这样"),
        ("12 GiB", "单位换成 GB 就对了，而你写的是 GiB"),
        ("96 GB", "是正确答案的 8 倍：把 bit 当成了字节"),
        ("1.5 GB", "是正确答案的 1/8"),
    ],
)
def test_what_is_wrong_with_a_number_is_said_in_chinese(monkeypatch: pytest.MonkeyPatch, typed: str, said: str) -> None:
    _, shown = played(monkeypatch, ["s", "s", typed], "zh")
    assert "".join(said.split()) in "".join(shown.split())
    assert not any(text in shown for text in ("is not", "of what?", "and you wrote", "times too", "question asks"))


def test_a_skipped_question_is_answered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["s", "s", "s"])
    assert shown.count("the explanation") == 3
    assert "Right answer: 12 GB" in shown


def test_all_of_it_is_chinese_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["？", "9", right("topic/choice"), "s", "q"], "zh")
    for text in (
        "第 1/3 题",
        "提示 1/2",
        "这不是有效的答案，不计分：没有选项 '9'；可以用字母",
        "正确",
        "解析",
        "面试官可能追问",
        "答对 1/2 题，跳过 1 题，未作答 1 题，用了 1 条提示",
        "重做同样的题目：--seed 1",
    ):
        assert text in shown, text
    for english in ("Question", "Hint", "Right", "Wrong", "Explanation", "Sources", "skip"):
        assert english not in shown, english


def test_without_unicode_everything_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["?", "a", "a b", "3/8 TB"], has_unicode=False)
    assert shown.isascii()


# --- programs, orders and answers in words ------------------------------------------------------------------


def test_a_program_is_answered_with_one_letter_and_told_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ("topic/predict",)
    quiz, shown = played(monkeypatch, ["a b", right("topic/predict")], plan=plan)
    assert quiz.score().right == 1 and "1 of 1 right\n" in shown
    assert "One letter; ? hint" in shown and "Right. reason 0" in shown and "Wrong. reason 2" in shown
    assert "What it prints, in the order of ranks\n  * [1]  " in shown
    quiz, _ = played(monkeypatch, [wrong("topic/predict")], plan=plan)
    assert quiz.score().wrong == 1


def wrong(question_id: str) -> str:
    return next(letter for letter in "abc" if letter != right(question_id))


def test_an_order_is_told_first_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ("topic/order",)
    places = drawn("topic/order").order
    in_order = ["abcd"[places.index(index)] for index in range(4)]
    quiz, shown = played(monkeypatch, [" ".join(in_order)], plan=plan)
    assert quiz.score().right == 1 and "Every letter, first to last" in shown
    swapped = [in_order[1], in_order[0], *in_order[2:]]
    quiz, shown = played(monkeypatch, ["a b", " ".join(swapped)], plan=plan)
    assert quiz.score().wrong == 1
    assert "'a b' leaves out c, d;" in " ".join(shown.split())
    assert f"Right answer: {', '.join(in_order)}\nIn their place: 2 of 4\n" in shown
    assert "\n".join(["Right order", *(f"  {letter}  item {n}" for n, letter in enumerate(in_order))]) in shown
    _, shown = played(monkeypatch, ["a b", "s"], "zh", plan=plan)
    assert "不计分：漏了 c, d；每一项都要写一次" in shown


def test_an_answer_in_words_is_marked_by_its_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown = played(monkeypatch, ["It is so,", "n", "", "y", "n", "maybe", "Y", "no"], plan=("topic/open",))
    score = quiz.score()
    assert (score.marked, score.points, score.most_points, score.right, score.wrong) == (1, 4, 10, 0, 0)
    assert shown.index("> It is so,") < shown.index("> n") < shown.index("the model answer")
    assert shown.count("the model answer") == 1
    assert "That is no answer, and does not count: y or n" in shown
    assert [line for line in shown.splitlines() if line.startswith("  [")] == [
        "  [x] point 0 (1)", "  [ ] point 1 (2)", "  [x] point 2 (3)", "  [ ] point 3 (4)",
    ]  # fmt: skip
    assert "4 of 10 points  topic/open\n\nanswers in words: 4 of 10 points\n" in shown
    assert "the explanation" in shown and " right" not in shown


@pytest.mark.parametrize("lines", [["It is so."], ["It is so.", ""], ["It is so.", "", "y"]])
def test_where_the_input_ends_before_the_marks_the_points_are_shown(
    monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    quiz, shown = played(monkeypatch, lines, plan=("topic/open",))
    assert (quiz.phase, quiz.score().unmarked, quiz.score().not_asked) == ("over", 1, 0)
    assert shown.count("the model answer") == 1
    for text in ("  - point 0 (1)", "  - point 3 (4)", "the explanation", "Not marked  topic/open", "1 not marked\n"):
        assert text in shown, text


def test_an_answer_in_words_may_be_skipped_left_or_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown = played(monkeypatch, ["", "?", "s"], plan=("topic/open",))
    assert quiz.score().skipped == 1 and "first hint" in shown
    assert "the model answer" in shown and "  - point 3 (4)" in shown
    quiz, shown = played(monkeypatch, ["Some words", "q", "q"], plan=("topic/open",))
    assert quiz.score().not_asked == 1 and "model answer" not in shown
    assert shown.count("Your answer is not marked yet. Enter: its points, q: leave") == 1
    quiz, shown = played(monkeypatch, ["", ""], plan=("topic/open",))
    assert quiz.score().not_asked == 1 and "model answer" not in shown


def test_the_new_kinds_are_chinese_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ("topic/open", "topic/predict", "topic/order")
    letters = " ".join("abcd")
    lines = ["回答", "", "是", "？？", "否", "ｙ", "n", wrong("topic/predict"), letters]
    _, shown = played(monkeypatch, lines, "zh", plan=plan)
    for text in (
        "对照以下 4 个要点",
        "y 是，n 否",
        "请输入 y 或 n",
        "完整回答的要点",
        "（4 分）",
        "4/10 分",
        "问答题 4/10 分",
    ):
        assert text in shown, text
    for english in ("Points", "Answer", "Every", "What it", "Right", "Wrong", "words", "place"):
        assert english not in shown, english


def test_an_answer_in_words_may_go_through_an_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "editor.sh"
    script.write_text("#!/bin/sh\nprintf 'two\\n\\nthree\\n' >> \"$1\"\n")
    script.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(script))
    quiz, shown = played(monkeypatch, ["one ", "e", "y", "n", "n", "n"], plan=("topic/open",))
    assert quiz.score().points == 1
    assert "  one two\n\n  three\n" in shown and shown.index("  three\n") < shown.index("the model answer")


def test_an_editor_that_fails_leaves_the_answer_to_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    for command, message in (("false", "ended with code 1"), ("true", "an empty line ends it")):
        monkeypatch.setenv("EDITOR", command)
        quiz, shown = played(monkeypatch, ["e", "words", "", "y", "y", "y", "y"], plan=("topic/open",))
        assert message in shown.split("> e\n")[1].split("> words")[0]
        assert quiz.score().points == 10


def test_a_written_answer_is_not_left_by_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ("topic/open",)
    quiz, shown = played(monkeypatch, ["words", "q", "", "y", "y", "y", "y"], plan=plan)
    assert quiz.score().points == 10
    quiz, shown = played(monkeypatch, ["words", "q", "more", "q", "b", "q"], plan=plan)
    assert quiz.score().unmarked == 1 and quiz.last.written == ("words", "more")  # the input ended there
    assert shown.count("not marked yet") == 3
    _, shown = played(monkeypatch, ["回答", "q", "q"], "zh", plan=plan)
    assert "你的回答还没有评分。回车：对照要点评分，q：放弃并退出" in "".join(shown.split("\n"))


def test_an_editor_s_failure_is_said_in_the_page_s_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    for command, said in (
        ("", "环境变量 VISUAL 和 EDITOR 都没有指定编辑器"),
        ("false", "'false' 以退出码 1 结束"),
        ("none-of-that-name", "无法启动 'none-of-that-name'"),
    ):
        monkeypatch.setenv("EDITOR", command)
        _, shown = played(monkeypatch, ["回答", "e"], "zh", plan=("topic/open",))
        assert said in shown
