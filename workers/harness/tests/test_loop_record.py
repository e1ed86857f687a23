"""The turn record and its store (harness-loop 4, 5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iii_harness.record import SCHEMA, Checkpoint, Generation, from_row, to_row
from iii_harness.turn_store import INLINE_PROMPT, PROMPTS, TURNS, TurnStore, values
from iii_kit.bus import Opts
from iii_kit.errors import BusError, CodedError
from iii_testing.embedded import embedded
from iii_testing.loop_values import a_record

pytestmark = pytest.mark.anyio

LONG = "p" * (INLINE_PROMPT + 1)

records = st.builds(
    lambda status, step, calls, result, prompt: a_record(
        status=status, step=step, calls=calls, result=result, options={"system_prompt": prompt}
    ),
    st.sampled_from(["running", "awaiting_functions", "completed", "cancelled", "failed"]),
    st.integers(0, 2**63),
    st.dictionaries(
        st.text(max_size=5), st.builds(Checkpoint, state=st.sampled_from(["triggered", "pending", "done"]))
    ),
    st.none() | st.text() | st.lists(st.integers(), max_size=2),
    st.none() | st.text(max_size=9),
)


@pytest.mark.requirement("loop.record.rows")
@given(records)
def test_a_record_survives_its_row(record):
    row = to_row(record)
    assert row["schema"] == SCHEMA
    assert from_row(row) == record


@pytest.mark.requirement("loop.record.version")
def test_a_newer_row_is_refused_with_a_clear_text():
    with pytest.raises(CodedError, match=rf"schema version {SCHEMA + 1}.*newer worker") as error:
        from_row({**to_row(a_record()), "schema": SCHEMA + 1})
    assert error.value.code == "harness/state"


@pytest.mark.requirement("loop.record.rows")
def test_rows_of_old_workers_keep_loading():
    row = {**to_row(a_record()), "calls": {"c": {"state": "dispatched", "unknown": 1}}, "unknown": True}
    del row["schema"]
    assert from_row(row).calls == {"c": Checkpoint(state="triggered")}
    with pytest.raises(CodedError, match="cannot be read"):
        from_row({"turn_id": 3})


class Stores:
    def __init__(self, bus: Any, clock: Any) -> None:
        self.bus = bus
        self.clock = clock

    def fresh(self) -> TurnStore:
        return TurnStore(self.bus, self.clock, Opts)

    async def rows(self, scope: str) -> list[Any]:
        return await self.bus.call("state::list", {"scope": scope})


@pytest.fixture
async def stores(world):
    async with embedded(world) as stack:
        yield Stores(stack.attach("harness"), world.clock)


@pytest.mark.requirement("loop.record.prompt")
async def test_a_long_prompt_is_stored_once_and_joined_on_load(stores):
    store = stores.fresh()
    for n in range(3):
        record = a_record(session_id=f"s{n}", options={"system_prompt": LONG})
        await store.save(record)
        await store.save(replace(record, step=1, generated=Generation(step=0, stop_reason="end")))
    assert len(await stores.rows(PROMPTS)) == 1
    assert all("system_prompt" not in row["options"] for row in await stores.rows(TURNS))
    loaded = await stores.fresh().load("s1")
    assert loaded is not None and (loaded.options.system_prompt, loaded.step) == (LONG, 1)


@pytest.mark.requirement("loop.record.prompt")
async def test_a_prompt_that_nobody_uses_is_collected(stores):
    store = stores.fresh()
    await store.save(a_record(options={"system_prompt": LONG}))
    later = stores.fresh()
    assert await later.collect_prompts() == 0, "a turn uses it"
    await store.delete("s")
    assert await store.collect_prompts() == 0, "what this process wrote may be written again without its body"
    assert await later.collect_prompts() == 1
    assert await stores.rows(PROMPTS) == []


@pytest.mark.requirement("loop.record.cache")
async def test_live_records_are_read_once_per_connection(stores):
    store = stores.fresh()
    await store.save(a_record())
    await stores.bus.call("state::set", {"scope": TURNS, "key": "s", "value": to_row(a_record(step=5))})
    cached = await store.load("s")
    assert cached is not None and cached.step == 0
    store.renewed()
    anew = await store.load("s")
    assert anew is not None and anew.step == 5


@pytest.mark.requirement("loop.record.timeout")
async def test_a_timed_out_write_is_tried_once_more_and_a_failed_one_is_forgotten(stores, world):
    class Flaky:
        tries = 0

        async def sequence(self, calls):
            self.tries += 1
            raise BusError("TIMEOUT", "no answer")

    flaky = Flaky()
    store = TurnStore(flaky, world.clock, Opts)  # type: ignore[arg-type]
    saving = asyncio.ensure_future(store.save(a_record()))
    await world.advance(1)
    with pytest.raises(CodedError, match="harness/state"):
        await saving
    assert flaky.tries == 2


@pytest.mark.requirement("loop.record.list")
@pytest.mark.parametrize("answer", [[1], {"values": [1]}, {"items": [1]}, {"k": 1}])
def test_every_form_of_a_list_is_read(answer):
    assert values(answer) == [1]
