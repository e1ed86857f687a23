"""What a step offers the model is that of the step before, until something that it is made of changed."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from iii_harness.catalog import Descriptor, Snapshot
from iii_harness.ports import Item
from iii_harness.record import Options
from iii_harness.shell.offers import offer_of
from iii_harness.shell.paths import Path
from iii_harness.surfaces import StepSurfaces
from iii_testing.loop_values import a_record

pytestmark = pytest.mark.anyio

SPOKEN = Item("e_1", message={"role": "user", "content": []})
REPLIED = Item("e_2", message={"role": "assistant", "content": []})
FROZEN = Item("e_t_0_runtime_context", custom_type="runtime_context", data={"aid": "Frozen."})


class Desk:
    """A registry and a switch that change."""

    def __init__(self) -> None:
        self.snapshot = Snapshot({"a::b": Descriptor("a::b", "Does it.", {})}, known=True)
        self.sections = True
        self.surfaces = StepSurfaces(lambda: self.snapshot, lambda: self.sections, self._settled)

    async def _settled(self) -> None:
        """Read."""


@pytest.mark.requirement("prompt.offer.kept")
async def test_an_offer_is_kept_while_messages_alone_are_added_and_equals_one_made_anew() -> None:
    desk, record, path = Desk(), a_record(), Path([SPOKEN, FROZEN], followed=True)
    first = await offer_of(desk.surfaces, record, path)
    path.grow([REPLIED])
    assert await offer_of(desk.surfaces, replace(record, step=1, updated_at=9), path) is first
    assert first.request["system_prompt"] == "Frozen."


@pytest.mark.requirement("prompt.offer.kept")
@pytest.mark.parametrize("what", ["options", "acknowledged", "registry", "switch", "custom"])
async def test_an_offer_is_made_anew_when_something_that_it_is_made_of_changed(what: str) -> None:
    desk, record, path = Desk(), a_record(options={"system_prompt": "I am."}), Path([SPOKEN, FROZEN], followed=True)
    first = await offer_of(desk.surfaces, record, path)
    if what == "options":
        record = replace(record, options=Options(model="other"))
    elif what == "acknowledged":
        record = replace(record, functions_acknowledged=["gone"])
    elif what == "registry":
        desk.snapshot = changed(desk.snapshot, functions={"a::c": Descriptor("a::c", None, {})}, permitted={})
    elif what == "switch":
        desk.sections = False
    else:
        data = {"kind": "runtime-context", "text": "Later.", "message": {}}
        path.grow([Item("e_t_1_notice_0", custom_type="model_notice", data=data)])
    offer = await offer_of(desk.surfaces, record, path)
    anew = await offer_of(desk.surfaces, record, Path(list(path), followed=True))
    assert offer is not first
    assert (offer.request, offer.surface.notices, offer.surface.acknowledged) == (
        anew.request,
        anew.surface.notices,
        anew.surface.acknowledged,
    )
