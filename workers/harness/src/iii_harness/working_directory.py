"""The filesystem root of a turn: `options.metadata.fs_scope.root` (harness-agents 12.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from iii_kit.bus import Json

OFF = "off"
"""Value of `default_filesystem_root` that gives new sessions no root."""


def names_scope(metadata: Json) -> bool:
    """True when the metadata has the key `fs_scope`, even empty: nothing is inherited then, and no default applies."""
    return isinstance(metadata, dict) and "fs_scope" in metadata


def root_of(metadata: Json) -> str | None:
    """The root that the metadata names, or None."""
    scope: Any = cast("dict[str, Any]", metadata).get("fs_scope") if isinstance(metadata, dict) else None
    root: Any = cast("dict[str, Any]", scope).get("root") if isinstance(scope, dict) else None
    return root if isinstance(root, str) and root else None


def with_root(metadata: Json, root: str | None) -> Json:
    """The metadata with that root; unchanged without one, and where metadata of another kind cannot carry it."""
    if root is None or not (metadata is None or isinstance(metadata, dict)):
        return metadata
    fields = cast("dict[str, Any]", metadata or {})
    scope: Any = fields.get("fs_scope")
    kept = cast("dict[str, Any]", scope) if isinstance(scope, dict) else {}
    return {**fields, "fs_scope": {**kept, "root": root}}


def default_root(configured: str | None) -> str | None:
    """The root of a brand-new session: configured, else the directory of this process; None when switched off."""
    if configured == OFF:
        return None
    return configured or str(Path.cwd())
