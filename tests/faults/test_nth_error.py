"""The n-th outgoing operation of the harness fails, for every n of a whole turn (engineering notes 5)."""

from __future__ import annotations

import pytest

from iii_testing.nth_failure import failed_at

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.faults.error")
@pytest.mark.parametrize("flavour", ["refused", "lost"])
async def test_any_failing_operation_leaves_a_turn_that_ends(tmp_path, flavour):
    n = 1
    while await failed_at(n, tmp_path / str(n), flavour=flavour):
        n += 1
    assert n > 30
