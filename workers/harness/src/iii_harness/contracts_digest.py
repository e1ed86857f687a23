"""Contracts as a model reads them, and digests over that form (harness-loop 9A.4, harness-agents 4.2, 4.3).

The form is the schema without boilerplate keywords and without definitions that nothing refers to, its keys sorted.
Keywords alone are dropped: never the name of a property, nor anything inside `enum`, `const`, `default`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import unquote

import msgspec

DROPPED: Final = frozenset({"$schema", "$id", "title", "format", "examples"})
DEFINITIONS: Final = frozenset({"definitions", "$defs"})
_BY_NAME: Final = frozenset({"properties", "patternProperties", "dependencies", "dependentSchemas"}) | DEFINITIONS
_ONE_OR_MANY: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "oneOf",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)


def canonical(value: Any) -> bytes:
    """JSON bytes with sorted keys and no spaces."""
    return msgspec.json.encode(value, order="deterministic")


def compacted(schema: Any) -> Any:
    """`schema` as the model sees it."""
    if not isinstance(schema, dict):
        return schema
    whole = cast("dict[str, Any]", schema)
    return _compact(whole, "#", _reached(whole))


def contract_digest(description: str | None, parameters: Any) -> str:
    """SHA-256 of a contract: compacted request schema and description."""
    return hashlib.sha256(canonical({"description": description, "schema": compacted(parameters)})).hexdigest()


def seen_digest(contract: str) -> str:
    """A contract digest as turn records carry it: its beginning."""
    return contract[:16]


def permitted_digest(function_id: str, contract: str) -> str:
    """Six characters for one function and its contract digest: what an acknowledgement remembers of it."""
    digest = hashlib.sha256(f"{function_id}\n{contract}".encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest[:6]).decode()[:6]


def content_digest(content: Any) -> str:
    """Digest of a result's content blocks; short, since turn records carry it."""
    return hashlib.sha256(canonical(content)).hexdigest()[:16]


def _compact(node: Any, at: str, reached: frozenset[str]) -> Any:
    """A schema at pointer `at`; booleans and misplaced values stay as they are."""
    if not isinstance(node, dict):
        return node
    kept: dict[str, Any] = {}
    for key, value in sorted(cast("dict[str, Any]", node).items()):
        place = f"{at}/{_escaped(key)}"
        if key in DROPPED:
            continue
        if key in _BY_NAME and isinstance(value, dict):
            named = _named(cast("dict[str, Any]", value), place, reached, definitions=key in DEFINITIONS)
            if named or key not in DEFINITIONS:
                kept[key] = named
        elif key in _ONE_OR_MANY and isinstance(value, list):
            items = cast("list[Any]", value)
            kept[key] = [_compact(item, f"{place}/{index}", reached) for index, item in enumerate(items)]
        elif key in _ONE_OR_MANY:
            kept[key] = _compact(value, place, reached)
        else:
            kept[key] = value
    return kept


def _named(schemas: dict[str, Any], at: str, reached: frozenset[str], *, definitions: bool) -> dict[str, Any]:
    return {
        name: _compact(schema, f"{at}/{_escaped(name)}", reached)
        for name, schema in sorted(schemas.items())
        if not definitions or f"{at}/{_escaped(name)}" in reached
    }


def _reached(whole: dict[str, Any]) -> frozenset[str]:
    """Pointers of the definitions that some reference outside unreached definitions leads to."""
    references: set[str] = set()
    waiting: dict[str, Any] = {}
    reached: set[str] = set()
    fresh: list[tuple[str, Any]] = [("#", whole)]
    while fresh:
        for at, schema in fresh:
            for kind, place, value in _walk(schema, at):
                if kind == "ref":
                    references.add(unquote(value))
                else:
                    waiting[place] = value
        by_name = any(not ref.startswith("#/") and ref != "#" for ref in references)
        fresh = [
            (at, schema)
            for at, schema in waiting.items()
            if by_name or any(ref == at or ref.startswith(f"{at}/") for ref in references)
        ]
        for at, _ in fresh:
            del waiting[at]
            reached.add(at)
    return frozenset(reached)


def _walk(node: Any, at: str) -> Iterator[tuple[str, str, Any]]:
    """References of a schema, `("ref", place, target)`, and its definitions unopened, `("def", place, schema)`."""
    if not isinstance(node, dict):
        return
    for key, value in cast("dict[str, Any]", node).items():
        place = f"{at}/{_escaped(key)}"
        if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
            yield "ref", place, value
        elif key in _BY_NAME and isinstance(value, dict):
            for name, schema in cast("dict[str, Any]", value).items():
                inner = f"{place}/{_escaped(name)}"
                if key in DEFINITIONS:
                    yield "def", inner, schema
                else:
                    yield from _walk(schema, inner)
        elif key in _ONE_OR_MANY and isinstance(value, list):
            for index, item in enumerate(cast("list[Any]", value)):
                yield from _walk(item, f"{place}/{index}")
        elif key in _ONE_OR_MANY:
            yield from _walk(value, place)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
