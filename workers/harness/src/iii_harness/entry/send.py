"""`harness::send`: accept a message, settle what the turn runs with, deliver it (harness-loop 3.1).

Nothing is created before every check has passed. With an idempotency key the row that names session, turn and entry is
the first write, so that a repeat finishes what a crash cut off and never does it twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, cast

from opentelemetry import trace

from iii_contracts.harness.configuration import HarnessConfig
from iii_contracts.harness.send import SendOptions, SendRequest
from iii_harness.delivery import Delivered, Delivery, Incoming
from iii_harness.entry.idempotency import IdemRow, entry_id_of, taken_by
from iii_harness.entry.messages import normalise
from iii_harness.entry.options import ResolvePrompt, check_external, freeze, refuse_unserved
from iii_harness.entry.points import EntryPoint
from iii_harness.entry.reasoning import ruling
from iii_harness.errors import dependency, invalid_request
from iii_harness.locks import Locks
from iii_harness.record import Options, TurnRecord
from iii_harness.seeding import preview_of
from iii_harness.state_rows import StateRows
from iii_harness.turn_store import TurnStore
from iii_harness.working_directory import default_root, root_of
from iii_kit.bus import Call, Caller, Invocation, Json, Opts
from iii_kit.clients.session import SessionClient
from iii_kit.errors import BusError, EpochEnded
from iii_kit.world import World


@dataclass(frozen=True, slots=True)
class _Accepted:
    """A request that has passed every check, and the session it goes to as far as that is known."""

    request: SendRequest
    message: dict[str, Any]
    options: Options
    prior: TurnRecord | None
    session_id: str | None
    exists: bool
    row: IdemRow | None = None


class Sender:
    """Serves `harness::send`."""

    def __init__(
        self,
        bus: Caller,
        world: World,
        turns: TurnStore,
        delivery: Delivery,
        idem: StateRows[IdemRow],
        config: Callable[[], HarnessConfig],
        opts: Callable[[], Opts],
        prompt: ResolvePrompt,
    ) -> None:
        self._bus = bus
        self._world = world
        self._turns = turns
        self._delivery = delivery
        self._idem = idem
        self._config = config
        self._opts = opts
        self._prompt = prompt
        self._keys = Locks()

    async def send(self, request: SendRequest, _: Invocation) -> Json:
        """Deliver the message; answers once it is durable."""
        _check_shape(request)
        meta = None if request.session_id is None else await self._session(request.session_id)
        _check_writable(request, meta)
        key = request.idempotency_key
        async with nullcontext() if key is None else self._keys.hold(key):
            row = None if key is None else await self._live_row(key)
            turn_id = None if row is None else await self._taken_by(row)
            if row is not None and turn_id is not None:
                return _answer(row.session_id, turn_id, deduplicated=True)
            if row is not None and row.session_id != request.session_id:
                meta = await self._session(row.session_id)
            accepted = await self._accept(request, meta, row)
            return await self._deliver(accepted)

    async def _accept(self, request: SendRequest, meta: dict[str, Any] | None, row: IdemRow | None) -> _Accepted:
        session_id = request.session_id if row is None else row.session_id
        prior = None if session_id is None else await self._turns.load(session_id)
        check_external(request, prior, _metadata(request, meta))
        message = normalise(request.message, self._world.clock.now_ms())
        options = await freeze(request, prior, self._config(), self._prompt, self._bus)
        trace.get_current_span().set_attribute("iii.tag.message", preview_of(message) or "")
        return _Accepted(request, message, options, prior, session_id, meta is not None, row)

    async def _deliver(self, accepted: _Accepted) -> Json:
        session_id, row, before = await self._place(accepted)
        incoming = Incoming(
            session_id=session_id,
            message=accepted.message,
            options=accepted.options,
            turn_id=row.turn_id if row is not None else f"t_{self._world.ids.hex()}",
            entry_id=None if row is None else row.entry_id,
            fs_root=root_of(accepted.options.metadata),
            default_root=default_root(self._config().default_filesystem_root) if accepted.prior is None else None,
            before=before,
            after=self._marking(row),
        )
        try:
            delivered = await self._delivery.deliver(incoming)
        except BusError:
            trace.get_current_span().set_attribute("iii.session.id", session_id)
            raise
        return _report(session_id, delivered, accepted.request.options)

    async def _place(self, accepted: _Accepted) -> tuple[str, IdemRow | None, tuple[Call, ...]]:
        """The session and the key's row, with the writes that come before the message."""
        request, row, before = accepted.request, accepted.row, list[Call]()
        session_id = accepted.session_id
        if request.idempotency_key is not None and row is None:
            session_id = session_id or f"s_{self._world.ids.hex()}"
            row = self._new_row(request.idempotency_key, session_id)
            before.append(self._idem.put(row.key, row))
        if session_id is None:
            return await self._create(request), None, ()
        if not accepted.exists:
            before.append(Call("session::ensure", {"session_id": session_id, **_initial(request)}, opts=self._opts()))
        return session_id, row, tuple(before)

    async def _create(self, request: SendRequest) -> str:
        try:
            session_id = (await SessionClient(self._bus).create(**_initial(request)))["session_id"]
        except EpochEnded:
            raise
        except BusError as error:
            if error.matches("session/invalid_request"):
                raise invalid_request(f"`session`: {error.message}") from error
            raise dependency("session::create", error) from error
        self._world.reach(EntryPoint.SESSION_CREATED)
        return session_id

    async def _session(self, session_id: str) -> dict[str, Any] | None:
        try:
            answer = await self._bus.call("session::get", {"session_id": session_id}, opts=self._opts())
        except EpochEnded:
            raise
        except BusError as error:
            raise dependency("session::get", error) from error
        return answer["meta"] if answer else None

    async def _live_row(self, key: str) -> IdemRow | None:
        row = await self._idem.read(key)
        return row if row is not None and row.live(self._world.clock.now_ms(), self._config().idem_ttl_secs) else None

    async def _taken_by(self, row: IdemRow) -> str | None:
        """The turn that has the row's message; None when it was never delivered."""
        if row.delivered:
            return row.turn_id
        record = await self._turns.load(row.session_id)
        if record is not None and record.turn_id == row.turn_id:
            return row.turn_id
        if any(parked.entry_id == row.entry_id for parked in await self._delivery.parked(row.session_id)):
            return row.turn_id if record is None else record.turn_id
        try:
            path = await SessionClient(self._bus).messages(row.session_id, include_custom=True)
        except EpochEnded:
            raise
        except BusError as error:
            if error.matches("session/not_found"):
                return None
            raise dependency("session::messages", error) from error
        return taken_by(row, record, path)

    def _new_row(self, key: str, session_id: str) -> IdemRow:
        turn_id = f"t_{self._world.ids.hex()}"
        return IdemRow(key, session_id, turn_id, entry_id_of(key), self._world.clock.now_ms())

    def _marking(self, row: IdemRow | None) -> Callable[[str], tuple[Call, ...]]:
        if row is None:
            return lambda _: ()
        return lambda turn_id: (self._idem.put(row.key, replace(row, turn_id=turn_id, delivered=True)),)


