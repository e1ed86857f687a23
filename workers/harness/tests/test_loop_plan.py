"""Planning of calls: total over any content, ids unique within a turn (harness-loop 8.1)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_harness.decide import entry_ids, synthetic
from iii_harness.decide.plan import calls_of, plan, renamed

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["agent_trigger", "submit_result", "demo::add", ""]) | st.text(max_size=8)
ids = st.sampled_from(["c1", "c:1", "c_1", "", "error", "0_assistant", "max_turns", "c1_2"]) | st.text(max_size=6)
wrappers = st.fixed_dictionaries(
    {},
    optional={
        "function": json_values | st.just("demo::add"),
        "payload": json_values | st.just('{"a": 1} junk') | st.just('{"a": NaN}') | st.just("{" * 400),
        "description": json_values,
        "_partial": st.just(True),
        "_raw": st.text(max_size=4),
        "other": json_values,
    },
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["function_call", "text", "odd"])},
    optional={"id": ids | json_values, "function_id": names | json_values, "arguments": wrappers | json_values},
)
contents = st.lists(blocks | json_values, max_size=6) | json_values
exposures = st.sampled_from(["agent_trigger", "native"])


def block(name="agent_trigger", arguments=None, call_id="c1"):
    return {"type": "function_call", "id": call_id, "function_id": name, "arguments": arguments}


def planned(arguments, name="agent_trigger", expose="agent_trigger"):
    (made,) = plan([block(name, arguments)], expose=expose)
    return made


@pytest.mark.requirement("loop.plan.total")
@given(contents, exposures)
def test_any_content_has_a_plan_with_one_call_per_block(content, expose):
    assert len(plan(content, expose=expose)) == len(calls_of(content))


@pytest.mark.requirement("loop.plan.ids")
@given(st.lists(contents, max_size=4))
def test_ids_and_result_entries_of_a_turn_never_clash(replies):
    used: list[str] = []
    for step, content in enumerate(replies):
        fresh = [c["id"] for c in calls_of(renamed(content, step=step, used=used))]
        used += fresh
    entries = [entry_ids.result("t_1", call_id) for call_id in used]
    owned = {f"e_t_1_{step}_assistant" for step in range(4)} | {"e_t_1_error", "e_t_1_stopped", "e_t_1_max_turns"}
    assert len(set(used)) == len(used)
    assert len(set(entries)) == len(entries)
    assert not owned & set(entries)


@pytest.mark.requirement("loop.plan.ids")
def test_a_clash_is_renamed_by_step_and_then_counted():
    content = [block(call_id="c"), block(call_id="c"), block(call_id="d"), block(call_id="c")]
    assert [c["id"] for c in renamed(content, step=3, used=["d"])] == ["c", "c_3", "d_3", "c_3_2"]


@pytest.mark.requirement("loop.plan.ids")
def test_a_content_without_clash_is_left_as_it_is():
    content = [{"type": "text", "text": "x"}, block(call_id="c")]
    assert renamed(content, step=1, used=["b"]) == content


@pytest.mark.requirement("loop.plan.target")
@pytest.mark.parametrize(
    ("arguments", "name", "expose", "target", "payload"),
    [
        ({"function": "a::b", "payload": {"x": 1}}, "agent_trigger", "agent_trigger", "a::b", {"x": 1}),
        ({"function": "a::b", "payload": ' {"x": 1} junk'}, "agent_trigger", "agent_trigger", "a::b", {"x": 1}),
        ({"function": "a::b", "payload": "[1]"}, "agent_trigger", "agent_trigger", "a::b", "[1]"),
        ({"function": "a::b", "payload": '{"x": NaN}'}, "agent_trigger", "agent_trigger", "a::b", '{"x": NaN}'),
        ({"function": "a::b", "description": "why", "x": 1}, "agent_trigger", "agent_trigger", "a::b", {"x": 1}),
        ({"x": 1}, "a::b", "agent_trigger", "a::b", {"x": 1}),
        ({"description": "mine"}, "a::b", "agent_trigger", "a::b", {"description": "mine"}),
        ({"function": "c::d", "payload": {}}, "a::b", "agent_trigger", "c::d", {}),
        ({"function": "c::d", "payload": {}}, "a::b", "native", "a::b", {"function": "c::d", "payload": {}}),
        ({"function": "c::d", "payload": {}}, "agent_trigger", "native", "c::d", {}),
        ({"function": 3}, "agent_trigger", "agent_trigger", "agent_trigger", {}),
        ("junk", "agent_trigger", "agent_trigger", "agent_trigger", "junk"),
        (None, "a::b", "native", "a::b", None),
    ],
)
def test_target_and_payload(arguments, name, expose, target, payload):
    made = planned(arguments, name, expose)
    assert (made.target, made.arguments, made.kind) == (target, payload, "trigger")


@pytest.mark.requirement("loop.plan.markers")
def test_marks_of_truncation_survive_unwrapping():
    made = planned({"function": "a::b", "payload": {"x": 1}, "_partial": True, "_raw": "{"})
    assert made.arguments == {"x": 1, "_partial": True, "_raw": "{"}


@pytest.mark.requirement("loop.plan.intent")
def test_the_stated_intent_is_kept():
    assert planned({"function": "a::b", "description": "look", "payload": {}}).description == "look"


@pytest.mark.requirement("loop.plan.target")
@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_a_payload_as_text_is_read_like_the_object_itself(payload):
    try:
        text = json.dumps(payload)
    except ValueError:
        return
    assert planned({"function": "a::b", "payload": text}).arguments == json.loads(text)


@pytest.mark.requirement("loop.plan.surrogates")
def test_a_payload_text_with_a_lone_surrogate_stays_text_and_is_never_executed():
    text = '{"a":"\\ud800"}'
    (planned,) = plan([_wrapped(text)], expose="agent_trigger")
    assert planned.arguments == text
    assert synthetic.is_truncated(planned.arguments)


def _wrapped(payload: str) -> dict[str, object]:
    arguments = {"function": "demo::do", "payload": payload}
    return {"type": "function_call", "id": "c", "function_id": "agent_trigger", "arguments": arguments}
