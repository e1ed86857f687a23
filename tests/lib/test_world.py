import asyncio
from enum import auto

import pytest

from iii_kit.world import Point
from iii_testing.world import Crash, manual_world


class Stop(Point):
    A = auto()
    B = auto()


async def test_sleepers_wake_in_order_and_see_their_own_time() -> None:
    world = manual_world(start_ms=1000)
    woken: list[tuple[str, int]] = []

    async def sleep(name: str, *spans: float) -> None:
        for span in spans:
            await world.clock.sleep(span)
            woken.append((name, world.clock.now_ms()))

    tasks = [asyncio.create_task(sleep("a", 1, 1)), asyncio.create_task(sleep("b", 1.5))]
    await world.advance(3)
    assert woken == [("a", 2000), ("b", 2500), ("a", 3000)]
    assert world.clock.now_ms() == 4000
    await asyncio.gather(*tasks)


def test_ids_follow_the_seed_and_points_crash_where_told() -> None:
    one, same, other = manual_world(seed=1), manual_world(seed=1), manual_world(seed=2)
    assert one.ids.uuid() == same.ids.uuid() != other.ids.uuid()
    one.points.crash_at(2, Stop.B)
    for point in (Stop.A, Stop.B, Stop.A):
        one.reach(point)
    with pytest.raises(Crash):
        one.reach(Stop.B)
    assert one.points.reached[Stop.A] == 2
