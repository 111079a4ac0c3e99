"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("shardkit", deadline=None)
settings.load_profile("shardkit")


@pytest.fixture(scope="session", autouse=True)
def _no_test_touches_the_user_s_progress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Also where a command runs outside of a test, in a fixture of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARDKIT_DATA", str(tmp_path_factory.mktemp("progress")))
        yield


@pytest.fixture(autouse=True)
def _each_test_has_its_own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDKIT_DATA", str(tmp_path / "progress"))
