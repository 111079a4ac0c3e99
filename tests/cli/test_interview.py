"""`interview` as a candidate: in a real terminal, killed and resumed, and the prompts alone on a shared screen."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from kit.bank.draw import Draw, draw, options_of
from kit.bank.layout import Bank, find_bank
from kit.bank.load import load_question
from kit.bank.schema import Language
from kit.interview.record import Record, from_json
from kit.progress.store import open_store
from kit.screen.page import Page
from kit.screen.question import show_answer, show_follow_ups, show_hint
from kit.screen.terminal import Terminal
from tests.cli.conftest import ROOT, Shardkit
from tests.cli.terminal import ESCAPES, Start, press, screen, until

TOY = ROOT / "tests" / "grading" / "bank"
MADE = ROOT / "tests" / "interview" / "bank"

PLAN = """\
seed: 5
parts:
- {name: warm_up, minutes: 5, questions: [{id: links/ring, seed: 3}, {id: links/steps, seed: 3}]}
- {name: estimation, minutes: 5, questions: [{id: links/bytes, seed: 3}]}
- {name: design, minutes: 12.5, questions: [{id: layout/design, seed: 3}]}
- {name: coding, minutes: 20, questions: [{id: toy/mean, seed: 3}]}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Of every kind but predict and multi, over a bank beside it in `bank`."""
    for part in ("questions/links", "questions/layout"):
        shutil.copytree(MADE / part, tmp_path / "bank" / part)
    for part in ("questions/toy", "reference/toy"):
        shutil.copytree(TOY / part, tmp_path / "bank" / part, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bank" / "questions" / "layout" / "share.yaml").unlink()
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN, encoding="utf-8")
    return path


def kept() -> list[Record]:
    with open_store() as store:
        return [from_json(saved.state["record"]) for saved in store.interviews()]


def reviews() -> list[tuple[str, str, float, str]]:
    with open_store() as store:
        return [(each.question_id, each.verdict, each.score, each.mode) for each in store.reviews()]


# --- a whole one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_whole_interview_at_60_columns(start: Start, plan: Path, tmp_path: Path, language: Language) -> None:
    child = start("interview", "--bank", "bank", "--plan", plan, "--scorecard", "card.md", "--lang", language)
    shown = []

    def typed(*lines: str) -> None:
        for line in lines:
            press(child, line)
            shown.append(screen(child))

    typed("?", "a", "two rounds", "", "p", "", "b c a", "all of it", "", "12 GB", "14 GB", "")
    typed("Shard the state.", "Price the traffic.", "", "inside the node", "", "w")
    until(child, "mean.py")
    assert (tmp_path / "mean.py").read_text("utf-8").startswith("# shardkit: toy/mean\n")
    typed("g")  # the starter as it is
    shutil.copy(TOY / "reference" / "toy" / "mean.py", tmp_path / "mean.py")
    typed("g", "d", "each has its own", "")
    typed(*"yyyyyyyyy")  # three follow-ups, four points and their follow-up, and that to the code
    child.expect_exact("card.md")
    shown.append(screen(child))
    child.wait()

    told = "".join(shown)
    wide = [line for line in told.splitlines() if cell_len(line) > 60]
    assert all("shardkit grade" in line for line in wide)  # a command stays whole, to be copied
    (record,) = kept()
    assert record.finished is not None and record.role == "candidate"
    found = {item.question_id: item for part in record.parts for item in part.items}
    assert found["links/ring"].hints == 1 and found["links/bytes"].verdict == "right"
    assert found["layout/design"].answer == "Shard the state.\nPrice the traffic."
    assert (found["layout/design"].verdict, found["layout/design"].score) == ("marked", 1.0)
    assert found["toy/mean"].verdict == "right" and found["toy/mean"].grade is not None
    assert sorted(reviews())[0] == ("layout/design", "marked", 1.0, "interview")
    assert {name for name, *_ in reviews()} == set(found) and {mode for *_, mode in reviews()} == {"interview"}
    assert "Shard the state." in (tmp_path / "card.md").read_text("utf-8")


def test_no_verdict_and_no_answer_is_told_before_the_end(shardkit: Shardkit, plan: Path) -> None:
    lines = ["?", "a", "x", "", "b c a", "x", "", "12 GB", "x", "", "Shard.", "", "x", "", "s", "y", "y", "y"]
    ended = shardkit("interview", "--bank", "bank", "--plan", plan, stdin="\n".join(lines) + "\n")
    mock, _, debrief = ended.stdout.partition("The interview is over.")
    for secret in (
        "Right",
        "Wrong",
        "Two rounds of chunks.",
        "Reduce-scatter",
        "208 GB",
        "Prices the traffic",
        "14 GB",
    ):
        assert secret not in mock, secret
    assert "208 GB" in debrief and "12 GB" in mock
    assert "Kept. To go on: shardkit interview --resume --bank bank" in ended.stdout


def test_a_prompt_says_how_much_time_is_left(shardkit: Shardkit, plan: Path) -> None:
    ended = shardkit("interview", "--bank", "bank", "--plan", plan, stdin="part\npart\nq\n")
    assert re.findall(r"^(\d+:\d\d) > ", ended.stdout, re.MULTILINE) == ["5:00", "5:00", "12:30"]


def test_nothing_heavy_is_imported_before_a_file_is_graded(shardkit: Shardkit, plan: Path) -> None:
    ended = shardkit(
        "interview", "--bank", "bank", "--plan", plan, "--scorecard", "card.html", stdin="s\ns\ns\ns\ns\n",
        PYTHONPROFILEIMPORTTIME="1",
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "kit.interview.candidate" in imported and not imported & {"torch", "numpy", "kit.grading.grader"}
    assert "card.html" in ended.stdout


# --- killed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_interview_that_is_killed_in_the_middle_has_lost_nothing(start: Start, plan: Path, language: str) -> None:
    options = ("--bank", "bank", "--lang", language)
    child = start("interview", *options, "--plan", plan)
    for line in ("a", "a half", "the other half", "", "s", "12 GB", "14 GB", "", "Shard the state."):
        press(child, line)
    child.expect_exact("> ")  # the line is in the file before the next one is asked for
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (before,) = kept()
    assert before.finished is None

    child = start("interview", *options, "--resume")
    shown = until(child, "> ")
    assert "Shard the state." in shown and "links/ring" not in shown
    for line in ("And price the traffic.", "", "the last", "q"):
        child.sendline(line)
        if line != "q":
            child.expect_exact("> ")
    child.wait()
    (after,) = kept()
    items = [item for part in after.parts for item in part.items]
    assert [item.answer for item in items[2:4]] == ["12 GB", "Shard the state.\nAnd price the traffic."]
    assert items[0].follow_ups[0].answer == "a half\nthe other half" and items[1].verdict == "skipped"
    assert items[3].follow_ups[0].answer == "the last" and items[3].follow_ups[0].state == "asked"
    assert [name for name, *_ in reviews()] == ["links/ring", "links/steps", "links/bytes"]

    shown = until(start("interview", *options, "--resume"), "> ")  # a follow-up that was begun is asked on
    assert ("What if the link is slow?" if language == "en" else "链路慢怎么办？") in shown and "the last" in shown


def test_what_was_killed_before_its_review_was_written_gets_it_later_and_once(shardkit: Shardkit, plan: Path) -> None:
    shardkit("interview", "--bank", "bank", "--plan", plan, stdin="s\nq\n")
    with open_store() as store:
        path = store.path
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM reviews")
    assert reviews() == []
    for _ in range(2):
        shardkit("interview", "--bank", "bank", "--resume", stdin="q\n")
        assert reviews() == [("links/ring", "skipped", 0.0, "interview")]


def test_a_window_does_not_write_over_another_one(start: Start, plan: Path) -> None:
    first = start("interview", "--bank", "bank", "--plan", plan)
    first.expect_exact("> ")
    second = start("interview", "--bank", "bank", "--resume")
    second.expect_exact("> ")
    first.sendline("s")
    first.expect_exact("goes on in another window")
    first.expect(pexpect.EOF)
    first.close()
    assert first.exitstatus == 2 and reviews() == []
    second.sendline("s")
    second.expect_exact("> ")
    assert reviews() == [("links/ring", "skipped", 0.0, "interview")]


def test_there_may_be_nothing_to_go_on_with(shardkit: Shardkit, plan: Path) -> None:
    ended = shardkit("interview", "--bank", "bank", "--resume")
    assert ended.returncode == 2 and "no interview was left" in ended.stderr
    shardkit("interview", "--bank", "bank", "--plan", plan, "--role", "interviewer", stdin="q\n")
    ended = shardkit("interview", "--bank", "bank", "--resume")
    assert ended.returncode == 2 and "no interview was left" in ended.stderr


def test_nothing_is_kept_where_that_is_asked_for(shardkit: Shardkit, plan: Path) -> None:
    ended = shardkit("interview", "--bank", "bank", "--plan", plan, "--no-save", stdin="s\nq\n")
    assert ended.returncode == 0 and "--resume" not in ended.stdout
    assert kept() == [] and reviews() == []


# --- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_that_was_written_asks_the_same_of_everyone(shardkit: Shardkit, tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        assert shardkit("interview", "--seed", "11", "--minutes", "30", "--write-plan", name).returncode == 0
    text = (tmp_path / "one.yaml").read_text("utf-8")
    assert text == (tmp_path / "two.yaml").read_text("utf-8") and "seed: 11" in text
    shown = [shardkit("interview", *options, "--no-save", stdin="q\n").stdout
             for options in (("--plan", "one.yaml"), ("--seed", "11", "--minutes", "30"))]  # fmt: skip
    departure = "Left out, for want of time or of questions: Coding\n"
    assert departure in shown[1] and shown[0] == shown[1].replace(departure, "") and "Part 1 of 4" in shown[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--plan", "plan.yaml", "--seed", "3"), "--plan FILE alone"),
        (("--plan", "none.yaml"), "none.yaml: cannot be read"),
        (("--resume", "--plan", "plan.yaml"), "--resume"),
        (("--resume", "--no-save"), "--no-save"),
        (("--role", "boss"), "candidate, interviewer"),
        (("--minutes", "3"), "5 to 480"),
        (("--plan", "plan.yaml", "--scorecard", "card.pdf"), ".md or .html"),
        (("--share",), "no interview goes on"),
    ],
)
def test_what_makes_no_sense_is_refused(shardkit: Shardkit, plan: Path, options: tuple[str, ...], says: str) -> None:
    ended = shardkit("interview", "--bank", "bank", *options)
    assert ended.returncode == 2 and says in ended.stderr and ended.stdout == ""


def test_a_wrong_plan_says_where_it_is_wrong(shardkit: Shardkit, plan: Path) -> None:
    plan.write_text(PLAN.replace("links/bytes", "links/byte"), encoding="utf-8")
    ended = shardkit("interview", "--bank", "bank", "--plan", plan)
    assert ended.returncode == 2 and "plan.yaml:4: no question 'links/byte'; closest: links/bytes" in ended.stderr


# --- a shared screen -------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Letters alone, so that neither wrapping nor Markdown matter."""
    return re.sub(r"\W|_", "", ESCAPES.sub("", text))


