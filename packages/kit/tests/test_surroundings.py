"""Bindings, trace context and logs."""

from __future__ import annotations

import io
import json
import logging

import pytest
from opentelemetry import baggage, trace

from iii_contracts.model import Closed
from iii_contracts.spec import TriggerSpec
from iii_kit import logs
from iii_kit.bindings import Bindings
from iii_kit.bus import Binding
from iii_kit.errors import BusError
from iii_kit.trace import NOTHING, Carrier, carrier, received, tagged, with_baggage_of

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Filter(Closed):
    """The config of a binding."""

    session_id: str | None = None


SPEC = TriggerSpec("demo::happened", "Something happened.", Filter, None)


@pytest.mark.requirement("kit.bindings")
async def test_bindings_replace_by_id_forget_at_a_renewal_and_ignore_unknown_ids() -> None:
    accepted: list[str] = []
    bindings = Bindings(SPEC, lambda bound: accepted.append(bound.binding.function_id))
    await bindings.bound(Binding("1", "demo::a", None))
    await bindings.bound(Binding("1", "demo::b", {"session_id": "s"}))
    await bindings.unbound("unknown")
    assert [bound.binding.function_id for bound in bindings] == ["demo::b"]
    assert accepted == ["demo::a", "demo::b"]
    with pytest.raises(BusError, match="unknown field `other`") as refused:
        await bindings.bound(Binding("2", "demo::c", {"other": 1}))
    assert refused.value.code == "trigger_registration_failed"
    bindings.renewed()
    assert len(bindings) == 0


@pytest.mark.requirement("kit.bindings")
async def test_an_event_goes_to_every_match_with_its_metadata_and_namespace() -> None:
    bindings = Bindings(SPEC)
    await bindings.bound(Binding("1", "demo::a", {"session_id": "s"}, {"m": 1}, "elsewhere"))
    await bindings.bound(Binding("2", "demo::b", {"session_id": "t"}))
    (call,) = bindings.fire({"n": 1}, lambda config: config.session_id == "s")
    assert (call.fn, call.data, call.kind) == ("demo::a", {"n": 1}, "void")
    assert (call.opts.metadata, call.opts.namespace) == ({"m": 1}, "elsewhere")
    assert [call.opts.namespace for call in bindings.fire({})] == ["elsewhere", "default"]


@pytest.mark.requirement("kit.trace")
def test_what_was_received_is_what_is_sent_and_nothing_else() -> None:
    assert carrier() is NOTHING
    with received(Carrier(PARENT, "a=1,b=two%20words")):
        sent = carrier()
        assert sent.traceparent == PARENT
        assert baggage.get_all() == {"a": "1", "b": "two words"}
        with received(Carrier(None, "c=3")):
            assert not trace.get_current_span().get_span_context().is_valid
            assert baggage.get_all() == {"c": "3"}
        with received(NOTHING):
            assert carrier() == NOTHING
        with tagged({"b": "other"}), with_baggage_of("d=4"):
            assert baggage.get_all() == {"a": "1", "b": "other", "d": "4"}
            assert carrier().traceparent == PARENT
        assert baggage.get_all() == {"a": "1", "b": "two words"}
    with received(Carrier("nonsense", "")):
        assert carrier() == NOTHING
    assert carrier() is NOTHING


@pytest.mark.requirement("kit.logs")
def test_a_log_line_is_json_and_says_what_it_is_about() -> None:
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    out = io.StringIO()
    try:
        logs.configure("info", out)
        with logs.about(session="s1", turn="t1"), received(Carrier(PARENT)):
            logs.logger("demo").info("turn_started", n=1)
            logging.getLogger("websockets").warning("slow %s", "peer")
            logs.logger("demo").debug("unseen")
            try:
                raise ValueError("why")
            except ValueError:
                logs.logger("demo").exception("failed")
    finally:
        root.handlers[:] = before
        root.setLevel(logging.WARNING)
        logs._quiet()
    own, foreign, failed = [json.loads(line) for line in out.getvalue().splitlines()]
    assert own["event"] == "turn_started"
    assert (own["session"], own["turn"], own["n"], own["level"]) == ("s1", "t1", 1, "info")
    assert own["trace"] == PARENT.split("-")[1]
    assert (foreign["event"], foreign["logger"], foreign["session"]) == ("slow peer", "websockets", "s1")
    assert "ValueError: why" in failed["exception"]
