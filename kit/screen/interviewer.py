"""An interviewer's side in a terminal: the question with all that answers it, and lines that score it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kit.bank.mark import LETTERS
from kit.errors import KitError
from kit.interview.card_words import Language
from kit.interview.card_words import say as card_say
from kit.interview.interviewer import Desk, Shown, answered, graded, leave, noted, pass_time, reply, summed_up
from kit.interview.rubric import points_of, right_answer
from kit.interview.sheet import word
from kit.interview.summary import is_asked, items_of, total
from kit.screen.editor import edit
from kit.screen.interviewer_words import HELP
from kit.screen.page import Page
from kit.screen.question import show_explanation, show_hint, show_model_answer, show_task
from kit.screen.quiz import PROMPT, line_or_end
from kit.screen.wrap import Prose, padded, widest

if TYPE_CHECKING:
    from kit.bank.draw import Draw
    from kit.interview.record import ItemRecord

MOST_FLAGS = 8  # of a question, on one screen


@dataclass(frozen=True, slots=True)
class Room:
    """What an interview needs from outside. `grade` gives a grade as JSON and its points by proof, or raises KitError.

    `save` is called with every change before it is on the screen. `red_flags` are Markdown in the page's language.
    `require_card` raises KitError where a scorecard cannot be written to that file; empty is one that is chosen later.
    """

    draw: Callable[[ItemRecord], Draw]
    red_flags: Callable[[Draw], tuple[str, ...]]
    clock_s: Callable[[], float]
    save: Callable[[Desk], None]
    grade: Callable[[str, str], tuple[Mapping[str, Any], Mapping[str, float]]]
    require_card: Callable[[str], None]

    def showing(self, item: ItemRecord) -> Shown:
        draw = self.draw(item)
        return Shown(draw, len(self.red_flags(draw)))


def hold(page: Page, desk: Desk, room: Room) -> Desk:
    """Runs an interview to its end, or until it is left; the end of the input leaves it."""
    room.save(desk)
    show_question(page, desk, room)
    since = room.clock_s()
    while desk.phase == "going_on":
        line, is_interrupted = line_or_end(page, prompt(desk))
        now = room.clock_s()
        if line is None:
            after = replace(leave(pass_time(desk, now - since)), is_interrupted=is_interrupted)
        else:
            after = reply(desk, line, now - since, room.showing)
        since = now
        after = outside(page, after, room)
        room.save(after)
        show_change(page, after, room)
        desk = after
    return desk


def prompt(desk: Desk) -> str:
    """With the time that the part has taken so far; none while the clock is stopped."""
    return PROMPT if desk.is_paused else f"{clock(desk.part.seconds_used)} {PROMPT}"


def outside(page: Page, desk: Desk, room: Room) -> Desk:
    """What a line asked for that is not the machine's to do: an editor, a grade."""
    try:
        if desk.notice == "edit_answer":
            return answered(desk, edit(desk.item.answer, say=page.say), room.showing)
        if desk.notice == "edit_note":
            return noted(desk, edit(desk.item.notes, say=page.say))
        if desk.notice == "edit_overall":
            return summed_up(desk, edit(desk.record.overall, say=page.say))
        if desk.notice == "grade":
            page.line(page.say("iv_grading", path=desk.wanted), style="dim")
            page.file.flush()
            found, proofs = room.grade(desk.item.question_id, desk.wanted)
            return graded(desk, found, proofs, room.showing)
        if desk.phase == "ended" or desk.notice == "unasked":
            room.require_card(desk.wanted)
    except KitError as error:
        desk = replace(desk, phase="going_on", notice=None, is_ending=False)
        page.line("; ".join(filter(None, [error.message, error.hint])), style="yellow")
    return desk


def show_change(page: Page, desk: Desk, room: Room) -> None:
    notice = desk.notice
    if notice in ("moved", "shown", "undone"):
        if notice == "undone":
            page.line(page.say("iv_undone"))
        show_question(page, desk, room)
    elif notice == "not_taken":
        page.line(reason(page, desk, room), style="yellow")
    elif notice == "hint":
        show_hint(page, room.draw(desk.item), desk.item.hints)
    elif notice == "listed":
        show_list(page, desk, room)
    elif notice == "help":
        show_help(page)
    elif notice == "changed":
        show_saved(page, desk, room)
    elif notice == "overall":
        page.line(page.say("iv_saved_only"))
    elif notice == "flags_listed":
        show_red_flags(page, desk.item, room.red_flags(room.draw(desk.item)), most=None)
    elif notice == "unasked":
        count = sum(item.verdict == "" for item in desk.items)
        page.line(page.say("iv_unasked", count=count, all=len(desk.items)), style="yellow")
    elif notice in ("first", "last", "no_more_hints", "paused", "resumed", "nothing_to_undo"):
        page.line(page.say(f"iv_{notice}"))


