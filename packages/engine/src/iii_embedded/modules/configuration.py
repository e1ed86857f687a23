"""Configuration entries (engine spec 16, siblings 10): declared by their owners, changed by people, kept on disk.

A value is stored with its placeholders; it is judged, and answered by `configuration::get`, with them expanded. The
schema of an entry counts only until the engine stops: its owner declares it anew, until then `set` is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

import jsonschema_rs

from iii_contracts.engine import configuration as contract
from iii_contracts.engine.configuration import (
    ConfigurationConfig,
    EnsureRequest,
    GetRequest,
    ListRequest,
    RegisterRequest,
    SchemaRequest,
    SetRequest,
)
from iii_embedded.modules.firing import EngineTrigger
from iii_embedded.modules.placeholders import Expansion
from iii_kit.bus import Bus, Invocation, Json, ReadHandler, TxHandler
from iii_kit.encoding import decode, encode
from iii_kit.errors import BusError
from iii_kit.storage import Reader, Tx
from iii_kit.world import World
from iii_store.schema import Family

FAMILY = Family(
    "configuration",
    (
        (
            "CREATE TABLE config(id TEXT PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL,"
            " schema TEXT NOT NULL, value TEXT NOT NULL, metadata TEXT NOT NULL, run TEXT NOT NULL) WITHOUT ROWID",
        ),
    ),
)

_ID = re.compile(r"[a-z0-9_-]{1,64}")

_COLUMNS = "id, name, description, schema, value, metadata, run"


@dataclass(frozen=True, slots=True)
class Entry:
    """One row. `run` is the start of the engine that its schema was declared in."""

    id: str
    name: str
    description: str
    schema: Json
    value: Json
    metadata: Json
    run: str

    def view(self, run: str) -> dict[str, Json]:
        """The entry without its value, as functions of this run of the engine answer it."""
        known = self.schema if self.run == run else None
        shown = {"id": self.id, "name": self.name, "description": self.description, "schema": known}
        return shown if self.metadata is None else {**shown, "metadata": self.metadata}

    def whole(self, run: str) -> dict[str, Json]:
        """The entry with its value as it is stored."""
        return {**self.view(run), "value": self.value}


class Configuration:
    """The configuration functions of one engine."""

    def __init__(self, bus: Bus, world: World, environ: Mapping[str, str]) -> None:
        self._run = world.ids.hex()
        self._environ = environ
        self._changed = EngineTrigger(bus, contract.CHANGED)
        bus.provide(contract.CHANGED, self._changed)
        bus.serve(contract.REGISTER, TxHandler(self._register))
        bus.serve(contract.ENSURE, TxHandler(self._ensure))
        bus.serve(contract.GET, ReadHandler(self._get, bounded=True))
        bus.serve(contract.SET, TxHandler(self._set))
        bus.serve(contract.LIST, ReadHandler(self._list))
        bus.serve(contract.SCHEMA, ReadHandler(self._schema, bounded=True))

    async def ready(self) -> None:
        """Works as soon as it is installed."""

    async def drain(self) -> None:
        """Nothing runs here on its own."""

    def _register(self, tx: Tx, request: RegisterRequest, invocation: Invocation) -> Json:
        _check_id(request.id)
        if request.initial_value is not None:
            self._judge(request.schema_, request.initial_value)
        return self._declare(tx, request, invocation, overwrite=request.initial_value is not None).whole(self._run)

    def _ensure(self, tx: Tx, request: EnsureRequest, invocation: Invocation) -> Json:
        _check_id(request.id)
        known = _find(tx, request.id)
        seeding = known is None or known.value is None
        if seeding:
            self._judge(request.schema_, request.initial_value)
        entry = self._declare(tx, request, invocation, overwrite=seeding)
        return {"action": "seeded" if seeding else "preserved", "entry": entry.whole(self._run)}

    def _declare(
        self, tx: Tx, request: RegisterRequest | EnsureRequest, invocation: Invocation, *, overwrite: bool
    ) -> Entry:
        known = _find(tx, request.id)
        old = None if known is None else known.value
        value = request.initial_value if overwrite else old
        entry = Entry(
            request.id, request.name, request.description, request.schema_, value, request.metadata, self._run
        )
        _put(tx, entry)
        self._tell(tx, invocation, "registered" if known is None else "updated", entry, old)
        return entry

    def _set(self, tx: Tx, request: SetRequest, invocation: Invocation) -> Json:
        _check_id(request.id)
        known = _find(tx, request.id)
        if known is None:
            raise BusError("NOT_REGISTERED", f"configuration '{request.id}' is not registered")
        if known.run != self._run:
            raise BusError(
                "SCHEMA_UNAVAILABLE",
                f"the schema of configuration '{request.id}' is not known until its owner registers it again",
            )
        self._judge(known.schema, request.value)
        tx.execute("UPDATE config SET value = ? WHERE id = ?", (_text(request.value), request.id))
        entry = Entry(known.id, known.name, known.description, known.schema, request.value, known.metadata, known.run)
        self._tell(tx, invocation, "updated", entry, known.value)
        return {"old_value": known.value, "new_value": request.value}

    def _get(self, reader: Reader, request: GetRequest, _: Invocation) -> Json:
        entry = _known(reader, request.id)
        if request.raw:
            return {"id": entry.id, "value": entry.value}
        expansion = Expansion(entry.value, self._environ)
        if expansion.missing:
            names = ", ".join(expansion.missing)
            raise BusError("EXPAND_FAILED", f"environment variables without value and default: {names}")
        if entry.run == self._run:
            validate(entry.schema, expansion.value)
        return {"id": entry.id, "value": expansion.value}

    def _list(self, reader: Reader, _: ListRequest, __: Invocation) -> Json:
        rows = reader.execute(f"SELECT {_COLUMNS} FROM config ORDER BY id").fetchall()
        return {"configurations": [_entry(row).view(self._run) for row in rows]}

    def _schema(self, reader: Reader, request: SchemaRequest, _: Invocation) -> Json:
        return _known(reader, request.id).view(self._run)

    def _judge(self, schema: Json, value: Json) -> None:
        """Refuse a value that does not fit once expanded; what cannot be expanded here is not judged."""
        expansion = Expansion(value, self._environ)
        if not expansion.missing:
            validate(schema, expansion.value)

    def _tell(self, tx: Tx, invocation: Invocation, kind: str, entry: Entry, old: Json) -> None:
        event_type = f"configuration:{kind}"
        self._changed.after(
            tx,
            invocation,
            partial(_hears_of, entry.id, event_type),
            lambda: {
                "type": "configuration",
                "event_type": event_type,
                **entry.view(self._run),
                "old_value": Expansion(old, self._environ).value,
                "new_value": Expansion(entry.value, self._environ).value,
            },
        )


def install(bus: Bus, world: World, environ: Mapping[str, str] = os.environ) -> Configuration:
    """Serve the configuration functions on `bus`, over the tables of `FAMILY`."""
    return Configuration(bus, world, environ)


def validate(schema: Json, value: Json) -> None:
    """Judge a value. Raises `BusError` `SCHEMA_INVALID` with every violation; `schema` None takes all."""
    if schema is None:
        return
    try:
        problems = [_violation(error) for error in _validator(encode(schema))(value)]
    except ValueError as error:
        problems = [f"the schema itself is invalid: {error}"]
    if problems:
        raise BusError("SCHEMA_INVALID", f"schema validation failed: {'; '.join(problems)}")


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Callable[[Json], Any]:
    """The compiled validator of a schema, by its JSON."""
    return jsonschema_rs.validator_for(decode(schema), validate_formats=False, offline=True).iter_errors


def _violation(error: jsonschema_rs.ValidationError) -> str:
    place = "/".join(str(part) for part in error.instance_path)
    return f"{error.message} at /{place}" if place else error.message


def _hears_of(id_: str, event_type: str, config: ConfigurationConfig) -> bool:
    if config.configuration_id not in (None, id_):
        return False
    return config.event_types is None or event_type in config.event_types


def _check_id(id_: str) -> None:
    if not _ID.fullmatch(id_):
        raise BusError("INVALID_ID", f"configuration id '{id_}' must be 1 to 64 of a-z, 0-9, `_` and `-`")


def _known(reader: Reader, id_: str) -> Entry:
    entry = _find(reader, id_)
    if entry is None:
        raise BusError("NOT_FOUND", f"configuration '{id_}' not found")
    return entry


def _find(reader: Reader, id_: str) -> Entry | None:
    row = reader.execute(f"SELECT {_COLUMNS} FROM config WHERE id = ?", (id_,)).fetchone()
    return None if row is None else _entry(row)


def _entry(row: tuple[Any, ...]) -> Entry:
    id_, name, description, schema, value, metadata, run = row
    return Entry(id_, name, description, decode(schema), decode(value), decode(metadata), cast("str", run))


def _put(tx: Tx, entry: Entry) -> None:
    tx.execute(
        f"INSERT OR REPLACE INTO config({_COLUMNS}) VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            entry.id,
            entry.name,
            entry.description,
            _text(entry.schema),
            _text(entry.value),
            _text(entry.metadata),
            entry.run,
        ),
    )


def _text(value: Json) -> str:
    return encode(value).decode()
