"""Reasoning of a request: adaptive, with an effort (siblings 7)."""

from __future__ import annotations

from typing import Any

_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}


def thinking_fields(request: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The fields of a body that ask for reasoning; what is dropped or weakened is added to `warnings`.

    A model that the catalogue does not know, or knows nothing about, gets what was asked for.
    """
    entry: dict[str, Any] = request.get("model_meta") or {}
    level, thinks = request.get("thinking_level"), entry.get("supports_thinking")
    if level is None:
        return _adaptive() if thinks is True else {}
    if thinks is False:
        warnings.append(f"thinking_level dropped: {request['model']} does not think")
        return {}
    effort = _EFFORTS[level]
    if effort == "xhigh" and entry and entry.get("supports_xhigh") is not True:
        effort = "high"
        warnings.append(f"thinking_level xhigh sent as high: {request['model']} knows no higher effort")
    return {**_adaptive(), "output_config": {"effort": effort}}


def _adaptive() -> dict[str, Any]:
    return {"thinking": {"type": "adaptive", "display": "summarized"}}
