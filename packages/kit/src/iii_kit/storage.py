"""Protocols of durable storage: what a function of a transaction may do, and what a store promises.

`iii_store` implements them; workers of the bus see only these protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio

    from iii_kit.bus import Call

T = TypeVar("T")


class Cursor(Protocol):
    """Rows of one statement, as tuples in column order."""

    @property
    def rowcount(self) -> int:
        """Rows that the statement changed."""
        ...

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


class Reader(Protocol):
    """One consistent view of committed data."""

    def execute(self, sql: str, args: Sequence[Any] = (), /) -> Cursor:
        """Run one reading statement."""
        ...


class Tx(Reader, Protocol):
    """A transaction inside the writer, undone alone when it fails. Nothing in it may await.

    Its function may be run a second time when it, or a neighbour of its commit, has failed: only the last run counts.
    """

    @property
    def careful(self) -> bool:
        """True under a savepoint. One that could keep a part of itself raises when it is not, and is run again."""
        ...

    def after_commit(self, call: Call) -> None:
        """Send `call` once this transaction is on disk; dropped when it rolls back."""
        ...

    def on_commit(self, run: Callable[[], None]) -> None:
        """Run `run` on the event loop once this transaction is on disk, in commit order; dropped when it rolls back.

        For what the owner of the tables keeps in memory beside them. It must be short and must not raise.
        """
        ...


class Store(Protocol):
    """One database with one writer. A returned write is on disk."""

    async def write(self, job: Callable[[Tx], T], *, after: Callable[[Sequence[Call]], None] | None = None) -> T:
        """Run `job` in the writer; returns its result after fsync. An error of the job rolls back this job alone.

        `after` gets the calls of `Tx.after_commit` on the event loop, once they may leave.
        """
        ...

    def submit(
        self,
        job: Callable[[Tx], T],
        *,
        after: Callable[[Sequence[Call]], None] | None = None,
        lazy: bool = False,
        long: bool = False,
        told: Callable[[Any, BaseException | None], None] | None = None,
    ) -> asyncio.Future[T]:
        """`write` that is handed over before it returns: writes run in the order of submission.

        A `lazy` write that nobody waits for starts no commit by itself: it rides along with the next other write, or
        goes alone after a few milliseconds. A `long` one, which may touch thousands of rows, keeps off the event loop.
        `told` hears the result or the error on the event loop, before whoever waits; the error is then nobody else's.
        """
        ...

    async def read(self, job: Callable[[Reader], T]) -> T:
        """Run `job` on a read-only connection, off the event loop."""
        ...

    def peek(self, job: Callable[[Reader], T]) -> T:
        """Run a bounded read (a few rows by key) at once, on the calling thread, which must be the loop's."""
        ...
