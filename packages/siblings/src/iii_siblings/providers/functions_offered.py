"""Functions as an API is told of them: a legal name, a description, an object schema (siblings 6.1, 7, 8)."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from iii_siblings.providers.function_names import FunctionNames


class Offered(NamedTuple):
    """One function."""

    name: str
    description: str
    schema: dict[str, Any]


def offered_functions(tools: list[dict[str, Any]], names: FunctionNames) -> list[Offered]:
    """Every function of a request."""
    return [
        Offered(
            names.encode(str(tool["name"])), str(tool.get("description") or ""), object_schema(tool.get("parameters"))
        )
        for tool in tools
    ]


def object_schema(schema: Any) -> dict[str, Any]:
    """A schema that the API takes: an object with properties, so that one odd function does not take all down."""
    given = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    shaped = {key: value for key, value in given.items() if key != "$schema"}
    if shaped.get("type") != "object":
        shaped["type"] = "object"
    if not isinstance(shaped.get("properties"), dict):
        shaped["properties"] = {}
    return shaped
