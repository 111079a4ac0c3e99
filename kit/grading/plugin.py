"""The pytest plugin: the fixture `world` for anybody's tests, the fixture `run` for the checks of the bank.

Loaded in every pytest run of an environment that has shardkit, so it imports nothing heavy until it is used.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kit.errors import KitError
from kit.grading.choices import MAX_SEED, TRANSPORTS
from kit.grading.diagnosis import CheckFailed
from kit.grading.scenario import Check, Run, check_of
from kit.grading.sentences import launch_failure, printed_by_ranks
from kit.world.failure import NotMeasured, WorldError

if TYPE_CHECKING:
    from kit.grading.launches import Launches, Subject, Wanted
    from kit.world import World, Zygote

NAMES = ("shardkit", "kit.grading.plugin")
_MARKER = "world_size(*sizes, transport='switchboard', deadline_s=30): world sizes to run a `world` test at"

SESSION = pytest.StashKey["Session"]()
LAUNCH = pytest.StashKey[Any]()  # of a Launch


class Session:
    """One pytest session's seed, zygote and launches."""

    def __init__(self, seed: int, transport: str, solution: Path | None) -> None:
        self.seed = seed
        self.transport = transport
        self.solution = solution
        self.subjects: dict[Path, Subject] = {}
        self._zygote: Zygote | None = None
        self._is_borrowed = False
        self._launches: Launches | None = None

    def zygote(self) -> Zygote:
        """Started when it is first asked for, fresh: a fork of a process with threads would hang."""
        if self._zygote is None:
            from kit.world import Zygote

            self._zygote = Zygote.execute(("kit.grading.entry",))
        return self._zygote

    def borrow(self, zygote: Zygote | None) -> None:
        """Take a zygote that somebody else closes."""
        self._zygote, self._is_borrowed = zygote, zygote is not None

    @property
    def launches(self) -> Launches:
        if self._launches is None:
            from kit.grading.launches import Launches

            self._launches = Launches(self.seed, self.zygote)
        return self._launches

    def subject(self, checks: Path) -> Subject:
        if checks not in self.subjects:
            from kit.grading.subjects import subject_of

            self.subjects[checks] = subject_of(checks, self.solution)
        return self.subjects[checks]

    def wanted(self, checks: Path, check: Check, world_size: int, transport: str) -> Wanted:
        from kit.grading.launches import Wanted

        return Wanted(self.subject(checks), check.scenario, world_size, transport)

    def plan(self, items: list[pytest.Item]) -> None:
        """The launches that these tests will ask for."""
        coming = []
        for item in items:
            check, run = check_of(getattr(item, "function", None)), _run_of(item)
            if check is not None and isinstance(run, tuple):
                with contextlib.suppress(KitError):  # nothing to hold the checks against: the test itself will say so
                    coming.append(self.wanted(item.path, check, *run))
        if coming:
            self.launches.plan(coming)

    def close(self) -> None:
        if self._launches is not None:
            self._launches.close()
        if self._zygote is not None and not self._is_borrowed:
            self._zygote.close()
        self._zygote = None


