"""Update operations against a model that never changes a value in place and spells every rule out."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_contracts.engine.state import UPDATE
from iii_embedded.modules.updates import MISSING, apply

GONE: Any = object()

keys = st.sampled_from(["a", "b", "c", "__proto__", "x" * 257, ""])
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([1.5, "", "t", 2**64 - 1, -(2**63)])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
documents = st.just(MISSING) | values
field_paths = keys
merge_paths = keys | st.none() | st.lists(keys, max_size=4) | st.just(["a"] * 33)


def ops_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    if kind in ("increment", "decrement"):
        return st.fixed_dictionaries({"type": st.just(kind), "path": field_paths, "by": st.integers(-3, 3)})
    if kind == "remove":
        return st.fixed_dictionaries({"type": st.just(kind), "path": field_paths})
    if kind == "set":
        return st.fixed_dictionaries({"type": st.just(kind), "path": field_paths, "value": values})
    return st.fixed_dictionaries({"type": st.just(kind), "path": merge_paths, "value": values})


operations = st.lists(
    st.sampled_from(["set", "merge", "increment", "decrement", "append", "remove"]).flatmap(ops_of), max_size=6
)


class Refused(Exception):
    pass


def place_of(path: Any) -> list[str]:
    steps = [] if path in (None, "", []) else [path] if isinstance(path, str) else list(path)
    if len(steps) > 32:
        raise Refused("path.too_deep")
    for step in steps:
        if step == "":
            raise Refused("path.empty_segment")
        if len(step.encode()) > 256:
            raise Refused("path.segment_too_long")
        if step in ("__proto__", "constructor", "prototype"):
            raise Refused("path.proto_polluted")
    return steps


def look(document: Any, steps: list[str]) -> Any:
    for step in steps:
        if not isinstance(document, dict) or step not in document:
            return GONE
        document = document[step]
    return document


def put(document: Any, steps: list[str], value: Any) -> Any:
    if not steps:
        return value
    inside = dict(document) if isinstance(document, dict) else {}
    inside[steps[0]] = put(inside.get(steps[0]), steps[1:], value)
    return inside


def added(target: Any, by: int) -> Any:
    if target is GONE:
        return by
    if type(target) not in (int, float):
        raise Refused("not_number")
    total = target + by
    if type(total) is int and not -(2**63) <= total < 2**64:
        raise Refused("not_number")
    return total


def appended(target: Any, value: Any, nested: bool) -> Any:
    if target is GONE and nested:
        return [value]
    if target is GONE or target is None:
        return value if type(value) is str else [value]
    if type(target) is list:
        return [*target, value]
    if type(target) is str and type(value) is str:
        return target + value
    raise Refused("type_mismatch")


def step(document: Any, op: dict[str, Any]) -> Any:
    kind, steps = op["type"], place_of(op["path"])
    if kind == "merge":
        value = op["value"]
        if type(value) is not dict:
            raise Refused("value.not_an_object")
        if {"__proto__", "constructor", "prototype"} & value.keys():
            raise Refused("value.proto_polluted")
        target = look({} if document is GONE else document, steps)
        if not steps and type(target) is not dict:
            return document
        return put(document, steps, {**(target if type(target) is dict else {}), **value})
    if steps and document is not GONE and type(document) is not dict:
        raise Refused("target_not_object")
    target = look(document, steps) if steps else document
    if kind == "set":
        return put(document, steps, op["value"])
    if kind == "remove":
        if not steps:
            return None
        return {key: item for key, item in ({} if document is GONE else document).items() if key != steps[0]}
    if kind == "append":
        return put(document, steps, appended(target, op["value"], len(steps) > 1))
    return put(document, steps, added(target, op["by"] if kind == "increment" else -op["by"]))


def model(document: Any, ops: list[dict[str, Any]]) -> tuple[Any, list[tuple[int, str]]]:
    errors: list[tuple[int, str]] = []
    for index, op in enumerate(ops):
        try:
            document = step(document, op)
        except Refused as refused:
            errors.append((index, f"{op['type']}.{refused}"))
    return ({} if document is GONE else document), errors


@pytest.mark.requirement("state.update.operations")
@given(documents, operations)
def test_operations_do_what_the_model_does(document: Any, ops: list[dict[str, Any]]) -> None:
    request, problem = UPDATE.parse({"scope": "s", "key": "k", "ops": copy.deepcopy(ops)})
    assert problem is None
    start = MISSING if document is MISSING else copy.deepcopy(document)
    new, errors = apply(start, request.ops)
    expected, refused = model(GONE if document is MISSING else document, ops)
    assert json.dumps(new, sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert [(error["op_index"], error["code"]) for error in errors] == refused
    assert all(error["message"] for error in errors)


@pytest.mark.requirement("state.update.bounds")
@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({str(n): n for n in range(1024)}, None),
        ({str(n): n for n in range(1025)}, "merge.value.too_many_keys"),
        (json.loads('{"a":' * 16 + "1" + "}" * 16), None),
        (json.loads('{"a":' * 17 + "1" + "}" * 17), "merge.value.too_deep"),
        ({"a": json.loads("[" * 16 + "]" * 16)}, "merge.value.too_deep"),
        ({"deep": {"constructor": 1}}, None),
        ({"constructor": 1}, "merge.value.proto_polluted"),
    ],
    ids=range(7),
)
def test_a_merge_value_is_bounded_in_keys_and_depth(value: Any, code: str | None) -> None:
    request, _ = UPDATE.parse({"scope": "s", "key": "k", "ops": [{"type": "merge", "value": value}]})
    new, errors = apply({"kept": 1}, request.ops)
    assert [error["code"] for error in errors] == ([] if code is None else [code])
    assert new == ({"kept": 1} if code else {"kept": 1, **value})


def test_a_number_that_leaves_the_range_of_integers_is_refused() -> None:
    for start, by, kind in ((2**64 - 1, 1, "increment"), (-(2**63), 1, "decrement"), (2**63, -(2**63), "decrement")):
        request, _ = UPDATE.parse({"scope": "s", "key": "k", "ops": [{"type": kind, "path": "n", "by": by}]})
        new, errors = apply({"n": start}, request.ops)
        assert new == {"n": start} and errors[0]["code"] == f"{kind}.not_number"
