"""The functions the bus has, as one snapshot in memory (harness-agents 4.1).

Seeded at boot and refreshed when the engine says that functions or workers changed; there is no timer. A snapshot
never changes: a refresh puts a new one in its place. `generation` moves only when ids, descriptions or schemas did.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, cast

from iii_contracts.harness.upkeep import FunctionsChange
from iii_contracts.problems import is_object
from iii_harness.contracts_digest import canonical, compacted, contract_digest
from iii_kit.bus import Caller, Invocation
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

log = logger(__name__)

BATCH: Final = 32
"""Ids that the engine describes in one call."""

LIST: Final = "engine::functions::list"
INFO: Final = "engine::functions::info"
UPDATE: Final = "session::update-message"

ANNOUNCED: Final = "worker_metadata_updated"
"""Event of a worker that told its functions anew, perhaps with other schemas."""

IRRELEVANT: Final = frozenset({"worker_connected", "worker_disconnected"})
"""Events of workers that functions-available tells of by itself."""


@dataclass(frozen=True)
class Descriptor:
    """One registered function; `parameters` is its request schema as registered."""

    function_id: str
    description: str | None = None
    parameters: Any = None
    worker_name: str | None = None
    namespace: str | None = None

    @cached_property
    def contract(self) -> str:
        """Digest of description and compacted schema."""
        return contract_digest(self.description, self.parameters)

    @cached_property
    def tool(self) -> dict[str, Any]:
        """The function as a tool of its own; whatever schema it registered, a tool's is one of an object."""
        schema: dict[str, Any] = compacted(self.parameters) if is_object(self.parameters) else {}
        fits = schema.get("type", "object") == "object"
        return {
            "name": self.function_id,
            "description": self.description or "",
            "parameters": {**schema, "type": "object"} if fits else {"type": "object"},
            "execution_mode": "sequential",
        }


@dataclass(frozen=True)
class Snapshot:
    """What the registry held at one moment. `known` is false until the first answer of the engine."""

    functions: Mapping[str, Descriptor] = field(default_factory=dict[str, Descriptor])
    internal_ids: frozenset[str] = frozenset()
    generation: int = 0
    fingerprint: str = ""
    known: bool = False
    permitted: dict[str, list[str]] = field(default_factory=dict[str, list[str]], compare=False, repr=False)
    """Memory of `surfaces.permitted`: digests by policy."""

    def has(self, function_id: str) -> bool:
        """True when the engine knows the id, listed or internal. Grants nothing."""
        return function_id in self.functions or function_id in self.internal_ids

    @cached_property
    def keeps_replies(self) -> bool:
        """True when the session store takes and keeps the final state of a reply, not its content alone."""
        update = self.functions.get(UPDATE)
        schema: dict[str, Any] = update.parameters if update is not None and is_object(update.parameters) else {}
        return "stop_reason" in schema.get("properties", ())


