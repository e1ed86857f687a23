"""The sessions below a session, by the parent that their metadata names (harness-loop 15.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from iii_contracts.harness.metrics import SessionTreeRequest
from iii_contracts.problems import is_object
from iii_harness.errors import dependency, invalid_request
from iii_kit.bus import Caller, Invocation
from iii_kit.clients.session import SessionClient
from iii_kit.errors import BusError, EpochEnded

PARENT: Final = "parent_session_id"
PARENT_TURN: Final = "parent_turn_id"

MAX_DEPTH: Final = 256
"""Levels that a walk follows; spawns stop far below it."""


@dataclass(frozen=True, slots=True)
class Node:
    """One session of a tree."""

    session_id: str
    depth: int
    parent_session_id: str | None = None
    parent_turn_id: str | None = None

    def place(self) -> dict[str, Any]:
        """Where it stands, as metrics show it."""
        parent = {} if self.parent_session_id is None else {"parent_session_id": self.parent_session_id}
        return {"session_id": self.session_id, **parent, "depth": self.depth}

    def public(self) -> dict[str, Any]:
        """As `harness::session-tree` shows it."""
        turn = {} if self.parent_turn_id is None else {"parent_turn_id": self.parent_turn_id}
        return {**self.place(), **turn}


@dataclass(frozen=True, slots=True)
class Tree:
    """A session and its descendants by depth, then id; empty when the root is unknown."""

    root_session_id: str
    nodes: tuple[Node, ...]
    complete: bool


class SessionTrees:
    """Reads trees from the session store."""

    def __init__(self, bus: Caller) -> None:
        self._sessions = SessionClient(bus)

    async def session_tree(self, request: SessionTreeRequest, _: Invocation) -> dict[str, Any]:
        """Handler of `harness::session-tree`."""
        tree = await self.below(request.root_session_id)
        return {
            "root_session_id": tree.root_session_id,
            "sessions": [node.public() for node in tree.nodes],
            "complete": tree.complete,
        }

    async def below(self, root_session_id: str) -> Tree:
        """The tree of a root, breadth first. A contradictory link is left out and makes the tree incomplete."""
        if await self._meta(root_session_id) is None:
            return Tree(root_session_id, (), complete=False)
        nodes: dict[str, Node] = {root_session_id: Node(root_session_id, 0)}
        level, complete = [nodes[root_session_id]], True
        while level:
            found: dict[str, Node] = {}
            for parent in level:
                for child in await self._children(parent):
                    if child is None or child.session_id in nodes or child.session_id in found:
                        complete = False
                    else:
                        found[child.session_id] = child
            nodes.update(found)
            level = list(found.values())
            if level and level[0].depth > MAX_DEPTH:
                return Tree(root_session_id, _ordered(nodes), complete=False)
        return Tree(root_session_id, _ordered(nodes), complete)

    async def root_of(self, session_id: str) -> str:
        """The topmost session above `session_id` that exists. Raises `CodedError` for a circle of parents."""
        seen = [session_id]
        meta = await self._meta(session_id)
        while meta is not None:
            parent = _metadata(meta).get(PARENT)
            if not isinstance(parent, str):
                break
            if parent in seen or len(seen) > MAX_DEPTH:
                raise invalid_request(f"the parents of session `{session_id}` form a circle or are too many levels")
            meta = await self._meta(parent)
            if meta is None:
                break
            seen.append(parent)
        return seen[-1]

    async def _meta(self, session_id: str) -> dict[str, Any] | None:
        try:
            return await self._sessions.get(session_id)
        except EpochEnded:
            raise
        except BusError as error:
            raise dependency("session::get", error) from error

    async def _children(self, parent: Node) -> list[Node | None]:
        """The children of a session; None for a row that names another parent."""
        try:
            rows = await self._sessions.list(metadata={PARENT: parent.session_id}, order="created_asc")
        except EpochEnded:
            raise
        except BusError as error:
            raise dependency("session::list", error) from error
        return [_child(row, parent) for row in rows]


def _child(row: dict[str, Any], parent: Node) -> Node | None:
    metadata, session_id = _metadata(row), row.get("session_id")
    if metadata.get(PARENT) != parent.session_id or not isinstance(session_id, str):
        return None
    turn = metadata.get(PARENT_TURN)
    return Node(session_id, parent.depth + 1, parent.session_id, turn if isinstance(turn, str) else None)


def _metadata(meta: dict[str, Any]) -> dict[str, Any]:
    metadata: Any = meta.get("metadata")
    return cast("dict[str, Any]", metadata) if is_object(metadata) else {}


def _ordered(nodes: dict[str, Node]) -> tuple[Node, ...]:
    return tuple(sorted(nodes.values(), key=lambda node: (node.depth, node.session_id)))
