"""`interview` where something is there already, has changed or has come to its end, and with every kind."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from kit.bank.draw import draw, options_of
from kit.bank.layout import Bank
from kit.bank.load import load_question
from kit.interview.record import Record, from_json
from kit.progress.store import open_store
from tests.cli.conftest import ROOT, Shardkit
from tests.cli.terminal import Start, press, screen, until

MADE = ROOT / "tests" / "interview" / "bank" / "questions"
HEAD = "kind: {kind}\nlevel: 2\ntitle: {{en: T, zh: 题}}\nhints: [{{en: One., zh: 一。}}, {{en: Two., zh: 二。}}]\n"
TAIL = """\
explanation: {en: Therefore., zh: 所以。}
follow_ups: [{question: {en: "Why so?", zh: 为什么？}, answer: {en: Because., zh: 因为。}}]
sources: [{title: A paper, where: section 1}]
"""
OPTIONS = """\
options:
  - {text: {en: "2", zh: "2"}, correct: true, why: {en: Yes., zh: 对。}}
  - {text: {en: "4", zh: "4"}, correct: RIGHT, why: {en: Even., zh: 偶。}}
  - {text: {en: "3", zh: "3"}, why: {en: Odd., zh: 奇。}}
"""
MULTI = f"prompt: {{en: Which are even?, zh: 哪些是偶数？}}\n{OPTIONS.replace('RIGHT', 'true')}"
PROGRAM = """\
prompt: {en: What does it print?, zh: 打印什么？}
world_size: 2
program: |
  print(1 + 1)
