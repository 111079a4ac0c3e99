"""One zygote for all tests of the world."""

from __future__ import annotations

import pytest

from kit.world import Zygote


@pytest.fixture(scope="session")
def zygote():
    with Zygote.execute() as shared:
        yield shared
