"""Progress on the screen: at 60 columns, in both languages, without colour and without Unicode."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from rich.cells import cell_len

from kit.bank.load import Header
from kit.progress.overview import Overview, overview
from kit.progress.records import Review
from kit.progress.schedule import card_after
from kit.screen.progress import minutes, show_overview, show_question_progress
from kit.screen.words import Language
from tests.progress.made import START, review
from tests.screen.pages import page, text_of

UTC = timezone.utc
IDS = ("sums/one", "sums/two", "products/one", "products/two", "sums/never")
REVIEWS = (
    review(0, "sums/one", confidence=0.9, verdict="wrong", score=0.0, rating="again"),
    review(1, "sums/one", confidence=0.5),
    review(11, "sums/two", confidence=1.0, rating="easy"),
    review(12, "products/one", confidence=0.9, verdict="marked", score=0.5, rating="again"),
    review(13, "products/two", verdict="skipped", score=0.0, rating=None),
    review(13, "gone/one", id="gone"),
)


def found(*reviews: Review) -> Overview:
    cards = {}
    for question_id in {one.question_id for one in reviews}:
        card = card_after(one for one in reviews if one.question_id == question_id)
        if card is not None:
            cards[question_id] = card
    return overview(reviews, cards, ["sums/two", "gone/one"], IDS, START + timedelta(days=13), UTC)


def shown(language: Language = "en", width: int = 60, *reviews: Review, **options: bool) -> str:
    out = page(language, width=width, **options)
    show_overview(out, found(*(reviews or REVIEWS)))
    return text_of(out)


def test_what_is_counted() -> None:
    got = found(*REVIEWS)
    assert (got.num_answers, got.num_answered, got.num_questions) == (4, 3, 5)
    assert got.due == ("sums/one", "products/one") and got.due_in == {"sums": 1, "products": 1}
    assert got.soon == ("sums/two",)
    assert got.bookmarks == ("sums/two",)
    assert len(got.days) == 14
    assert [count for _, count in got.days] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0]
    assert (got.streak.days, got.streak.longest, got.streak.is_today_done) == (2, 2, False)


def test_due_means_until_midnight_and_soon_the_week_after() -> None:
    answered = review(0, "sums/one")  # good: due two days later at the same hour
    card = card_after([answered])
    assert card is not None

    def at(days: float) -> Overview:
        return overview([answered], {"sums/one": card}, [], IDS, START + timedelta(days=days), UTC)

    assert at(1).due == () and at(1).soon == ("sums/one",)
    assert at(1.9).due == ("sums/one",) and at(1.9).soon == ()  # 7:06 of the day on which it is due
    assert at(-6).soon == () and at(-5).soon == ("sums/one",)


def test_the_overview_in_english() -> None:
    assert shown() == (
        "Days in a row  2, longest 2, nothing answered today\n"
        "Answers        4, to 3 of 5 questions\n"
        "Due            2 today, 1 more within a week\n"
        "Bookmarks      1\n"
        "\n"
        "Answers a day, the last two weeks\n"
        "   1   1                                       1   1\n"
        "  ██  ██                                      ██  ██\n"
        "  ██  ██                                      ██  ██\n"
        "  ██  ██                                      ██  ██\n"
        "  ██  ██                                      ██  ██\n"
        "   2   3   4   5   6   7   8   9  10  11  12  13  14  15\n"
        "\n"
        "Strengths: the latest answer to each question\n"
        "  TOPIC     SCORE                          ANSWERED  DUE\n"
        "  products  ████████████░░░░░░░░░░░░  50%       1/2    1\n"
        "  sums      ████████████████████████ 100%       2/3    1\n"
        "\n"
        "How sure, and how right\n"
        "  SURE     SCORE                          ANSWERS\n"
        "   40-60%  ████████████████████████ 100%        1\n"
        "  80-100%  ████████████░░░░░░░░░░░░  50%        3\n"
        "On the whole 20 points too sure: 82% said, 62% reached.\n"
        "Brier score 0.31: the mean of (sure - score) squared; 0 is\n"
        "perfect, always saying 50% gives 0.25.\n"
        "\n"
        "What is due: shardkit quiz --due\n"
        "Something new: shardkit quiz --new 5\n"
    )


def test_the_overview_in_chinese() -> None:
    text = shown("zh")
    for part in (
        "连续天数  2 天（最长 2 天），今天还没有作答",
        "作答      共 4 次，做过 5 题中的 3 题",
        "待复习    今天 2 题，一周内还有 1 题",
        "总体上高估了 20 个百分点：平均把握 82%，实际得分 62%。",
        "复习到期的题目：shardkit quiz --due",
    ):
        assert part in text, part
    rows = [line for line in text.splitlines() if line.startswith(("  主题", "  sums", "  products"))]
    assert len(rows) == 3 and len({cell_len(row) for row in rows}) == 1
    for english in ("Due", "Answers", "Strengths", "SCORE", "sure"):
        assert english not in text, english


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_window(language: Language, width: int) -> None:
    many = [review(n % 14, IDS[n % 4], id=f"{n}", confidence=n / 2000) for n in range(2000)]
    for text in (shown(language, width), shown(language, width, *many)):
        assert max(cell_len(line) for line in text.splitlines()) <= width
        assert all(line == line.rstrip() for line in text.splitlines())


def test_without_unicode_everything_is_ascii_and_as_long() -> None:
    plain, fancy = shown(has_unicode=False), shown()
    assert plain.isascii()
    assert "############............  50%" in plain and "  ##  ##   " in plain
    assert len(plain) == len(fancy)


def test_colour_changes_no_character() -> None:
    import re

    coloured = shown(has_colour=True)
    assert "\x1b[32m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == shown()


def test_without_a_confidence_there_is_no_word_of_it() -> None:
    assert "sure" not in shown("en", 60, review(0, "sums/one"))


def test_before_the_first_answer_there_is_a_way_to_begin() -> None:
    skipped = review(0, "sums/one", verdict="skipped", score=0.0, rating=None)
    assert shown("en", 60, skipped) == "No question was answered yet. Begin with: shardkit quiz\n"


def test_what_is_proposed_is_there_to_do() -> None:
    everything = [review(13, question_id, id=question_id) for question_id in IDS]
    text = shown("en", 60, *everything)
    assert "--due" not in text and "--new" not in text


def of_question(language: Language = "en", header: Header | None = None, **options: bool) -> str:
    reviews = (
        *REVIEWS[:2],
        review(2, "sums/one", verdict="marked", score=0.5, num_hints=2, seconds=4000.0, mode="interview"),
        review(3, "sums/one", verdict="skipped", score=0.0, rating=None, mode="cram"),
    )
    out = page(language, **options)
    card = card_after(reviews[:1])
    show_question_progress(out, "sums/one", header, card, reviews, is_bookmarked=True, zone=UTC)
    return text_of(out)


HEADER = Header("sums/one", "choice", 2, {"en": "One and one", "zh": "一加一"}, ())


def test_the_history_of_a_question() -> None:
    assert of_question(header=HEADER) == (
        "One and one\n"
        "sums/one, choice, level 2\n"
        "\n"
        "Due on 2026-03-03, after 0.2 days 90% still know it,\n"
        "difficulty 6.4 of 10, bookmarked\n"
        "\n"
        "  WHEN              IN         RESULT   HINTS     TIME  SURE\n"
        "  2026-03-02 09:30  quiz       Wrong              0:12   90%\n"
        "  2026-03-03 09:30  quiz       Right              0:12   50%\n"
        "  2026-03-04 09:30  interview  50%          2  1:06:40\n"
        "  2026-03-05 09:30  cram       Skipped            0:12\n"
    )


def test_the_history_in_chinese() -> None:
    text = of_question("zh", HEADER)
    for part in ("一加一", "sums/one，单选，2 级", "2026-03-03 到期", "已收藏", "面试", "突击", "错误", "已跳过"):
        assert part in text, part
    assert max(cell_len(line) for line in text.splitlines()) <= 60


def test_a_question_that_has_gone_keeps_its_history() -> None:
    text = of_question()
    assert text.startswith("sums/one\nThis question is not in the bank.\n") and "1:06:40" in text


def test_a_question_that_was_never_answered_says_so() -> None:
    out = page()
    show_question_progress(out, "sums/one", HEADER, None, (), is_bookmarked=False, zone=UTC)
    assert text_of(out).endswith("\n\nNot scheduled: it was never answered\n")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (750, "12:30"), (11100, "3:05:00")]
)
def test_times_are_read_as_a_clock(seconds: float, text: str) -> None:
    assert minutes(seconds) == text
