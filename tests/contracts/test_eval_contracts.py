"""Our declarations of eval against the published ones (eval 3), and the comparison of schemas itself."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from iii_contracts import eval as contracts
from iii_contracts import session_metrics
from iii_contracts.eval.categories import CATEGORIES, INVALID_REQUEST
from iii_contracts.eval.comparison import COMPARE_SESSIONS
from iii_contracts.export import schema_of
from iii_contracts.harness.metrics import METRICS
from iii_contracts.spec import FunctionSpec
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
                assert "description" in inner or name == "Usage", f"{name}.{field}"


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