def reason(page: Page, desk: Desk, room: Room) -> str:
    """Why a line was not taken, and what is."""
    shown = room.showing(desk.item)
    count = {
        "question": len(desk.items),
        "point": len(points_of(shown.draw, page.language)),
        "follow_up": len(shown.question.follow_ups),
        "red_flag": shown.num_red_flags,
    }.get(desk.why or "", 0)
    key = "iv_why_no_red_flag" if desk.why == "red_flag" and not count else f"iv_why_{desk.why}"
    return page.say(key, count=count, typed=page.readable(desk.complaint), most=desk.complaint)


# --- one question ----------------------------------------------------------------------------------------------------


def show_question(page: Page, desk: Desk, room: Room) -> None:
    """What is asked, then what only the interviewer may see."""
    item, draw = desk.item, room.draw(desk.item)
    page.fit()
    page.rule()
    part = word(page.language, "part_", desk.part.name)
    page.line(page.say("iv_place", part=part, number=desk.place + 1, count=len(desk.items)), style="dim")
    show_clock(page, desk)
    show_task(page, draw)
    show_reasons(page, draw)
    show_asked_follow_ups(page, item, draw)
    show_red_flags(page, item, room.red_flags(draw))
    show_right(page, draw)
    show_points(page, item, draw)
    if item.answer:
        page.heading(page.say("iv_answer"))
        page.line(item.answer, indent="  ")
    if item.notes:
        page.heading(page.say("iv_notes"))
        page.line(item.notes, indent="  ")
    page.blank()
    page.line(page.say("iv_keys"), style="dim")


def show_clock(page: Page, desk: Desk) -> None:
    used, planned = desk.part.seconds_used, desk.part.minutes * 60
    text = Text(page.say("iv_clock", used=clock(used), planned=f"{desk.part.minutes:g}"), style="dim")
    if used > planned:
        text.append(page.say("comma") + page.say("iv_over", over=clock(used - planned)), "bold yellow")
    whole = sum(part.seconds_used for part in desk.record.parts)
    minutes = sum(part.minutes for part in desk.record.parts)
    text.append(page.say("comma") + page.say("iv_whole", used=clock(whole), planned=f"{minutes:g}"))
    page.line(text)


def clock(seconds: float) -> str:
    """`12:05`"""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


def show_reasons(page: Page, draw: Draw) -> None:
    """The model answer, or why the right one is right; of code there is its explanation."""
    question = draw.question
    if question.kind == "open":
        show_model_answer(page, draw, question)
        return
    show_explanation(page, draw)
    if question.kind == "code":
        page.blank()
        page.line(page.say("iv_reference", command=f"shardkit show {question.id} --answer"), style="dim")


def show_right(page: Page, draw: Draw) -> None:
    """With the letters that options and items were shown with; near the points, since both are needed at once."""
    right = right_answer(draw, page.language)
    if not right:
        return
    page.heading(page.say("iv_right_answer"))
    shown = dict(zip(draw.options(page.language), LETTERS, strict=False))
    is_ordered = draw.question.kind == "order"
    for number, entry in enumerate(right if is_ordered else sorted(right, key=lambda text: shown.get(text, "")), 1):
        first = f"  {number}. " if is_ordered else "  "
        first += f"{shown[entry]}  " if entry in shown else ""
        page.markdown(entry, first, " " * len(first))


def show_points(page: Page, item: ItemRecord, draw: Draw) -> None:
    page.heading(page.say("iv_points"))
    for index in range(len(points_of(draw, page.language))):
        show_point(page, item, draw, index)


def show_point(page: Page, item: ItemRecord, draw: Draw, index: int) -> None:
    point = points_of(draw, page.language)[index]
    got = item.points_scores[index] if index < len(item.points_scores) else None
    style = "" if got is None else "green" if got == point.weight else "yellow" if got else "red"
    tag = page.say("iv_point", got="-" if got is None else f"{got:g}", most=point.weight)
    page.markdown(point.text, f"  {index + 1}. ", "     ", lead=Text(f"{tag} ", style=style))


