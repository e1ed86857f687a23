"""Structural equality of two JSON schemas (draft 07), and the places where they differ.

Compared is meaning: types and nullability, required fields, closedness, enums, bounds, formats, defaults, items,
alternatives; references are followed. Not compared are names of definitions, descriptions, titles and the order of
anything. A default of null says the same as none, `true` the same as `{}`, `const` the same as an enum of one, and
alternatives that are all enums are one enum. A keyword that is not known here is itself a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

SILENT = {"$schema", "definitions", "description", "title", "examples", "discriminator"}
"""Keywords without meaning for what is valid."""

MARKS = {"default"}
"""Keywords that belong to the place of a schema and not to one of its alternatives."""

BY_TYPE: dict[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
    "string": {"enum", "minLength", "maxLength", "pattern", "format"},
    "integer": {"enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
    "number": {"enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
    "boolean": {"enum"},
    "null": set(),
    "any": set(),
}
"""What is said about values of one type."""

NESTED = {"properties", "required", "additionalProperties", "items"}
"""Keywords that are compared by their own rules."""


def differences(ours: Any, theirs: Any, at: str = "") -> list[str]:
    """Every difference of two whole schema documents, each with its path; empty when they mean the same."""
    return list(_Comparison(ours, theirs).of(ours, theirs, at))


class _Document:
    """A schema whose references are followed."""

    def __init__(self, root: Any) -> None:
        self._definitions: Schema = root.get("definitions", {}) if isinstance(root, dict) else {}

    def resolved(self, node: Any) -> Schema:
        """The schema that stands at a place: without references, without `allOf` of one."""
        if node is True or node is None:
            return {}
        merged: Schema = {}
        while True:
            rest = {key: value for key, value in node.items() if key not in SILENT}
            if "$ref" in rest:
                node = self._definitions[rest.pop("$ref").removeprefix("#/definitions/")]
            elif len(rest.get("allOf", ())) == 1:
                node = rest.pop("allOf")[0]
            else:
                return {**rest, **merged}
            merged = {**rest, **merged}

    def alternatives(self, node: Any) -> list[Schema]:
        """The alternatives at a place, flat, each of one type."""
        schema = {key: value for key, value in self.resolved(node).items() if key not in MARKS}
        for word in ("anyOf", "oneOf"):
            if word in schema:
                branches = [branch for inner in schema.pop(word) for branch in self.alternatives(inner)]
                return _one_enum([{**branch, **schema} for branch in branches])
        if "const" in schema:
            schema["enum"] = [schema.pop("const")]
        kinds = schema.pop("type", None)
        if kinds is None:
            kinds = "string" if "enum" in schema else "any"
        kinds = [kinds] if isinstance(kinds, str) else kinds
        every = set[str]().union(*(BY_TYPE[kind] for kind in kinds))
        unknown = schema.keys() - every
        return [
            {"type": kind, **{key: value for key, value in schema.items() if key in BY_TYPE[kind] | unknown}}
            for kind in kinds
        ]

    def labelled(self, node: Any) -> dict[str, Schema]:
        """The alternatives by what tells them apart: the type, and where a type is there twice, fields of one value."""
        branches = self.alternatives(node)
        kinds = [branch["type"] for branch in branches]
        found = {b["type"] if kinds.count(b["type"]) == 1 else b["type"] + self._tags(b): b for b in branches}
        assert len(found) == len(branches), f"alternatives that nothing tells apart: {branches}"
        return found

    def _tags(self, branch: Schema) -> str:
        tags: list[str] = []
        for name, inner in sorted(branch.get("properties", {}).items()):
            values = self.alternatives(inner)[0].get("enum", ())
            if len(values) == 1:
                tags.append(f":{name}={values[0]}")
        return "".join(tags)


def _one_enum(branches: list[Schema]) -> list[Schema]:
    """`branches` with those that are enums of strings as one."""
    enums = [branch for branch in branches if branch["type"] == "string" and "enum" in branch]
    if len(enums) < 2:
        return branches
    values = [value for branch in enums for value in branch["enum"]]
    return [*(branch for branch in branches if branch not in enums), {"type": "string", "enum": values}]


class _Comparison:
    """One document against another."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self._ours, self._theirs = _Document(ours), _Document(theirs)
        self._open: list[tuple[int, int]] = []

    def of(self, ours: Any, theirs: Any, at: str) -> Iterator[str]:
        """What differs at one place and below it."""
        pair = (id(ours), id(theirs))
        if pair in self._open:
            return
        self._open.append(pair)
        mine, other = self._ours.resolved(ours), self._theirs.resolved(theirs)
        if mine.get("default") != other.get("default"):
            yield f"{at}: default {_told(mine)} here, {_told(other)} there"
        left, right = self._ours.labelled(ours), self._theirs.labelled(theirs)
        for label in sorted(left.keys() - right.keys()):
            yield f"{at}: {label} is allowed only here"
        for label in sorted(right.keys() - left.keys()):
            yield f"{at}: {label} is allowed only there"
        for label in sorted(left.keys() & right.keys()):
            place = at if ":" not in label else f"{at}<{label}>"
            yield from self._alternative(left[label], right[label], place)
        self._open.pop()

    def _alternative(self, ours: Schema, theirs: Schema, at: str) -> Iterator[str]:
        for word in sorted((ours.keys() | theirs.keys()) - NESTED - {"type"}):
            if word not in BY_TYPE[ours["type"]]:
                yield f"{at}: the keyword {word} is not understood"
            mine, other = ours.get(word), theirs.get(word)
            if word == "enum":
                mine, other = sorted(mine or []), sorted(other or [])
            if mine != other:
                yield f"{at}: {word} {mine} here, {other} there"
        if "items" in ours or "items" in theirs:
            yield from self.of(ours.get("items"), theirs.get("items"), f"{at}[]")
        if ours["type"] == "object":
            yield from self._object(ours, theirs, at)

    def _object(self, ours: Schema, theirs: Schema, at: str) -> Iterator[str]:
        yield from self._others(ours.get("additionalProperties", True), theirs.get("additionalProperties", True), at)
        mine, other = ours.get("properties", {}), theirs.get("properties", {})
        for name in sorted(mine.keys() ^ other.keys()):
            yield f"{at}.{name}: only {'here' if name in mine else 'there'}"
        needed, wanted = set(ours.get("required", ())), set(theirs.get("required", ()))
        for name in sorted(needed ^ wanted):
            yield f"{at}.{name}: required only {'here' if name in needed else 'there'}"
        for name in sorted(mine.keys() & other.keys()):
            yield from self.of(mine[name], other[name], f"{at}.{name}")

    def _others(self, ours: Any, theirs: Any, at: str) -> Iterator[str]:
        """What is said about keys that have no name in the schema."""
        if ours is False or theirs is False:
            if ours is not theirs:
                yield f"{at}: closed only {'here' if ours is False else 'there'}"
            return
        yield from self.of(ours, theirs, f"{at}.*")


def _told(schema: Schema) -> str:
    return repr(schema["default"]) if "default" in schema else "none"
