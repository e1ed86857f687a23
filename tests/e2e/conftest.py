"""A running stack, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iii_testing.arrangements import Arrangement, arrangements
from iii_testing.processes import StackProcess


@pytest.fixture(scope="module", params=arrangements(Arrangement.TOGETHER))
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackProcess]:
    running = StackProcess(tmp_path_factory.mktemp("stack") / "data", arrangement=request.param)
    yield running
    running.end()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
