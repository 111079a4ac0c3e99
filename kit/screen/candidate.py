"""A mock interview in a terminal: the question and the clock, and no verdict before the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kit.errors import KitError
from kit.interview.candidate import Mock, edited, graded, leave, pass_time, present, reply
from kit.interview.card_words import say as card_say
from kit.interview.record import Plan, Record
from kit.interview.sheet import clock, percent, word
from kit.interview.summary import items_of, total
from kit.screen.editor import edit
from kit.screen.page import Page
from kit.screen.question import show_hint, show_model_answer, show_task, weight
from kit.screen.quiz import PROMPT, complaint, line_or_end
from kit.screen.wrap import Prose

if TYPE_CHECKING:
    from kit.bank.draw import Draw
    from kit.interview.record import ItemRecord


WHAT_BECAME = {"skipped": "mock_skipped", "next_part": "mock_next_part", "unchanged": "mock_unchanged"}


@dataclass(frozen=True, slots=True)
class Room:
    """What a mock needs from outside; `start` and `grade` raise KitError for what the candidate has to put right.

    `save` is called with every change before it is on the screen. `start` writes the starter of a question and gives
    its path, and whether it was not there before; `grade` holds a file (empty: the one that was written) against its
    question and gives what `--json` says.
    """

    draw: Callable[[ItemRecord], Draw]
    clock_s: Callable[[], float]
    save: Callable[[Mock], None]
    start: Callable[[str], tuple[str, bool]]
    grade: Callable[[str, str], Mapping[str, Any]]


@dataclass(slots=True)
class Stopwatch:
    clock_s: Callable[[], float]
    since: float

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self.since = self.since, self.clock_s()
        return self.since - before


def hold(page: Page, mock: Mock, room: Room) -> Mock:
    """Runs a mock to its end, or until it is left; the end of the input leaves it."""
    room.save(mock)
    watch = Stopwatch(room.clock_s, room.clock_s())
    is_told = False
    while mock.phase not in ("left", "over"):
        if mock.num_late:
            page.line(page.say("mock_late", count=mock.num_late), style="yellow")
            mock = replace(mock, num_late=0)
        if mock.phase == "choosing":
            if mock.is_debrief and not is_told:
                page.rule()
                page.line(page.say("mock_debrief"), style="bold")
                is_told = True
            mock = present(mock, room.draw(mock.item))
            show_item(page, mock)
            continue
        line, is_interrupted = line_or_end(page, prompt(mock))
        before = pass_time(mock, watch.lap())
        if line is None:
            after = leave(before, is_interrupted=is_interrupted)
        else:
            after = outside(page, reply(before, line), room, watch)
        room.save(after)
        show_change(page, before, after)
        mock = after
    return mock


def prompt(mock: Mock) -> str:
    """What is left of the part's time, in minutes and seconds, below 0 where it is over."""
    if mock.is_debrief or mock.is_paused:
        return PROMPT
    minutes, seconds = divmod(round(abs(mock.seconds_left)), 60)
    return f"{'-' if mock.seconds_left <= -0.5 else ''}{minutes}:{seconds:02d} {PROMPT}"


def outside(page: Page, mock: Mock, room: Room, watch: Stopwatch) -> Mock:
    """What a line asked for that is not the machine's to do: an editor, a file, a grade. Its time is the question's."""
    try:
        if mock.notice == "edit":
            assert mock.quiz is not None or mock.phase == "following"
            written = mock.written if mock.phase == "following" or mock.quiz is None else mock.quiz.written
            text = edit("\n".join(written), say=page.say)
            return edited(pass_time(mock, watch.lap()), text)
        if mock.notice == "start":
            path, is_new = room.start(mock.item.question_id)
            page.line(page.say("mock_written" if is_new else "mock_there", path=path))
        elif mock.notice == "grade":
            page.line(page.say("mock_grading", path=mock.wanted or mock.item.question_id), style="dim")
            page.file.flush()
            found = room.grade(mock.item.question_id, mock.wanted)
            return graded(pass_time(mock, watch.lap()), found)
    except KitError as error:
        page.line("; ".join(filter(None, [error.message, error.hint])), style="yellow")
    return mock


# --- what is asked ---------------------------------------------------------------------------------------------------


