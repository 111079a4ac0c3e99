"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("shardkit", deadline=None)
settings.load_profile("shardkit")


# For this run alone, not for a pytest that a test starts.
os.environ.pop("PYTEST_ADDOPTS", None)


@pytest.fixture(scope="session", autouse=True)
def _signals_end_what_a_test_starts() -> None:
    """Under nohup, or in the background of a shell, this process ignores them, and so would its children."""
    for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def _no_test_touches_the_user_s_progress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Also where a command runs outside of a test, in a fixture of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARDKIT_DATA", str(tmp_path_factory.mktemp("progress")))
        yield


@pytest.fixture(autouse=True)
def _each_test_has_its_own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDKIT_DATA", str(tmp_path / "progress"))
