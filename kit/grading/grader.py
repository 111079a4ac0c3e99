"""Grade one file: hold it against a question's checks, in this process, on ranks that are not.

pytest runs here and only here; the file itself is run by ranks and never by this process. Nothing that lies beside
the file, no configuration, no plugin and no environment variable of the user's has a say.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.bank.layout import Bank
from kit.errors import KitError
from kit.grading import plugin
from kit.grading.call_sites import suspicions
from kit.grading.choices import MAX_SEED, require_choices
from kit.grading.diagnosis import CheckFailed
from kit.grading.launches import Launch, Subject
from kit.grading.preflight import Assignment, prepare
from kit.grading.result import CheckResult, GradeResult, verdict_of
from kit.grading.scenario import Check, Run, check_of
from kit.grading.sentences import is_not_written, launch_failure, own_frames, printed_by_ranks
from kit.grading.solution import read_regular
from kit.world import Result, Zygote
from kit.world.failure import NotMeasured, WorldError

# What pytest brings that a grade does not use and that costs time at every check.
_UNUSED = ("cacheprovider", "doctest", "faulthandler", "junitxml", "logging", "pastebin", "setuponly", "setupplan",
           "stepwise", "threadexception", "unraisableexception", "unittest")  # fmt: skip


def ranks_ready() -> Zygote:
    """Imports torch once and forks the process that ranks come from, before a seed is drawn."""
    return Zygote.fork(("kit.grading.entry",))


def grade(
    question_id: str | None,
    path: Path,
    *,
    bank: Bank | None = None,
    seed: int | None = None,
    transport: str = "both",
    zygote: Zygote | None = None,
) -> GradeResult:
    """Hold the file at `path` against the question's checks.

    question_id: None takes it from the file's first line (`# shardkit: dp/bucketed`).
    seed: of the inputs; None draws a fresh one. transport: "both", "switchboard" or "gloo".
    zygote: to fork ranks from (see `ranks_ready`); None starts one for this grade alone.
    Raises KitError for whatever the user has to put right before ranks can run.
    """
    require_choices(seed, transport)
    assignment = prepare(question_id, path, bank)
    return assignment.not_started() or run_checks(assignment, seed=seed, transport=transport, zygote=zygote)


def run_checks(
    assignment: Assignment,
    *,
    seed: int | None = None,
    transport: str = "both",
    zygote: Zygote | None = None,
    runs: list[Run] | None = None,
    first: CheckResult | None = None,
    tell: Callable[[CheckResult], None] | None = None,
) -> GradeResult:
    """Grade what `prepare` has found to be in order; the arguments are those of `grade`.

    runs: takes what the solution's launches brought back, as far as they came to their end.
    first: a check of an earlier grade that is run before all others. tell: called with each check as it ends.
    """
    started = time.monotonic()
    path = assignment.solution.path
    own = ranks_ready() if zygote is None else None
    read = assignment.bank.checks(assignment.question), path
    before = [_content(file) for file in read]
    try:
        # Not before the zygote is there: what it has in its memory, every rank has.
        drawn = seed if seed is not None else secrets.randbelow(MAX_SEED)
        checks = assignment.bank.checks(assignment.question).resolve()
        subject = Subject(checks, path.resolve(), assignment.interface, assignment.forbidden)
        collector = _through_pytest(subject, drawn, transport, zygote or own, first, tell)
        if runs is not None:
            runs += collector.session.launches.runs()
        if collector.puzzles:
            right = Subject(checks, assignment.bank.reference(assignment.question), assignment.interface)
            collector.settle(
                _through_pytest(right, drawn, transport, zygote or own) if right.solution.is_file() else None
            )
    finally:
        if own is not None:
            own.close()
    for file, content in zip(read, before, strict=True):
        if content is None or _content(file) != content:
            raise KitError(f"{file} changed while it was used", "put it in order and grade again")
    return collector.result(assignment.question, str(path), assignment.points, time.monotonic() - started)


def _content(file: Path) -> bytes | None:
    try:
        return read_regular(file)
    except OSError:
        return None


def _through_pytest(
    subject: Subject,
    seed: int,
    transport: str,
    zygote: Zygote | None,
    first: CheckResult | None = None,
    tell: Callable[[CheckResult], None] | None = None,
) -> _Collector:
    collector = _Collector(subject, seed, transport, zygote, first, tell)
    arguments = [
        "-q",
        "-s",
        "--tb=native",
        "--assert=plain",
        "-p",
        "kit.grading.plugin",
        "--noconftest",
        "--import-mode=importlib",
    ]
    for name in _UNUSED:
        arguments += ["-p", f"no:{name}"]
    with tempfile.TemporaryDirectory(prefix="shardkit-") as empty, _quiet_surroundings(empty) as shown:
        ini = Path(empty, "pytest.ini")
        ini.write_text("[pytest]\n")
        arguments += ["-c", str(ini), "--rootdir", empty, str(subject.checks)]
        collector.exit_code = int(pytest.main(arguments, plugins=[collector]))
        collector.output = shown.getvalue()
    if collector.exit_code == pytest.ExitCode.INTERRUPTED and not collector.has_faults:
        raise KeyboardInterrupt
    return collector


@contextlib.contextmanager
def _quiet_surroundings(empty: str) -> Iterator[io.StringIO]:
    """pytest without the user's environment and with its own words kept apart; everything is put back."""
    shown = io.StringIO()
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("PYTEST", "PY_COLORS"))}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # Bytecode is neither written beside the checks nor taken from there.
    bytecode = sys.dont_write_bytecode, sys.pycache_prefix
    sys.dont_write_bytecode, sys.pycache_prefix = True, empty
    loaded = set(sys.modules)
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield shown
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = bytecode
        os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
        for name in [n for n in os.environ if n.startswith("PYTEST")]:
            del os.environ[name]
        os.environ.update(kept)
        _forget_checks(loaded)


