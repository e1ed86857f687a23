"""What first calls would build is built before them (engineering notes 6)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from iii_contracts.model import Wire
from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Invocation
from iii_testing.embedded import embedded

pytestmark = pytest.mark.anyio


class Greeting(Wire):
    """Of nobody else, so that nobody else has built it."""

    name: str


@pytest.mark.requirement("engine.warm_up")
async def test_after_the_warm_up_no_call_builds_a_validator(monkeypatch: pytest.MonkeyPatch) -> None:
    async def greet(request: Greeting, _: Invocation) -> str:
        return f"Hello {request.name}"

    async with embedded() as running:
        bus = running.attach("greeter")
        bus.serve(FunctionSpec("greeter::greet", "Greets.", Greeting, None, "invalid"), greet)
        await running.engine.warm_up()
        monkeypatch.setattr(TypeAdapter, "__init__", _refuse)
        assert await bus.call("greeter::greet", {"name": "Ada"}) == "Hello Ada"


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("a validator was built")
