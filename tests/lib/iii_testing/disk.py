"""A disk under control: SQLite over a file layer that remembers what was synced and fails when it is told to.

Neither kill -9 nor a copy of the files can see a missing fsync, since the operating system still holds what was
written. `Disk.power_off` writes what a disk would hold after a power loss: what was synced, and of the rest nothing
or any sectors.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


class _Image:
    """One file: what is certainly on disk, and the writes since the last sync."""

    def __init__(self) -> None:
        self.durable: bytearray | None = None
        self.pending: list[tuple[int, bytes | None]] = []

    def write(self, offset: int, data: bytes) -> None:
        self.pending.append((offset, data))

    def cut(self, size: int) -> None:
        self.pending.append((size, None))

    def sync(self) -> None:
        self.durable = self.after(lambda: True)
        self.pending.clear()

    def after(self, keep: Callable[[], bool]) -> bytearray:
        content = bytearray(self.durable or b"")
        for offset, data in self.pending:
            if data is None:
                if keep():
                    del content[offset:]
                continue
            for at in range(0, len(data), SECTOR):
                if keep():
                    part = data[at : at + SECTOR]
                    start = offset + at
                    content.extend(bytes(max(start - len(content), 0)))
                    content[start : start + len(part)] = part
        return content


class _Vfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        super().__init__(name, "")
        self._disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk.meet("open")
        return _File(name, path, flags, self._disk)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        self._disk.meet("delete")
        self._disk.images.pop(name, None)
        super().xDelete(name, sync_directory)


class _File(apsw.VFSFile):
    def __init__(self, name: Any, path: str, flags: list[int], disk: Disk) -> None:
        super().__init__("", name, flags)
        self._path = path
        self._disk = disk
        self._image = disk.images.setdefault(path, _Image())

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.meet("write")
        super().xWrite(data, offset)
        with self._disk.lock:
            self._image.write(offset, bytes(data))

    def xTruncate(self, size: int) -> None:
        self._disk.meet("truncate")
        super().xTruncate(size)
        with self._disk.lock:
            self._image.cut(size)

    def xSync(self, flags: int) -> None:
        self._disk.meet("sync")
        with self._disk.lock:
            self._disk.syncs += 1
            self._image.sync()


class _Cursor:
    def __init__(self, db: apsw.Connection, cursor: apsw.Cursor) -> None:
        self._cursor = cursor
        self.rowcount = db.changes()

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> Any:
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class DiskDatabase:
    """An apsw connection with the face of a standard one."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, args: Sequence[Any] = (), /) -> _Cursor:
        return _Cursor(self._connection, self._connection.execute(sql, tuple(args)))

    def close(self) -> None:
        self._connection.close()


class Disk:
    """A disk that tests break. `open` is the opener of a store; `break_down` makes its operations fail."""

    _numbers = iter(range(1_000_000))

    def __init__(self) -> None:
        self._name = f"disk-{next(self._numbers)}"
        self.images: dict[str, _Image] = {}
        self.lock = threading.Lock()
        self.syncs = 0
        self._broken: dict[str, int] = {}
        self._vfs = _Vfs(self._name, self)

    def meet(self, operation: str) -> None:
        code = self._broken.get(operation)
        if code is not None:
            raise apsw.exception_for(code)

    def break_down(self, operation: str, code: int) -> None:
        """Answer every `operation` (open, write, truncate, sync, delete) with this result code from now on."""
        self._broken[operation] = code

    def mend(self) -> None:
        self._broken.clear()

    def open(self, path: Path, reading: bool) -> DiskDatabase:
        flags = apsw.SQLITE_OPEN_READONLY if reading else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(str(path), flags=flags, vfs=self._name)
        connection.set_busy_timeout(200)
        return DiskDatabase(connection)

    def power_off(self, into: Path, chance: random.Random | None = None) -> None:
        """Write what the disk holds after a power loss to the directory `into`.

        With `chance` a random half of the sectors written since the last sync made it, in no order.
        """
        with self.lock:
            for path, image in self.images.items():
                if path.endswith("-shm") or (image.durable is None and chance is None):
                    continue
                keep = (lambda: False) if chance is None else (lambda: chance.random() < 0.5)
                (into / Path(path).name).write_bytes(bytes(image.after(keep)))
