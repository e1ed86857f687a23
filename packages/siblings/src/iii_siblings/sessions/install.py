"""Putting the session store on a bus (siblings 3.2, 3.11, 17.3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

from iii_contracts import session as contract
from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Bus, Invocation, Json, ReadHandler, TxHandler
from iii_kit.errors import CodedError
from iii_kit.storage import Reader, Tx
from iii_kit.world import World
from iii_siblings.sessions import append, attachments, fork, meta, paging, tail, update
from iii_siblings.sessions.events import Events
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.settings import Settings

Writing = Callable[[Parts, Tx, Any], Json]
Reading = Callable[[Parts, Reader, Any], Json]

WRITES: tuple[tuple[FunctionSpec, Writing], ...] = (
    (contract.CREATE, meta.create),
    (contract.ENSURE, meta.ensure),
    (contract.SET_META, meta.set_meta),
    (contract.SET_DRAFT, meta.set_draft),
    (contract.SET_STATUS, meta.set_status),
    (contract.DELETE, meta.delete),
    (contract.APPEND, append.append),
    (contract.APPEND_MANY, append.append_many),
    (contract.SET_ACTIVE_LEAF, append.set_active_leaf),
    (contract.UPDATE_MESSAGE, update.update_message),
    (contract.FORK, fork.fork),
    (contract.PUT_ATTACHMENT, attachments.put_attachment),
    (contract.DELETE_ATTACHMENT, attachments.delete_attachment),
)

LONG = (contract.DELETE, contract.APPEND_MANY, contract.FORK)
"""Writes that may touch thousands of rows."""


def _goes_on(request: Any) -> bool:
    """True for a read of what is new since an entry: usually a few rows."""
    return request.after_entry_id is not None and request.cursor is None


READS: tuple[tuple[FunctionSpec, Reading, bool | Callable[[Any], bool]], ...] = (
    (contract.GET, meta.get, True),
    (contract.GET_MESSAGE, paging.get_message, True),
    (contract.MESSAGES, paging.messages, _goes_on),
    (contract.LIST, paging.list_sessions, False),
    (contract.MESSAGES_TAIL, tail.messages_tail, False),
    (contract.MESSAGES_RANGE, paging.messages_range, False),
    (contract.GET_ATTACHMENT, attachments.get_attachment, False),
    (contract.LIST_ATTACHMENTS, attachments.list_attachments, False),
)


class SessionsWorker:
    """The session store on its bus. Its functions work as soon as they are served; settings follow."""

    def __init__(self, parts: Parts, settings: Settings) -> None:
        self.parts = parts
        self._settings = settings

    async def ready(self) -> None:
        """Return when the settings have been read once."""
        await self._settings.was_read.wait()

    async def drain(self) -> None:
        """Nothing runs between calls: every function is one transaction."""


def install(bus: Bus, world: World) -> SessionsWorker:
    """Provide the event types, serve every function, and follow the configuration entry `session-manager`."""
    parts = Parts(world, Events(bus))
    for spec, write in WRITES:
        bus.serve(spec, TxHandler(partial(_write, write, parts), long=spec in LONG))
    for spec, read, bounded in READS:
        bus.serve(spec, ReadHandler(partial(_read, read, parts), bounded))
    settings = Settings(bus, world, parts.limits)
    settings.follow()
    return SessionsWorker(parts, settings)


def _write(run: Writing, parts: Parts, tx: Tx, request: Any, _: Invocation) -> Json:
    try:
        return run(parts, tx, request)
    except sqlite3.Error as error:
        raise CodedError(contract.STORAGE, str(error)) from error


def _read(run: Reading, parts: Parts, reader: Reader, request: Any, _: Invocation) -> Json:
    try:
        return run(parts, reader, request)
    except sqlite3.Error as error:
        raise CodedError(contract.STORAGE, str(error)) from error