def _forget_checks(loaded: set[str]) -> None:
    """Drop the checks file's module, so that the next grade in this process reads its own."""
    new = set(sys.modules) - loaded
    checks = {name for name in new if name.rsplit(".", 1)[-1].startswith("test_")}
    for name in new:
        if name in checks or any(one.startswith(f"{name}.") for one in checks):
            sys.modules.pop(name, None)


class _Collector:
    """A pytest plugin that turns reports into CheckResults."""

    def __init__(
        self,
        subject: Subject,
        seed: int,
        transport: str,
        zygote: Zygote | None,
        first: CheckResult | None,
        tell: Callable[[CheckResult], None] | None,
    ) -> None:
        self._first = first
        self._tell = tell
        self.subject = subject
        self.seed = seed
        self.transport = transport
        self.exit_code = 0
        self.output = ""
        self.session = plugin.Session(seed, transport, None)
        self.session.subjects[subject.checks] = subject
        self.session.borrow(zygote)
        self._expected: dict[str, tuple[Check, int, str]] = {}
        self._results: dict[str, CheckResult] = {}
        self._faults: list[str] = []
        self._user_error: KitError | None = None
        self.puzzles: dict[str, str] = {}
        self._is_not_written = ""
        self._advice: dict[int, tuple[str, ...]] = {}  # by the id of a result, which the session keeps

    @property
    def has_faults(self) -> bool:
        return bool(self._faults)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[plugin.SESSION] = self.session

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """A generator that is interrupted as it goes on has no line yet, and pytest would stumble over it."""
        excinfo.traceback = excinfo.traceback[:1]
        excinfo.value.__context__ = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._first is not None:
            items.sort(key=self._is_later)

    def _is_later(self, item: pytest.Item) -> bool:
        callspec, check = getattr(item, "callspec", None), check_of(getattr(item, "function", None))
        if callspec is None or check is None or self._first is None:
            return True
        return (check.name, *callspec.params["run"]) != (
            self._first.name, self._first.world_size, self._first.transport,
        )  # fmt: skip

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            check = check_of(getattr(item, "function", None))
            if check is None:
                self._faults.append(f"{item.name} belongs to no scenario")
                continue
            callspec = getattr(item, "callspec", None)
            if callspec is None:
                self._faults.append(f"{item.name} does not look at `run`")
                continue
            world_size, transport = callspec.params["run"]
            self._expected[item.nodeid] = (check, world_size, transport)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._faults.append(f"the checks cannot be read: {report.longreprtext[-2000:]}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        if hasattr(report, "wasxfail") and not isinstance(error, pytest.skip.Exception):
            error = pytest.skip.Exception(f"it is marked xfail: {report.wasxfail}")
        self._take(item, call.when, error, call.duration)
        return report

    def _take(self, item: pytest.Item, when: str, error: BaseException | None, duration_s: float) -> None:
        expected = self._expected.get(item.nodeid)
        known = self._results.get(item.nodeid)
        if expected is None or (known is not None and known.verdict != "passed"):
            return
        launch = item.stash.get(plugin.LAUNCH, None)
        spent = (known.duration_s if known else 0.0) + duration_s
        if error is None:
            if when != "setup":
                self._keep(item, _result(*expected, "passed", "", spent))
            return
        if not isinstance(error, (pytest.skip.Exception, WorldError, CheckFailed, KitError)):
            self.puzzles[item.nodeid] = f"{type(error).__name__}: {error}"
        self._keep(item, self._failed(expected, error, spent, launch))

    def _keep(self, item: pytest.Item, result: CheckResult) -> None:
        is_new = self._results.get(item.nodeid) is None
        self._results[item.nodeid] = result
        if self._tell is not None and is_new:
            self._tell(result)

    def _failed(
        self, expected: tuple[Check, int, str], error: BaseException, spent: float, launch: Launch | None
    ) -> CheckResult:
        if isinstance(error, pytest.skip.Exception):
            if launch is None or launch.run is not None:
                return _result(*expected, "kit_error", f"the check was skipped: {error}", spent)
            return _result(*expected, "not_run", str(error.msg).removeprefix("not run: "), spent)
        if isinstance(error, WorldError):
            return self._failed_launch(expected, error, spent)
        if isinstance(error, CheckFailed):
            result = launch.run.result if launch is not None and launch.run is not None else None
            advice = self._suspicions(result) if result is not None else ()
            printed = printed_by_ranks(result.stdout) if result is not None else ()
            return _result(
                *expected, "failed", str(error), spent, diagnosis=error.diagnosis, suspicions=advice, printed=printed
            )
        if isinstance(error, NotMeasured):
            return _result(*expected, "not_run", error.message, spent, is_beyond_machine=True)
        if isinstance(error, KitError):
            self._user_error = self._user_error or error
            return _result(*expected, "kit_error", error.message, spent)
        return _result(*expected, "kit_error", f"{type(error).__name__}: {error}", spent)

    def _suspicions(self, result: Result) -> tuple[str, ...]:
        """Sought once a launch, for all of its checks that fail."""
        if id(result) not in self._advice:
            self._advice[id(result)] = suspicions(result)
        return self._advice[id(result)]

    def settle(self, right: _Collector | None) -> None:
        """A check that broke is at fault itself, unless it holds for the reference: then it met what no program of
        the checks returns, and it is the solution that made it so."""
        for nodeid, text in self.puzzles.items():
            name, of_right = self._expected[nodeid][0].name, right._results.get(nodeid) if right is not None else None
            if of_right is not None and of_right.verdict == "passed":
                message = f"what the ranks returned is not what this check can look at: {text}"
                self._results[nodeid] = replace(self._results[nodeid], verdict="failed", message=message)
            else:
                self._faults.append(f"{name}: {text}")

    def _failed_launch(self, expected: tuple[Check, int, str], error: WorldError, spent: float) -> CheckResult:
        solution = str(self.subject.solution)
        if error.kind == "interface":
            self._user_error = self._user_error or KitError(error.message)
        if is_not_written(error, solution) and not self._is_not_written:
            self._is_not_written = f"{error.frames[-1][2]} is not written yet ({error.site})"
        frames = own_frames(error.frames, solution)
        site = f"{os.path.basename(frames[-1][0])}:{frames[-1][1]}" if frames else error.site
        return _result(
            *expected, "failed", launch_failure(error, solution), spent, launch_kind=error.kind, site=site,
            printed=printed_by_ranks(error.stdout, error.stderr),
        )  # fmt: skip

    def result(self, question_id: str, shown: str, points: dict[str, int], duration_s: float) -> GradeResult:
        """The grade; KitError where the ranks found what the user has to put right."""
        if self._user_error is not None:
            raise self._user_error
        checks = tuple(
            self._results.get(nodeid) or _result(*expected, "kit_error", "the check never reported", 0.0)
            for nodeid, expected in self._expected.items()
        )
        if self._faults or self.exit_code not in (0, 1):
            message = "\n".join(self._faults) or f"pytest ended with {self.exit_code}:\n{self.output[-2000:]}"
            return GradeResult(question_id, shown, "kit_error", self.seed, points, checks, duration_s, message)
        if self._is_not_written:
            return GradeResult(
                question_id, shown, "not_started", self.seed, points, checks, duration_s, self._is_not_written
            )
        return GradeResult(question_id, shown, verdict_of(checks), self.seed, points, checks, duration_s)


def _result(
    check: Check, world_size: int, transport: str, verdict: str, message: str, duration_s: float, **more: Any
) -> CheckResult:
    return CheckResult(
        check.name, check.title, check.proof, world_size, transport, verdict, message, duration_s, **more
    )
