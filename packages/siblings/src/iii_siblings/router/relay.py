"""One generation on its way from a provider to its caller (siblings 5.6).

Frames are passed on as they came. What is decided here: which frames are held back, when an attempt is made again,
and which terminal frame a stream gets that the provider did not end itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from iii_contracts.router import CODE_OF_KIND, IDLE, INCOMPLETE, SETUP_FAILED, UNAVAILABLE
from iii_kit.bus import Bus, Json, Opts, Source
from iii_kit.clients.failures import Failure, classify, is_transient
from iii_kit.errors import BusError, CodedError
from iii_kit.stream_frames import BEFORE_CONTENT, TERMINAL, Frame, FrameReader
from iii_kit.world import World
from iii_siblings.router import outcome as ends
from iii_siblings.router.outcome import Answered, Broken, Cut, Interrupt, Outcome
from iii_siblings.router.pricing import with_cost
from iii_siblings.router.settings import Limits
from iii_siblings.router.watch import StreamWatch

GRACE_S = 0.75
"""How long buffered frames may still come after the provider's call has ended."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
PING_EVERY_S = 15.0
LAST_WORD_S = 5.0
"""How long a caller that does not read may hold up the last frame of a stream that was cut."""
STOP_TIMEOUT_MS = 2_000


class CallerSink(Protocol):
    """Where the frames go."""

    async def send(self, item: str | bytes) -> None:
        """Send one frame; raises `BusError` when the reader is gone."""
        ...

    async def close(self) -> None:
        """End the stream."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be generated, and within which limits."""

    provider: str
    model: str
    request_id: str
    payload: dict[str, Any]
    pricing: dict[str, Any] | None
    limits: Limits


