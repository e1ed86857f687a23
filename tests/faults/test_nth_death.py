"""Death at the n-th crash point of a whole turn, for every n there is (engineering notes 5, "n-th failure loop")."""

from __future__ import annotations

import pytest

from iii_testing.nth_failure import died_at

pytestmark = pytest.mark.anyio

STRIDE = 9
"""The quick suite dies at every ninth point; the long one at each."""


@pytest.mark.requirement("loop.faults.death")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_some_points_leaves_a_turn_that_finishes(tmp_path, stepwise):
    n = 5 if stepwise else 2
    while await died_at(n, tmp_path / str(n), stepwise=stepwise):
        n += STRIDE
    assert n > 100


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.faults.death")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_every_point_leaves_a_turn_that_finishes(tmp_path, stepwise):
    n = 1
    while await died_at(n, tmp_path / str(n), stepwise=stepwise):
        n += 1
    assert n > 100