def secrets_of(shown: Draw, language: Language) -> Iterator[str]:
    """What a candidate must not see, unless the task itself says it."""
    question = shown.question
    texts = [*question.hints, question.explanation, *(option.why for option in options_of(question))]
    texts.append(question.title)  # that of a question on what goes wrong says what goes wrong
    for follow_up in question.follow_ups:
        texts += [follow_up.question, follow_up.answer]
    if question.kind == "open":
        texts += [question.model_answer, *(point.point for point in question.rubric)]
    elif question.kind == "number":
        texts.append(question.working)
    task = plain(shown.prompt(language) + "".join(shown.options(language)))
    task += plain(question.program) if question.kind == "predict" else ""
    for text in texts:
        for line in shown.text(text, language).split("\n"):
            if len(plain(line)) > 3 and plain(line) not in task:
                yield line


def answers_on_a_page(bank: Bank, shown: Draw, language: Language) -> str:
    """All that `--share` keeps back."""
    page = Page(language, StringIO(), Terminal(60, False, True, False, False, "utf-8"))
    for number in range(len(shown.question.hints)):
        show_hint(page, shown, number + 1)
    show_follow_ups(page, shown, with_answers=True)
    show_answer(page, shown, None)
    return page.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_shared_screen_never_tells(shardkit: Shardkit, tmp_path: Path, language: Language) -> None:
    """Every question of the bank, as one plan."""
    bank = find_bank(ROOT)
    asked = "\n".join(f"  - {{id: {question_id}, seed: 5}}" for question_id in bank.ids())
    (tmp_path / "all.yaml").write_text(
        f"seed: 1\nparts:\n- name: design\n  minutes: 60\n  questions:\n{asked}\n", encoding="utf-8"
    )
    count = len(bank.ids())
    ended = shardkit("interview", "--share", "--plan", "all.yaml", "--lang", language, stdin="\n" * (count - 1))
    assert ended.returncode == 0, ended.stderr
    screens = re.split(rf"^(?:Question|第) \d+(?: of |/){count}.*$", ended.stdout, flags=re.MULTILINE)[1:]
    assert len(screens) == count
    num_secrets = 0
    for question_id, text in zip(bank.ids(), screens, strict=True):
        shown = draw(load_question(bank, question_id), 5)
        assert question_id not in text
        told, answers = plain(text), plain(answers_on_a_page(bank, shown, language))
        for secret in secrets_of(shown, language):
            assert plain(secret) not in told, (question_id, secret)
            num_secrets += plain(secret) in answers
    assert num_secrets > 10 * count  # they would have been recognised


