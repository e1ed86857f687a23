"""Bad input to every function that the stack serves: the specified answer, naming the field; nothing is changed.

Cases come from the exported schema of each request: every field at every place, left out where it is required, and
with values of other kinds. What a contract accepts is not sent, since that would be a call.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from iii_kit.storage import Reader
from iii_kit.world import real_world
from iii_stack.compose import Stack, StackSettings
from iii_stack.data_directory import DataDirectory
from iii_testing.bad_requests import SPECS, served, wrong_answers

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    directory = DataDirectory(tmp_path)
    directory.open()
    made = Stack(real_world(), directory, StackSettings(port=0, without=frozenset({"page"})))
    await made.start()
    yield made
    await made.drain()


def everything(reader: Reader) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    tables = [name for (name,) in reader.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: reader.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in sorted(tables)}


@pytest.mark.requirement("prompt.contracts.sweep")
async def test_bad_input_to_every_function_names_its_field_and_changes_nothing(stack: Stack) -> None:
    caller = stack.engine.attach("bad-input")
    ids = await served(caller)
    for undeclared in (i for i in ids if i not in SPECS):
        described = await caller.call("engine::functions::info", {"function_id": undeclared})
        assert described.get("request_schema") is None, f"{undeclared} takes a request and is not declared"
    before = await stack.store.read(everything)
    sent, wrong = await wrong_answers(caller, ids)
    assert wrong == []
    assert sent > 20 * len(ids)
    assert await stack.store.read(everything) == before
