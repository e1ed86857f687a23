"""What can be wrong with a database, in words that say what happened and what to do (engineering 5, "store faults").

Faults that concern one write leave the store usable. After a fault that puts the file itself in doubt the store
refuses every further write: a later success over a failed sync would be a lie.
"""

from __future__ import annotations

from pathlib import Path

from iii_kit.errors import BusError

BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB = 5, 6, 7, 8, 10, 11, 13, 14, 26
"""Primary result codes of SQLite."""

_FATAL = frozenset({IOERR, CORRUPT, NOTADB})

_TEXTS = {
    BUSY: "it is locked by another process: close the program that has it open",
    LOCKED: "it is locked by another process: close the program that has it open",
    NOMEM: "memory ran out",
    READONLY: "it cannot be written: check the permissions of the file and its directory, and that the file system is "
    "mounted for writing",
    IOERR: "the disk failed to read or write it",
    CORRUPT: "its content is damaged: restore the data directory from a copy",
    FULL: "the disk is full: nothing of this write was kept; free some space",
    CANTOPEN: "it cannot be opened: check the path and the permissions of its directory",
    NOTADB: "it is not a database of this software: move the file away, or use another data directory",
}


class StoreFailed(BusError):
    """The store could not do what was asked. Code `storage_failed`; `fatal` when it takes no more writes."""

    def __init__(self, text: str, *, fatal: bool = False) -> None:
        super().__init__("storage_failed", text)
        self.fatal = fatal


def result_code(error: BaseException) -> int | None:
    """SQLite's primary result code behind an exception, be it of the standard library or of apsw."""
    for name in ("sqlite_errorcode", "extendedresult"):
        code = getattr(error, name, None)
        if isinstance(code, int):
            return code & 0xFF
    return None


def is_fatal(error: BaseException) -> bool:
    """True when the file itself is in doubt after `error`."""
    return result_code(error) in _FATAL


def fault(path: Path, error: BaseException) -> StoreFailed | None:
    """The fault of the database behind `error`, or None when the statement alone is wrong."""
    code = result_code(error)
    if code is None or code not in _TEXTS:
        return None
    return StoreFailed(f"database {path}: {_TEXTS[code]} ({error})", fatal=code in _FATAL)
