"""Canonical JSON and digests of it: equal values give equal digests, whatever the order of their keys."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_sorted = msgspec.json.Encoder(order="sorted")
_plain = msgspec.json.Encoder()


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, in hex."""
    return hashlib.sha256(_sorted.encode(value)).hexdigest()


def compact(value: Any) -> str:
    """Compact JSON text."""
    return _plain.encode(value).decode()


def size(value: Any) -> int:
    """Bytes of the compact JSON of `value`."""
    return len(_plain.encode(value))
