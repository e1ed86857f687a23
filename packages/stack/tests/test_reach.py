"""Where a command looks for the bus, and what it says when a call fails."""

from __future__ import annotations

import pytest

from iii_kit.errors import BusError
from iii_stack.errors import StackError, of_bus
from iii_stack.reach import Reach


@pytest.mark.requirement("stack.reach.url")
@pytest.mark.parametrize("url", ["garbage", "http://127.0.0.1:49134", "ws://", "127.0.0.1:49134"])
def test_what_is_no_url_of_a_bus_is_refused_at_once(url: str) -> None:
    with pytest.raises(StackError, match="not the URL of a bus") as refused:
        Reach(bus=url).url()
    assert "ws://" in refused.value.text


@pytest.mark.requirement("stack.reach.url")
@pytest.mark.parametrize("url", ["ws://127.0.0.1:1", "wss://bus.example/x?token=1", " ws://[::1]:49134 "])
def test_the_url_of_a_bus_is_taken_as_it_is(url: str) -> None:
    assert Reach(bus=url).url() == url.strip()


@pytest.mark.requirement("stack.errors.function")
def test_a_missing_function_comes_with_the_way_to_list_functions() -> None:
    error = of_bus(BusError("function_not_found", "Function nope::nope not found in namespace default."))
    assert "engine::functions::list" in error.text
    assert of_bus(BusError("TIMEOUT", "invocation timed out after 5ms")).hint is None
