"""`${VAR}` and `${VAR:default}` in configuration values (engine spec 16.1).

String values at any depth are expanded, keys are not. A string that is one placeholder alone takes the type that its
text has in YAML 1.2; what is substituted is not expanded again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import yaml

from iii_kit.encoding import encode
from iii_kit.errors import BusError

Json = Any

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}")


class _Yaml12(yaml.SafeLoader):
    """YAML with the scalars of version 1.2: no `yes`, no dates, no numbers with a leading zero or underscores."""


_SCALARS = (
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"(?:[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
)

_Yaml12.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in _SCALARS:
    cast("Any", _Yaml12).add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(_pattern), _first)


def _integer(loader: _Yaml12, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _number(loader: _Yaml12, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


_Yaml12.add_constructor("tag:yaml.org,2002:int", _integer)
_Yaml12.add_constructor("tag:yaml.org,2002:float", _number)


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
            return typed(replaced.strip())
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


def typed(text: str) -> Json:
    """The value that a text has in YAML 1.2, where that is JSON; otherwise the text itself."""
    if not text:
        return text
    try:
        value: Json = yaml.load(text, Loader=_Yaml12)
        encode(value)
    except (yaml.YAMLError, BusError, ValueError):
        return text
    return value
