"""Walls and policy through a whole turn: the model is told, the target is never called, nothing leaks."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import iii_harness.app as harness
from iii_contracts.spec import FunctionSpec
from iii_siblings import router, sessions
from iii_siblings.providers import scripted
from iii_testing.embedded import Embedded, embedded
from iii_testing.waiting import until_async

pytestmark = pytest.mark.anyio
CALLED: list[Any] = []


async def called(request: Any, _: Any) -> dict[str, Any]:
    CALLED.append(request)
    return {"seen": request}


@pytest.fixture
async def stack() -> AsyncIterator[Embedded]:
    CALLED.clear()
    async with embedded(families=(sessions.FAMILY, router.FAMILY)) as running:
        parts = [
            sessions.install(running.attach("session-manager"), running.world),
            router.install(running.attach("llm-router"), running.world, running.store),
            scripted.install(running.attach("provider-scripted"), running.world),
            harness.install(running.attach("harness"), running.world),
        ]
        demo = running.attach("demo")
        demo.serve(FunctionSpec("demo::echo", "Says what it was told.", None, None, "invalid"), called)
        for part in parts:
            await part.ready()
        yield running
        for part in reversed(parts):
            await part.drain()


async def result_of(stack: Embedded, text: str, functions: dict[str, Any] | None) -> dict[str, Any]:
    """The result message of the one call that `text` makes the demo model ask for."""
    caller = stack.attach("caller")
    options = {} if functions is None else {"options": {"functions": functions}}
    sent = await caller.call("harness::send", {"message": text, "model": "demo", "provider": "scripted", **options})

    async def over() -> bool:
        report = await caller.call("harness::status", {"session_id": sent["session_id"]})
        assert report["status"] != "failed", report
        return report["status"] == "completed"

    await until_async(over, seconds=30)
    page = await caller.call("session::messages", {"session_id": sent["session_id"], "roles": ["function_result"]})
    (entry,) = page["messages"]
    return entry["message"]


@pytest.mark.requirement("prompt.walls.in_turn")
@pytest.mark.parametrize(
    ("call", "functions"),
    [
        ('call harness::send {"message": "again", "model": "demo"}', {"allow": ["*"]}),
        ('call harness::stop {"session_id": "x"}', {"allow": ["*"]}),
        ('call engine::register_trigger {"trigger_type": "cron"}', {"allow": ["*"]}),
        ('call state::get {"scope": "harness_turn", "key": "x"}', {"allow": ["*"]}),
        ("call demo::echo {}", {"allow": ["*"], "deny": ["demo::*"]}),
        ("call demo::echo {}", None),
    ],
)
async def test_a_denied_call_has_its_result_and_no_target(stack: Embedded, call: str, functions: Any) -> None:
    message = await result_of(stack, call, functions)
    assert message["is_error"] is True
    assert message["details"]["error"] == "policy_denied"
    assert message["details"]["function_id"] == message["function_id"] == call.split()[1]
    assert call.split()[1] in message["content"][0]["text"]
    assert CALLED == []


@pytest.mark.requirement("prompt.walls.in_turn")
async def test_a_models_filesystem_scope_does_not_reach_the_target(stack: Embedded) -> None:
    message = await result_of(stack, 'call demo::echo {"a": 1, "fs_scope": {"root": "/"}}', {"allow": ["demo::*"]})
    assert message["is_error"] is False
    (request,) = CALLED
    assert request["a"] == 1
    assert "fs_scope" not in request


@pytest.mark.requirement("prompt.discovery.list")
async def test_a_list_in_a_turn_shows_what_may_be_called(stack: Embedded) -> None:
    message = await result_of(
        stack, "call engine::functions::list {}", {"allow": ["demo::*", "engine::functions::list"]}
    )
    assert message["content"][0]["text"].count("function_id") == 1
    assert "demo::echo" in message["content"][0]["text"]
    assert len(message["details"]["functions"]) > 1
