"""The invariants of a session at rest (engineering notes, "Invariants"), checked over the bus alone.

One checker for every suite that kills, cuts, delays or fuzzes: it reads what is durable, and takes what a test saw from
outside (starts of targets, requests to the model, events told).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iii_kit.bus import Caller

TERMINAL = frozenset({"completed", "cancelled", "failed"})


@dataclass
class Seen:
    """What a test saw from outside."""

    started: Mapping[str, int] = field(default_factory=Counter)
    """Starts of targets by function and arguments, which the test makes unique per call."""
    requests: Sequence[dict[str, Any]] = ()
    completed: Sequence[dict[str, Any]] = ()
    accepted: Iterable[str] = ()
    """Texts of user messages whose send was answered."""


async def check_session(bus: Caller, session_id: str, seen: Seen) -> None:
    """Raise `AssertionError` naming what does not hold."""
    path = await _path(bus, session_id)
    record = await bus.call("state::get", {"scope": "harness_turn", "key": session_id})
    assert record is not None, "an accepted session has a turn record"
    assert record["status"] in TERMINAL, f"the turn is left {record['status']} at step {record['step']}"
    started_twice = {key: n for key, n in seen.started.items() if n > 1}
    assert not started_twice, f"started again by the loop: {started_twice}"
    statuses = _statuses(seen.completed, session_id)
    statuses[record["turn_id"]] = record["status"]
    check_results(path, statuses)
    for request in seen.requests:
        if request.get("session_id") == session_id:
            check_request(request["messages"])
    _check_told(seen.completed, record)
    _check_accepted(path, seen, session_id, record)
    await _check_queue(bus, session_id)
    await _check_metrics(bus, session_id, path)


def check_results(path: Sequence[Mapping[str, Any]], statuses: Mapping[str, str]) -> None:
    """Invariant 1: one result per call, behind it, in call order; only a turn cut short has calls without one."""
    messages = [(item["message"], item.get("origin") or {}) for item in path if "message" in item]
    results = Counter(m["function_call_id"] for m, _ in messages if m["role"] == "function_result")
    calls: list[tuple[int, str, str | None]] = []
    for index, (message, origin) in enumerate(messages):
        if message["role"] == "assistant":
            calls += [
                (index, b["id"], origin.get("turn_id")) for b in message["content"] if b["type"] == "function_call"
            ]
    assert len({call for _, call, _ in calls}) == len(calls), "a call id stands twice in the transcript"
    known = {call for _, call, _ in calls}
    assert set(results) <= known, f"results without a call: {set(results) - known}"
    assert all(n == 1 for n in results.values()), f"more than one result: {results}"
    places = {m["function_call_id"]: i for i, (m, _) in enumerate(messages) if m["role"] == "function_result"}
    last = -1
    for index, call, turn in calls:
        if call not in places:
            assert statuses.get(turn or "") in ("cancelled", "failed"), f"call {call} of turn {turn} has no result"
            continue
        assert places[call] > index, f"the result of {call} stands before its call"
        assert places[call] > last, f"the result of {call} is out of call order"
        last = places[call]


def check_request(messages: Sequence[Mapping[str, Any]]) -> None:
    """What a provider is sent is whole: every call is followed by its result before the next reply or user message."""
    open_calls: list[str] = []
    for message in messages:
        role = message["role"]
        if role == "function_result":
            assert message["function_call_id"] in open_calls, f"a result without an open call: {message}"
            open_calls.remove(message["function_call_id"])
            continue
        assert not open_calls, f"calls without result before a {role} message: {open_calls}"
        if role == "assistant":
            open_calls = [b["id"] for b in message["content"] if b["type"] == "function_call"]
    assert not open_calls, f"calls without result at the end of a request: {open_calls}"


def _statuses(completed: Sequence[Mapping[str, Any]], session_id: str) -> dict[str, str]:
    return {event["turn_id"]: event["status"] for event in completed if event["session_id"] == session_id}


def _check_told(completed: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> None:
    """Invariant 6: told at least once, the same each time."""
    by_turn: dict[str, list[Mapping[str, Any]]] = {}
    for event in completed:
        if event["session_id"] == record["session_id"]:
            by_turn.setdefault(event["turn_id"], []).append(event)
    assert record["turn_id"] in by_turn, "the end of the last turn was never told"
    for turn, events in by_turn.items():
        plain = [{key: value for key, value in event.items() if key != "_caller_worker_id"} for event in events]
        assert all(event == plain[0] for event in plain), f"turn {turn} was told in different ways: {plain}"
    last = by_turn[record["turn_id"]][0]
    assert (last["status"], last.get("result")) == (record["status"], record.get("result"))


def _check_accepted(path: Sequence[Mapping[str, Any]], seen: Seen, session_id: str, record: Mapping[str, Any]) -> None:
    """Invariant 2: an accepted message is in the transcript once, and was shown to the model or its turn says why."""
    texts = Counter(
        "".join(block.get("text", "") for block in item["message"]["content"])
        for item in path
        if item.get("message", {}).get("role") == "user"
    )
    shown = {
        "".join(block.get("text", "") for block in message["content"])
        for request in seen.requests
        if request.get("session_id") == session_id
        for message in request["messages"]
        if message["role"] == "user"
    }
    for text in seen.accepted:
        assert texts[text] == 1, f"accepted message {text!r} stands {texts[text]} times in the transcript"
        assert text in shown or record["status"] in ("cancelled", "failed"), f"{text!r} was never answered"


async def _check_queue(bus: Caller, session_id: str) -> None:
    rows = await bus.call("state::list", {"scope": "harness_queue"})
    assert not [row for row in rows if row["session_id"] == session_id], "a message is left parked at rest"


async def _check_metrics(bus: Caller, session_id: str, path: Sequence[Mapping[str, Any]]) -> None:
    """Invariant 7: metrics equal the sum over the transcript."""
    metrics = await bus.call("harness::metrics", {"session_id": session_id})
    messages = [item["message"] for item in path if "message" in item]
    replies = [m for m in messages if m["role"] == "assistant"]
    calls = sum(b["type"] == "function_call" for m in replies for b in m["content"])
    errors = sum(m["role"] == "function_result" and m["is_error"] for m in messages)
    totals = metrics["totals"]
    assert (totals["turns"], totals["function_calls"], totals["function_call_errors"]) == (len(replies), calls, errors)


async def _path(bus: Caller, session_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    request: dict[str, Any] = {"session_id": session_id, "limit": 500, "include_custom": True}
    while True:
        page = await bus.call("session::messages", request)
        items += page["messages"]
        cursor = page.get("next_cursor")
        if cursor is None:
            return items
        request["cursor"] = cursor
