"""The provider `openai` through the router, against model servers that others wrote."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from iii_kit.world import real_world
from iii_testing.model_servers import aimock_server, llama, llmock_process
from iii_testing.model_stack import ModelStack, model_stack

__all__ = ["llama", "llmock_process"]

KEY = "sk-for-tests-only"
Start = Callable[..., AbstractAsyncContextManager[ModelStack]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a stack whose provider talks to a base URL."""

    @asynccontextmanager
    async def starting(base_url: str, *, key: str = KEY, **options: float) -> AsyncIterator[ModelStack]:
        environ = {"OPENAI_BASE_URL": base_url} | ({"OPENAI_API_KEY": key} if key else {})
        async with model_stack(tmp_path, real_world(), environ, with_openai=True, **options) as stack:
            yield stack

    return starting


@pytest.fixture
def aimock(tmp_path: Path):
    """Starts aimock with fixtures."""
    return lambda *fixtures: aimock_server(tmp_path, fixtures)
