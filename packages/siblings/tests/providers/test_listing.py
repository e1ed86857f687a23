"""Listings of one provider: one at a time, shared by those who ask, none that is needless (siblings 6)."""

from __future__ import annotations

import asyncio

import pytest

from iii_kit.world import real_world
from iii_siblings.providers.discovery import Discovery, Source
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.link import Secret
from iii_siblings.providers.openai.endpoint import endpoint

pytestmark = pytest.mark.anyio
ONE = [{"id": "m"}]


class Told:
    """What the router was told."""

    provider = "openai"

    def __init__(self) -> None:
        self.models: list[list] = []
        self.statuses: list[dict] = []

    async def reconcile(self, models) -> int:
        self.models.append(models)
        return len(models)

    async def status(self, **report) -> None:
        self.statuses.append(report)


class Server:
    """A server whose answers are let out by hand."""

    def __init__(self) -> None:
        self.asked = 0
        self.most = self._running = 0
        self.answers: asyncio.Queue = asyncio.Queue()
        self.began = asyncio.Event()

    async def models(self, _, __) -> list[dict]:
        self.asked += 1
        self._running += 1
        self.most = max(self.most, self._running)
        self.began.set()
        try:
            answer = await self.answers.get()
        finally:
            self._running -= 1
        if isinstance(answer, UpstreamFailure):
            raise answer
        return answer


class Bench:
    def __init__(self) -> None:
        self.told, self.server = Told(), Server()
        self.source = Source(endpoint("http://127.0.0.1:9/v1"), Secret(""))
        self.discovery = Discovery(self.told, real_world().clock, self._source, self.server.models)

    async def _source(self):
        return self.source


@pytest.fixture
async def bench():
    made = Bench()
    yield made
    await made.discovery.drain()


@pytest.mark.requirement("providers.discovery.one")
async def test_whoever_asks_while_a_listing_runs_shares_the_one_after_it(bench):
    begun = asyncio.create_task(bench.discovery.begin())
    await bench.server.began.wait()
    askers = [asyncio.create_task(bench.discovery.asked()) for _ in range(5)]
    bench.server.answers.put_nowait(ONE)
    await begun
    bench.server.answers.put_nowait([*ONE, *ONE])
    assert await asyncio.gather(*askers) == [2] * 5
    assert (bench.server.asked, bench.server.most) == (2, 1)


@pytest.mark.requirement("providers.discovery.one")
async def test_a_failure_belongs_to_the_listing_that_met_it(bench):
    begun = asyncio.create_task(bench.discovery.begin())
    await bench.server.began.wait()
    asked = asyncio.create_task(bench.discovery.asked())
    bench.server.answers.put_nowait(ONE)
    bench.server.answers.put_nowait(UpstreamFailure("transient", "away"))
    await begun
    with pytest.raises(UpstreamFailure):
        await asked
    assert bench.told.models == [ONE]
    assert bench.told.statuses[-1]["catalog_state"] == "error"


@pytest.mark.requirement("providers.discovery.needless")
async def test_a_greeting_is_answered_with_what_is_known(bench):
    bench.server.answers.put_nowait(ONE)
    await bench.discovery.begin()
    await bench.discovery.begin()
    assert bench.server.asked == 1
    assert bench.told.models == [ONE, ONE]


@pytest.mark.requirement("providers.discovery.needless")
async def test_another_key_or_endpoint_is_asked_anew(bench):
    bench.server.answers.put_nowait(ONE)
    await bench.discovery.begin()
    bench.source = Source(bench.source.endpoint, Secret("another"))
    bench.server.answers.put_nowait([])
    await bench.discovery.begin()
    assert bench.server.asked == 2
    assert bench.told.models == [ONE, []]


@pytest.mark.requirement("providers.discovery.one")
async def test_an_asker_who_leaves_takes_nothing_from_the_others(bench):
    leaver, stayer = (asyncio.create_task(bench.discovery.asked()) for _ in range(2))
    await bench.server.began.wait()
    leaver.cancel()
    bench.server.answers.put_nowait(ONE)
    assert await stayer == 1
    assert bench.server.asked == 1