def _check_shape(request: SendRequest) -> None:
    if request.session_id == "":
        raise invalid_request("`session_id`: is empty; leave it out to create a session")
    if request.idempotency_key == "":
        raise invalid_request("`idempotency_key`: is empty; leave it out for a send without a key")
    if request.options is not None:
        refuse_unserved(request.options)
    initial = request.session
    if initial is not None and initial.metadata is not None and not isinstance(initial.metadata, dict):
        raise invalid_request("`session.metadata`: expected an object")


def _check_writable(request: SendRequest, meta: dict[str, Any] | None) -> None:
    if _asked_metadata(request).get("read_only") is True or _stored_metadata(meta).get("read_only") is True:
        name = "a new session" if request.session_id is None else f"session `{request.session_id}`"
        raise invalid_request(f"{name} is read-only and cannot accept messages")


def _metadata(request: SendRequest, meta: dict[str, Any] | None) -> dict[str, Any]:
    """The session's metadata, or what it will be when this send creates it."""
    return _asked_metadata(request) if meta is None else _stored_metadata(meta)


def _asked_metadata(request: SendRequest) -> dict[str, Any]:
    metadata = None if request.session is None else request.session.metadata
    return cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}


def _stored_metadata(meta: dict[str, Any] | None) -> dict[str, Any]:
    metadata: Any = None if meta is None else meta.get("metadata")
    return cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}


def _initial(request: SendRequest) -> dict[str, Any]:
    initial = request.session
    if initial is None:
        return {}
    fields = {"title": initial.title, "metadata": initial.metadata, "kind": initial.kind}
    return {name: value for name, value in fields.items() if value is not None}


def _report(session_id: str, delivered: Delivered, asked: SendOptions | None) -> dict[str, Any]:
    answer = _answer(session_id, delivered.record.turn_id, merged=delivered.merged, queued=delivered.queued)
    if asked is not None and asked.reasoning is not None:
        answer["reasoning"] = ruling(delivered.record.options)
    return answer


def _answer(session_id: str, turn_id: str, **flags: bool) -> dict[str, Any]:
    said = {name: True for name, value in flags.items() if value}
    return {"session_id": session_id, "turn_id": turn_id, "accepted": True, **said}
