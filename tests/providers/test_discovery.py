"""Where key, base URL and models come from, at start and while running (siblings 6, 8)."""

from __future__ import annotations

import pytest

from iii_kit.errors import BusError
from iii_kit.world import real_world
from iii_testing.model_stack import model_stack
from iii_testing.waiting import until_async

pytestmark = pytest.mark.anyio


async def offered(stack) -> dict[str, list[str]]:
    """Model ids by provider."""
    found: dict[str, list[str]] = {}
    for model in (await stack.bus.call("router::models::list", {}))["models"]:
        found.setdefault(model["provider"], []).append(model["id"])
    return found


async def row(stack) -> dict:
    rows = (await stack.bus.call("router::provider::list", {}))["providers"]
    return next(row for row in rows if row["id"] == "openai")


async def configure(stack, **openai) -> None:
    await stack.bus.call("configuration::set", {"id": "llm-router", "value": {"providers": {"openai": openai}}})


@pytest.mark.requirement("providers.openai.not_configured")
async def test_without_key_and_url_nothing_is_offered_but_the_demo(tmp_path):
    async with model_stack(tmp_path, real_world(), {}, with_openai=True) as stack:
        assert await offered(stack) == {"scripted": ["demo"]}
        assert (await row(stack))["configured"] is False
        got = await stack.chat(provider="openai", model="gpt-5.2")
        assert got.error.matches("router/not_configured")
        assert "OPENAI_API_KEY" in got.error.message
        direct = await stack.chat(fn="provider::openai::stream", model="gpt-5.2")
        assert direct.last["error_message"] == (
            "provider openai not configured (no api_key in the llm-router entry and OPENAI_API_KEY unset)"
        )


@pytest.mark.requirement("providers.openai.configured_while_running")
async def test_a_base_url_set_while_running_is_taken_at_once(tmp_path, llmock_process):
    llmock_process.ask("/_llmock/reset", {})
    async with model_stack(tmp_path, real_world(), {}, with_openai=True) as stack:
        await configure(stack, api_url=llmock_process.base_url)

        async def taken() -> bool:
            found = await offered(stack)
            return "gpt-4o" in found.get("openai", []) and "scripted" not in found

        await until_async(taken)
        assert (await row(stack))["configured"] is True
        assert (await stack.chat(provider="openai", model="gpt-4o")).response["ok"]
        await configure(stack)

        async def withdrawn() -> bool:
            return await offered(stack) == {"scripted": ["demo"]}

        await until_async(withdrawn)


@pytest.mark.requirement("providers.openai.refresh")
async def test_a_refresh_tells_what_the_server_lists_and_keeps_the_models_when_it_is_away(tmp_path, llmock_process):
    llmock_process.ask("/_llmock/reset", {})
    environ = {"OPENAI_BASE_URL": llmock_process.base_url}
    async with model_stack(tmp_path, real_world(), environ, with_openai=True) as stack:
        answer = await stack.bus.call("provider::openai::refresh_models", {})
        before = (await offered(stack))["openai"]
        assert answer == {"ok": True, "count": len(before)}
        down = {"type": "fail", "status": 503, "times": 1000}
        llmock_process.ask("/_llmock/scenario", {"behaviors": [down]})
        with pytest.raises(BusError) as caught:
            await stack.bus.call("provider::openai::refresh_models", {})
        assert caught.value.matches("provider/upstream_unavailable")
        assert (await offered(stack))["openai"] == before
        llmock_process.ask("/_llmock/reset", {})
        llmock_process.ask("/_llmock/scenario", {"behaviors": [{**down, "status": 401}]})
        assert await stack.bus.call("provider::openai::refresh_models", {}) == {"ok": True, "count": 0}
        diagnostic = (await row(stack))["diagnostic"]
        assert (diagnostic["catalog_state"], diagnostic["last_failure"]["kind"]) == ("empty", "auth_expired")


@pytest.mark.requirement("providers.openai.not_configured")
async def test_a_base_url_that_is_none_is_refused_in_words(tmp_path):
    async with model_stack(tmp_path, real_world(), {"OPENAI_BASE_URL": "localhost:8080"}, with_openai=True) as stack:
        got = await stack.chat(fn="provider::openai::stream", model="m")
        assert got.last["error_message"] == "the base URL of provider openai is not an http or https URL"
