"""`${VAR}` and `${VAR:default}` in configuration values (engine spec 16.1).

String values at any depth are expanded, keys are not. A string that is one placeholder alone takes the type that its
text has in YAML 1.2; what is substituted is not expanded again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

Json = Any

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}")


class Expansion:
    """One value with its placeholders replaced, and the names that have neither a value nor a default."""

    def __init__(self, value: Json, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.missing: list[str] = []
        self.value = self._expand(value)

    def _expand(self, value: Json) -> Json:
        if isinstance(value, str):
            return self._text(value) if "${" in value else value
        if isinstance(value, dict):
            return {key: self._expand(item) for key, item in cast("dict[str, Json]", value).items()}
        if isinstance(value, list):
            return [self._expand(item) for item in cast("list[Json]", value)]
        return value

    def _text(self, text: str) -> Json:
        before = len(self.missing)
        replaced = _PLACEHOLDER.sub(self._replacement, text)
        if len(self.missing) == before and _PLACEHOLDER.fullmatch(text.strip()):
            from iii_embedded.modules.yaml_scalars import typed

            return typed(replaced.strip()) if replaced.strip() else ""
        return replaced

    def _replacement(self, match: re.Match[str]) -> str:
        name: str = match.group(1)
        default: str | None = match.group(2)
        found: str | None = self._environ.get(name, default)
        if found is None:
            if name not in self.missing:
                self.missing.append(name)
            return match.group(0)
        return found
