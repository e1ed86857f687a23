"""The provider `openai` through the router, against model servers that others wrote."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from iii_kit.world import real_world
from iii_testing.model_servers import ModelServer, aimock_server, llama, llmock_process
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


@pytest.fixture(scope="session")
def aimock_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    with aimock_server(tmp_path_factory.mktemp("aimock")) as server:
        yield server


@pytest.fixture
def aimock(aimock_process: ModelServer) -> Callable[..., AbstractContextManager[ModelServer]]:
    """Gives the server other fixtures."""

    @contextmanager
    def with_fixtures(*fixtures: dict[str, Any]) -> Iterator[ModelServer]:
        aimock_process.ask("/__aimock/reset", {})
        aimock_process.ask("/__aimock/fixtures", {"fixtures": list(fixtures)})
        yield aimock_process

    return with_fixtures
