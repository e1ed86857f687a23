"""Our declarations of eval against the published ones (eval 3), and the comparison of schemas itself."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from iii_contracts import session_metrics
from iii_contracts.eval import declared as contracts
from iii_contracts.eval.categories import CATEGORIES, INVALID_REQUEST
from iii_contracts.eval.comparison import COMPARE_SESSIONS
from iii_contracts.eval.request import DEFAULT_LIMITS
from iii_contracts.export import schema_of
from iii_contracts.harness.metrics import METRICS
from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_testing.schema_difference import differences

PUBLISHED = Path(__file__).with_name("eval")


def published(name: str) -> dict[str, Any]:
    return json.loads(PUBLISHED.joinpath(f"{name.replace('::', '.')}.json").read_text())


@pytest.mark.requirement("eval.contracts.published")
@pytest.mark.parametrize("spec", contracts.FUNCTIONS, ids=lambda spec: spec.id)
def test_a_declaration_means_what_is_published(spec: FunctionSpec) -> None:
    theirs = published(spec.id)
    assert differences(spec.request_schema, theirs["request_schema"], "request") == []
    assert differences(spec.response_schema, theirs["response_schema"], "response") == []
    assert spec.metadata == theirs["metadata"]


@pytest.mark.requirement("eval.contracts.published")
@pytest.mark.parametrize("spec", contracts.FUNCTIONS, ids=lambda spec: spec.id)
def test_every_declaration_is_valid_and_described(spec: FunctionSpec) -> None:
    assert spec.invalid == INVALID_REQUEST
    assert set(spec.errors) <= set(CATEGORIES)
    for schema in (spec.request_schema or {}, spec.response_schema or {}):
        Draft7Validator.check_schema(schema)
        for name, definition in schema.get("definitions", {}).items():
            for field, inner in definition.get("properties", {}).items():
                assert "description" in inner or name == "Usage" or field == "type", f"{name}.{field}"


@pytest.mark.requirement("eval.contracts.published")
def test_everything_published_is_declared_and_nothing_else() -> None:
    files = {path.name for path in PUBLISHED.glob("*.json")}
    functions = {f"{spec.id.replace('::', '.')}.json" for spec in contracts.FUNCTIONS}
    triggers = {f"{spec.id.replace('::', '.')}.trigger.json" for spec in contracts.TRIGGERS}
    assert files == functions | triggers
    assert len(contracts.FUNCTIONS) == 14


@pytest.mark.requirement("eval.contracts.published")
@pytest.mark.parametrize("spec", contracts.TRIGGERS, ids=lambda spec: spec.id)
def test_a_trigger_type_means_what_is_published(spec: TriggerSpec) -> None:
    theirs = published(f"{spec.id}.trigger")
    assert theirs["trigger_type"] == spec.id
    assert differences(spec.config_schema, theirs["invocation_schema"], "config") == []
    assert spec.parse_config(None)[1] is None
    assert "unknown field `x`" in (spec.parse_config({"x": 1})[1] or "")


VARIANT = {"prompt": "p"}
START = {"dimension": "prompt", "model": {"model": "m"}, "control": VARIANT, "treatment": VARIANT}


def parsed(function_id: str, request: Any) -> tuple[Any, str]:
    spec = next(spec for spec in contracts.FUNCTIONS if spec.id == function_id)
    found, problem = spec.parse(request)
    return found, problem or ""


@pytest.mark.requirement("eval.contracts.closed")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": {"model": "m", "x": 1}}, "`model.x`"),
        ({"control": {"prompt": "p", "x": 1}}, "`control.x`"),
        ({"evaluator": {"function_id": "f", "x": 1}}, "`evaluator.x`"),
        ({"limits": {"x": 1}}, "`limits.x`"),
        ({"limits": {"execution": {"x": 1}}}, "`limits.execution.x`"),
        ({"limits": {"evaluation": {"x": 1}}}, "`limits.evaluation.x`"),
        ({"limits": None}, "`limits`"),
        ({"limits": {"execution": None}}, "`limits.execution`"),
        ({"limits": {"evaluation": None}}, "`limits.evaluation`"),
        ({"model": {"model": "m", "system_prompt_strategy": None}}, "`model.system_prompt_strategy`"),
        ({"dimension": "both"}, "`dimension`"),
        ({"runs": -1}, "`runs`"),
        ({"runs": 1.0}, "`runs`"),
        ({"treatment": {}}, "`prompt` in `treatment`"),
    ],
)
def test_the_parts_of_a_start_are_closed_and_strict(change: dict[str, Any], said: str) -> None:
    assert said in parsed("eval::start", {**START, **change})[1]


@pytest.mark.requirement("eval.contracts.open")
def test_the_top_of_requests_is_open_and_defaults_are_filled_in() -> None:
    found, problem = parsed("eval::start", {**START, "source_evaluation_id": "e", "x": 1, "functions": {"y": 1}})
    assert problem == ""
    assert not hasattr(found, "source_evaluation_id")
    assert found.limits.model_dump(exclude_none=True) == DEFAULT_LIMITS
    assert found.functions.model_dump() == {"allow": [], "deny": [], "expose": "agent_trigger"}
    assert (found.runs, found.evaluator, found.control.system_prompt) == (None, None, None)
    partly, _ = parsed("eval::start", {**START, "limits": {"execution": {"max_turns": 3, "max_cost_usd": 1}}})
    assert (partly.limits.execution.max_turns, partly.limits.execution.invocation_timeout_seconds) == (3, 120)
    assert repr(partly.limits.execution.max_cost_usd) == "1.0"
    for given, arguments in (({}, {}), ({"arguments": None}, None)):
        spec, _ = parsed("eval::start", {**START, "evaluator": {"function_id": "f", **given}})
        assert spec.evaluator.arguments == arguments
    assert "reverse_order" in parsed("eval::rerun", {"evaluation_id": "e", "reverse_order": None})[1]
    for function_id in ("eval::rerun", "eval::status", "eval::result", "eval::cancel", "eval::delete"):
        assert parsed(function_id, {"evaluation_id": "e", "x": 1})[1] == ""
        assert parsed(function_id, {})[1] == "missing field `evaluation_id`"
    assert parsed("eval::sweep", {"anything": 1})[1] == ""
    assert parsed("eval::on-turn-completed", {"turn_id": "t"})[0].model_dump() == {"session_id": "", "terminal": False}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The published response of compare-sessions with one place changed; None removes it."""
    made = copy.deepcopy(published("eval::compare-sessions")["response_schema"])
    inner, (*way, last) = made, path.split("/")
    for key in way:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return made


