"""JSON Schema draft-07 of a wire type, self-contained and byte-stable (engine spec 12, issue "contracts")."""

from typing import Any, Literal, cast

from pydantic import TypeAdapter

DRAFT = "http://json-schema.org/draft-07/schema#"


def schema_of(wire_type: Any, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """The schema of `wire_type`, with shared definitions under `definitions` and no generated titles."""
    schema = TypeAdapter(wire_type).json_schema(mode=mode, ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs", None)
    if definitions:
        schema["definitions"] = definitions
    return {"$schema": DRAFT, **cast("dict[str, Any]", _without_titles(schema, named=False))}


def _without_titles(node: Any, *, named: bool) -> Any:
    """`node` without the `title` keyword; inside `properties` and `definitions` (`named`) keys are names."""
    if isinstance(node, list):
        return [_without_titles(item, named=False) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    kept: dict[str, Any] = {}
    for key, item in cast("dict[str, Any]", node).items():
        if key == "title" and not named:
            continue
        if key in ("default", "const", "enum", "examples") and not named:
            kept[key] = item
        else:
            kept[key] = _without_titles(item, named=not named and key in ("properties", "definitions"))
    return kept
