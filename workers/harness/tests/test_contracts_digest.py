"""The compacted form: boilerplate keywords go, names and data stay; digests over it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_harness.contracts_digest import canonical, compacted, contract_digest, permitted_digest

KEYWORDS = ["$schema", "$id", "title", "format", "examples"]


@pytest.mark.requirement("prompt.contracts.compacted")
def test_keywords_go_at_every_level_and_names_and_data_stay() -> None:
    boiler = {"title": "T", "format": "f", "examples": [1], "$id": "i", "$schema": "s"}
    properties = {name: {"type": "string", **boiler} for name in ("title", "format", "$id", "examples", "$schema")}
    data = {"title": "kept", "format": "kept"}
    schema = {
        **boiler,
        "type": "object",
        "description": "stays",
        "properties": {**properties, "nested": {"items": [{"title": "x", "type": "null"}], "title": "y"}},
        "patternProperties": {"title": {"title": "x"}},
        "additionalProperties": {"title": "x", "const": data},
        "anyOf": [{"title": "x", "enum": [data]}, True],
        "not": {"format": "x", "default": data},
        "required": ["title"],
        "x-unknown": data,
    }
    assert compacted(schema) == {
        "type": "object",
        "description": "stays",
        "properties": {**{name: {"type": "string"} for name in properties}, "nested": {"items": [{"type": "null"}]}},
        "patternProperties": {"title": {}},
        "additionalProperties": {"const": data},
        "anyOf": [{"enum": [data]}, True],
        "not": {"default": data},
        "required": ["title"],
        "x-unknown": data,
    }


@pytest.mark.requirement("prompt.contracts.definitions")
def test_definitions_that_nothing_reaches_go() -> None:
    schema = {
        "properties": {
            "a": {"$ref": "#/definitions/A~1b"},
            "data": {"const": {"$ref": "#/definitions/Dead"}},
            "$ref": {"type": "string"},
        },
        "definitions": {
            "A/b": {"items": {"$ref": "#/$defs/B/properties/x"}},
            "Dead": {"$ref": "#/definitions/Dead2"},
            "Dead2": {"$ref": "#/definitions/Dead"},
        },
        "$defs": {"B": {"properties": {"x": {"$ref": "#/$defs/B"}}}, "C": {}},
    }
    shown = compacted(schema)
    assert set(shown["definitions"]) == {"A/b"}
    assert set(shown["$defs"]) == {"B"}
    assert "definitions" not in compacted({"definitions": {"X": {}}, "type": "object"})


@pytest.mark.requirement("prompt.contracts.definitions")
def test_a_nested_definition_is_kept_for_its_own_pointer() -> None:
    inner = {"definitions": {"X": {"type": "null", "title": "t"}, "Y": {}}}
    schema = {"properties": {"p": inner, "q": {"$ref": "#/properties/p/definitions/X"}}}
    assert compacted(schema)["properties"]["p"] == {"definitions": {"X": {"type": "null"}}}


@pytest.mark.requirement("prompt.contracts.definitions")
def test_a_reference_by_name_keeps_every_definition() -> None:
    schema = {"$ref": "#here", "$defs": {"A": {"$anchor": "here"}, "B": {}}}
    assert set(compacted(schema)["$defs"]) == {"A", "B"}


SCHEMAS = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "null"])}) | st.booleans(),
    lambda inner: st.dictionaries(
        st.sampled_from(["title", "properties", "items", "anyOf", "const", "definitions", "format", "not"]), inner
    ),
    max_leaves=8,
)


@pytest.mark.requirement("prompt.contracts.compacted")
@given(SCHEMAS)
def test_compacting_again_changes_nothing_and_key_order_is_irrelevant(schema: object) -> None:
    once = compacted(schema)
    assert compacted(once) == once
    if isinstance(schema, dict):
        for order in itertools.islice(itertools.permutations(schema.items()), 4):
            assert canonical(compacted(dict(order))) == canonical(once)


@pytest.mark.requirement("prompt.contracts.digest")
def test_a_digest_follows_meaning_and_not_boilerplate() -> None:
    base = {"type": "object", "properties": {"a": {"type": "string"}}, "title": "one"}
    same = {"title": "two", "properties": {"a": {"type": "string", "format": "x"}}, "type": "object"}
    other = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert contract_digest("d", base) == contract_digest("d", same)
    assert contract_digest("d", base) != contract_digest("d", other)
    assert contract_digest("d", base) != contract_digest("e", base)
    assert contract_digest(None, None) != contract_digest("", None)
    assert permitted_digest("a", "c") != permitted_digest("b", "c")
    assert len(permitted_digest("a", "c")) == 6
