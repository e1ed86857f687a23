"""Rates of models: a file that is shipped, and one of the operator that goes over it (siblings 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from iii_kit.logs import logger

VARIABLE = "PROVIDER_ANTHROPIC_PRICES"
"""Names a file of the same form, whose models are added or replaced."""
CACHE_WRITE_FACTOR = 1.25
_DATED = re.compile(r"-\d{8}$")

_log = logger(__name__)


class Rates(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class _File(msgspec.Struct, frozen=True):
    models: dict[str, Rates]


def price_list(environ: Mapping[str, str]) -> dict[str, Rates]:
    """The rates by model. A file of the operator that cannot be read is told of and left out."""
    path = environ.get(VARIABLE, "").strip()
    if not path:
        return _shipped()
    try:
        own = msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        _log.warning("prices_not_read", variable=VARIABLE, problem=str(error))
        return _shipped()
    return _shipped() | own.models


def pricing_of(model: str, prices: Mapping[str, Rates]) -> dict[str, Any] | None:
    """The rates of a model for its catalogue entry; a date at the end of its name is ignored."""
    rates = prices.get(model) or prices.get(_DATED.sub("", model))
    if rates is None:
        return None
    return {"cache_write": rates.input * CACHE_WRITE_FACTOR, **msgspec.to_builtins(rates)}


@cache
def _shipped() -> dict[str, Rates]:
    data = files("iii_siblings.providers.anthropic").joinpath("prices.json").read_bytes()
    return msgspec.json.decode(data, type=_File).models
