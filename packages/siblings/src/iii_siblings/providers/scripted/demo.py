"""The model `demo`: shows a newcomer the loop with real calls, without a network (siblings 17.4).

What it does next follows from the transcript alone: it looks around, uses the result, and says what to try.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from iii_siblings.providers.scripted.player import WRAPPER
from iii_siblings.providers.scripted.script import Action, Step, Wrapped

MODEL = "demo"
LOOK_AROUND = "engine::functions::list"
_CALL = re.compile(r"\bcall\s+`?([A-Za-z0-9_-]+(?:::[A-Za-z0-9_.-]+)+)`?\s*(\{.*\})?", re.DOTALL)
_SHOWN = 6
_LONGEST = 600


def demo_step(messages: list[dict[str, Any]], offered: set[str]) -> Step:
    """The next step of the demonstration."""
    since_user = _since_user(messages)
    said = _text(since_user[0]) if since_user else ""
    results = [message for message in since_user if message.get("role") == "function_result"]
    if results:
        return _said(_report(results[-1]))
    wanted = _wanted(said)
    target, payload = wanted or (LOOK_AROUND, {})
    if WRAPPER not in offered and target not in offered:
        return _said(_NOTHING_OFFERED)
    intro = f"I call `{target}` as you asked." if wanted else _HELLO
    description = "Calling the function" if wanted else "Looking around"
    return Step([Action(text=intro), Action(call=Wrapped(target, payload, description=description))])


_HELLO = (
    "Hello! I am `scripted/demo`, a model that needs no key and no network: everything I say is written in advance, "
    "but my calls are real. First I look around which functions are connected to this stack."
)
_NOTHING_OFFERED = (
    "Hello! I am `scripted/demo`, a model that needs no key and no network. This session allows me no functions, so I "
    "cannot show you a call. Start one that allows some, for example `iii-stack chat`, and say hello again."
)
_NOTHING_YET = (
    "The call came back: no worker has connected yet that offers me a function, and those of the platform itself are "
    "closed to a chat. Both the call and its result are part of this session now, and would survive if the stack were "
    "killed."
)
_NEXT = (
    "What to try next:\n"
    "- say `call engine::workers::list {}` (or any other function that this chat allows) and I call it for you;\n"
    "- connect a worker of your own that registers a function, and say hello again: it will be in the list;\n"
    "- for a real model set `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`, or `OPENAI_BASE_URL` for a compatible server, and "
    "start the stack again."
)


def _said(text: str) -> Step:
    return Step([Action(text=text)])


def _since_user(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    at = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=None)
    return [] if at is None else messages[at:]


def _text(message: dict[str, Any]) -> str:
    blocks = cast("list[dict[str, Any]]", message.get("content") or [])
    return "\n".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")


def _wanted(said: str) -> tuple[str, Any] | None:
    found = _CALL.search(said)
    if found is None:
        return None
    try:
        return found[1], json.loads(found[2] or "{}")
    except ValueError:
        return found[1], {}


def _report(result: dict[str, Any]) -> str:
    function, text = str(result.get("function_id") or "the function"), _text(result)
    if result.get("is_error"):
        return f"That call did not work; this is what came back:\n\n{_shortened(text)}\n\n{_NEXT}"
    names = _function_names(text)
    if names is None:
        return f"This came back from `{function}`:\n\n```\n{_shortened(text)}\n```\n\n{_NEXT}"
    if not names:
        return f"{_NOTHING_YET}\n\n{_NEXT}"
    own = [name for name in names if not name.startswith("engine::")]
    shown = ", ".join(f"`{name}`" for name in (own or names)[:_SHOWN])
    more = f" and {len(own or names) - _SHOWN} more" if len(own or names) > _SHOWN else ""
    found = (
        f"one function is within my reach, {shown}"
        if len(names) == 1
        else f"{len(names)} functions are within my reach, among them {shown}{more}"
    )
    return (
        f"The call came back: {found}. Both the call and its result are part of this session now, and would survive if "
        f"the stack were killed.\n\n{_NEXT}"
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _function_names(text: str) -> list[str] | None:
    source = _parsed(text)
    rows = cast("dict[str, Any]", source).get("functions") if isinstance(source, dict) else None
    if isinstance(rows, list):
        found = [_name(row) for row in cast("list[Any]", rows)]
        return [name for name in found if name]
    found = re.findall(r'"(?:function_id|id)":\s*"([^"]+::[^"]+)"', text)
    return found or None


def _name(row: Any) -> str:
    if not isinstance(row, dict):
        return str(row)
    fields = cast("dict[str, Any]", row)
    return str(fields.get("function_id") or fields.get("id") or "")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
