"""The first record of a turn, made of a send's options and the session's last turn (harness-loop 5.4). Pure."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from iii_harness.record import Contract, Options, TurnRecord
from iii_harness.working_directory import names_scope, root_of, with_root

PREVIEW = 30
"""Characters of the message that traces and events show."""


def seed(
    session_id: str,
    turn_id: str,
    options: Options,
    prior: TurnRecord | None,
    *,
    now_ms: int,
    preview: str | None,
    default_root: str | None = None,
) -> TurnRecord:
    """A running turn at step 0. What it carries over from `prior`: lineage, the working directory when the options
    name no filesystem scope, what the model has seen of contracts, and the registry as far as the policy is the same.
    """
    inherited = root_of(prior.options.metadata) if prior is not None else default_root
    if not names_scope(options.metadata):
        options = replace(options, metadata=with_root(options.metadata, inherited))
    fresh = TurnRecord(
        turn_id=turn_id,
        session_id=session_id,
        status="running",
        options=options,
        created_at=now_ms,
        updated_at=now_ms,
        message_preview=preview,
    )
    if prior is None:
        return fresh
    same_policy = prior.options.functions == options.functions
    return replace(
        fresh,
        depth=prior.depth,
        parent=prior.parent,
        display_parent_session_id=prior.display_parent_session_id,
        dispatch_only_functions=prior.dispatch_only_functions,
        function_contract_ledger={key: _told_anew(seen) for key, seen in prior.function_contract_ledger.items()},
        functions_acknowledged=prior.functions_acknowledged if same_policy else None,
    )


def preview_of(message: dict[str, Any]) -> str | None:
    """The first characters of a message's text, white space collapsed; None when it has no text."""
    blocks: Any = message.get("content")
    texts = [_text(block) for block in cast("list[Any]", blocks)] if isinstance(blocks, list) else []
    return " ".join(" ".join(texts).split())[:PREVIEW] or None


def _text(block: Any) -> str:
    text: Any = cast("dict[str, Any]", block).get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) and cast("dict[str, Any]", block).get("type") == "text" else ""


def _told_anew(seen: Contract) -> Contract:
    return replace(seen, repeats=0)