ITEM = "definitions/SessionComparisonItemV1"
TOTALS = "definitions/SessionUsageTotalsV1"
CHANGES = [
    ("properties/captured_at/type", "string", ".captured_at: integer is allowed only there"),
    ("properties/captured_at/format", "int32", ".captured_at: format int32 here, int64 there"),
    ("properties/captured_at/maximum", 3, ".captured_at: maximum 3 here, None there"),
    ("required", ["captured_at", "schema_version", "sessions"], ".baseline_session_id: required only there"),
    (f"{ITEM}/properties/deltas/default", None, ".sessions[].deltas: default none here, {} there"),
    (f"{ITEM}/properties/errors", None, ".sessions[].errors: only there"),
    (f"{ITEM}/properties/summary/anyOf", [{"$ref": "#/definitions/ObjectiveSummaryV1"}], "summary: null is allowed"),
    (f"{TOTALS}/additionalProperties", None, ".sessions[].metrics.totals: closed only there"),
    (f"{TOTALS}/properties/turns/type", ["integer", "null"], ".sessions[].metrics.totals.turns: null is allowed only"),
    ("definitions/SessionStatusV1/enum", ["idle"], ".sessions[].lifecycle.session_status: enum"),
    ("definitions/MetricDeltaV1/properties/percent/type", "number", ".sessions[].deltas.*.percent: null is allowed"),
    ("definitions/MetricDeltaV1/patternProperties", {}, "the keyword patternProperties is not understood"),
]


@pytest.mark.requirement("eval.contracts.differ")
@pytest.mark.parametrize(("path", "value", "said"), CHANGES)
def test_a_difference_is_found_and_its_path_is_told(path: str, value: Any, said: str) -> None:
    theirs = published("eval::compare-sessions")["response_schema"]
    assert any(said in line for line in differences(changed(path, value), theirs))
    assert differences(theirs, theirs) == []


@pytest.mark.requirement("eval.contracts.differ")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "null"}, {"type": "string"}]}),
        ({"const": "a", "type": "string"}, {"enum": ["a"]}),
        ({"oneOf": [{"enum": ["a"], "type": "string"}, {"const": "b"}]}, {"type": "string", "enum": ["b", "a"]}),
        ({"properties": {"x": True}, "type": "object"}, {"type": "object", "properties": {"x": {"default": None}}}),
        ({"allOf": [{"$ref": "#/definitions/A"}], "definitions": {"A": {"type": "array"}}}, {"type": "array"}),
        ({"type": "object", "additionalProperties": True, "title": "T"}, {"type": "object", "description": "d"}),
    ],
)
def test_what_is_written_differently_and_means_the_same_is_equal(ours: Any, theirs: Any) -> None:
    assert differences(ours, theirs) == []
    assert differences(theirs, ours) == []


@pytest.mark.requirement("eval.contracts.metrics")
def test_what_the_harness_promises_has_everything_that_eval_reads() -> None:
    read = schema_of(session_metrics.SessionMetricsResponseV1, "validation")
    found = differences(METRICS.response_schema, read)
    counters = [line for line in found if line.endswith("required only here")]
    more = [line for line in found if line.endswith("only here") and line not in counters]
    assert sorted(found) == sorted([*counters, *more])
    assert len(counters) == 2 * 6
    assert {line.rpartition(".")[2] for line in more} == {
        "prefix_divergences: only here",
        "prompt_sections_fallback: only here",
        "prompt_surface_digest: only here",
        "skills: only here",
    }


@pytest.mark.requirement("eval.compare.shape")
@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "session_ids"),
        ({"session_ids": ["a", "b"]}, "baseline_session_id"),
        ({"session_ids": "a", "baseline_session_id": "a"}, "`session_ids`: invalid type"),
        ({"session_ids": ["a", 1], "baseline_session_id": "a"}, "`session_ids.1`: invalid type: integer `1`"),
        ({"session_ids": None, "baseline_session_id": "a"}, "`session_ids`"),
        ({"session_ids": ["a", "b"], "baseline_session_id": None}, "`baseline_session_id`"),
        ({"session_ids": ["a", "b"], "baseline_session_id": "a", "rank": True}, "unknown field `rank`"),
        ([], "expected an object"),
    ],
)
def test_a_request_of_another_shape_names_its_field(request_: Any, said: str) -> None:
    assert said in (COMPARE_SESSIONS.parse(request_)[1] or "")


@pytest.mark.requirement("eval.compare.caller")
def test_what_an_engine_adds_to_the_top_of_a_request_is_dropped() -> None:
    given = {"session_ids": ["a", "b"], "baseline_session_id": "a"}
    request, problem = COMPARE_SESSIONS.parse({**given, "_caller_worker_id": "w", "_caller_other": {"a": 1}})
    assert problem is None
    assert request.model_dump() == given
