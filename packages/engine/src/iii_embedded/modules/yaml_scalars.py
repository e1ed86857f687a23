"""The value that a text has in YAML 1.2 (engine spec 16.1).

A module of its own, so that a start without placeholders does not pay for a YAML parser.
"""

from __future__ import annotations

import re
from typing import Any, cast

import yaml

from iii_kit.encoding import encode
from iii_kit.errors import BusError

Json = Any


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
