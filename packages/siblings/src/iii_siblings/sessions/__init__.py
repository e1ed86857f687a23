"""The embedded session store: sessions as trees of entries in SQLite (siblings 3)."""

from iii_siblings.sessions.install import SessionsWorker, install
from iii_siblings.sessions.schema import FAMILY

__all__ = ["FAMILY", "SessionsWorker", "install"]