class Relay:
    """Attempts, passing on, and the end of one generation."""

    def __init__(self, bus: Bus, world: World, watch: StreamWatch, sink: CallerSink, plan: Plan) -> None:
        self._bus = bus
        self._world = world
        self._watch = watch
        self._sink = sink
        self._plan = plan
        self._clock = world.clock
        self._deadline = self._clock.monotonic() + plan.limits.stream_timeout_ms / 1000
        self._why: Interrupt | None = None
        self._interrupted: asyncio.Future[None] | None = None
        self._reader = FrameReader()
        self._held: list[str | bytes] = []
        self._attempts = 0
        self._frames = 0
        self._streaming = False
        self._ending = False
        self._reading_since: float | None = None
        self._pause: float | None = None
        self._call: asyncio.Task[Json] | None = None
        self._grace: asyncio.Task[None] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._woken = False
        self.over = asyncio.Event()
        """Set once the stream has ended and its id is free again."""
        self.message: dict[str, Any] = {}
        """The final message, once `run` has returned."""

    @property
    def provider(self) -> str:
        """The provider that generates."""
        return self._plan.provider

    def check(self, now: float) -> float:
        """Interrupt itself when it is silent or takes too long; seconds until it may be so next."""
        idle = self._plan.limits.idle_timeout_ms / 1000
        silent_until = (self._reading_since if self._reading_since is not None else now) + idle
        left = min(silent_until, self._deadline) - now
        if left <= 0:
            self.interrupt("total" if now >= self._deadline else "idle")
            return idle
        return left

    def interrupt(self, why: Interrupt) -> bool:
        """Cut the stream short; False when it is already ending."""
        if self._why is not None or (self._ending and why != "total"):
            return False
        self._why = why
        if self._interrupted is not None and not self._interrupted.done():
            self._interrupted.set_result(None)
        self._wake()
        return True

    async def run(self) -> Json:
        """Stream until the end; returns the response of `router::chat`.

        Raises `router/provider_unavailable`, with nothing sent, when the provider's function does not exist.
        """
        self._watch.add(self)
        try:
            outcome = await self._attempt()
            while (pause := self._pause if isinstance(outcome, Answered) else self._delay(outcome)) is not None:
                outcome = await self._cut_during(pause) or await self._attempt()
        finally:
            self._watch.discard(self)
        response = await self._conclude(outcome)
        await self._sink.close()
        if isinstance(outcome, Cut):
            await self._stop_provider()
        return response

    async def _attempt(self) -> Outcome:
        self._attempts += 1
        if self._attempts > 1:
            self._frames = 0
            self._reader = FrameReader()
            self._held.clear()
        plan = self._plan
        try:
            channel = await self._bus.channel()
        except BusError as error:
            return Broken(SETUP_FAILED, f"provider {plan.provider} stream got no channel: {error.code}")
        request = {**plan.payload, "writer_ref": channel.writer.to_json()}
        opts = Opts(timeout_ms=max(1, int((self._deadline - self._clock.monotonic()) * 1000)))
        call = asyncio.create_task(self._bus.call(f"provider::{plan.provider}::stream", request, opts=opts))
        call.add_done_callback(self._call_ended)
        self._call = call
        try:
            return await self._read(channel.source, call)
        finally:
            self._reading_since = self._call = None
            if self._grace is not None:
                self._grace.cancel()
                self._grace = None
            await channel.source.close()

    async def _read(self, source: Source, call: asyncio.Task[Json]) -> Outcome:
        """Pass on in the task of the caller's own call, which `interrupt` cancels where it waits."""
        task = self._task = asyncio.current_task()
        try:
            if self._why is None:
                answered = await self._pass_on(source)
                if answered is not None:
                    return answered
        except BusError:
            # The reader of the caller's channel has left.
            return Cut("gone")
        except asyncio.CancelledError:
            if task is None or not self._woken or task.uncancel() > 0:
                raise
            self._woken = False
        finally:
            self._task = None
        await self._hear(call)
        if self._why is not None:
            return Cut("gone" if self._ending else self._why)
        return self._broken(call)

    async def _hear(self, call: asyncio.Task[Json]) -> None:
        """A stream has ended without its last frame: the provider's call, which ends about now, may say why."""
        if not call.done() and self._why is None:
            await self._wait(GRACE_S, call)

    async def _wait(self, seconds: float, *others: asyncio.Future[Any]) -> None:
        """Wait that long, for one of the others or for an interruption."""
        self._interrupted = asyncio.get_running_loop().create_future()
        sleeping = asyncio.create_task(self._clock.sleep(seconds))
        await asyncio.wait({sleeping, self._interrupted, *others}, return_when=asyncio.FIRST_COMPLETED)
        sleeping.cancel()

    def _call_ended(self, call: asyncio.Task[Json]) -> None:
        """The provider's call has ended: what it sent may still be on its way, for a while."""
        error = None if call.cancelled() else call.exception()
        if call is not self._call or self._task is None:
            return
        if isinstance(error, BusError) and classify(error) is Failure.ABSENT and self._frames == 0:
            self._wake()
        else:
            self._grace = asyncio.create_task(self._wake_later())

    async def _wake_later(self) -> None:
        """Give up on frames that might still come once none came for a while; a slow caller is waited for."""
        seen = -1
        while self._reading_since is None or self._frames != seen:
            seen = self._frames
            await self._clock.sleep(GRACE_S)
        self._wake()

    def _wake(self) -> None:
        if self._task is not None and not self._woken:
            self._woken = True
            self._task.cancel()

    def _broken(self, call: asyncio.Task[Json]) -> Broken:
        provider = self._plan.provider
        error = call.exception() if call.done() and not call.cancelled() else None
        if self._frames > 0 or not isinstance(error, BusError):
            return Broken(INCOMPLETE, f"provider {provider} stream ended without a terminal frame")
        if classify(error) is Failure.ABSENT:
            raise CodedError(UNAVAILABLE, f"provider {provider} is registered, but serves no stream function")
        kind = "transient" if is_transient(error) else "permanent"
        text = f"provider {provider} did not start the stream: {error.message}"
        return Broken(SETUP_FAILED, text, kind, kind == "transient")

    async def _pass_on(self, source: Source) -> Answered | None:
        """Pass frames on until the terminal one, which stays behind when the attempt is made again."""
        monotonic = self._clock.monotonic
        self._reading_since = monotonic()
        async for item in source:
            self._reading_since = None
            self._frames += 1
            frame = self._reader.feed(item)
            if frame is not None:
                kind = frame.type
                if kind in TERMINAL:
                    answered = self._answered(frame, item)
                    if answered is not None:
                        self._pause = self._delay(answered)
                        if self._pause is None:
                            self._ending = True
                            await self._release(answered.item)
                        return answered
                elif self._streaming or kind == "ping":
                    await self._sink.send(self._priced(frame, item))
                elif kind not in BEFORE_CONTENT:
                    await self._begin(item)
                else:
                    self._held.append(self._priced(frame, item))
            self._reading_since = monotonic()
        return None

    async def _begin(self, item: str | bytes) -> None:
        self._streaming = True
        await self._release(item)

    async def _release(self, item: str | bytes) -> None:
        """Send what is held, and then a frame."""
        held, self._held = self._held, []
        for earlier in held:
            await self._sink.send(earlier)
        await self._sink.send(item)

    def _answered(self, frame: Frame, item: str | bytes) -> Answered | None:
        message = self._reader.ended
        if message is None:
            return None
        failed = frame.type == "error"
        priced = with_cost(ends.usage_of(message, None), self._plan.pricing)
        if priced is None:
            return Answered(message, item, failed, frame.retry_after_ms)
        message = {**message, "usage": priced}
        return Answered(message, ends.frame("error" if failed else "done", message), failed, frame.retry_after_ms)

    def _priced(self, frame: Frame, item: str | bytes) -> str | bytes:
        if frame.type != "usage":
            return item
        usage = with_cost(frame.usage, self._plan.pricing)
        return item if usage is None else msgspec.json.encode({"type": "usage", "usage": usage}).decode()

    def _delay(self, outcome: Outcome) -> float | None:
        """Seconds until the next attempt, or None when this outcome stands."""
        if self._streaming or self._attempts > self._plan.limits.retry_max or ends.error_kind(outcome) is None:
            return None
        doubled = FIRST_PAUSE_S * 2.0 ** (self._attempts - 1)
        pause = min(LONGEST_PAUSE_S, doubled * (0.75 + self._world.random.random() / 2))
        if isinstance(outcome, Answered) and outcome.retry_after_ms is not None:
            pause = max(pause, outcome.retry_after_ms / 1000)
        return pause if self._clock.monotonic() + pause < self._deadline else None

    async def _cut_during(self, seconds: float) -> Cut | None:
        """Pause before the next attempt."""
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0:
            if self._why is None:
                await self._wait(min(left, PING_EVERY_S))
            if self._why is not None:
                return Cut(self._why)
            if left > PING_EVERY_S:
                try:
                    await self._sink.send('{"type":"ping"}')
                except BusError:
                    return Cut("gone")
        return None

    async def _conclude(self, outcome: Outcome) -> Json:
        if isinstance(outcome, Answered):
            self.message = outcome.message
            detail = None if outcome.retry_after_ms is None else {"retry_after_ms": outcome.retry_after_ms}
            code = CODE_OF_KIND[outcome.kind] if outcome.failed else None
            return self._response(code, detail)
        base = self._so_far()
        if isinstance(outcome, Broken):
            self.message = ends.error_message(base, outcome.text, outcome.kind)
            code = outcome.code
        elif outcome.why in ("abort", "gone"):
            self.message, code = {**base, "stop_reason": "aborted"}, None
        else:
            code, text = self._cut_text(outcome.why)
            self.message = ends.error_message(base, text, "transient")
        if outcome != Cut("gone"):
            await self._last_word(ends.frame("done" if code is None else "error", self.message))
        return self._response(code)

    def _cut_text(self, why: Interrupt) -> tuple[str, str]:
        provider, limits = self._plan.provider, self._plan.limits
        if why == "idle":
            return IDLE, f"provider {provider} stream idle past {limits.idle_timeout_ms}ms"
        if why == "total":
            return INCOMPLETE, f"provider {provider} stream took longer than {limits.stream_timeout_ms}ms"
        return INCOMPLETE, f"provider {provider} stream was ended because the router is stopping"

    def _so_far(self) -> dict[str, Any]:
        plan = self._plan
        base = self._reader.partial() or ends.assistant(plan.provider, plan.model, self._clock.now_ms())
        usage = ends.usage_of(base, self._reader.usage)
        usage = with_cost(usage, plan.pricing) or usage
        return base if usage is None else {**base, "usage": usage}

    async def _last_word(self, item: str) -> None:
        """Send what is held and a last frame, unless the caller does not read it for too long."""
        sending = asyncio.create_task(self._release_and_send(item))
        waiting = asyncio.create_task(self._clock.sleep(LAST_WORD_S))
        await asyncio.wait({sending, waiting}, return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, waiting):
            task.cancel()
        await asyncio.wait({sending, waiting})

    async def _release_and_send(self, item: str) -> None:
        try:
            await self._release(item)
        except BusError:
            pass

    def _response(self, code: str | None, detail: Any = None) -> Json:
        message, plan = self.message, self._plan
        response: dict[str, Any] = {
            "ok": code is None,
            "provider": plan.provider,
            "model": plan.model,
            "stop_reason": message.get("stop_reason", "end"),
        }
        usage = ends.usage_of(message, self._reader.usage)
        if usage is not None:
            response["usage"] = usage
        if code is not None:
            response["error"] = ends.error_answer(message, code, detail)
        return response

    async def _stop_provider(self) -> None:
        """Tell the provider to stop; a closed channel already says so, this is quicker."""
        fn = f"provider::{self._plan.provider}::abort"
        try:
            await self._bus.call(fn, {"request_id": self._plan.request_id}, opts=Opts(timeout_ms=STOP_TIMEOUT_MS))
        except BusError:
            pass