def show_item(page: Page, mock: Mock) -> None:
    assert mock.draw is not None
    page.fit()
    page.rule()
    show_head(page, mock)
    if mock.is_debrief:
        page.line(mock.draw.question.title.get(page.language), style="bold")
        page.line(mock.item.question_id, style="dim")
        show_debrief(page, mock)
        return
    show_task(page, mock.draw, is_examined=True)
    if mock.phase == "following":
        show_follow_up(page, mock)
        return
    show_written(page, mock.quiz.written if mock.quiz is not None else ())
    page.blank()
    show_keys(page, mock)


def show_written(page: Page, lines: Sequence[str]) -> None:
    for line in lines:
        page.line(line, style="dim", indent="  ")


def show_head(page: Page, mock: Mock) -> None:
    part = mock.part
    head = page.say(
        "mock_head", number=mock.part_index + 1, count=len(mock.record.parts),
        part=word(page.language, "part_", part.name), place=mock.number_in_part + 1, places=len(part.items),
    )  # fmt: skip
    page.line(head, style="dim")
    if not mock.is_debrief:
        page.line(time_left(page, mock), style="dim" if mock.seconds_left > 0 else "yellow")


def time_left(page: Page, mock: Mock) -> str:
    left = mock.seconds_left
    if left < 0:
        return page.say("mock_over_time", over=clock(-left, page.language))
    return page.say("mock_clock", left=clock(left, page.language), planned=f"{mock.part.minutes:g}")


def show_keys(page: Page, mock: Mock) -> None:
    if mock.phase == "coding":
        page.line(page.say("mock_ask_code"), style="dim")
    elif mock.phase == "following":
        page.line(page.say("mock_ask_follow_up"), style="dim")
    elif mock.phase == "asking":
        page.line(page.say(f"ask_{mock.item.kind}"), style="dim")
    page.line(page.say("mock_keys"), style="dim")


# --- what a line brought ---------------------------------------------------------------------------------------------


def show_change(page: Page, before: Mock, after: Mock) -> None:
    if after.phase in ("left", "over"):
        return
    notice = after.notice
    if after.is_debrief and before.is_debrief:
        show_debrief_step(page, before, after)
    elif notice in ("paused", "resumed") and after.phase == before.phase:
        page.line(page.say(f"mock_{notice}"))
        if notice == "resumed":
            page.line(time_left(page, after), style="dim")
    elif notice == "hint":
        assert after.draw is not None
        show_hint(page, after.draw, after.item.hints)
    elif notice in ("no_more_hints", "line_gone", "nothing_to_undo", "keeps_none"):
        page.line(page.say(notice))
    elif notice == "graded":
        page.blank()
        page.line(time_left(page, after), style="dim")
        show_keys(page, after)
    elif notice == "not_graded":
        page.line(page.say("mock_not_graded"))
    elif notice in ("not_taken", "nothing"):
        why = complaint(page, after.quiz) if after.complaint and after.quiz is not None else after.complaint
        page.line(page.say("not_taken", why=why) if why else page.say("mock_nothing"), style="yellow")
        show_keys(page, after)
    elif notice in WHAT_BECAME:
        page.line(page.say(WHAT_BECAME[notice]), style="dim")
    elif after.phase == "following" and before.phase != "following":
        page.line(page.say("mock_taken"), style="dim")
        show_follow_up(page, after)
    elif after.phase == "choosing":
        page.line(page.say("mock_taken"), style="dim")


def show_follow_up(page: Page, mock: Mock) -> None:
    assert mock.draw is not None
    page.heading(page.say("mock_follow_up"))
    page.markdown(mock.draw.text(mock.draw.question.follow_ups[mock.follow_up].question, page.language), "  ")
    show_written(page, mock.written)
    page.blank()
    page.line(time_left(page, mock), style="dim")
    show_keys(page, mock)


# --- the debrief -----------------------------------------------------------------------------------------------------


def show_debrief(page: Page, mock: Mock) -> None:
    assert mock.draw is not None
    if mock.phase == "marking" and mock.draw.question.kind == "open":
        show_own(page, mock.item.answer)
        show_model_answer(page, mock.draw, mock.draw.question)
        show_point(page, mock)
    elif mock.phase == "comparing":
        for each in mock.item.follow_ups:
            follow_up = mock.draw.question.follow_ups[each.index]
            page.heading(page.say("mock_follow_up"))
            page.markdown(mock.draw.text(follow_up.question, page.language), "  ")
            show_own(page, each.answer)
            page.heading(page.say("mock_our_answer"))
            page.markdown(mock.draw.text(follow_up.answer, page.language), "  ")
        page.blank()
        page.line(page.say("mock_ask_compare"), style="dim")


