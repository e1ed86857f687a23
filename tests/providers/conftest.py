"""The providers `openai` and `anthropic` through the router, against model servers that others wrote."""

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


def starting(directory: Path, provider: str) -> Start:
    """Starts a stack whose provider talks to a base URL."""

    @asynccontextmanager
    async def start(base_url: str, *, key: str = KEY, **options: float) -> AsyncIterator[ModelStack]:
        prefix = provider.upper()
        environ = {f"{prefix}_BASE_URL": base_url} | ({f"{prefix}_API_KEY": key} if key else {})
        parts = {f"with_{provider}": True}
        async with model_stack(directory, real_world(), environ, **parts, **options) as stack:
            yield stack

    return start


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return starting(tmp_path, "openai")


@pytest.fixture
def start_anthropic(tmp_path: Path) -> Start:
    return starting(tmp_path, "anthropic")


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
