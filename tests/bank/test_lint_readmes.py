"""A topic's README names the same questions in its order in both languages, and none that is not there."""

from __future__ import annotations

import pytest

from kit.bank.lint import lint

README = "questions/topic/README.md"
LACKS = "name it in the numbered item where a learner should come to it"


@pytest.fixture
def two(build):
    """A topic with two questions, and a README to break."""
    build.question("choice")
    build.question("multi")
    return build


def found(build) -> list[str]:
    return [str(finding) for finding in lint(build.bank)]


@pytest.mark.parametrize(
    "ending",
    ["", "\n建议的顺序：\n\n1. `choice`：一部分。\n", "\n## 中文说明\n\n1. `choice`\n2. `multi`\n"],
    ids=["no Chinese", "no heading", "a heading alone"],
)
def test_a_readme_without_a_chinese_section(two, ending: str) -> None:
    text = (two.root / README).read_text("utf-8")
    two.write(README, text[: text.index("\n## 中文说明")] + ending)
    assert found(two) == [f"{README}: no Chinese section; say the same in Chinese, below a heading `## 中文说明`"]


@pytest.mark.parametrize(
    ("line", "language"),
    [("2. `multi`: a part.\n", "English"), ("2. `multi`：一部分。\n", "Chinese")],
)
def test_a_question_that_an_order_forgets(two, line: str, language: str) -> None:
    two.edit(README, line, "")
    assert found(two) == [f"{README}: the {language} order lacks `multi`; {LACKS}"]


def test_a_question_that_was_added_changes_no_file(two) -> None:
    text = (two.root / README).read_text("utf-8")
    two.question("order")
    two.write(README, text)
    assert found(two) == []


@pytest.mark.parametrize("elsewhere", ["See `multi`.", "- `multi`: a part.", "2. multi: a part."])
def test_only_backticks_in_numbered_items_are_the_order(two, elsewhere: str) -> None:
    two.edit(README, "2. `multi`: a part.\n", f"\n{elsewhere}\n")
    assert found(two) == [f"{README}: the English order lacks `multi`; {LACKS}"]


@pytest.mark.parametrize(
    "items",
    ["1. `choice`, `multi`: parts.", "1. `choice`: a part.\n   `multi`: another.", "1. `choice`.\n\n   `multi`."],
)
def test_an_item_has_several_questions_and_several_lines(two, items: str) -> None:
    two.edit(README, "1. `choice`: a part.\n2. `multi`: a part.", items)
    assert found(two) == []


def test_an_item_ends_where_the_next_line_is_not_indented(two) -> None:
    two.edit(README, "2. `multi`: a part.\n", "`multi`: a part.\n")
    assert found(two) == [f"{README}: the English order lacks `multi`; {LACKS}"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mutli", "which no question of topic has (did you mean `multi`?)"),
        ("nothing_like_it", "which no question of topic has"),
        ("other/chioce", "which no question has (did you mean 'other/choice'?)"),
    ],
)
@pytest.mark.parametrize(
    ("line", "language", "number"),
    [("1. `choice`: a part.", "English", 5), ("1. `choice`：一部分。", "Chinese", 12)],
)
def test_a_name_that_no_question_has(two, name: str, why: str, line: str, language: str, number: int) -> None:
    two.question("choice", "other/choice")
    two.edit(README, line, f"1. `choice`, `{name}`")
    assert found(two) == [f"{README}:{number}: the {language} order names `{name}`, {why}"]


def test_an_order_may_send_to_another_topic(two) -> None:
    two.question("order", "other/order")
    two.edit(README, "1. `choice`: a part.", "1. The topic `other`, or `other/order`; then `choice` with `--seed`.")
    assert found(two) == []


def test_a_question_of_another_topic_is_not_the_own(two) -> None:
    two.question("multi", "other/multi")
    two.edit(README, "2. `multi`: a part.", "2. `other/multi`: a part.")
    assert found(two) == [f"{README}: the English order lacks `multi`; {LACKS}"]


def test_names_outside_of_the_order_are_not_judged(two) -> None:
    two.edit(README, "# A topic\n", "# A topic\n\nClaims carry `as_of`.\n")
    assert found(two) == []


def test_an_own_question_is_named_without_its_topic(two) -> None:
    two.edit(README, "2. `multi`: a part.", "2. `topic/multi`: a part.")
    assert found(two) == [f"{README}:6: names `topic/multi`, a question of its own topic; write `multi`"]


def test_an_own_name_with_its_topic_must_exist_too(two) -> None:
    two.edit(README, "2. `multi`: a part.", "2. `multi`, `topic/none`: a part.")
    what = "the English order names `topic/none`, which no question has"
    assert found(two) == [f"{README}:6: {what}"]


def test_questions_asked_for_by_name_do_not_judge_the_readme(two) -> None:
    two.edit(README, "2. `multi`: a part.\n", "")
    assert lint(two.bank, ["topic/multi"]) == []