def test_a_shared_screen_follows_the_interview(start: Start, plan: Path) -> None:
    desk = start("interview", "--bank", "bank", "--plan", plan, "--role", "interviewer")
    desk.expect_exact("> ")
    shared = start("interview", "--bank", "bank", "--share")
    until(shared, "> ")
    assert "How much does a rank send" in screen(shared)
    desk.sendline("g 4")
    desk.expect_exact("> ")
    until(shared, "A 13B model")  # by itself
    until(shared, "> ")
    assert "does not fit on one GPU" in screen(shared) and "How much does a rank send" not in screen(shared)
    assert "Shards it" not in screen(shared)
    desk.sendline("end card.md")
    desk.sendline("end card.md")
    until(shared, "The interview is over.")
    shared.expect(pexpect.EOF)


def test_a_shared_screen_that_follows_can_be_left(start: Start, plan: Path) -> None:
    desk = start("interview", "--bank", "bank", "--plan", plan, "--role", "interviewer")
    desk.expect_exact("> ")
    for line in ("q", "\x04"):
        shared = start("interview", "--bank", "bank", "--share")
        until(shared, "> ")
        shared.send("\n")
        until(shared, "> ")
        shared.send(line + ("\n" if line == "q" else ""))
        shared.expect(pexpect.EOF)
        shared.close()
        assert shared.exitstatus == 0


