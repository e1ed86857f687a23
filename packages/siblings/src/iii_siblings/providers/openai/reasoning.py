"""Reasoning efforts of model families, and the effort of a thinking level (siblings 8)."""

from __future__ import annotations

import re
from typing import Any

ORDER = ("none", "minimal", "low", "medium", "high", "xhigh")
_GPT = re.compile(r"^gpt-(\d+)(?:\.(\d+))?")
_O_SERIES = re.compile(r"^o(\d+)")


def version_of(model: str) -> tuple[int, int] | None:
    """The version of a `gpt-` model, or None."""
    found = _GPT.match(model)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def ladder(model: str) -> tuple[str, ...]:
    """The efforts that a model knows, lowest first; empty for models that do not reason and for unknown names."""
    if "chat" in model:
        return ()
    version = version_of(model)
    if version is not None:
        return _gpt_ladder(model, version)
    found = _O_SERIES.match(model)
    if found is None or found[1] == "1":
        return ()
    return ("high",) if model.endswith("-pro") else ("low", "medium", "high")


def effort_for(level: str, efforts: tuple[str, ...]) -> str | None:
    """The nearest effort at or below a level, else the nearest above; None without a ladder."""
    known = [effort for effort in efforts if effort in ORDER]
    if not known:
        return None
    wanted = ORDER.index(level)
    below = [effort for effort in known if ORDER.index(effort) <= wanted and effort != "none"]
    if below:
        return max(below, key=ORDER.index)
    above = [effort for effort in known if ORDER.index(effort) > wanted]
    return min(above, key=ORDER.index) if above else known[-1]


def efforts_of(model: str, entry: dict[str, Any] | None) -> tuple[str, ...]:
    """The efforts that a catalogue entry lists, else those of the model's family."""
    steps: list[dict[str, Any]] = (entry or {}).get("reasoning_efforts") or []
    listed = tuple(str(step.get("effort")) for step in steps)
    return listed or ladder(model)


def _gpt_ladder(model: str, version: tuple[int, int]) -> tuple[str, ...]:
    if version < (5, 0):
        return ()
    if model.endswith("-pro"):
        return ("high",)
    if version >= (5, 2):
        return ("none", "low", "medium", "high", "xhigh")
    return ("none", "low", "medium", "high") if version == (5, 1) else ("minimal", "low", "medium", "high")
