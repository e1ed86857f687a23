"""The one SQLite database of the embedded stack: writer, group commit, savepoints, migrations."""

from iii_store.faults import StoreFailed
from iii_store.group import StorePoint
from iii_store.inline import InlineStore
from iii_store.schema import Family, NewerDatabase
from iii_store.store import SqliteStore

__all__ = ["Family", "InlineStore", "NewerDatabase", "SqliteStore", "StoreFailed", "StorePoint"]
