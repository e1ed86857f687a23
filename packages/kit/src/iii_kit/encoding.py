"""JSON on the bus: checked, then encoded once (engine spec 2.3, 2.4, 21.12 item 19).

A frame with NaN, an infinity, a lone surrogate or more than 127 levels is unreadable for the engine and never
answered, so such a value is refused here, naming its place, before anything is sent. The check runs on every call: a
value that its bytes decode to again is JSON through and through, which costs less to find out than looking at every
part; only another one is looked at part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from math import isfinite
from typing import Any, cast

import msgspec
from msgspec import Raw

from iii_kit.errors import PayloadTooLarge, Unencodable

MAX_DEPTH = 126
"""Levels of a payload: the frame around it is one more, and a real engine reads 127."""

MAX_BYTES = 64 * 1024 * 1024
"""Size of an encoded message (64 MiB)."""

_SHORT = 1024 * 1024
"""Bytes up to which a value is checked by what its JSON decodes to."""

_LARGE = 4096
"""Bytes from which it pays to leave alone what was checked before."""

_FLAT = 2 * MAX_DEPTH
"""Bytes of which fewer cannot be nested too deep."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_kind_of = cast("Callable[[Any], Any]", type)


def encode(value: Any) -> bytes:
    """The JSON bytes of `value`. Raises `Unencodable` naming the path, or `PayloadTooLarge`.

    A `msgspec.Raw` in it stands for JSON that was checked and encoded before, for a place that is no less deep.
    """
    try:
        data = _encode(value)
        if type(value) is Raw:
            return _bounded(data)
        size = len(data)
        if size <= _SHORT:
            fresh = _decode(data)
            if (fresh == value or _comes_back(value, fresh)) and (size <= _FLAT or _is_shallow(data, fresh)):
                return data
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    return _encoded_part_by_part(value)


def decode(data: bytes | str) -> Any:
    """The value of JSON bytes. Raises `msgspec.DecodeError`."""
    return _decode(data)


def decode_but(data: bytes, names: Container[str]) -> Any:
    """`decode`, with these members of an object left as the JSON that they are, each a `Raw`."""
    try:
        members = _decode_members(data)
    except msgspec.ValidationError:
        return _decode(data)
    return {name: member if name in names else _decode(member) for name, member in members.items()}


def exchanged(value: Any, *, lazily: bool = False) -> tuple[bytes, Any]:
    """`encode`, with the value that its bytes decode to: for a receiver in this process.

    `lazily`: a `Raw` in its place when `value` is large and has one in it; the receiver knows how much of it it reads.
    """
    try:
        data = _encode(value)
        if lazily and len(data) > _LARGE and (rest := _without_raw(value)) is not None:
            encode(rest)
            return _bounded(data), Raw(data)
        fresh = _decode(data)
        size = len(data)
        if (fresh == value or _comes_back(value, fresh)) and (size <= _FLAT or _is_shallow(data, fresh)):
            return _bounded(data), fresh
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    data = _encoded_part_by_part(value)
    return data, _decode(data)


def stored(value: Any) -> str:
    """The JSON text, for a TEXT column, of a value that came over a bus: it was checked there and is not again."""
    return _encode(value).decode()


def nested_deeper_than(value: Any, levels: int) -> bool:
    """True when arrays and objects of `value` are nested deeper than that."""
    if isinstance(value, dict):
        inner: Iterable[Any] = cast("dict[str, Any]", value).values()
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    else:
        return False
    return levels == 0 or any(nested_deeper_than(item, levels - 1) for item in inner)


def copy(value: Any) -> Any:
    """A value that shares nothing with `value`, by way of its JSON."""
    return _decode(encode(value))


def _without_raw(value: Any) -> dict[str, Any] | None:
    """The members of an object without those, and the items of arrays, that are `Raw`; None when there are none."""
    if type(value) is not dict:
        return None
    members = cast("dict[str, Any]", value)
    rest: dict[str, Any] = {}
    found = False
    for name, member in members.items():
        kind = _kind_of(member)
        if kind is Raw:
            found = True
        elif kind is list and Raw in set(map(_kind_of, member)):
            found = True
            rest[name] = [item for item in member if _kind_of(item) is not Raw]
        else:
            rest[name] = member
    return rest if found else None


def _comes_back(value: Any, fresh: Any) -> bool:
    """True when `fresh`, decoded from the JSON of `value`, is the same: tuples are arrays, a `Raw` is what it holds."""
    kind = _kind_of(value)
    if kind is Raw or value == fresh:
        return True
    if kind is dict and len(value) == len(fresh):
        return all(key in fresh and _comes_back(item, fresh[key]) for key, item in value.items())
    if kind is list or kind is tuple:
        return all(map(_comes_back, value, fresh))
    return False


def _is_shallow(data: bytes, value: Any) -> bool:
    """True when `value`, which `data` is the JSON of, is nested within `MAX_DEPTH`."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return True
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return True
    return False


def _encoded_part_by_part(value: Any) -> bytes:
    _find_problem(value, "$", 0)
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        _find_surrogate(value, "$")
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise Unencodable("$", str(error)) from error
    return _bounded(data)


def _bounded(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise PayloadTooLarge(len(data), MAX_BYTES)
    return data


def _find_problem(value: Any, path: str, depth: int) -> None:
    kind = _kind_of(value)
    if kind is dict or kind is list or kind is tuple:
        if depth >= MAX_DEPTH:
            raise Unencodable(path, f"nested deeper than {MAX_DEPTH} levels")
        for place, item in _places(value, path):
            _find_problem(item, place, depth + 1)
    elif kind is float:
        if not isfinite(value):
            raise Unencodable(path, f"{value} is not a JSON number")
    elif value is not None and kind is not str and kind is not int and kind is not bool and kind is not Raw:
        raise Unencodable(path, f"a value of type {kind.__name__} is not JSON")


def _find_surrogate(value: Any, path: str) -> None:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Unencodable(path, "text holds a lone surrogate") from None
    elif isinstance(value, (dict, list, tuple)):
        for place, item in _places(value, path):
            _find_surrogate(item, place)


def _places(container: Any, path: str) -> list[tuple[str, Any]]:
    """The members of a container with their places; a bad key of an object is a problem of the object."""
    if not isinstance(container, dict):
        return [(f"{path}[{index}]", item) for index, item in enumerate(container)]
    places: list[tuple[str, Any]] = []
    for key, item in cast("dict[Any, Any]", container).items():
        if not isinstance(key, str):
            raise Unencodable(path, f"object key {key!r} is not a string")
        _find_surrogate(key, path)
        places.append((f"{path}.{key}", item))
    return places
