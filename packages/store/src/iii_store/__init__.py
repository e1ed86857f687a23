"""The one SQLite database of the embedded stack: writer, group commit, savepoints, migrations."""

from iii_store.schema import Family, NewerDatabase
from iii_store.store import SqliteStore

__all__ = ["Family", "NewerDatabase", "SqliteStore"]
