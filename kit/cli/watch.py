"""`watch`: grades a file at every save, and tells more at the press of a key."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.bank.layout import find_bank
from kit.bank.load import load_question
from kit.cli import KITS_FAULT, NOT_PASSED, PASSED
from kit.cli.language import chosen_language
from kit.cli.solutions import named
from kit.cli.torch_there import require_torch
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.grading.regrade import Regrader
    from kit.grading.result import CheckResult, GradeResult

SAVED = "saved"
LOST = "lost: "
DEBOUNCE_MS = 60  # an editor writes a file in several steps
STEP_MS = 10


def watch(words: list[str], directory: Path | None, transport: str, language: str | None) -> int:
    """words: `[ID] FILE`. Returns the exit code of the last grade once the user has had enough."""
    require_torch("watch runs the file on several ranks", "`shardkit quiz` needs no torch")
    bank = find_bank(directory)
    question_id, path = named(words, bank, "watch", with_reference=False)
    assert path is not None

    from kit.grading.choices import require_choices
    from kit.grading.preflight import prepare
    from kit.screen.page import Page
    from kit.screen.watch import show_beginning

    require_choices(None, transport)
    prepared = prepare(question_id, path, bank)
    page = Page(chosen_language(language))
    gc.disable()  # importing torch makes very many objects and no garbage
    from kit.grading.grader import ranks_ready
    from kit.grading.regrade import Regrader

    # The zygote first: it must be forked from a process with one thread.
    with ranks_ready() as zygote:
        gc.enable()
        gc.freeze()
        regrader = Regrader(bank, prepared.question, path, transport, zygote)
        show_beginning(page, path, has_keys=page.terminal.is_interactive)
        with contextlib.suppress(KeyboardInterrupt), events(path, keys=page.terminal.is_interactive) as inbox:
            Session(page, regrader, load_question(bank, prepared.question).hints).run(inbox)
    if regrader.last is None:
        return NOT_PASSED
    if regrader.last.verdict == "kit_error":
        return KITS_FAULT
    return PASSED if regrader.last.verdict == "passed" else NOT_PASSED


class Session:
    """What has been shown so far, and what comes next at a key or a save."""

    def __init__(self, page: Any, regrader: Regrader, hints: Any) -> None:
        self._page = page
        self._regrader = regrader
        self._hints = hints
        self._num_hints = 0
        self._content: bytes | None = None
        self._has_keys = bool(page.terminal.is_interactive)

    def run(self, inbox: queue.SimpleQueue[str]) -> None:
        self._grade(is_asked=True)
        while True:
            event = inbox.get()
            if event == SAVED:
                self._grade(is_asked=False)
            elif event == "q":
                return
            elif event.startswith(LOST):
                raise KitError(f"{self._regrader.path} cannot be watched any more: {event.removeprefix(LOST)}")
            elif event == "r":
                self._grade(is_asked=True)
            elif event == "h":
                self._show_hint()
            elif event == "f":
                self._show_full()

    def _grade(self, *, is_asked: bool) -> None:
        """Grade what the file holds now; a save that changed nothing is none."""
        from kit.screen import watch as screen

        try:
            content = self._regrader.path.read_bytes()
        except OSError:
            content = None
        if content == self._content and not is_asked:
            return
        self._content = content
        screen.show_start(self._page, time.strftime("%H:%M:%S"))
        started = time.monotonic()
        before = self._regrader.last.first_failure if self._regrader.last is not None else None
        early: list[CheckResult] = []

        def tell(check: CheckResult) -> None:
            if check.verdict == "failed" and not early:
                early.append(check)
                is_known = before is not None and (before.name, before.world_size) == (check.name, check.world_size)
                screen.show_early(self._page, check, is_known=is_known)

        def passed_here(result: GradeResult) -> None:
            screen.show_passed_so_far(self._page, time.monotonic() - started)

        try:
            result = self._regrader.grade(tell, passed_here)
        except KitError as error:
            screen.show_problem(self._page, error.message, error.hint)
            return
        screen.show_regrade(self._page, result, seconds=time.monotonic() - started, has_keys=self._has_keys)
        self._regrader.zygote.gather()  # while the user thinks

    def _show_hint(self) -> None:
        from kit.screen import watch as screen

        if self._num_hints == len(self._hints):
            screen.show_note(self._page, "no more hints")
            return
        self._num_hints += 1
        screen.show_next_hint(self._page, self._hints[self._num_hints - 1], self._num_hints, len(self._hints))

    def _show_full(self) -> None:
        from kit.screen import watch as screen
        from kit.screen.grade import show_grade

        if self._regrader.last is None:
            screen.show_note(self._page, "nothing has been graded yet")
            return
        show_grade(self._page, self._regrader.last)
        screen.flush(self._page)


# -- where events come from -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def events(path: Path, *, keys: bool) -> Iterator[queue.SimpleQueue[str]]:
    """Saves of the file and keys that are pressed, in their order; the terminal is put back at the end."""
    inbox: queue.SimpleQueue[str] = queue.SimpleQueue()
    stop = threading.Event()
    ready = threading.Event()
    watcher = threading.Thread(target=_tell_saves, args=(path, inbox, stop, ready), daemon=True)
    watcher.start()
    ready.wait()
    with _single_keys() if keys else contextlib.nullcontext():
        if keys:
            threading.Thread(target=_tell_keys, args=(inbox,), daemon=True).start()
        try:
            yield inbox
        finally:
            stop.set()
            watcher.join()


def _tell_saves(path: Path, inbox: queue.SimpleQueue[str], stop: threading.Event, ready: threading.Event) -> None:
    """Watches the folder: an editor may put a new file in the place of the old one."""
    from watchfiles import watch as changes

    place = path.absolute()
    try:
        for found in changes(
            place.parent,
            watch_filter=lambda _, changed: Path(changed).name == place.name,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=stop,
            rust_timeout=100,
            yield_on_timeout=True,
            recursive=False,
            raise_interrupt=False,
        ):
            ready.set()
            if found:
                inbox.put(SAVED)
    except Exception as error:  # no more watches to be had, the folder is gone: other words for each platform
        inbox.put(f"{LOST}{error}")
    finally:
        ready.set()


def _tell_keys(inbox: queue.SimpleQueue[str]) -> None:
    while True:
        pressed = os.read(sys.stdin.fileno(), 1).decode("ascii", "ignore").lower()
        inbox.put(pressed or "q")
        if not pressed:
            return


@contextlib.contextmanager
def _single_keys() -> Iterator[None]:
    """Keys arrive one at a time and are not echoed."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