def test_one_of_several_that_were_left_is_chosen_by_name(shardkit: Shardkit, plan: Path) -> None:
    def held(*options: str) -> str:
        ended = shardkit("interview", "--bank", "bank", "--lang", "en", *options, stdin="q\n")
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    for role in ("interviewer", "candidate"):
        for name in ("Ada  L.", "Bob", ""):
            held("--plan", str(plan), "--role", role, "--name", name)
        assert "Goes on: no name, begun 20" in held("--role", role, "--resume")
        told = held("--role", role, "--resume", "--name", "ada l.")
        assert "Goes on: Ada L., begun 20" in told and "Also left: Bob, begun 20" in told
        assert f"--name 'Ada L.'{' --role interviewer' if role == 'interviewer' else ''}" in told
        assert "Goes on: Ada L." in held("--role", role, "--resume")  # what was last gone on with
        ended = shardkit("interview", "--bank", "bank", "--role", role, "--resume", "--name", "Eve")
        assert ended.returncode == 2 and "no interview of 'Eve' was left" in ended.stderr and "Bob" in ended.stderr


def test_a_plan_is_written_to_standard_output(shardkit: Shardkit, plan: Path, tmp_path: Path) -> None:
    ended = shardkit("interview", "--bank", "bank", "--plan", plan, "--write-plan", "-")
    (tmp_path / "again.yaml").write_text(ended.stdout, encoding="utf-8")
    again = shardkit("interview", "--bank", "bank", "--plan", "again.yaml", "--write-plan", "-")
    assert again.returncode == 0 and again.stdout == ended.stdout and "links/ring" in again.stdout
    assert not (tmp_path / "-").exists()


def test_a_shared_plan_is_leafed_through(start: Start, plan: Path) -> None:
    shared = start("interview", "--bank", "bank", "--share", "--plan", plan)
    places = []
    for line in ("", "", "b", "5", "", "99", "q"):
        until(shared, "> ")
        places.append(re.findall(r"Question (\d) of 5", screen(shared))[-1])
        shared.sendline(line)
    shared.wait()
    assert places == ["1", "2", "3", "2", "5", "5", "5"]