class Catalog:
    """Keeps the snapshot. Refreshes run one at a time; one that is asked for meanwhile runs once more."""

    def __init__(self, bus: Caller) -> None:
        self._bus = bus
        self._busy = asyncio.Lock()
        self._wanted = 0
        self._whole = False
        self._read_once = asyncio.Event()
        self._knows_internal = False
        self.snapshot = Snapshot()

    @property
    def complete(self) -> bool:
        """True once this connection's registry was read to its end, internal ids too."""
        return self._knows_internal

    def absent(self, function_id: str) -> bool:
        """True when the registry is `complete` and has no such function."""
        return self._knows_internal and not self.snapshot.has(function_id)

    async def on_change(self, event: FunctionsChange, _: Invocation) -> dict[str, Any]:
        """Handler of `harness::on-functions-change`."""
        if event.event not in IRRELEVANT:
            await self.refresh(whole=event.event == ANNOUNCED)
        return {"ok": True}

    async def seed(self) -> None:
        """A connection begins: the ids at once; `refresh` follows with the schemas, `settled` waits for it."""
        self._read_once.clear()
        self._knows_internal = False
        try:
            rows = by_id(await self._list({}))
        except EpochEnded:
            raise
        except BusError as error:
            log.warning("registry_unreadable", error=str(error))
            return
        if not self.snapshot.known:
            self._apply({i: replaced(row, None) for i, row in rows.items()})

    async def settled(self) -> None:
        """Wait until this connection's first reading is over: what a step acknowledges must not lack schemas."""
        await self._read_once.wait()

    async def refresh(self, *, whole: bool = False) -> None:
        """Read the registry; schemas of new ids only, or of all when `whole`. A failure keeps what is known."""
        self._wanted += 1
        self._whole = self._whole or whole
        asked = self._wanted
        async with self._busy:
            if self._wanted < asked or self._wanted == 0:
                return
            self._wanted, whole, self._whole = 0, self._whole, False
            try:
                await self._read(whole=whole)
            except EpochEnded:
                raise
            except BusError as error:
                log.warning("registry_unreadable", error=str(error))
            self._read_once.set()

    async def _read(self, *, whole: bool) -> None:
        rows = by_id(await self._list({}))
        before = self.snapshot.functions
        known = {i: replaced(row, before.get(i)) for i, row in rows.items()}
        if not self.snapshot.known:
            self._apply(known)
        unread = list(rows) if whole else [i for i, found in known.items() if found.parameters is None]
        known.update(await self._hydrated({i: known[i] for i in unread}))
        self._apply(known)
        await self._read_internal(gone=before.keys() - known.keys())

    async def _list(self, filters: dict[str, Any]) -> list[dict[str, Any]]:
        answer = await self._bus.call(LIST, filters)
        rows: Any = cast("dict[str, Any]", answer).get("functions") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise BusError("invalid_response", f"{LIST} answered without functions", LIST)
        return [cast("dict[str, Any]", row) for row in cast("list[Any]", rows) if isinstance(row, dict)]

    async def _hydrated(self, unread: Mapping[str, Descriptor]) -> dict[str, Descriptor]:
        """The descriptors with their schemas; one whose reading fails stays as it is."""
        ids = list(unread)
        found: dict[str, Descriptor] = {}
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            details = await self._details(batch)
            found.update({i: replaced(details[i], None) for i in batch if i in details})
        return found

    async def _details(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        try:
            answer = await self._bus.call(INFO, {"function_ids": ids})
            return by_id(cast("dict[str, Any]", answer)["functions"])
        except EpochEnded:
            raise
        except (BusError, KeyError, TypeError):
            return await self._details_one_by_one(ids)

    async def _details_one_by_one(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        """For engines that describe one function a call."""
        found: dict[str, dict[str, Any]] = {}
        for function_id in ids:
            try:
                found.update(by_id([await self._bus.call(INFO, {"function_id": function_id})]))
            except EpochEnded:
                raise
            except BusError as error:
                log.info("contract_unreadable", function=function_id, error=str(error))
        return found

    async def _read_internal(self, gone: Iterable[str]) -> None:
        """Ids that only a listing with internal functions shows; when it fails or is empty the old ones stay."""
        try:
            ids = frozenset(by_id(await self._list({"include_internal": True})))
        except EpochEnded:
            raise
        except BusError:
            ids = frozenset[str]()
        self._knows_internal = self._knows_internal or bool(ids)
        if not ids:
            ids = self.snapshot.internal_ids.difference(gone)
        now = self.snapshot
        self.snapshot = Snapshot(now.functions, ids, now.generation, now.fingerprint, known=True)

    def _apply(self, functions: dict[str, Descriptor]) -> None:
        now = self.snapshot
        ordered = dict(sorted(functions.items()))
        fingerprint = hashlib.sha256(
            canonical([[f.function_id, f.description, f.parameters] for f in ordered.values()])
        ).hexdigest()
        generation = now.generation + (fingerprint != now.fingerprint)
        self.snapshot = Snapshot(ordered, now.internal_ids, generation, fingerprint, known=True)


def by_id(rows: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Rows of the registry by id; of one id in several namespaces the one that a bare id means."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if not isinstance(row, dict):
            continue
        fields = cast("dict[str, Any]", row)
        function_id = fields.get("function_id")
        if not isinstance(function_id, str) or "error" in fields:
            continue
        if function_id not in found or fields.get("namespace") == "default":
            found[function_id] = fields
    return found


def replaced(row: Mapping[str, Any], before: Descriptor | None) -> Descriptor:
    """The descriptor of a registry row; a row without a schema keeps the one `before` had."""
    fresh = Descriptor(
        row["function_id"],
        row.get("description"),
        row.get("request_schema", before.parameters if before else None),
        row.get("worker_name"),
        row.get("namespace"),
    )
    return before if before is not None and before == fresh else fresh
