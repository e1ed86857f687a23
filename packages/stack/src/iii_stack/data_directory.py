"""The data directory of a stack: where it lies, who may read it, who holds it (design, "Decided interfaces").

One stack per directory: it holds an exclusive lock for as long as it runs, which the operating system takes back when
the process dies. `stack.json` tells other commands where the running stack is.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, cast

from iii_stack.errors import StackError

VARIABLE = "III_STACK_DATA"
DATABASE = "stack.db"


def locate(given: Path | None = None) -> Path:
    """The directory: the one given, else `III_STACK_DATA`, else the user's data directory."""
    if given is not None:
        return given.expanduser().absolute()
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        return Path(named).expanduser().absolute()
    return usual()


def usual() -> Path:
    """The user's data directory: where every command looks when nothing else is said."""
    import platformdirs

    return Path(platformdirs.user_data_dir("iii-stack", appauthor=False))


class DataDirectory:
    """One data directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @property
    def database(self) -> Path:
        """The file of the database."""
        return self.path / DATABASE

    def open(self) -> None:
        """Create the directory, for its owner alone, and take the lock. Raises `StackError`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StackError(
                "data_directory",
                f"cannot use {self.path} as data directory: {error.strerror}",
                hint=f"name another one with --data-dir or {VARIABLE}",
            ) from None
        if not _try_lock(lock):
            os.close(lock)
            raise self._in_use()
        self._lock = lock

    def close(self) -> None:
        """Forget where the stack was and give the lock back."""
        if self._lock is None:
            return
        self._running_path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None

    def announce(self, running: dict[str, Any]) -> None:
        """Tell other commands of the running stack; in one piece, so that nobody reads half of it."""
        fresh = self._running_path.with_suffix(".new")
        fresh.touch(0o600)
        fresh.write_text(json.dumps(running))
        fresh.replace(self._running_path)

    def running(self) -> dict[str, Any] | None:
        """What the running stack announced; None when no stack runs here."""
        if not self.is_held():
            return None
        try:
            return cast("dict[str, Any]", json.loads(self._running_path.read_text()))
        except (OSError, ValueError):
            return None

    def is_held(self) -> bool:
        """True while a stack runs on this directory."""
        try:
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _try_lock(lock)
        finally:
            os.close(lock)

    def _in_use(self) -> StackError:
        running = self.running()
        who = f" (pid {running['pid']}, bus {running['bus']})" if running else ""
        return StackError(
            "data_directory_in_use",
            f"another stack{who} runs on {self.path}",
            hint="stop it first, or give this one a directory of its own with --data-dir",
        )

    @property
    def _lock_path(self) -> Path:
        return self.path / "lock"

    @property
    def _running_path(self) -> Path:
        return self.path / "stack.json"


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
