"""Which model a chat talks to."""

from __future__ import annotations

from typing import Any

import pytest

from iii_stack.chat.models import ModelChoice, check_model, default_model, parse_model
from iii_stack.errors import StackError

pytestmark = [pytest.mark.requirement("stack.chat.model"), pytest.mark.anyio]


class Router:
    """The two answers of the router that are asked for."""

    def __init__(self, configured: dict[str, bool], models: list[tuple[str, str]]) -> None:
        self._configured = configured
        self._models = models

    async def call(self, fn: str, data: Any) -> Any:
        if fn == "router::provider::list":
            return {"providers": [{"id": each, "configured": yes} for each, yes in self._configured.items()]}
        assert fn == "router::models::list"
        return {"models": [{"provider": provider, "id": model} for provider, model in self._models]}


def test_a_model_is_split_at_the_first_slash() -> None:
    assert parse_model("openai/gpt-5/mini") == ModelChoice("openai", "gpt-5/mini")
    for bad in ("gpt", "/gpt", "openai/", ""):
        with pytest.raises(StackError, match="PROVIDER/MODEL"):
            parse_model(bad)


@pytest.mark.parametrize(
    ("configured", "models", "chosen"),
    [
        ({"openai": True, "scripted": True}, [("scripted", "demo"), ("openai", "m"), ("openai", "n")], ("openai", "m")),
        ({"openai": False, "scripted": True}, [("openai", "m"), ("scripted", "demo")], ("scripted", "demo")),
        ({}, [], ("scripted", "demo")),
    ],
)
async def test_the_first_configured_model_else_the_demonstration(configured: Any, models: Any, chosen: Any) -> None:
    assert await default_model(Router(configured, models)) == chosen  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (ModelChoice("nope", "m"), "no provider nope is registered; one of: my-llm, scripted"),
        (ModelChoice("my-llm", "m"), "provider my-llm has no key; set MY_LLM_API_KEY where the stack is started"),
        (ModelChoice("scripted", "not-in-the-list"), None),
    ],
)
async def test_a_model_that_cannot_answer_is_refused_before_there_is_a_session(
    choice: ModelChoice, told: str | None
) -> None:
    router: Any = Router({"my-llm": False, "scripted": True}, [("scripted", "demo")])
    if told is None:
        await check_model(router, choice)
        return
    with pytest.raises(StackError) as refused:
        await check_model(router, choice)
    assert refused.value.text.startswith(told)
