"""One session as a chat follows it: sending, hearing of what happens, stopping (harness-loop 3, 20).

Events are hints: they come at least once and unordered, and not at all while the connection is down. So the end of a
turn is also looked up from time to time, and the transcript is read once more when it is over.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from iii_contracts.harness import events as harness_events
from iii_contracts.session import MESSAGE_ADDED, MESSAGE_UPDATED
from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.errors import BusError, EpochEnded
from iii_stack.chat.entries import short
from iii_stack.chat.models import ModelChoice
from iii_stack.chat.view import ChatView

LOOK_S = 2.0
"""Pause between two looks at a turn that says nothing."""

PAGE = 500

TITLE = 60
"""Characters of the title that a new session gets from its first message."""


class Conversation:
    """A session, the turn that runs in it, and the view that shows it."""

    def __init__(self, bus: Bus, session_id: str, view: ChatView) -> None:
        self._bus = bus
        self.session_id = session_id
        self.view = view
        self.turn_id: str | None = None
        self._ended: dict[str, dict[str, Any]] = {}
        self._news = asyncio.Event()
        self._last_entry: str | None = None
        self._held: list[Callable[[], None]] | None = None
        self._connected_before = False

    async def begin(self, *, existing: bool) -> None:
        """Listen to the session; what an existing one holds already is not shown again."""
        if existing:
            await self._skip_what_is_there()
        own = f"iii-stack-chat-{uuid.uuid4().hex}"
        self._listen(f"{own}::added", MESSAGE_ADDED, self._on_added)
        self._listen(f"{own}::updated", MESSAGE_UPDATED, self._on_updated)
        self._listen(f"{own}::completed", harness_events.TURN_COMPLETED, self._on_completed)
        self._bus.each_epoch(self._read_up)

    async def send(self, message: str, model: ModelChoice | None, policy: dict[str, Any] | None) -> dict[str, Any]:
        """Send a message; while a turn runs it steers that turn."""
        request: dict[str, Any] = {
            "message": message,
            "session_id": self.session_id,
            "idempotency_key": uuid.uuid4().hex,
            "session": {"title": short(message, TITLE)},
        }
        if model is not None:
            request |= {"model": model.model, "provider": model.provider}
        if policy is not None:
            request["options"] = {"functions": policy}
        answer = await self._bus.call("harness::send", request)
        self.turn_id = answer["turn_id"]
        return answer

    async def finished(self) -> dict[str, Any]:
        """Wait until the session has no turn to wait for; returns how the last one ended."""
        while True:
            turn_id = self.turn_id
            assert turn_id is not None
            outcome = self._ended.get(turn_id) or await self._look()
            if outcome is not None and turn_id == self.turn_id and outcome.get("terminal", True):
                with suppress(EpochEnded):  # read again on the next connection
                    await self._catch_up()
                    self.view.end_line()
                    return outcome
            self._news.clear()
            if turn_id in self._ended and not self._ended[turn_id].get("terminal", True):
                await self._adopt_next_turn(turn_id)
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def stop(self) -> None:
        """Ask the running turn to stop."""
        await self._bus.call("harness::stop", {"session_id": self.session_id})

    def _listen(self, function_id: str, to: TriggerSpec, on_event: Any) -> None:
        spec = FunctionSpec(
            function_id, f"Follows {to.id} for a chat.", None, None, "invalid_request", metadata={"internal": True}
        )

        async def run(payload: Json, _: Invocation) -> Json:
            on_event(payload)
            self._news.set()

        self._bus.serve(spec, run)
        self._bus.bind(to.id, function_id, {"session_id": self.session_id})

    def _on_added(self, event: dict[str, Any]) -> None:
        self._show(lambda: self.view.entry(event))

    def _on_updated(self, event: dict[str, Any]) -> None:
        self._show(lambda: self.view.entry(event, revision=event["revision"]))

    def _show(self, show: Callable[[], None]) -> None:
        if self._held is None:
            show()
        else:
            self._held.append(show)

    async def _read_up(self) -> None:
        """On a new connection: what was missed is shown first, what happens meanwhile after it."""
        if not self._connected_before:
            self._connected_before = True
            return
        self.view.found()
        self._held = []
        try:
            missed = await self._entries()
        except EpochEnded:
            return  # the next connection reads up
        except BusError:
            missed = []  # the end of the turn reads everything once more
        for index, item in enumerate(missed, 1):
            self.view.entry(item, final=index < len(missed))
        held, self._held = self._held, None
        for show in held:
            show()

    def _on_completed(self, event: dict[str, Any]) -> None:
        self._ended[event["turn_id"]] = event

    async def _look(self) -> dict[str, Any] | None:
        """The end of the turn as the harness tells it, None while it runs or cannot be asked."""
        try:
            report = await self._bus.call("harness::status", {"session_id": self.session_id})
        except BusError as error:
            if isinstance(error, EpochEnded) or error.matches("not_connected"):
                self.view.lost()
            return None
        if report is None or report["turn_id"] != self.turn_id:
            return None
        if report["status"] not in ("completed", "cancelled", "failed") or report["expects_wake"]:
            return None
        return {**report, "reason": report.get("result_error") or report.get("stop_reason")}

    async def _adopt_next_turn(self, turn_id: str) -> None:
        try:
            report = await self._bus.call("harness::status", {"session_id": self.session_id})
        except (EpochEnded, BusError):
            return
        if report is not None and report["turn_id"] != turn_id:
            self.turn_id = report["turn_id"]

    async def _catch_up(self) -> None:
        for item in await self._entries():
            self.view.entry(item, final=True)
            self._last_entry = item["entry_id"]

    async def _skip_what_is_there(self) -> None:
        for item in await self._entries():
            self.view.skip(item["entry_id"])
            self._last_entry = item["entry_id"]

    async def _entries(self) -> list[dict[str, Any]]:
        request: dict[str, Any] = {"session_id": self.session_id, "limit": PAGE, "include_custom": True}
        if self._last_entry is not None:
            request["after_entry_id"] = self._last_entry
        entries: list[dict[str, Any]] = []
        while True:
            page = await self._bus.call("session::messages", request)
            entries.extend(page["messages"])
            cursor = page.get("next_cursor")
            if cursor is None or cursor == request.get("cursor"):
                return entries
            request["cursor"] = cursor
