"""Bad requests of every declared function, made of the exported schema of its request, and what their answers must say.

Every field at every place, left out where it is required, and with values of other kinds.
"""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
from collections.abc import AsyncIterator, Iterator
from typing import Any

import iii_contracts
from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Caller
from iii_kit.errors import BusError

OTHERS: list[Any] = [None, True, 7, -1, 1.5, "text", "", [], [1], {}, {"odd": 1}]
"""One value or more of every kind."""

DEPTH = 4
"""Levels of a request that are visited."""


def specs() -> dict[str, FunctionSpec]:
    """Every declared function."""
    modules = pkgutil.walk_packages(iii_contracts.__path__, "iii_contracts.")
    tuples = [getattr(importlib.import_module(module.name), "FUNCTIONS", ()) for module in modules]
    return {spec.id: spec for functions in tuples for spec in functions}


SPECS = specs()


class Cases:
    """Bad requests of one function, from its schema."""

    def __init__(self, spec: FunctionSpec) -> None:
        self.spec = spec
        self.schema = spec.request_schema or {}

    def bad(self) -> Iterator[tuple[str | None, Any]]:
        """`(field, request)`: the field that the answer must name; None for a request that is no object."""
        if "properties" in self.followed(self.schema):
            yield from ((None, other) for other in OTHERS if not (other is None or isinstance(other, dict)))
        for path, schema in self.places(self.schema, (), DEPTH):
            base = self.base(path)
            yield path[-1], removed(base, path)
            if self.followed(schema):
                yield from ((path[-1], placed(base, path, other)) for other in OTHERS)

    def base(self, path: tuple[str, ...]) -> Any:
        """The smallest request that has everything required, and the objects on the way to `path`."""
        request = self.smallest(self.schema)
        for end in range(1, len(path)):
            inner = self.at(path[:end])
            request = placed(request, path[:end], {**self.smallest(inner), **(found(request, path[:end]) or {})})
        return request

    def places(self, schema: Any, at: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
        for name, inner in self.followed(schema).get("properties", {}).items():
            yield (*at, name), inner
            if depth > 1:
                yield from self.places(self.object_of(inner), (*at, name), depth - 1)

    def at(self, path: tuple[str, ...]) -> Any:
        schema = self.schema
        for name in path:
            schema = self.object_of(self.followed(schema)["properties"][name])
        return schema

    def object_of(self, schema: Any) -> Any:
        """The object among the alternatives of a schema, or an empty one."""
        whole = self.followed(schema)
        branches = [self.followed(b) for b in whole.get("anyOf", [])] or [whole]
        return next((b for b in branches if "properties" in b), {})

    def followed(self, schema: Any) -> dict[str, Any]:
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self.schema["definitions"][schema["$ref"].removeprefix("#/definitions/")]
        return schema if isinstance(schema, dict) else {}

    def smallest(self, schema: Any) -> Any:
        whole = self.followed(schema)
        for word in ("anyOf", "oneOf"):
            if word in whole and "properties" not in whole:
                return self.smallest(whole[word][0])
        if "const" in whole:
            return whole["const"]
        if "enum" in whole:
            return whole["enum"][0]
        kind = whole.get("type", "object" if "properties" in whole else "string")
        if kind == "object":
            needed = whole.get("required", []) or (whole["oneOf"][0]["required"] if "oneOf" in whole else [])
            return {name: self.smallest(whole["properties"][name]) for name in needed}
        plain = {"string": "x", "integer": max(int(whole.get("minimum", 1)), 1), "number": 1.0, "boolean": True}
        if kind == "array":
            return [self.smallest(whole["items"])] * whole.get("minItems", 0)
        return plain.get(kind)


def found(request: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        request = request.get(name) if isinstance(request, dict) else None
    return request


def placed(request: Any, path: tuple[str, ...], value: Any) -> Any:
    changed = copy.deepcopy(request)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


def removed(request: Any, path: tuple[str, ...]) -> Any:
    changed = copy.deepcopy(request)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner.pop(path[-1], None)
    return changed


async def served(caller: Caller) -> list[str]:
    answer = await caller.call("engine::functions::list", {"include_internal": True})
    return [row["function_id"] for row in answer["functions"]]


async def faults(caller: Caller, spec: FunctionSpec, field: str | None, request: Any) -> AsyncIterator[str]:
    """What is wrong with the answer to one bad request."""
    try:
        answer = await caller.call(spec.id, request)
    except BusError as error:
        if not error.matches(spec.invalid):
            yield f"code {error.code}, not {spec.invalid}: {error.message}"
        if field is not None and field not in error.message:
            yield f"does not name {field}: {error.message}"
        if (spec.parse(request)[1] or "") not in error.message:
            yield f"not the contract's words: {error.message}"
    else:
        yield f"accepted: {answer}"


async def wrong_answers(caller: Caller, ids: list[str], *, every: int = 1) -> tuple[int, list[str]]:
    """Send the bad requests of these functions, of each every n-th: how many were sent, and what was wrong."""
    sent, wrong = 0, list[str]()
    for spec in (SPECS[i] for i in ids if i in SPECS and SPECS[i].request is not None):
        bad = [(field, request) for field, request in Cases(spec).bad() if spec.parse(request)[1] is not None]
        for field, request in bad[::every]:
            sent += 1
            wrong += [
                f"{spec.id} {json.dumps(request)}: {fault}" async for fault in faults(caller, spec, field, request)
            ]
    return sent, wrong
