"""The path in memory, grown by the loop's own writes: what the model is sent is what the store would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from iii_harness.decide.window import messages_of, window
from iii_harness.ports import Item
from iii_kit.bus import Bus, Call, Opts
from iii_testing.loop_bench import LoopBench, call, message, reply, steps, text

pytestmark = pytest.mark.anyio


class Watched:
    """Everything of `inner`; counts readings of paths, and after one of its sequences lets somebody else write."""

    def __init__(self, inner: Bus, bench: LoopBench, after: int | None) -> None:
        self._inner = inner
        self._bench = bench
        self._after = after
        self.sequences = 0
        self.readings = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def call(self, fn: str, data: Any, *, opts: Opts = Opts()) -> Any:
        self.readings += fn == "session::messages"
        return await self._inner.call(fn, data, opts=opts)

    async def sequence(self, calls: Sequence[Call]) -> list[Any]:
        answers = await self._inner.sequence(calls)
        self.sequences += 1
        if self.sequences == self._after:
            spoken = message(text("and another thing"), role="user")
            await self._bench.call("session::append", session_id="s", message=spoken)
        return answers


async def played(world, path, *, after: int | None = None, stepwise: bool = False) -> tuple[LoopBench, Watched]:
    """A turn with calls to its end, each request compared with what the store holds when it is made."""
    b = LoopBench(world, path, lambda _: reply(text("x")), stepwise=stepwise)
    watched: list[Watched] = []
    scripted = steps(
        reply(call("a", "demo::do", {"n": 1}), call("b", "demo::do", {"n": 2}), text("so")),
        reply(call("a", "demo::do", {"n": 3}), usage={"input": 3, "output": 4}),
        reply(text("end")),
    )

    def wrap(bus: Bus) -> Bus:
        watched.append(Watched(bus, b, after))
        return watched[0]  # type: ignore[return-value]

    async def model(request: dict[str, Any]) -> Any:
        turn_id, step = request["request_id"].rsplit(":", 1)
        own = f"e_{turn_id}_{step}_assistant"
        stored = [_item(row) for row in await b.path_of("s")]
        before = stored[: next(index for index, item in enumerate(stored) if item.entry_id == own)]
        record = await b.record("s")
        seen = window(before, own_reply=own, watermark=record.watermark_entry_id)
        assert request["messages"] == messages_of(seen.entries)
        return scripted(request)

    b.model = model
    b.wrap = wrap
    b.target("demo::do", lambda d: {"content": [text(str(d["n"]))], "n": d["n"]})
    await b.boot()
    try:
        await b.send("go", session_id="s")
        record = await b.over("s")
        assert record.status == "completed", record.result_error
    finally:
        await b.close()
    return b, watched[0]


def _item(row: dict[str, Any]) -> Item:
    custom = row.get("custom") or {}
    return Item(row["entry_id"], row.get("message"), custom.get("custom_type"), custom.get("data"))


@pytest.mark.requirement("loop.path.followed")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_a_turn_reads_its_path_once_and_knows_the_rest_from_its_own_writes(world, tmp_path, stepwise):
    b, watched = await played(world, tmp_path, stepwise=stepwise)
    assert len(b.requests) == 3
    assert watched.readings == 2, "the path at the beginning, and at the end whether somebody has spoken"


@pytest.mark.requirement("loop.path.missed")
@pytest.mark.parametrize("after", range(2, 9))
async def test_what_somebody_else_appends_at_any_moment_is_read_before_the_model_is_asked(world, tmp_path, after):
    b, watched = await played(world, tmp_path, after=after)
    assert watched.sequences >= after, "the turn has as many writes"
    told = [m for m in b.requests[-1]["messages"] if m["content"] == [text("and another thing")]]
    assert len(told) == 1
