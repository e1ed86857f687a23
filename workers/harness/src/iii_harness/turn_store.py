"""Turn records in the state store (harness-loop 4): load, save, list, delete.

One harness process runs per state store, so a record this process wrote is the stored one: live records are cached
until the connection ends (`renewed`), a write fails, or the bound is reached. A long system prompt is the same in
every write of its session, so it is stored once by its digest in the scope `harness_prompt` and joined on load.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from iii_harness.record import TERMINAL, TurnRecord, from_row, to_row
from iii_harness.running_index import RUNNING, RunningIndex
from iii_kit.bus import Call, Caller, Json, Opts
from iii_kit.errors import BusError, CodedError, EpochEnded
from iii_kit.world import Clock

TURNS = "harness_turn"
PROMPTS = "harness_prompt"

CACHED = 4096
"""Live records kept in memory."""

INLINE_PROMPT = 512
"""Characters of a system prompt that stay in the record itself."""

RETRY_SECONDS = 0.5

FEW = 2_000
"""Records up to which recovery reads them all, whoever wrote them; of more it reads those that the index names."""

AT_ONCE = 64
"""Records that are read side by side."""


class TurnStore:
    """The records of all sessions. Every read-modify-write happens under the session's lock, which callers hold."""

    def __init__(self, bus: Caller, clock: Clock, opts: Callable[[], Opts]) -> None:
        self._bus = bus
        self._clock = clock
        self._opts = opts
        self._live: OrderedDict[str, TurnRecord] = OrderedDict()
        self._prompts: dict[str, str] = {}
        self._stored: set[str] = set()
        self._written: set[str] = set()
        self._index = RunningIndex(opts)
        self._countable = True
        """One answer can carry all records; not again in this process, once it could not."""
        self._few = True

    async def load(self, session_id: str) -> TurnRecord | None:
        """The session's record, or None when it never had a turn."""
        cached = self._live.get(session_id)
        if cached is not None:
            self._live.move_to_end(session_id)
            return cached
        row = await self._read("state::get", {"scope": TURNS, "key": session_id})
        if row is None:
            return None
        record = from_row(await self._joined(row))
        self._keep(record)
        return record

    async def save(self, record: TurnRecord) -> None:
        """Write a record; a write that timed out is tried once more, since writing it again changes nothing."""
        calls = self.writes(record)
        try:
            await self._send(calls)
        except BusError:
            self.forget(record.session_id)
            raise
        self.saved(record)

    def writes(self, record: TurnRecord) -> list[Call]:
        """The calls that write a record, for a sequence; tell the outcome with `saved` or `forget`."""
        row = to_row(record)
        opts = replace(self._opts(), unread=True)
        mark = [] if record.status in TERMINAL else self._index.mark(record.session_id)
        save = Call("state::set", {"scope": TURNS, "key": record.session_id, "value": row}, opts=opts)
        prompt = record.options.system_prompt
        if prompt is None or len(prompt) <= INLINE_PROMPT:
            return [*mark, save]
        digest = self._prompts.get(prompt) or self._digest(prompt)
        options = row["options"]
        del options["system_prompt"]
        options["system_prompt_digest"] = digest
        if digest in self._stored:
            return [*mark, save]
        self._written.add(digest)
        body = {"scope": PROMPTS, "key": digest, "value": {"digest": digest, "body": prompt}}
        return [Call("state::set", body, opts=opts), *mark, save]

    def saved(self, record: TurnRecord) -> None:
        """The writes of `record` are acknowledged."""
        digest = self._prompts.get(record.options.system_prompt or "")
        if digest is not None:
            self._stored.add(digest)
        if record.status not in TERMINAL:
            self._index.marked(record.session_id)
        self._keep(record)

    def forget(self, session_id: str) -> None:
        """The stored record of this session may differ from the cached one: read it anew."""
        self._live.pop(session_id, None)

    def renewed(self) -> None:
        """A new connection begins: another process may have written meanwhile."""
        self._live.clear()
        self._stored.clear()
        self._written.clear()
        self._index.renewed()

    async def running(self) -> list[TurnRecord]:
        """The records of turns that run: found among all records, or by the index where those are many."""
        rows = await self._all_rows() if self._few else None
        if rows is not None:
            self._few = len(rows) <= FEW
            readable = [await self._readable(row) for row in rows if _runs(row)]
            return [record for record in readable if record is not None]
        self._few = False
        records: list[TurnRecord] = []
        sessions = await self.indexed()
        for start in range(0, len(sessions), AT_ONCE):
            loaded = await asyncio.gather(*(self._found(each) for each in sessions[start : start + AT_ONCE]))
            records += [record for record in loaded if record is not None and record.status == "running"]
        return records

    async def indexed(self) -> list[str]:
        """Sessions that may have a turn which is not over."""
        found = (RunningIndex.session_of(row) for row in values(await self._read("state::list", {"scope": RUNNING})))
        return [session_id for session_id in found if session_id is not None]

    def lives(self, session_id: str) -> bool:
        """True when the session's turn is known not to be over."""
        return session_id in self._live

    async def retire(self, session_id: str) -> None:
        """Take a session whose turn is over out of the index; the caller holds its lock."""
        record = await self._found(session_id)
        if record is None or record.status in TERMINAL:
            await self._send([self._index.drop(session_id)])

    async def delete(self, session_id: str) -> None:
        """Remove the session's record."""
        self.forget(session_id)
        drop = Call("state::delete", {"scope": TURNS, "key": session_id}, opts=self._opts())
        await self._send([drop, self._index.drop(session_id)])
        self.forget(session_id)

    async def collect_prompts(self) -> int:
        """Delete stored prompts that neither a row nor this process's own writes use; returns how many.

        The prompts are listed before the rows that may use them: one that is stored meanwhile is not in the list.
        """
        stored = [_digest_of(row) for row in values(await self._read("state::list", {"scope": PROMPTS}))]
        rows = await self._all_rows()
        if rows is None:
            return 0
        used = {_prompt_of(row) for row in rows}
        collected = {digest for digest in stored if digest is not None} - used
        for digest in list(collected):
            if digest in self._written:
                # A turn of this process may be on its way to disk with it.
                collected.discard(digest)
                continue
            await self._send([Call("state::delete", {"scope": PROMPTS, "key": digest}, opts=self._opts())])
        self._prompts = {text: known for text, known in self._prompts.items() if known not in collected}
        return len(collected)

    async def _all_rows(self) -> list[Json] | None:
        """All records as they are stored; None where one answer cannot carry them."""
        if not self._countable:
            return None
        # Beforehand: over a socket an answer that is too large ends the connection, and this work with it.
        self._countable = False
        try:
            rows = values(await self._read("state::list", {"scope": TURNS}))
        except CodedError as error:
            self._countable = not error.matches("payload_too_large")
            if self._countable:
                raise
            return None
        self._countable = True
        return rows

    async def _readable(self, row: Json) -> TurnRecord | None:
        try:
            return from_row(await self._joined(row))
        except CodedError:
            return None

    async def _found(self, session_id: str) -> TurnRecord | None:
        """The session's record, None when there is none or it cannot be read."""
        cached = self._live.get(session_id)
        if cached is not None:
            return cached
        row = await self._read("state::get", {"scope": TURNS, "key": session_id})
        return None if row is None else await self._readable(row)

    def _keep(self, record: TurnRecord) -> None:
        if record.status in TERMINAL:
            self._live.pop(record.session_id, None)
            return
        self._live[record.session_id] = record
        if len(self._live) > CACHED:
            self._live.popitem(last=False)

    def _digest(self, prompt: str) -> str:
        digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
        if len(self._prompts) >= CACHED:
            self._prompts.clear()
        self._prompts[prompt] = digest
        return digest

    async def _joined(self, row: Json) -> Json:
        """The row with its system prompt, when that is stored apart."""
        digest = _prompt_of(row)
        if digest is None:
            return row
        fields = cast("dict[str, Any]", row)
        text = next((known for known, its in self._prompts.items() if its == digest), None)
        if text is None:
            body = await self._read("state::get", {"scope": PROMPTS, "key": digest})
            text = cast("dict[str, Any]", body).get("body") if isinstance(body, dict) else None
            if not isinstance(text, str):
                raise CodedError("harness/state", f"the system prompt {digest} of a turn record is missing")
            self._prompts[text] = digest
        return {**fields, "options": {**fields["options"], "system_prompt": text}}

    async def _read(self, fn: str, data: Json) -> Json:
        try:
            return await self._bus.call(fn, data, opts=self._opts())
        except EpochEnded:
            raise
        except BusError as error:
            raise CodedError("harness/state", f"{fn}: {error}") from error

    async def _send(self, calls: list[Call]) -> None:
        try:
            await self._bus.sequence(calls)
        except EpochEnded:
            raise
        except BusError as error:
            if error.code != "TIMEOUT":
                raise CodedError("harness/state", f"{calls[-1].fn}: {error}") from error
            await self._clock.sleep(RETRY_SECONDS)
            try:
                await self._bus.sequence(calls)
            except BusError as again:
                raise CodedError("harness/state", f"{calls[-1].fn}: {again}") from again


def _runs(row: Json) -> bool:
    """True for the row of a turn that runs, whatever else is in it."""
    return isinstance(row, dict) and cast("dict[str, Any]", row).get("status") == "running"


def _prompt_of(row: Json) -> str | None:
    """The digest of the prompt that a turn's row keeps apart, whatever else is in the row."""
    options: Any = cast("dict[str, Any]", row).get("options") if isinstance(row, dict) else None
    digest: Any = cast("dict[str, Any]", options).get("system_prompt_digest") if isinstance(options, dict) else None
    return digest if isinstance(digest, str) else None


def _digest_of(row: Json) -> str | None:
    """The digest of a stored prompt."""
    digest: Any = cast("dict[str, Any]", row).get("digest") if isinstance(row, dict) else None
    return digest if isinstance(digest, str) else None


def values(listed: Json) -> list[Json]:
    """The values of a `state::list` answer, in any of the forms that state workers give."""
    if isinstance(listed, list):
        return cast("list[Json]", listed)
    if not isinstance(listed, dict):
        return []
    fields = cast("dict[str, Json]", listed)
    for key in ("values", "items"):
        if isinstance(fields.get(key), list):
            return cast("list[Json]", fields[key])
    return list(fields.values())
