"""Table families and their forward-only migrations (siblings 17.4).

Each family of tables is owned by one module, which declares a `Family`. Its version is stored beside the tables; a
database written by a newer version is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iii_store.database import Database


@dataclass(frozen=True, slots=True)
class Family:
    """The tables of one concern: `migrations[n]` are the statements that lead from version n to n + 1."""

    name: str
    migrations: tuple[tuple[str, ...], ...]

    @property
    def version(self) -> int:
        """The version this code reads and writes."""
        return len(self.migrations)


class NewerDatabase(Exception):
    """The database was written by a newer version of this software."""

    def __init__(self, family: str, found: int, known: int) -> None:
        super().__init__(
            f"the database holds version {found} of the tables of {family!r}, this version knows up to {known}: "
            "start the newer version, or use another data directory"
        )


def migrate(db: Database, families: Sequence[Family]) -> None:
    """Bring every family to its version, in one transaction; raises `NewerDatabase` and changes nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("CREATE TABLE IF NOT EXISTS schema_versions(family TEXT PRIMARY KEY, version INTEGER NOT NULL)")
        found = dict(db.execute("SELECT family, version FROM schema_versions").fetchall())
        for family in families:
            at = found.get(family.name, 0)
            if at > family.version:
                raise NewerDatabase(family.name, at, family.version)
            for statements in family.migrations[at:]:
                for statement in statements:
                    db.execute(statement)
            db.execute(
                "INSERT INTO schema_versions VALUES(?, ?) ON CONFLICT(family) DO UPDATE SET version = excluded.version",
                (family.name, family.version),
            )
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
