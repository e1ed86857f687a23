"""Entries of a transcript as lines for people: shared by `show` and `chat`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from rich.console import Console

GENERIC = "agent_trigger"
"""The one tool of a provider that stands for all functions; its arguments name the real one."""

QUIET = frozenset({"runtime_context", "compaction", "message_order"})
"""Custom types that are for the model and the harness; people see them only when they ask for a transcript."""

SPOKEN: dict[str, tuple[str, ...]] = {
    "recovery": ("status", "summary", "reason"),
    "error": ("summary", "reason"),
    "notice": ("message",),
    "model_notice": ("text",),
    "runtime_context": ("aid",),
}
"""What the loop writes into its own entries for people to read (harness-loop 11.2, 11.3, 12.1)."""

WIDTH = 200

SPOKEN_WIDTH = 600
"""What is meant for people is cut later: the end of an error often says what to do."""

AID_WIDTH = 60
"""What is meant for the model is folded to where it begins: `show --json` has the whole of it."""


class CallLine(NamedTuple):
    """A call as it is shown."""

    function: str
    argument: str


def call_line(block: dict[str, Any]) -> CallLine:
    """The function that a call block asks for, and its argument."""
    arguments = block.get("arguments")
    function = block["function_id"]
    if function == GENERIC and isinstance(arguments, dict):
        function = str(arguments.get("function", GENERIC))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        arguments = arguments.get("payload", {})  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return CallLine(function, short(text))


def result_line(message: dict[str, Any]) -> str:
    """The content of a result in one line."""
    return short(text_of(message["content"])) or "(nothing)"


def custom_line(custom: dict[str, Any]) -> str:
    """A bookkeeping entry in one line: what it says to people, else its data."""
    kind, data = custom["custom_type"], custom["data"]
    said = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    spoken = dict.fromkeys(str(said[key]) for key in SPOKEN.get(kind, ()) if said.get(key))
    if spoken:
        return f"[{kind}] {short(' · '.join(spoken), AID_WIDTH if kind in QUIET else SPOKEN_WIDTH)}"
    return f"[{kind}] {short(json.dumps(data, ensure_ascii=False))}"


def text_of(content: list[dict[str, Any]]) -> str:
    """All text of content blocks."""
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def short(text: str, width: int = WIDTH) -> str:
    """One line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def print_call(out: Console, block: dict[str, Any]) -> None:
    """A call that was asked for."""
    from rich.text import Text

    line = call_line(block)
    out.print(Text.assemble(("→ ", "cyan"), (line.function, "bold cyan"), " ", (line.argument, "dim")))


def print_result(out: Console, message: dict[str, Any]) -> None:
    """The result of a call."""
    from rich.text import Text

    failed = message.get("is_error", False)
    mark, style = ("✗ ", "red") if failed else ("✓ ", "green")
    out.print(Text.assemble((mark, style), (result_line(message), "red" if failed else "dim")))


def print_custom(out: Console, custom: dict[str, Any]) -> None:
    """A bookkeeping entry."""
    from rich.text import Text

    out.print(Text(custom_line(custom), style="dim" if custom["custom_type"] in QUIET else "yellow"))


def print_entry(out: Console, entry: dict[str, Any]) -> None:
    """A whole entry."""
    from rich.text import Text

    message = entry.get("message")
    if message is None:
        print_custom(out, entry["custom"])
        return
    role = message["role"]
    if role == "function_result":
        print_result(out, message)
        return
    text = text_of(message["content"])
    if role == "user":
        out.print(Text.assemble(("> ", "bold"), (text, "bold")))
    elif text:
        out.print(Text(text, style="" if role == "assistant" else "dim"))
    for block in message["content"]:
        if block["type"] == "function_call":
            print_call(out, block)
        elif block["type"] in ("image", "file"):
            out.print(Text(f"[{block['type']} {block.get('name', block['mime'])}]", style="dim"))
    if message.get("error_message"):
        out.print(Text(message["error_message"], style="red"))
