"""A router on the embedded engine, with a provider that plays what a test wants."""

import pytest

from iii_testing.model_stack import model_stack
from iii_testing.played import Played


@pytest.fixture
async def stack(tmp_path, world):
    async with model_stack(tmp_path, world) as running:
        yield running


@pytest.fixture
async def played(stack):
    return await Played(stack.engine.attach("provider-played")).register()
