"""The command `shardkit`: one entry point, and what each way of ending prints and returns."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

PASSED, NOT_PASSED, USERS_MISTAKE, KITS_FAULT = 0, 1, 2, 3
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE
INTERRUPTIONS = (INTERRUPTED, 128 + signal.SIGTERM, 128 + signal.SIGHUP)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs one command (sys.argv unless `arguments` are given) and ends the process; never with a traceback."""
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # while the code below was already at work
        code = INTERRUPTED
    if code in INTERRUPTIONS and sys.stderr.isatty():
        print(file=sys.stderr)  # the shell's prompt begins a line of its own
    if code in (*INTERRUPTIONS, BROKEN_PIPE):
        silence()
    leave_at_once(code)


def leave_at_once(code: int) -> NoReturn:
    """Everything is written and closed; taking the modules apart, object by object, costs time (torch: a second)."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of a command that has printed all it had to say."""
    with ended_as_by_ctrl_c() as signals:
        code = outcome(arguments)
    return 128 + signals[0] if signals else code


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[list[int]]:
    """SIGTERM, or a terminal that is closed: what was begun is cleaned up. Yields the signals that came.

    One that is ignored, as after nohup, stays so. A terminal may tell of its end twice, and the second time must not
    disturb the cleaning up.
    """
    came: list[int] = []

    def end(number: int, _: object) -> None:
        came.append(number)
        if number != signal.SIGHUP or came.count(number) == 1:
            raise KeyboardInterrupt

    caught = []
    if threading.current_thread() is threading.main_thread():
        caught = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in caught:
        signal.signal(number, end)
    try:
        yield came
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


def outcome(arguments: list[str]) -> int:
    try:
        prepare_streams()
        require_working_directory()
        gc.set_threshold(50_000)  # imports make very many objects and no garbage
        # pydantic would look for plugins through every installed distribution, at each start.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        from kit.cli.app import invoke

        code = invoke(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as error:
        from kit.cli.ending import explain

        return explain(error)


def require_working_directory() -> None:
    """One that was deleted under the shell makes torch's libraries end the process."""
    try:
        os.getcwd()
    except FileNotFoundError:
        from kit.errors import KitError

        raise KitError("the working directory is not there any more", "change into one that is (cd ..)") from None


def prepare_streams() -> None:
    """Streams that were closed become /dev/null; what an encoding lacks is replaced and never raises."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  lives as long as the process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if name == "stdin" else "backslashreplace")


def silence() -> None:
    """Nothing more is written, also not by the interpreter's own flush at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(null, stream.fileno())
        except (OSError, ValueError):  # a stream without a file, as in a test
            continue
    os.close(null)
