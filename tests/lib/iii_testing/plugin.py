"""Fixtures that every test may use: asyncio as the one event loop, a world under control."""

from __future__ import annotations

import pytest
from hypothesis import settings

from iii_testing.world import ManualWorld, manual_world

# A busy machine is no failure of an example.
settings.register_profile("workspace", deadline=None)
settings.load_profile("workspace")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def world() -> ManualWorld:
    return manual_world()
