"""Function ids as APIs allow them: `::` becomes `__` and back (siblings 6.1 step 6)."""

from __future__ import annotations

import hashlib
import re

MAX_LENGTH = 64
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")


def encoded(function_id: str) -> str:
    """The name of a function at an API that allows letters, digits, `_` and `-`, at most 64 of them."""
    name = _FORBIDDEN.sub("_", function_id.replace("::", "__")) or "_"
    if len(name) <= MAX_LENGTH:
        return name
    return f"{name[: MAX_LENGTH - 9]}_{hashlib.sha256(function_id.encode()).hexdigest()[:8]}"


class FunctionNames:
    """Names of one request: what is offered is decoded exactly, everything else by the rule."""

    def __init__(self, offered: list[str]) -> None:
        self._by_name: dict[str, str] = {}
        self._by_id: dict[str, str] = {}
        for function_id in offered:
            name, number = encoded(function_id), 1
            while name in self._by_name:
                number += 1
                suffix = f"_{number}"
                name = encoded(function_id)[: MAX_LENGTH - len(suffix)] + suffix
            self._by_name[name] = function_id
            self._by_id[function_id] = name

    def encode(self, function_id: str) -> str:
        """The name that stands for a function."""
        return self._by_id.get(function_id) or encoded(function_id)

    def decode(self, name: str) -> str:
        """The function that a name stands for."""
        return self._by_name.get(name) or name.replace("__", "::")
