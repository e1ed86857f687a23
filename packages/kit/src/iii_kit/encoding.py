"""JSON on the bus: checked, then encoded once (engine spec 2.3, 2.4, 21.12 item 19).

A frame with NaN, an infinity, a lone surrogate or more than 127 levels is unreadable for the engine and never
answered, so such a value is refused here, naming its place, before anything is sent.
"""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec

from iii_kit.errors import PayloadTooLarge, Unencodable

MAX_DEPTH = 126
"""Levels of a payload: the frame around it is one more, and a real engine reads 127."""

MAX_BYTES = 64 * 1024 * 1024
"""Size of an encoded message (64 MiB)."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode(value: Any, *, limit: int = MAX_BYTES) -> bytes:
    """The JSON bytes of `value`. Raises `Unencodable` naming the path, or `PayloadTooLarge`."""
    _check(value, "$", 0)
    try:
        data = _encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Unencodable("$", str(error)) from error
    if len(data) > limit:
        raise PayloadTooLarge(len(data), limit)
    return data


def decode(data: bytes | str) -> Any:
    """The value of JSON bytes. Raises `msgspec.DecodeError`."""
    return _decode(data)


def copy(value: Any) -> Any:
    """A value that shares nothing with `value`, by way of its JSON."""
    return _decode(encode(value))


def _check(value: Any, path: str, depth: int) -> None:
    kind: type[Any] = type(value)
    if kind is str:
        if not value.isascii():
            _check_text(value, path)
    elif kind is dict:
        _check_depth(path, depth)
        for key, item in cast("dict[Any, Any]", value).items():
            if type(key) is not str:
                raise Unencodable(path, f"object key {key!r} is not a string")
            if not key.isascii():
                _check_text(key, path)
            inner: type[Any] = type(item)
            if inner is not int and inner is not bool and item is not None:
                _check(item, f"{path}.{key}", depth + 1)
    elif kind is list or kind is tuple:
        _check_depth(path, depth)
        for index, item in enumerate(cast("list[Any]", value)):
            _check(item, f"{path}[{index}]", depth + 1)
    elif kind is float:
        if not math.isfinite(value):
            raise Unencodable(path, f"{value} is not a JSON number")
    elif value is not None and kind is not int and kind is not bool:
        raise Unencodable(path, f"a value of type {kind.__name__} is not JSON")


def _check_depth(path: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise Unencodable(path, f"nested deeper than {MAX_DEPTH} levels")


def _check_text(text: str, path: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unencodable(path, "text holds a lone surrogate") from None