def show_asked_follow_ups(page: Page, item: ItemRecord, draw: Draw) -> None:
    page.heading(page.say("iv_follow_ups"))
    for index, follow_up in enumerate(draw.question.follow_ups):
        show_follow_up(page, item, draw, index)
        page.markdown(draw.text(follow_up.answer, page.language), "     ", style="dim")


def show_follow_up(page: Page, item: ItemRecord, draw: Draw, index: int) -> None:
    """What is asked, and how it went."""
    asked = {each.index: each.score for each in item.follow_ups}
    got = asked.get(index)
    tag = "" if got is None else page.say("iv_answered", score=f"{100 * got:.0f}%")
    if index in asked and got is None:
        tag = page.say("iv_asked")
    text = draw.text(draw.question.follow_ups[index].question, page.language)
    page.markdown(text, f"  {index + 1}. ", "     ", lead=Text(tag, style="green"))


def show_red_flags(page: Page, item: ItemRecord, flags: tuple[str, ...], most: int | None = MOST_FLAGS) -> None:
    """most: of those that were not seen; the others are listed when they are asked for."""
    if not flags:
        return
    page.heading(page.say("iv_red_flags"))
    shown = [index for index in range(len(flags)) if most is None or index < most or index in item.red_flags]
    for index in shown:
        show_red_flag(page, item, flags[index], index)
    if len(shown) < len(flags):
        page.line(page.say("iv_more_flags", count=len(flags) - len(shown)), style="dim", indent="  ")


def show_red_flag(page: Page, item: ItemRecord, flag: str, index: int) -> None:
    first = f"  [{'x' if index in item.red_flags else ' '}] {index + 1}. "
    page.markdown(flag, first, " " * len(first))


def show_saved(page: Page, desk: Desk, room: Room) -> None:
    """What was changed, as it stands now, and what the question is worth."""
    item, draw = desk.item, room.draw(desk.item)
    kind, index = desk.touched or ("", 0)
    if kind == "point":
        show_point(page, item, draw, index)
    elif kind == "follow_up":
        show_follow_up(page, item, draw, index)
    elif kind == "red_flag":
        show_red_flag(page, item, room.red_flags(draw)[index], index)
    if item.verdict and kind in ("", "point"):
        verdict = word(page.language, "", item.verdict)
        page.line(page.say("iv_saved", verdict=verdict, score=f"{100 * item.score:.0f}%"))
        left = sum(points is None for points in item.points_scores)
        if item.kind in ("open", "code") and left:
            page.line(page.say("iv_points_left", count=left), style="dim")
    else:
        page.line(page.say("iv_saved_only"))


# --- the whole interview ---------------------------------------------------------------------------------------------


def show_list(page: Page, desk: Desk, room: Room) -> None:
    """Every question with its score and title; the open one is marked."""
    shown = [standing(page.language, item) for item in desk.items]
    width = widest(shown)
    for place, (item, text) in enumerate(zip(desk.items, shown, strict=True)):
        mark = ">" if place == desk.place else " "
        lead = f"{mark} {place + 1:>2}  {padded(text, width)}  "
        title = room.draw(item).question.title.get(page.language)
        page.print(Prose(Text(f"{title} ({item.question_id})"), Text(lead), Text(" " * widest([lead]))))


def standing(language: Language, item: ItemRecord) -> str:
    if not item.verdict:
        return card_say(language, "not_asked")
    return f"{100 * item.score:.0f}%" if is_asked(item) else word(language, "", item.verdict)


def show_help(page: Page) -> None:
    page.heading(page.say("iv_help_title"))
    width = widest(key for key, _ in HELP[page.language])
    for key, text in HELP[page.language]:
        lead = Text(f"  {padded(key, width)}  ", style="bold")
        page.print(Prose(Text(page.readable(text)), lead, Text(" " * (width + 4))))


def show_left(page: Page, command: str) -> None:
    """command: how it goes on; empty where nothing is kept."""
    page.blank()
    page.line(page.say("iv_left" if command else "mock_not_kept"))
    if command:
        page.unbroken(f"  {command}")


def show_end(page: Page, desk: Desk, room: Room, path: str) -> None:
    """What the candidate came to, and where the scorecard is."""
    page.blank()
    show_list(page, desk, room)
    page.blank()
    whole = total(desk.record)
    if whole.score is None:
        page.line(page.say("iv_total_none"))
    else:
        score = f"{100 * whole.score:.0f}%"
        count = len(items_of(desk.record))
        page.line(page.say("iv_total", score=score, count=whole.num_asked, all=count), style="bold")
    page.line(page.say("iv_written", path=path))
