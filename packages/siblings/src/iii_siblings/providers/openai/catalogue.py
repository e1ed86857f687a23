"""The models that the API lists, as catalogue entries (siblings 8): curated data, because the API tells little."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, cast

from iii_kit.encoding import decode
from iii_siblings.providers.openai.endpoint import Endpoint
from iii_siblings.providers.openai.reasoning import ladder
from iii_siblings.providers.payload import count, field

_CHAT_MODEL = re.compile(r"^(gpt-|chatgpt|o\d)")
_OTHER_USES = (
    "embedding",
    "whisper",
    "tts",
    "audio",
    "dall-e",
    "image",
    "moderation",
    "realtime",
    "transcribe",
    "search",
    "babbage",
    "davinci",
    "ada",
    "curie",
)
_LEGACY = re.compile(r"^(gpt-3|gpt-4|chatgpt|o1|o3|o4)")
_WINDOWS = (
    ("context_window",),
    ("context_length",),
    ("max_model_len",),
    ("max_context_length",),
    ("meta", "n_ctx"),
    ("meta", "n_ctx_train"),
)
_CEILINGS = (("max_output_tokens",), ("max_completion_tokens",), ("top_provider", "max_completion_tokens"))


def entries(provider: str, listing: Any, endpoint: Endpoint) -> list[dict[str, Any]]:
    """The catalogue entries of a list of models."""
    rows = field(listing, "data")
    listed = cast("list[Any]", rows) if isinstance(rows, list) else []
    found: dict[str, dict[str, Any]] = {}
    for row in listed:
        model = field(row, "id")
        if isinstance(model, str) and model and (not endpoint.official or offered(model)):
            found[model] = _official(provider, model) if endpoint.official else _compatible(provider, model, row)
    return [found[model] for model in sorted(found)]


def offered(model: str) -> bool:
    """True for the chat models of the official host that are not of a legacy family."""
    if not _CHAT_MODEL.match(model) or _LEGACY.match(model):
        return False
    return not any(use in model for use in _OTHER_USES)


def _official(provider: str, model: str) -> dict[str, Any]:
    known = _data()["models"].get(model) or _data()["fallback"]
    efforts = ladder(model)
    entry = {
        "id": model,
        "provider": provider,
        **known,
        "supports_tools": True,
        "supports_vision": True,
        "supports_cache": True,
        "supports_structured_output": True,
        "supports_thinking": bool(efforts),
        "supports_xhigh": "xhigh" in efforts,
        "supports_thinking_off": "none" in efforts,
    }
    return entry | ({"reasoning_efforts": [{"effort": effort} for effort in efforts]} if efforts else {})


def _compatible(provider: str, model: str, row: Any) -> dict[str, Any]:
    fallback = _data()["compatible"]
    window = _first(row, _WINDOWS) or fallback["context_window"]
    ceiling = _first(row, _CEILINGS) or min(fallback["max_output_tokens"], max(1, window // 2))
    return {
        "id": model,
        "provider": provider,
        "context_window": window,
        "max_output_tokens": min(ceiling, window),
        "supports_tools": True,
        "supports_structured_output": True,
    }


def _first(row: Any, paths: tuple[tuple[str, ...], ...]) -> int | None:
    return next((found for path in paths if (found := count(row, *path))), None)


@cache
def _data() -> dict[str, Any]:
    return decode(files("iii_siblings.providers.openai").joinpath("models.json").read_bytes())
