"""A provider of tests that plays a list of frames per attempt, to see what the router makes of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from iii_contracts.provider import functions_of
from iii_kit.bus import Bus
from iii_kit.errors import BusError, CodedError


def message(text: str = "", **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    base = {"role": "assistant", "content": content, "stop_reason": "end", "model": "m", "provider": "played"}
    return {**base, "timestamp": 1, **fields}


START = {"type": "start", "partial": message()}
TEXT = {"type": "text_start", "partial": message("Hel")}
DELTA = {"type": "text_delta", "delta": "lo"}
PING = {"type": "ping"}
DONE = {"type": "done", "message": message("Hello")}


def usage(**counts: Any) -> dict[str, Any]:
    return {"type": "usage", "usage": counts}


def failed(kind: str, **fields: Any) -> dict[str, Any]:
    error = message(stop_reason="error", error_kind=kind, error_message="it failed")
    return {"type": "error", "error": error, **fields}


class Played:
    """Each attempt plays the next list: frames, raw strings, `"hang"`, or an exception for the call."""

    def __init__(self, bus: Bus, name: str = "played") -> None:
        self.bus = bus
        self.name = name
        self.attempts: list[list[Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.aborted: list[str] = []
        self.cancelled = 0
        self.reader_gone = 0
        self._release = asyncio.Event()
        functions = functions_of(name)
        bus.serve(functions.stream, self._stream)
        bus.serve(functions.abort, self._abort)
        self.token = ""

    async def register(self, **fields: Any) -> Played:
        answer = await self.bus.call("router::provider::register", {"id": self.name, **fields})
        self.token = answer["registration_token"]
        return self

    async def _stream(self, request: dict[str, Any], _: Any) -> Any:
        self.requests.append(request)
        attempt = self.attempts.pop(0) if len(self.attempts) > 1 else self.attempts[0]
        if attempt and isinstance(attempt[0], CodedError):
            raise attempt[0]
        sink = await self.bus.sink(request["writer_ref"])
        try:
            for item in attempt:
                if item == "hang":
                    await self._release.wait()
                else:
                    await sink.send(item if isinstance(item, str) else json.dumps(item))
        except BusError:
            self.reader_gone += 1
        await sink.close()
        return {"ok": True}

    async def _abort(self, request: Any, _: Any) -> Any:
        self.aborted.append(request.request_id)
        self._release.set()
        return {"aborted": True}
