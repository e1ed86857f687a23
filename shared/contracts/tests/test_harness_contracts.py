"""The harness's contracts: described throughout, strict, and as the specification lists them."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft7Validator

from iii_contracts import harness
from iii_contracts.harness import codes
from iii_contracts.harness.configuration import entry_schema
from iii_contracts.harness.metrics import METRICS
from iii_contracts.harness.send import SEND
from iii_contracts.harness.status import STATUS
from iii_contracts.spec import FunctionSpec

PUBLIC = {"harness::status", "harness::metrics", "harness::session-tree"}
BY_ID = {spec.id: spec for spec in harness.FUNCTIONS}


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    for spec in harness.FUNCTIONS:
        yield f"{spec.id} request", spec.request_schema or {}
        yield f"{spec.id} response", spec.response_schema or {}
    for spec in harness.TRIGGERS:
        yield f"{spec.id} config", spec.config_schema
        yield f"{spec.id} payload", spec.payload_schema or {}
    yield "configuration", entry_schema()


@pytest.mark.requirement("prompt.contracts.metadata")
def test_what_discovery_hides() -> None:
    assert {spec.id for spec in harness.FUNCTIONS if not spec.metadata} == PUBLIC
    for spec in harness.FUNCTIONS:
        if spec.id not in PUBLIC:
            hidden = spec.id == "harness::turn"
            assert spec.metadata == ({"internal": True, "trace_hidden": True} if hidden else {"internal": True})


@pytest.mark.requirement("prompt.contracts.declared")
@pytest.mark.parametrize(("name", "schema"), list(schemas()))
def test_every_schema_is_valid_and_described(name: str, schema: dict[str, Any]) -> None:
    Draft7Validator.check_schema(schema)
    for definition in [schema, *schema.get("definitions", {}).values()]:
        for field, inner in definition.get("properties", {}).items():
            if "Block" not in str(definition.get("description")) and field not in ("role", "type"):
                assert "description" in inner or _message(definition), f"{name}: {field}"


def _message(definition: dict[str, Any]) -> bool:
    """Messages, blocks and usage are described as wholes."""
    own = definition.get("properties", {})
    return bool({"role", "type", "cache_read", "signature"} & own.keys()) or "cost_usd" in own


@pytest.mark.requirement("prompt.contracts.declared")
def test_ids_are_those_of_the_specification() -> None:
    assert set(BY_ID) == {
        "harness::send",
        "harness::status",
        "harness::stop",
        "harness::turn",
        "harness::unqueue",
        "harness::edit_queued",
        "harness::metrics",
        "harness::session-tree",
        "harness::context-policy",
        "harness::sweep-pending",
        "harness::on-config-change",
        "harness::on-functions-change",
        "harness::on-session-deleted",
    }
    assert {spec.id for spec in harness.TRIGGERS} == {
        "harness::ready",
        "harness::turn-started",
        "harness::turn-completed",
        "harness::message-queued",
    }
    assert all(spec.invalid == codes.INVALID_REQUEST for spec in harness.FUNCTIONS)
    assert all(set(spec.errors) <= set(codes.CODES) for spec in harness.FUNCTIONS)


@pytest.mark.requirement("prompt.contracts.send")
def test_a_message_is_advertised_as_text_and_taken_as_an_object() -> None:
    schema = SEND.request_schema or {}
    assert schema["properties"]["message"]["type"] == "string"
    for message in ("hi", {"role": "user", "content": [], "timestamp": 1}):
        request, problem = SEND.parse({"message": message})
        assert problem is None
        assert request.message == message


@pytest.mark.requirement("prompt.contracts.declared")
def test_status_requires_what_monitoring_reads() -> None:
    report = (STATUS.response_schema or {})["definitions"]["StatusReport"]
    assert {"max_turns", "pending_function_calls"} <= set(report["required"])


BAD = [
    (SEND, {}, "missing field `message`"),
    (SEND, {"message": 3}, "`message`: invalid type: integer `3`, expected a string"),
    (SEND, {"message": None}, "`message`: invalid type: null, expected a string"),
    (SEND, {"message": "x", "session_id": 3}, "`session_id`: invalid type: integer `3`, expected a string"),
    (SEND, {"message": "x", "options": {"max_turns": -1}}, "`options.max_turns`"),
    (SEND, {"message": "x", "options": {"max_turns": 2**32}}, "`options.max_turns`"),
    (SEND, {"message": "x", "options": {"max_turns": "3"}}, "`options.max_turns`: invalid type: string"),
    (SEND, {"message": "x", "options": {"functions": {"allow": "*"}}}, "`options.functions.allow`"),
    (SEND, {"message": "x", "options": {"output": {"type": "xml"}}}, "`options.output`"),
    (SEND, {"message": "x", "options": {"system_prompt_strategy": "append"}}, "`options.system_prompt_strategy`"),
    (SEND, [], "expected an object"),
    (STATUS, {}, "missing field `session_id`"),
    (STATUS, {"session_id": "s", "verbose": "yes"}, "`verbose`: invalid type: string"),
    (METRICS, {}, "exactly one of `root_session_id` and `session_id`"),
    (METRICS, {"session_id": "a", "root_session_id": "a"}, "exactly one"),
    (METRICS, {"session_id": None}, "`session_id`: invalid type: null"),
    (METRICS, {"root_session_id": 3}, "`root_session_id`: invalid type: integer"),
    (BY_ID["harness::turn"], {"session_id": "s", "turn_id": "t", "step": -1}, "`step`"),
    (BY_ID["harness::turn"], {"session_id": "s", "turn_id": "t"}, "missing field `step`"),
    (BY_ID["harness::stop"], {"session_id": "s", "turn_id": []}, "`turn_id`"),
    (BY_ID["harness::unqueue"], {"session_id": "s"}, "missing field `entry_id`"),
    (BY_ID["harness::edit_queued"], {"session_id": "s", "entry_id": "e"}, "missing field `message`"),
    (BY_ID["harness::context-policy"], {"model": 1}, "`model`"),
    (BY_ID["harness::session-tree"], {"root_session_id": None}, "`root_session_id`"),
    (BY_ID["harness::on-session-deleted"], {}, "missing field `session_id`"),
]


@pytest.mark.requirement("prompt.contracts.strict")
@pytest.mark.parametrize(("spec", "data", "said"), BAD)
def test_a_bad_request_names_its_field(spec: FunctionSpec, data: Any, said: str) -> None:
    request, problem = spec.parse(data)
    assert request is None
    assert said in (problem or "")


@pytest.mark.requirement("prompt.contracts.strict")
def test_unknown_fields_of_a_request_are_ignored_and_of_a_binding_refused() -> None:
    request, problem = SEND.parse({"message": "x", "_caller_worker_id": "w", "mode": "ask", "options": {"mode": "ask"}})
    assert problem is None
    assert request.message == "x"
    for spec in harness.TRIGGERS:
        assert spec.parse_config(None)[1] is None
        assert "unknown field `x`" in (spec.parse_config({"x": 1})[1] or "")


@pytest.mark.requirement("prompt.contracts.declared")
def test_the_exported_schema_of_metrics_asks_for_exactly_one_name() -> None:
    validator = Draft7Validator(METRICS.request_schema or {})
    assert validator.is_valid({"session_id": "a"})
    assert validator.is_valid({"root_session_id": "a", "other": 1})
    assert not validator.is_valid({})
    assert not validator.is_valid({"session_id": "a", "root_session_id": "a"})
    assert not validator.is_valid({"session_id": None})