outcome: prints
expect: "2"
"""
PREDICT = PROGRAM + OPTIONS.replace("RIGHT", "false")
PLAN = """\
seed: 5
parts:
- {name: warm_up, minutes: 5, questions: [{id: links/ring, seed: 3}, {id: links/even, seed: 3}]}
- {name: design, minutes: 12.5, questions: [{id: layout/design, seed: 3}]}
- {name: coding, minutes: 20, questions: [{id: layout/share, seed: 3}]}
- {name: debugging, minutes: 5, questions: [{id: links/prints, seed: 3}]}
"""
OPENED = ("interview", "--bank", "bank", "--plan", "plan.yaml")
RESUMED = ("interview", "--bank", "bank", "--resume")
EDITOR = """\
#!/bin/sh
printf '\\nwhole\\n\\nanswer\\n' >> "$1"
"""


@pytest.fixture(autouse=True)
def bank_and_plan(tmp_path: Path) -> None:
    for name in ("links/ring", "links/bytes", "layout/design", "layout/share"):
        target = tmp_path / "bank" / "questions" / f"{name}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((MADE / f"{name}.yaml").read_text("utf-8"), encoding="utf-8")
    for name, kind, middle in (("even", "multi", MULTI), ("prints", "predict", PREDICT)):
        text = HEAD.format(kind=kind) + middle + TAIL
        (tmp_path / "bank" / "questions" / "links" / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "bank" / "questions" / "layout" / "share.py").write_text('"""A share."""\n', encoding="utf-8")
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")


def kept() -> Record:
    with open_store() as store:
        return from_json(store.interviews()[-1].state["record"])


def data(folder: Path) -> dict[str, str]:
    return {"SHARDKIT_DATA": str(folder)}


def test_two_candidates_of_one_plan_are_asked_the_same_and_have_the_same_record(
    shardkit: Shardkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "?\nb\nx\n\na b\ny\n\nShard.\n\nz\n\ns\na\nw\n\ny\nn\ny\nn\ny\ny\ny\ny\ny\n"
    found = []
    for name in ("ada", "bo"):
        ended = shardkit(*OPENED, "--name", name, stdin=lines, **data(tmp_path / name))
        assert ended.returncode == 0, ended.stderr
        monkeypatch.setenv("SHARDKIT_DATA", str(tmp_path / name))
        found.append(kept())
    assert all(record.finished is not None for record in found)
    assert [record.candidate for record in found] == ["ada", "bo"] and found[0].id != found[1].id
    assert found[0].plan == found[1].plan
    ada, bo = ([replace(item, seconds=0) for part in record.parts for item in part.items] for record in found)
    assert ada == bo and {item.verdict for item in ada} >= {"marked", "skipped"}


def right_letters(tmp_path: Path, question_id: str) -> str:
    shown = draw(load_question(Bank(tmp_path / "bank"), question_id), 3)
    options = options_of(shown.question)
    return ", ".join("abc"[place] for place, index in enumerate(shown.order) if options[index].correct)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_multi_and_predict_are_asked_as_well(start: Start, tmp_path: Path, language: str) -> None:
    even, prints = (right_letters(tmp_path, name) for name in ("links/even", "links/prints"))
    wrong = next(letter for letter in "abc" if letter != prints)
    child = start(*OPENED, "--lang", language)
    shown = ""
    for line in ("s", even, "because", "", "part", "part", wrong, "", ""):
        press(child, line)
        shown += screen(child)
    assert "print(1 + 1)" in shown and max(map(cell_len, shown.splitlines())) <= 60
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    items = {item.question_id: item for part in kept().parts for item in part.items}
    assert (items["links/even"].verdict, items["links/even"].answer) == ("right", even)
    assert [each.answer for each in items["links/even"].follow_ups] == ["because"]
    assert (items["links/prints"].verdict, items["links/prints"].answer) == ("wrong", wrong)
    assert [items[name].verdict for name in ("links/ring", "layout/design", "layout/share")] == ["skipped"] * 3


# --- what is there already -------------------------------------------------------------------------------------------


def test_a_starter_is_written_once_and_never_over_a_file(shardkit: Shardkit, tmp_path: Path) -> None:
    to_code = "part\npart\n"
    ended = shardkit(*OPENED, "--no-save", stdin=f"{to_code}w\n")
    assert "Written: share.py." in ended.stdout
    assert (tmp_path / "share.py").read_text("utf-8").startswith("# shardkit: layout/share\n")
    (tmp_path / "share.py").write_text("mine\n", encoding="utf-8")
    ended = shardkit(*OPENED, "--no-save", stdin=f"{to_code}w\n")
    assert "share.py is there already and stays as it is." in ended.stdout and "Written" not in ended.stdout
    assert (tmp_path / "share.py").read_text("utf-8") == "mine\n"


def test_a_plan_takes_no_other_plan_s_place(shardkit: Shardkit, tmp_path: Path) -> None:
    ended = shardkit("interview", "--bank", "bank", "--write-plan", "plan.yaml")
    assert ended.returncode == 2 and "plan.yaml is there already" in ended.stderr
    assert (tmp_path / "plan.yaml").read_text("utf-8") == PLAN


def test_only_what_is_kept_is_said_to_be(shardkit: Shardkit) -> None:
    assert "Every line is kept" in shardkit(*OPENED, stdin="q\n").stdout
    assert "kept" not in shardkit(*OPENED, "--no-save", stdin="q\n").stdout.replace("nothing is kept", "")


# --- what has changed ------------------------------------------------------------------------------------------------


def test_a_follow_up_that_was_begun_is_shown_again(shardkit: Shardkit) -> None:
    shardkit(*OPENED, stdin="part\nShard.\n\nA line of mine\nq\n")
    ended = shardkit(*RESUMED, stdin="q\n")
    assert "What if the link is slow?" in ended.stdout and "A line of mine" in ended.stdout
    assert "Taken down" not in ended.stdout


CHANGES = (  # a question, and a line of it as it was and as it is
    ("layout/design", "model_answer:", "  - {point: {en: New., zh: 新。}, weight: 1}\nmodel_answer:"),
    ("links/ring", "kind: choice", "kind: multi"),
)


@pytest.mark.parametrize(
    ("role", "lines"),
    [("candidate", "part\nShard.\n\nx\n\ns\ns\ny\nq\n"), ("interviewer", "g 3\n1 2\nq\n")],
    ids=["candidate", "interviewer"],
)
def test_a_question_that_has_changed_is_said_and_nothing_is_lost(
    shardkit: Shardkit, tmp_path: Path, role: str, lines: str
) -> None:
    assert shardkit(*OPENED, "--role", role, stdin=lines).returncode == 0
    before = kept()
    assert any(item.points_scores for part in before.parts for item in part.items)
    for name, old, new in CHANGES:
        file = tmp_path / "bank" / "questions" / f"{name}.yaml"
        text = file.read_text("utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), encoding="utf-8")
        ended = shardkit(*RESUMED, "--role", role, stdin="y\n" * 9)
        assert ended.returncode == 2 and f"{name} has changed since this interview was begun" in ended.stderr
        assert ended.stdout == "" and kept() == before
        file.write_text(text, encoding="utf-8")
    file.unlink()
    ended = shardkit(*RESUMED, "--role", role)
    assert ended.returncode == 2 and name in ended.stderr and ended.stdout == ""


def test_a_shared_screen_ends_with_its_interview_and_shows_no_other(start: Start, shardkit: Shardkit) -> None:
    shardkit(*OPENED, stdin="q\n")  # an older one that was left
    desk = start(*OPENED, "--scorecard", "card.md")
    until(desk, "> ")
    shared = start("interview", "--bank", "bank", "--share")
    until(shared, "> ")
    for line in ("part", "part", "part", "s"):
        desk.sendline(line)
    desk.expect(pexpect.EOF)
    shared.sendline("")
    shared.expect(pexpect.EOF)
    shared.close()
    assert "The interview is over." in screen(shared) and "links/ring" not in screen(shared)
    assert shared.exitstatus == 0


# --- keys that lead elsewhere ----------------------------------------------------------------------------------------


def test_an_answer_may_be_written_in_an_editor(start: Start, tmp_path: Path) -> None:
    (tmp_path / "editor").write_text(EDITOR, encoding="utf-8")
    (tmp_path / "editor").chmod(0o755)
    child = start(*OPENED, EDITOR=str(tmp_path / "editor"), VISUAL="")
    for line in ("part", "typed", "e"):
        press(child, line)
    until(child, "What if the link is slow?")
    press(child, "q")
    child.expect(pexpect.EOF)
    design = kept().parts[1].items[0]
    assert design.answer.split() == ["typed", "whole", "answer"] and design.verdict == "unmarked"


def test_ctrl_c_ends_it_and_loses_nothing(start: Start) -> None:
    child = start(*OPENED)
    for line in ("part", "a line"):
        press(child, line)
    until(child, "> ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130 and "Traceback" not in screen(child)
    assert kept().parts[1].items[0].answer == "a line" and kept().finished is None
