"""The life of a worker connection (engine spec 4): hello, announcement or grace, reattach, clean-up."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from iii_contracts.engine.workers import WorkersRegisterRequest
from iii_embedded import frames, messages
from iii_embedded.outbox import Outbox
from iii_embedded.peer import Peer
from iii_embedded.session import Session
from iii_embedded.text import one_line
from iii_embedded.workers import Worker
from iii_kit.errors import BusError

if TYPE_CHECKING:
    from iii_embedded.engine import Engine

GOING_AWAY = 1001
"""The close code of an engine that stops."""


class Lifecycle:
    """All worker connections of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: dict[str, Session] = {}

    async def serve(self, socket: ServerConnection) -> None:
        """Serve one connection until it ends."""
        peer = self._arrive(socket)
        session = self._sessions[peer.id] = Session(self._engine, peer, self._reattach)
        grace = asyncio.get_running_loop().create_task(self._grace(peer))
        try:
            while True:
                session.receive(await socket.recv(decode=False))
        except ConnectionClosed:
            pass
        finally:
            grace.cancel()
            self._engine.leave(peer)
            self._sessions.pop(peer.id, None)
            await peer.outbox.closed()

    async def close(self, peers: list[Peer]) -> None:
        """Send every peer what waits for it, then close its connection: the engine is going away."""
        for peer in peers:
            peer.outbox.finish(GOING_AWAY)
        for peer in peers:
            await peer.outbox.closed()
            self._engine.leave(peer)

    def announce(self, worker: Worker | None, request: WorkersRegisterRequest) -> None:
        """A worker says who it is (engine spec 12.5): it gets its name, or is turned away."""
        if request.namespace is not None and not request.namespace.strip():
            raise BusError("INVALID_NAMESPACE", "namespace must not be blank")
        if not isinstance(worker, Peer) or worker.gone:
            return
        if worker.namespace is None:
            worker.namespace = request.namespace or "default"
        name = one_line(request.name)
        if name is not None:
            holder = self._engine.registry.claim(worker, name)
            if holder is not None:
                self._turn_away(worker, name, holder)
                return
        self._note(worker, request)
        if worker.waiting is not None:
            self._sessions[worker.id].announced()
        self._engine.availability.updated(worker)

    def _arrive(self, socket: ServerConnection) -> Peer:
        world = self._engine.world
        outbox = Outbox(socket, self._engine.settings.outgoing_limit)
        peer = Peer(world.ids.uuid(), world.ids.hex(), world.clock.now_ms(), outbox, world.ids)
        address = socket.remote_address
        peer.facts.ip_address = address[0] if address else None
        peer.outbox.put(messages.hello(peer.id, peer.token))
        self._engine.registry.workers[peer.id] = peer
        self._engine.availability.connected(peer)
        return peer

    async def _grace(self, peer: Peer) -> None:
        await self._engine.world.clock.sleep(self._engine.settings.grace_ms / 1000)
        if peer.waiting is not None and not peer.gone:
            peer.namespace = "default"
            self._sessions[peer.id].announced()

    def _turn_away(self, peer: Peer, name: str, holder: Worker) -> None:
        peer.outbox.put(messages.name_taken(peer.scope, name, holder.id))
        peer.outbox.finish(None)
        peer.waiting = []
        self._engine.leave(peer)

    def _reattach(self, peer: Peer, frame: frames.Reattach) -> None:
        old = self._engine.registry.workers.get(frame.previous_worker_id)
        if not isinstance(old, Peer) or old is peer or frame.reattach_token is None:
            return
        if hmac.compare_digest(old.token.encode(), frame.reattach_token.encode()):
            old.outbox.abort()
            self._engine.leave(old)

    def _note(self, peer: Peer, request: WorkersRegisterRequest) -> None:
        facts = peer.facts
        facts.runtime = request.runtime or "unknown"
        facts.version = request.version
        facts.telemetry = request.telemetry
        facts.description = one_line(request.description) or facts.description
        facts.os = request.os or facts.os
        facts.isolation = request.isolation or facts.isolation
        facts.pid = facts.pid if request.pid is None else request.pid
