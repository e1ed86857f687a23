"""The namespaces of the harness's own state and queue calls (harness-loop 1)."""

from __future__ import annotations

from typing import Any

import pytest

from iii_harness.assembly import Assembled
from iii_harness.providers import Providers
from iii_kit.errors import BusError
from iii_kit.world import real_world
from iii_testing.loop_values import a_record

pytestmark = pytest.mark.anyio


class Registry:
    """Answers `engine::functions::info` from a set of `(namespace, id)`."""

    def __init__(self, *served: tuple[str, str]) -> None:
        self.served = set(served)
        self.asked = 0

    async def call(self, fn: str, data: dict[str, Any], **_: Any) -> Any:
        assert fn == "engine::functions::info"
        self.asked += 1
        if (data["namespace"], data["function_id"]) not in self.served:
            raise BusError("NOT_FOUND", "no such function")
        return {"function_id": data["function_id"]}


async def fixed(own: str | None, *served: tuple[str, str]) -> tuple[str | None, str | None]:
    providers = Providers(Registry(*served), own)  # type: ignore[arg-type]
    await providers.fix()
    return providers.state, providers.queue


@pytest.mark.requirement("entry.app.namespaces")
async def test_each_family_is_called_in_the_own_namespace_when_somebody_serves_it_there_else_in_default():
    both = (("team", "state::get"), ("team", "queue::define"))
    assert await fixed("team", *both) == ("team", "team")
    assert await fixed("team", both[0]) == ("team", "default")
    assert await fixed("team", ("other", "state::get")) == ("default", "default")


@pytest.mark.requirement("entry.app.namespaces")
@pytest.mark.parametrize("own", [None, "", "default"])
async def test_a_worker_without_a_namespace_asks_nobody(own):
    registry = Registry()
    await Providers(registry, own).fix()  # type: ignore[arg-type]
    assert registry.asked == 0
    assert await fixed(own) == (None, None)


@pytest.mark.requirement("entry.app.namespaces")
async def test_the_choice_is_made_once():
    registry = Registry()
    providers = Providers(registry, "team")  # type: ignore[arg-type]
    await providers.fix()
    registry.served.add(("team", "state::get"))
    await providers.fix()
    assert providers.state == "default"


@pytest.mark.requirement("entry.app.namespaces")
async def test_every_state_call_of_the_harness_goes_there_hidden_from_traces_and_no_session_call_does():
    registry = Registry(("team", "state::get"))
    registry.provide = lambda *_: None  # type: ignore[attr-defined]
    parts = Assembled(registry, real_world(), None, "team")  # type: ignore[arg-type]
    await parts.providers.fix()
    for call in (parts.idem.drop("k"), *parts.turns.writes(a_record()), parts.queue._rows.drop("k")):
        assert (call.opts.namespace, call.opts.hidden) == ("team", "harness state")
    assert (parts.opts().namespace, parts.opts().hidden) == (None, None)
