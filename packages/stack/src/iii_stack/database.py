"""Opening the database of a data directory, with errors that say what to do (design, "Decided interfaces")."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from iii_kit.errors import BusError
from iii_stack.data_directory import DataDirectory
from iii_stack.errors import StackError
from iii_store import NewerDatabase, SqliteStore
from iii_store.schema import Family

OPTION = "--accept-missing-log"

_ARGUMENT = "open the store with accept_missing_log"


def open_store(directory: DataDirectory, families: Sequence[Family], *, accept_missing_log: bool) -> SqliteStore:
    """The store of a data directory that is held. Raises `StackError`."""
    try:
        return SqliteStore(directory.database, families, accept_missing_log=accept_missing_log)
    except NewerDatabase as error:
        raise StackError("newer_database", str(error)) from None
    except (OSError, sqlite3.Error, BusError) as error:
        text = str(error)
        if _ARGUMENT in text:
            raise StackError("missing_log", text.replace(_ARGUMENT, f"start once with {OPTION}"), hint=None) from None
        raise StackError(
            "database",
            f"cannot open the database {directory.database}: {text}",
            hint="check that the disk is not full and that the file can be written",
        ) from None
