"""`watch`: grades a file at every save, and tells more at the press of a key."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import signal
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
SETTLE_S = 0.4  # how long the rest of a file that cannot be read yet may take to be written
WAKE_S = 0.5
CALLS = ("q", "r")  # keys that do not wait until a grade is over


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

    def run(self, inbox: Inbox) -> None:
        events = ["r"]
        while "q" not in events:
            for event in events:
                if event.startswith(LOST):
                    raise KitError(f"{self._regrader.path} cannot be watched any more: {event.removeprefix(LOST)}")
                if event == "h":
                    self._show_hint()
                elif event == "f":
                    self._show_full()
            if "r" in events or SAVED in events:
                try:
                    with inbox.calling():
                        self._grade(is_asked="r" in events)
                except KeyboardInterrupt:
                    if not inbox.has_called:
                        raise
                    self._content = None
            events = inbox.take()

    def _grade(self, *, is_asked: bool) -> None:
        """Grade what the file holds now, and again where that has changed; a save that changed nothing is none."""
        while self._read() != self._content or is_asked:
            is_asked = False
            self._content = self._settled()
            self._grade_once()

    def _read(self) -> bytes | None:
        from kit.grading.solution import read_regular

        try:
            return read_regular(self._regrader.path)
        except OSError:
            return None

    def _settled(self) -> bytes | None:
        """What it holds; where that is no program yet, half of it may be on its way."""
        limit = time.monotonic() + SETTLE_S
        while not can_be_parsed(content := self._read()) and time.monotonic() < limit:
            time.sleep(STEP_MS / 1e3)
        return content

    def _is_stale(self) -> bool:
        return self._read() != self._content

    def _grade_once(self) -> None:
        from kit.screen import watch as screen

        screen.show_start(self._page, time.strftime("%H:%M:%S"))
        started = time.monotonic()
        before = self._regrader.last.first_failure if self._regrader.last is not None else None
        early: list[CheckResult] = []

        def tell(check: CheckResult) -> None:
            if check.verdict == "failed" and not early and not self._is_stale():
                early.append(check)
                is_known = before is not None and (before.name, before.world_size) == (check.name, check.world_size)
                screen.show_early(self._page, check, is_known=is_known)

        def passed_here(result: GradeResult) -> None:
            if not self._is_stale():
                screen.show_passed_so_far(self._page, time.monotonic() - started)

        try:
            result = self._regrader.grade(tell, passed_here)
        except KitError as error:
            if not self._is_stale():
                screen.show_problem(self._page, error.message, error.hint)
            return
        if self._is_stale():
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


def can_be_parsed(content: bytes | None) -> bool:
    import ast

    try:
        return bool(content and content.strip() and ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


class Inbox:
    """Events in their order. A call (`q`, `r`) interrupts what the main thread does inside `calling`.

    has_called: one is among the events that were not taken yet.
    """

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_heard = False
        self._num_calls = 0
        self._num_taken = 0

    @property
    def has_called(self) -> bool:
        return self._num_calls > self._num_taken

    def put(self, event: str) -> None:
        self._num_calls += event in CALLS
        self._events.put(event)
        if event in CALLS:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)

    def take(self) -> list[str]:
        """All that have come; waits for one.

        Not without end: a signal may reach another thread, and what Python does about it waits for this one to wake.
        """
        found: list[str] = []
        while not found:
            with contextlib.suppress(queue.Empty):
                found.append(self._events.get(timeout=WAKE_S))
        while not self._events.empty():
            found.append(self._events.get())
        self._num_taken += sum(event in CALLS for event in found)
        return found

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """KeyboardInterrupt where somebody calls. For the main thread."""
        self._is_heard = True
        try:
            if self.has_called:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_heard = False

    def hear(self, *_: object) -> None:
        if self._is_heard:
            raise KeyboardInterrupt


@contextlib.contextmanager
def events(path: Path, *, keys: bool) -> Iterator[Inbox]:
    """Saves of the file and keys that are pressed, in their order; the terminal is put back at the end."""
    inbox = Inbox()
    before = signal.signal(signal.SIGUSR2, inbox.hear)
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
            signal.signal(signal.SIGUSR2, before)


def _tell_saves(path: Path, inbox: Inbox, stop: threading.Event, ready: threading.Event) -> None:
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


def _tell_keys(inbox: Inbox) -> None:
    while True:
        pressed = os.read(sys.stdin.fileno(), 1).decode("ascii", "ignore").lower()
        inbox.put(pressed or "q")
        if not pressed:
            return


@contextlib.contextmanager
def _single_keys() -> Iterator[None]:
    """Keys arrive one at a time and are not echoed, also after Ctrl-Z and `fg`."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def again(*_: object) -> None:
        if os.tcgetpgrp(descriptor) == os.getpgrp():  # not after `bg`, where that would stop it
            tty.setcbreak(descriptor)

    tty.setcbreak(descriptor)
    handler = signal.signal(signal.SIGCONT, again)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, handler)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
