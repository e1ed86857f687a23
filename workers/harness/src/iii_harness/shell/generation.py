"""One generation: the call of the router, the stream beside it, the partials on the way (harness-loop 7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from iii_harness.decide import entry_ids
from iii_harness.decide.decision import Generated
from iii_harness.errors import dependency
from iii_harness.record import TurnRecord
from iii_harness.shell.partials import Partials
from iii_harness.shell.parts import Parts
from iii_harness.shell.racing import Background
from iii_kit.bus import Channel, Json, Opts
from iii_kit.errors import BusError, CodedError, EpochEnded
from iii_kit.stream_frames import FrameReader
from iii_kit.world import Clock

CHAT = "router::chat"
IN_PROGRESS = "router/request_in_progress"

DRAIN_SECONDS = 0.75
"""How long frames are still read once the router has answered."""

ABORT_TIMEOUT_MS = 5_000


class InProgress(CodedError):
    """The router still streams this request id: the step runs again in place."""

    def __init__(self) -> None:
        super().__init__("harness/dependency", f"{CHAT}: {IN_PROGRESS}")


class _Exchange:
    """The router's answer and the stream beside it. A stop ends both at once, the answer ends the stream soon after."""

    def __init__(self, chat: Coroutine[Any, Any, Json], clock: Clock) -> None:
        self.chat = asyncio.create_task(chat)
        self._clock = clock
        self._waits: asyncio.Task[Any] | None = None
        self._reading = False
        self._stopped = False
        self._cut = False
        self._timer: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """The turn was told to stop."""
        self._stopped = True
        self._interrupt()

    async def over(self, reading: Coroutine[Any, Any, None]) -> bool:
        """Read to the end and have the answer; False when a stop came before it."""
        if self._stopped:
            reading.close()
            return False
        task = self._waits = asyncio.current_task()
        chat = self.chat
        chat.add_done_callback(self._answered)
        self._reading = True
        try:
            await reading
            self._reading = False
            await self._heard()
        except asyncio.CancelledError:
            if not self._cut or task is None or task.uncancel() > 0:
                raise
        finally:
            self._waits = None
            if self._timer is not None:
                self._timer.cancel()
        return chat.done() and not chat.cancelled()

    async def _heard(self) -> None:
        """Wait for the answer; what it is, or the error in its place, is looked at later."""
        if not self.chat.done():
            try:
                await self.chat
            except BusError:
                pass

    def _answered(self, _: asyncio.Task[Json]) -> None:
        if self._reading and self._waits is not None:
            self._timer = asyncio.create_task(self._interrupt_later())

    async def _interrupt_later(self) -> None:
        await self._clock.sleep(DRAIN_SECONDS)
        self._interrupt()

    def _interrupt(self) -> None:
        """Wake the waiting task where it waits, once."""
        if self._waits is not None and not self._cut:
            self._cut = True
            self._waits.cancel()