def show_own(page: Page, answer: str) -> None:
    page.heading(page.say("mock_your_answer"))
    for line in answer.split("\n"):
        page.print(Prose(Text(page.readable(line)), Text("  "), Text("  ")))


def show_point(page: Page, mock: Mock) -> None:
    """The next point of the rubric."""
    assert mock.draw is not None and mock.draw.question.kind == "open"
    number = len(mock.are_met)
    point = mock.draw.question.rubric[number]
    page.blank()
    page.markdown(
        f"{mock.draw.text(point.point, page.language)} {weight(page, point.weight)}", f"  {number + 1}. ", "     "
    )
    page.line(page.say("ask_point"), style="dim")


def show_debrief_step(page: Page, before: Mock, after: Mock) -> None:
    if after.notice == "not_taken":
        page.line(page.say("not_taken", why=page.say("accepted_point")), style="yellow")
    elif after.notice == "nothing_to_undo":
        page.line(page.say("nothing_to_undo"))
    elif after.phase == "marking":
        show_point(page, after)
    elif after.phase == "comparing" and before.phase == "marking":
        show_debrief(page, after)


# --- before and after ------------------------------------------------------------------------------------------------


def show_resumed(page: Page, record: Record, place: int, others: Sequence[tuple[str, datetime]]) -> None:
    """Whose interview this is; the others that were left, by name."""
    name = " ".join(record.candidate.split()) or page.say("mock_nobody")
    place_of = {"number": place + 1, "count": len(items_of(record))}
    page.line(
        page.say("mock_resumed_of", name=page.readable(name), begun=when(record.started), **place_of), style="bold"
    )
    for other, begun in others:
        page.line(page.say("mock_other", name=page.readable(other), begun=when(begun)), style="dim")


def when(moment: datetime) -> str:
    """`2026-12-03 05:31`, as the clock on the wall has it."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def show_departures(page: Page, left_out: Sequence[str], other_levels: Mapping[str, Sequence[int]]) -> None:
    """What a plan could not have: parts, and questions of the levels that were asked for."""
    if left_out:
        parts = page.say("comma").join(word(page.language, "part_", name) for name in left_out)
        page.line(page.say("mock_left_out", parts=parts), style="dim")
    for name, levels in other_levels.items():
        part, shown = word(page.language, "part_", name), ", ".join(map(str, levels))
        page.line(page.say("mock_other_level", part=part, levels=shown), style="dim")


def show_plan(page: Page, plan: Plan, *, is_kept: bool = False, is_led: bool = False) -> None:
    """is_kept: whether an interview of it can be left and resumed. is_led: by an interviewer, who sees everything."""
    parts = page.say("comma").join(
        page.say("mock_plan_part", part=word(page.language, "part_", part.name), minutes=f"{part.minutes:g}")
        for part in plan.parts
    )
    whole = sum(part.minutes for part in plan.parts)
    page.line(page.say("mock_plan", minutes=f"{whole:g}", parts=parts))
    page.line(page.say("mock_seed" if is_led else "mock_no_verdicts", seed=plan.seed), style="dim")
    if is_kept:
        page.line(page.say("mock_kept"), style="dim")


def show_end(page: Page, mock: Mock, path: str) -> None:
    share = total(mock.record)
    page.blank()
    score = percent(share.score, page.language)
    page.line(page.say("mock_end", asked=share.num_asked, all=len(mock.items), score=score), style="bold")
    for part in mock.record.parts:
        said = card_say(page.language, "time_of", used=clock(part.seconds_used, page.language),
                        planned=card_say(page.language, "minutes", minutes=f"{part.minutes:g}"))  # fmt: skip
        page.line(f"{word(page.language, 'part_', part.name)}{page.say('colon')}{said}", indent="  ")
    page.unbroken(page.say("mock_card", path=path), style="dim")


def show_left(page: Page, command: str) -> None:
    page.unbroken(page.say("mock_left", command=command) if command else page.say("mock_not_kept"), style="dim")


# --- a prompt alone, for a shared screen -----------------------------------------------------------------------------


def show_shared(page: Page, draw: Draw, number: int, count: int) -> None:
    """What a candidate may see: the task, and nothing of hints, rubric, answers and follow-ups."""
    if page.terminal.is_terminal:
        page.fit()
        page.console.clear()
    else:
        page.rule()
    page.line(page.say("share_head", number=number, count=count), style="dim")
    show_task(page, draw, is_examined=True)
    page.blank()
