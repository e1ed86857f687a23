"""Recorded bytes of a model's answer, played into a provider's reader: what frames come out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.remote import AnswerStream, feed


class Collected:
    """A sink that keeps what it is sent."""

    def __init__(self) -> None:
        self.items: list[str] = []

    async def send(self, item: str) -> None:
        self.items.append(item)

    async def close(self) -> None: ...

    @property
    def frames(self) -> list[dict[str, Any]]:
        return [json.loads(item) for item in self.items]

    @property
    def last(self) -> dict[str, Any]:
        """The message of the terminal frame."""
        frame = self.frames[-1]
        return frame["message"] if frame["type"] == "done" else frame["error"]

    def streamed(self, kind: str = "text") -> str:
        """The deltas of a kind, joined."""
        return "".join(frame["delta"] for frame in self.frames if frame["type"] == f"{kind}_delta")


def events(*values: dict[str, Any] | str) -> bytes:
    """Server-sent events of JSON values, or of text as it is."""
    lines = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


async def played(provider: str, reader: Callable[[Emitter], AnswerStream], *chunks: bytes) -> tuple[Collected, Emitter]:
    """What a provider sends for the bytes of an answer."""
    sink = Collected()
    emitter = Emitter(sink, provider, "m", 1)
    stream = reader(emitter)

    async def bytes_of() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    await emitter.start()
    try:
        await feed(provider, stream, bytes_of())
        await stream.finish()
    except UpstreamFailure as failure:
        await emitter.error(failure.kind, failure.text)
    return sink, emitter
