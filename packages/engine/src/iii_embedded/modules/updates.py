"""Update operations on a state value (engine spec 13.2), as a pure function.

Operations apply in order; one that fails changes nothing and is reported. Documents are plain JSON values, changed in
place: the caller gives a document of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, assert_never, cast

from iii_contracts.engine.state import AppendOp, DecrementOp, IncrementOp, MergeOp, RemoveOp, SetOp

Op: TypeAlias = SetOp | MergeOp | IncrementOp | DecrementOp | AppendOp | RemoveOp
Json: TypeAlias = Any

MAX_STEPS = 32
MAX_SEGMENT_BYTES = 256
MAX_MERGE_KEYS = 1024
MAX_MERGE_DEPTH = 16
FORBIDDEN = frozenset({"__proto__", "constructor", "prototype"})
"""Names that are property tricks in some languages: no step of a path and no key of a merge value."""

LOWEST = -(2**63)
HIGHEST = 2**64 - 1


class _Missing:
    """There is no value at this place."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
"""A document, or a place in one, that does not exist."""


class OpError(Exception):
    """One operation fails: `code` without the name of the operation, and what people read."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def apply(document: Json, ops: Sequence[Op]) -> tuple[Json, list[dict[str, Any]]]:
    """The document after `ops` and the errors of those that were skipped. A missing document becomes `{}`."""
    errors: list[dict[str, Any]] = []
    for index, op in enumerate(ops):
        try:
            document = _apply(document, op)
        except OpError as error:
            errors.append({"op_index": index, "code": f"{op.type}.{error.code}", "message": error.message})
    return ({} if document is MISSING else document), errors


def _apply(document: Json, op: Op) -> Json:
    steps = _steps(op.path)
    match op:
        case SetOp():
            return _set(document, steps, op.value)
        case MergeOp():
            return _merge(document, steps, op.value)
        case IncrementOp():
            return _add(document, steps, op.by)
        case DecrementOp():
            return _add(document, steps, -op.by)
        case AppendOp():
            return _append(document, steps, op.value)
        case RemoveOp():
            return _remove(document, steps)
        case _:
            assert_never(op)


def _steps(path: str | list[str] | None) -> list[str]:
    """The keys that lead to the place; none for the root."""
    if not path:
        return []
    steps = [path] if isinstance(path, str) else path
    if len(steps) > MAX_STEPS:
        raise OpError("path.too_deep", f"the path has {len(steps)} segments, at most {MAX_STEPS} are allowed")
    for step in steps:
        if not step:
            raise OpError("path.empty_segment", "a segment of the path is empty")
        if len(step.encode()) > MAX_SEGMENT_BYTES:
            raise OpError("path.segment_too_long", f"a segment of the path is over {MAX_SEGMENT_BYTES} bytes")
        if step in FORBIDDEN:
            raise OpError("path.proto_polluted", f"the path segment `{step}` is not allowed")
    return steps


def _object(document: Json) -> dict[str, Json]:
    """The document as the object that a key is looked up in."""
    if document is MISSING:
        return {}
    if not isinstance(document, dict):
        raise OpError("target_not_object", "the document is not an object")
    return cast("dict[str, Json]", document)


def _set(document: Json, steps: list[str], value: Json) -> Json:
    if not steps:
        return value
    target = _object(document)
    target[steps[0]] = value
    return target


def _remove(document: Json, steps: list[str]) -> Json:
    if not steps:
        return None
    target = _object(document)
    target.pop(steps[0], None)
    return target


def _add(document: Json, steps: list[str], by: int) -> Json:
    if not steps:
        return _sum(document, by)
    target = _object(document)
    target[steps[0]] = _sum(target.get(steps[0], MISSING), by)
    return target


def _sum(number: Json, by: int) -> int | float:
    if number is MISSING:
        return by
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise OpError("not_number", "the target is not a number")
    result = number + by
    if isinstance(result, int) and not LOWEST <= result <= HIGHEST:
        raise OpError("not_number", "the result is outside the range of integers")
    return result


def _merge(document: Json, steps: list[str], value: Json) -> Json:
    _check_merge(value)
    if document is MISSING:
        document = {}
    if not steps:
        if isinstance(document, dict):
            cast("dict[str, Json]", document).update(value)
        return cast("Json", document)
    root: dict[str, Json] = cast("dict[str, Json]", document) if isinstance(document, dict) else {}
    _descend(root, steps).update(value)
    return root


def _check_merge(value: Json) -> None:
    if not isinstance(value, dict):
        raise OpError("value.not_an_object", "the value of a merge must be an object")
    keys = cast("dict[str, Json]", value)
    if len(keys) > MAX_MERGE_KEYS:
        raise OpError("value.too_many_keys", f"the value has {len(keys)} keys, at most {MAX_MERGE_KEYS} are allowed")
    for key in keys:
        if key in FORBIDDEN:
            raise OpError("value.proto_polluted", f"the key `{key}` is not allowed")
    if _deeper_than(keys, MAX_MERGE_DEPTH):
        raise OpError("value.too_deep", f"the value is nested deeper than {MAX_MERGE_DEPTH} levels")


def _deeper_than(value: Json, levels: int) -> bool:
    if isinstance(value, dict):
        inner = list(cast("dict[str, Json]", value).values())
    elif isinstance(value, list):
        inner = cast("list[Json]", value)
    else:
        return False
    return levels == 0 or any(_deeper_than(item, levels - 1) for item in inner)


def _descend(root: dict[str, Json], steps: list[str]) -> dict[str, Json]:
    """The object at `steps`; what is missing or no object on the way becomes an empty one."""
    place = root
    for step in steps:
        found = place.get(step)
        if not isinstance(found, dict):
            found = place[step] = {}
        place = cast("dict[str, Json]", found)
    return place


def _append(document: Json, steps: list[str], value: Json) -> Json:
    if not steps:
        return _appended(document, value)
    root = _object(document)
    *way, leaf = steps
    place = _descend(root, way)
    if way and leaf not in place:
        place[leaf] = [value]
    else:
        place[leaf] = _appended(place.get(leaf, MISSING), value)
    return root


def _appended(target: Json, value: Json) -> Json:
    if target is MISSING or target is None:
        return value if isinstance(value, str) else [value]
    if isinstance(target, list):
        cast("list[Json]", target).append(value)
        return cast("list[Json]", target)
    if isinstance(target, str) and isinstance(value, str):
        return target + value
    raise OpError("type_mismatch", "only a list takes any value, and a text another text")
