"""Fixtures that every test may use: asyncio as the one event loop, a world under control."""

from __future__ import annotations

import pytest

from iii_testing.world import ManualWorld, manual_world


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def world() -> ManualWorld:
    return manual_world()