# -- options, header, ends ----------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # `-p kit.grading.plugin` beside the installed entry point would register this module twice.
    for name in NAMES:
        if pluginmanager.get_plugin(name) is None:
            pluginmanager.set_blocked(name)
    group = parser.getgroup("shardkit", "multi-rank tests (shardkit)")
    group.addoption("--solution", metavar="FILE", help="file to hold against a question's checks")
    group.addoption("--shardkit-seed", metavar="N", type=int, help="seed of the inputs of a question's checks")
    group.addoption("--shardkit-transport", choices=TRANSPORTS, default="both", help="where a question's checks run")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if SESSION in config.stash:
        return
    given = getattr(config, "workerinput", {}).get("shardkit_seed", config.getoption("--shardkit-seed"))
    solution = config.getoption("--solution")
    config.stash[SESSION] = Session(
        given if given is not None else secrets.randbelow(MAX_SEED),
        config.getoption("--shardkit-transport"),
        config.invocation_params.dir / solution if solution else None,
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.close()


def pytest_report_header(config: pytest.Config) -> str:
    return f"shardkit: seed {config.stash[SESSION].seed} (the same inputs again: --shardkit-seed N)"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: every worker draws the same inputs."""
    node.workerinput["shardkit_seed"] = node.config.stash[SESSION].seed


# -- which tests at which sizes -----------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    check = check_of(metafunc.function)
    if check is not None and "run" in metafunc.fixturenames:
        runs = check.scenario.runs(check, metafunc.config.stash[SESSION].transport)
        metafunc.parametrize("run", runs, indirect=True, ids=[_run_id(*one) for one in runs])
    elif "world" in metafunc.fixturenames and _is_ours(metafunc, "world"):
        worlds = _worlds(metafunc.definition)
        metafunc.parametrize("world", worlds, indirect=True, ids=[_run_id(size, way) for size, way, _ in worlds])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Checks on gloo come after the switchboard's of their file; what has no run on this transport is left out."""
    without = [item for item in items if _runs_nowhere(item)]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]
    files: dict[Path, int] = {}
    for item in items:
        files.setdefault(item.path, len(files))
    if any(_transport(item) == "gloo" for item in items):
        items.sort(key=lambda item: (files[item.path], _transport(item) == "gloo"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """The launches that are to come; not where pytest-xdist shares the tests out and each worker runs some of them."""
    ours = session.config.stash[SESSION]
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        ours.plan(session.items)


def _run_of(item: pytest.Item) -> Any:
    """(world size, transport) of a check, None for any other test."""
    if check_of(getattr(item, "function", None)) is None:
        return None
    return getattr(getattr(item, "callspec", None), "params", {}).get("run")


def _runs_nowhere(item: pytest.Item) -> bool:
    run = _run_of(item)
    return run is not None and not isinstance(run, tuple)


def _transport(item: pytest.Item) -> str:
    run = _run_of(item)
    return str(run[1]) if isinstance(run, tuple) else ""


def _run_id(world_size: int, transport: str) -> str:
    return str(world_size) if transport == "switchboard" else f"{world_size}-{transport}"


def _is_ours(metafunc: pytest.Metafunc, name: str) -> bool:
    """Whether the fixture of that name is this plugin's, and not one that a project calls the same."""
    found = getattr(metafunc, "_arg2fixturedefs", {}).get(name)
    return not found or found[-1].func.__module__ == __name__


def _worlds(item: pytest.Item) -> list[tuple[int, str, float]]:
    """(world size, transport, deadline) from the marker; two ranks on the switchboard without one."""
    marker = item.get_closest_marker("world_size")
    sizes = marker.args if marker else (2,)
    options = dict(marker.kwargs) if marker else {}
    given = options.pop("transport", "switchboard")
    deadline_s = options.pop("deadline_s", 30.0)
    ways = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    wrong = ""
    if not sizes or any(type(size) is not int or size < 1 for size in sizes):
        wrong = f"world sizes are whole numbers from 1 on, got {', '.join(map(repr, sizes)) or 'none'}"
    elif len(set(sizes)) < len(sizes):
        wrong = f"a world size is given twice: {', '.join(map(repr, sizes))}"
    elif options:
        wrong = f"unknown option {next(iter(options))!r}; there are transport and deadline_s"
    elif not ways or any(way not in TRANSPORTS[1:] for way in ways):
        wrong = f"transport={given!r}: there are {' and '.join(TRANSPORTS[1:])}"
    elif isinstance(deadline_s, bool) or not isinstance(deadline_s, (int, float)) or not deadline_s > 0:
        wrong = f"deadline_s={deadline_s!r} is not a positive number of seconds"
    if wrong:
        pytest.fail(f"{item.nodeid}: @pytest.mark.world_size: {wrong}", pytrace=False)
    return [(size, way, float(deadline_s)) for way in ways for size in sizes]


# -- fixtures -----------------------------------------------------------------------------------------------


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Ranks to run a function on: `world.run(function, inputs=None)`. See `@pytest.mark.world_size`."""
    from kit.world import World

    size, transport, deadline_s = getattr(request, "param", (2, "switchboard", 30.0))
    zygote = request.config.stash[SESSION].zygote()
    yield World(size, transport=transport, deadline_s=deadline_s, zygote=zygote)


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    """What the ranks did in this check's scenario. Skips when there was no launch to look at."""
    check = check_of(request.function)
    if check is None:
        pytest.fail("the fixture `run` belongs to functions marked with Scenario.check", pytrace=False)
    session = request.config.stash[SESSION]
    world_size, transport = request.param
    launch = session.launches.get(session.wanted(request.path, check, world_size, transport))
    request.node.stash[LAUNCH] = launch
    if launch.run is not None:
        return launch.run
    if launch.error is not None and check.is_completes:
        raise launch.error
    pytest.skip(f"not run: {launch.reason or 'the ranks did not finish'}")


# -- what is shown ------------------------------------------------------------------------------------------


class Diagnosed:
    """A failure that is told by its diagnosis alone, and not by frames of the kit."""

    def __init__(self, text: str, path: str, line: int) -> None:
        self.text = text
        self.reprcrash = _Crash(path, line, text.splitlines()[0])

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.reprcrash.path}:{self.reprcrash.lineno}"

    def toterminal(self, terminal: Any) -> None:
        for line in self.text.splitlines():
            terminal.line(f"E   {line}".rstrip(), red=True, bold=True)
        terminal.line("")
        terminal.line(f"{self.reprcrash.path}:{self.reprcrash.lineno}")


class _Crash:
    def __init__(self, path: str, lineno: int, message: str) -> None:
        self.path = path
        self.lineno = lineno
        self.message = message

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, (WorldError, CheckFailed)) and call.excinfo is not None and report.failed:
        is_launch = isinstance(error, WorldError)
        _note_failure(item, is_launch=is_launch)
        path, line = _test_line(item, call.excinfo)
        text = launch_failure(error) if isinstance(error, WorldError) else str(error)
        report.longrepr = Diagnosed(text, path, line)  # type: ignore[assignment]
        if isinstance(error, WorldError):
            report.sections += printed_by_ranks(error.stdout, error.stderr)
            report.when = "call"  # a failed launch is the test's failure, not an error of its set-up
    elif isinstance(error, NotMeasured) and report.failed and call.excinfo is not None:
        report.outcome = "skipped"
        report.longrepr = (*_test_line(item, call.excinfo), f"Skipped: not run: {error.message}")
    elif isinstance(error, KitError) and report.failed:
        report.longrepr = f"{error.message}\n{error.hint or ''}".rstrip()
    return report


def _note_failure(item: pytest.Item, *, is_launch: bool) -> None:
    check = check_of(getattr(item, "function", None))
    if check is not None and _transport(item) == "switchboard":
        session = item.config.stash[SESSION]
        session.launches.note_failure(
            session.subject(item.path), check.proof, is_launch=is_launch, world_size=_run_of(item)[0]
        )


def _test_line(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> tuple[str, int]:
    """The line of the test's own file that the failure came through."""
    try:
        shown = str(item.path.relative_to(item.config.invocation_params.dir))
    except ValueError:
        shown = str(item.path)
    for entry in reversed(excinfo.traceback):
        if Path(entry.path) == item.path:
            return shown, entry.lineno + 1
    return shown, (item.location[1] or 0) + 1
