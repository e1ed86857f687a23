"""State (engine spec 13): values by scope and key on disk, update operations, the `state` trigger.

`state::get` and `state::set` are the functions that workers call most: one row by key, no copy that is not needed.
A value that came over the bus has been checked there, so it is stored without being checked again, and answers hold it
as the text that it is, no deeper inside them than it was when it came.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from msgspec import Raw

from iii_contracts.engine import state as contract
from iii_contracts.engine.state import (
    ListGroupsRequest,
    ListRequest,
    PlaceRequest,
    SetRequest,
    StateConfig,
    UpdateRequest,
)
from iii_embedded.modules.firing import EngineTrigger
from iii_embedded.modules.updates import MISSING, apply
from iii_kit.bus import Bus, Invocation, Json, ReadHandler, TxHandler
from iii_kit.encoding import decode, encode, stored
from iii_kit.storage import Reader, Tx
from iii_store.schema import Family

FAMILY = Family(
    "state",
    (
        (
            "CREATE TABLE state(seq INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
            " UNIQUE(scope, key))",
        ),
    ),
)

_FIND = "SELECT seq, value FROM state WHERE scope = ? AND key = ?"
_INSERT = "INSERT INTO state(scope, key, value) VALUES(?, ?, ?)"
_UPDATE = "UPDATE state SET value = ? WHERE seq = ?"
_DELETE = "DELETE FROM state WHERE seq = ?"

Kind = Literal["created", "updated", "deleted"]


class State:
    """The state functions of one engine."""

    def __init__(self, bus: Bus) -> None:
        self._changed = EngineTrigger(bus, contract.CHANGED)
        bus.provide(contract.CHANGED, self._changed)
        bus.serve(contract.SET, TxHandler(self._set))
        bus.serve(contract.GET, ReadHandler(_get, bounded=True))
        bus.serve(contract.DELETE, TxHandler(self._delete))
        bus.serve(contract.UPDATE, TxHandler(self._update))
        bus.serve(contract.LIST, ReadHandler(_list))
        bus.serve(contract.LIST_GROUPS, ReadHandler(_list_groups))

    async def ready(self) -> None:
        """State works as soon as it is installed."""

    async def drain(self) -> None:
        """Nothing runs here on its own."""

    def _set(self, tx: Tx, request: SetRequest, invocation: Invocation) -> Json:
        row = tx.execute(_FIND, (request.scope, request.key)).fetchone()
        text = stored(request.value)
        old = "null"
        if row is None:
            tx.execute(_INSERT, (request.scope, request.key, text))
        else:
            tx.execute(_UPDATE, (text, row[0]))
            old = row[1]
        before, after = old.encode(), text.encode()
        if self._changed.bindings:
            self._tell(tx, invocation, "created" if row is None else "updated", request, Raw(before), Raw(after))
        return Raw(b'{"old_value":%b,"new_value":%b}' % (before, after))

    def _delete(self, tx: Tx, request: PlaceRequest, invocation: Invocation) -> Json:
        row = tx.execute(_FIND, (request.scope, request.key)).fetchone()
        old: Json = None
        if row is not None:
            tx.execute(_DELETE, (row[0],))
            old = decode(row[1])
        self._tell(tx, invocation, "deleted", request, old, None)
        return old

    def _update(self, tx: Tx, request: UpdateRequest, invocation: Invocation) -> Json:
        row = tx.execute(_FIND, (request.scope, request.key)).fetchone()
        new, errors = apply(MISSING if row is None else decode(row[1]), request.ops)
        text = encode(new).decode()
        old: Json = None
        if row is None:
            tx.execute(_INSERT, (request.scope, request.key, text))
        else:
            tx.execute(_UPDATE, (text, row[0]))
            old = decode(row[1])
        self._tell(tx, invocation, "created" if row is None else "updated", request, old, new)
        answer: dict[str, Json] = {"old_value": old, "new_value": new}
        if errors:
            answer["errors"] = errors
        return answer

    def _tell(
        self,
        tx: Tx,
        invocation: Invocation,
        kind: Kind,
        place: PlaceRequest | SetRequest | UpdateRequest,
        old: Json,
        new: Json,
    ) -> None:
        self._changed.after(
            tx,
            invocation,
            partial(_hears_of, place.scope, place.key),
            lambda: {
                "type": "state",
                "event_type": f"state:{kind}",
                "scope": place.scope,
                "key": place.key,
                "old_value": old,
                "new_value": new,
            },
        )


def install(bus: Bus) -> State:
    """Serve the state functions on `bus`, over the tables of `FAMILY`."""
    return State(bus)


def _hears_of(scope: str, key: str, config: StateConfig) -> bool:
    return config.scope in (None, scope) and config.key in (None, key)


def _get(reader: Reader, request: PlaceRequest, _: Invocation) -> Json:
    row = reader.execute(_FIND, (request.scope, request.key)).fetchone()
    return None if row is None else Raw(row[1].encode())


def _list(reader: Reader, request: ListRequest, _: Invocation) -> Json:
    rows = reader.execute("SELECT value FROM state WHERE scope = ? ORDER BY seq", (request.scope,))
    return Raw(b"[%b]" % b",".join(row[0].encode() for row in rows))


def _list_groups(reader: Reader, _: ListGroupsRequest, __: Invocation) -> Json:
    rows = reader.execute("SELECT DISTINCT scope FROM state ORDER BY scope")
    return {"groups": [row[0] for row in rows]}