class Generation:
    """Asks the model."""

    def __init__(self, parts: Parts, background: Background) -> None:
        self._parts = parts
        self._background = background

    async def run(self, record: TurnRecord, request: dict[str, Any], *, again: bool, last: bool) -> Generated:
        """Stream one reply.

        `again`: an earlier delivery may have begun this request id, so it is aborted first. `last`: a request that
        is still in progress is a failure now, and no reason to try once more (raises `InProgress`).
        """
        if again:
            await self._abort(record)
        channel = await self._channel()
        reader = FrameReader()
        partials = Partials(self._parts, record, entry_ids.assistant(record.turn_id, record.step), reader)
        exchange = _Exchange(self._chat(request, channel), self._parts.world.clock)
        leave = self._parts.signals.watch(record.turn_id, exchange.stop)
        try:
            if not await exchange.over(partials.pump(channel.source)):
                # The first abort may have raced the registration of the stream.
                self._background.start(self._abort(record))
                return Generated(_aborted(record, reader), ok=True)
            begun = bool((reader.partial() or {}).get("content"))
            return _outcome(record, reader, _answer(exchange.chat, begun=begun, last=last))
        finally:
            leave()
            if not exchange.chat.done():
                exchange.chat.cancel()
                self._background.keep(exchange.chat)
            await partials.settled()
            await channel.source.close()

    async def _channel(self) -> Channel:
        try:
            return await self._parts.bus.channel()
        except EpochEnded:
            raise
        except BusError as error:
            raise dependency("engine::channels::create", error) from error

    def _chat(self, request: dict[str, Any], channel: Channel) -> Coroutine[Any, Any, Json]:
        opts = Opts(timeout_ms=self._parts.limits().router_timeout_ms)
        return self._parts.bus.call(CHAT, {**request, "writer_ref": channel.writer.to_json()}, opts=opts)

    async def _abort(self, record: TurnRecord) -> None:
        try:
            opts = Opts(timeout_ms=ABORT_TIMEOUT_MS)
            await self._parts.bus.call("router::abort", {"request_id": record.request_id}, opts=opts)
        except EpochEnded:
            raise
        except BusError:
            pass


def _answer(chat: asyncio.Task[Json], *, begun: bool, last: bool) -> dict[str, Any]:
    """The router's response; an error that it answered with becomes one, a failed transport is raised.

    A router that died leaves what it had `begun`; where that is nothing, the step just runs again.
    """
    try:
        answer = chat.result()
    except EpochEnded:
        raise
    except BusError as error:
        if error.matches(IN_PROGRESS):
            if not last:
                raise InProgress from error
            return {"ok": False, "error": {"code": IN_PROGRESS, "message": error.message, "kind": "transient"}}
        stopped = error.matches("invocation_stopped")
        if stopped and begun:
            return {}
        if stopped or error.code == "TIMEOUT" or error.matches("function_not_found") or error.matches("not connected"):
            raise dependency(CHAT, error) from error
        return {"ok": False, "error": {"code": _code(error), "message": error.message}, "thrown": True}
    response = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    refused: Any = response.get("error")
    if not last and isinstance(refused, dict) and cast("dict[str, Any]", refused).get("code") == IN_PROGRESS:
        raise InProgress
    return response


def _code(error: BusError) -> str:
    """The router's code, which a bus that cannot carry it leaves at the head of the message."""
    if error.code.startswith("router/"):
        return error.code
    head = error.message.partition(":")[0].strip()
    return head if head.startswith("router/") else ""


def _outcome(record: TurnRecord, reader: FrameReader, response: dict[str, Any]) -> Generated:
    raw: Any = response.get("error")
    error = cast("dict[str, Any]", raw) if isinstance(raw, dict) else None
    message = reader.ended
    if message is None and response.get("stop_reason") == "aborted":
        message = _aborted(record, reader)
    if message is None:
        kind = "permanent" if error is not None else "transient"
        text = error.get("message") if error is not None else "router produced no terminal frame"
        message = {**_partial(record, reader), "stop_reason": "error", "error_kind": kind, "error_message": text}
    if error is not None and response.get("thrown") and "kind" not in error:
        error = {**error, "kind": message.get("error_kind") or "permanent"}
    ok = response.get("ok") is not False and error is None and message.get("stop_reason") != "error"
    return Generated(message, ok, error)


def _aborted(record: TurnRecord, reader: FrameReader) -> dict[str, Any]:
    """What had arrived when the turn was stopped."""
    message = reader.ended or _partial(record, reader)
    return {**message, "stop_reason": "aborted"}


def _partial(record: TurnRecord, reader: FrameReader) -> dict[str, Any]:
    message = reader.partial()
    if message is None:
        options = record.options
        message = {
            "role": "assistant",
            "content": list[Any](),
            "model": options.model,
            "provider": options.provider or "",
        }
    return message if reader.usage is None else {**message, "usage": reader.usage}
