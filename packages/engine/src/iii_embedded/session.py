"""The frames of one worker connection (engine spec 3, 4.1, 4.2, 5, 6): read, and handed to where they belong.

Registrations wait until the worker's namespace is known and are then applied in order; calls and results never wait.
Nothing here waits for anything, so a slow peer or a slow call holds up nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from iii_embedded import frames, messages
from iii_embedded.calls import Failure, Request
from iii_embedded.frames import given, kept
from iii_embedded.peer import Peer
from iii_embedded.registry import DEFAULT, Function
from iii_embedded.triggers import BoundTrigger, TriggerType, candidates
from iii_kit.logs import logger

if TYPE_CHECKING:
    from iii_embedded.engine import Engine

_log = logger(__name__)


class Session:
    """What one connection may do with the engine."""

    def __init__(self, engine: Engine, peer: Peer, reattach: Callable[[Peer, frames.Reattach], None]) -> None:
        self._engine = engine
        self._peer = peer
        self._reattach = reattach

    def receive(self, data: bytes) -> None:
        """Take one frame; what is no message is logged and ignored."""
        try:
            frame = frames.read(data)
            if frame is not None and not self._peer.gone:
                self._take(frame)
        except frames.Unreadable as error:
            _log.warning("frame_ignored", worker=self._peer.name, problem=str(error))
            self._peer.broke(frames.call_of_broken_result(data), str(error))

    def announced(self) -> None:
        """The namespace is known: apply what waits."""
        waiting, self._peer.waiting = self._peer.waiting, None
        for frame in waiting or ():
            self._try(frame)

    def _take(self, frame: frames.Frame) -> None:
        if isinstance(frame, frames.InvokeFunction):
            self._call(frame)
        elif isinstance(frame, frames.InvocationResult):
            self._peer.answered(frame, frames.canonical(frame.invocation_id))
        elif isinstance(frame, frames.Ping):
            self._peer.outbox.put(messages.PONG)
        elif isinstance(frame, frames.TriggerRegistrationResult):
            self._peer.acknowledged(frame)
        elif isinstance(frame, frames.Reattach):
            self._reattach(self._peer, frame)
        elif not isinstance(frame, frames.Pong):
            if self._peer.waiting is not None:
                self._peer.waiting.append(frame)
            else:
                self._try(frame)

    # -- calls

    def _call(self, call: frames.InvokeFunction) -> None:
        """Route a call; it is answered when it has an id and is not void."""
        peer = self._peer
        id_ = None if call.invocation_id is None else frames.canonical(call.invocation_id)
        if call.namespace is not None and not call.namespace.strip():
            if id_ is not None:
                failure = Failure("INVALID_NAMESPACE", "namespace must not be blank")
                peer.outbox.put(messages.result(call, id_, failure))
            return
        answer = None
        if id_ is not None and not isinstance(call.action, frames.Void):
            answer = peer.opened(call, id_)
            if answer is None:
                return
        request = Request(
            call.function_id,
            bytes(call.data),
            call.namespace or DEFAULT,
            peer,
            peer.id,
            given(call.metadata),
            call.traceparent,
            call.baggage,
            None if answer is None else id_,
        )
        if isinstance(call.action, frames.Enqueue):
            self._engine.router.enqueue(request, call.action.queue, answer)
        else:
            self._engine.router.route(request, answer)

    # -- registrations

    def _try(self, frame: frames.Registration) -> None:
        try:
            self._apply(frame)
        except frames.Unreadable as error:
            _log.warning("registration_ignored", worker=self._peer.name, problem=str(error))

    def _apply(self, frame: frames.Registration) -> None:
        peer = self._peer
        if isinstance(frame, frames.RegisterFunction):
            self._register_function(frame)
        elif isinstance(frame, frames.UnregisterFunction):
            self._engine.registry.remove(peer, frame.id)
        elif isinstance(frame, frames.RegisterTriggerType):
            self._register_type(frame)
        elif isinstance(frame, frames.UnregisterTriggerType):
            self._engine.triggers.retract(peer, frame.namespace or peer.scope, frame.id)
        elif isinstance(frame, frames.RegisterTrigger):
            self._register_trigger(frame)
        elif isinstance(frame, frames.UnregisterTrigger):
            self._engine.triggers.unbind(frame.id)

    def _register_function(self, frame: frames.RegisterFunction) -> None:
        self._engine.registry.add(
            Function(
                frame.id,
                self._peer.scope,
                self._peer,
                frame.description,
                kept(frame.metadata),
                kept(frame.request_format),
                kept(frame.response_format),
                http=given(frame.invocation) is not None,
            )
        )

    def _register_type(self, frame: frames.RegisterTriggerType) -> None:
        namespace = self._peer.scope if frame.namespace is None else frame.namespace
        if not namespace.strip():
            _log.warning("trigger_type_ignored", type=frame.id, problem="namespace must not be blank")
            return
        self._engine.triggers.provide(
            TriggerType(
                frame.id,
                namespace,
                self._peer,
                frame.description,
                kept(frame.trigger_request_format),
                kept(frame.call_request_format),
            )
        )

    def _register_trigger(self, frame: frames.RegisterTrigger) -> None:
        peer = self._peer
        for field, value in (("namespace", frame.namespace), ("trigger_namespace", frame.trigger_namespace)):
            if value is not None and not value.strip():
                failure = Failure("INVALID_NAMESPACE", f"{field} must not be blank")
                peer.outbox.put(messages.binding_refused(frame.id, frame.trigger_type, frame.function_id, failure))
                return
        kept(frame.config)
        kept(frame.metadata)
        self._engine.triggers.bind(
            BoundTrigger(
                frame.id,
                frame.trigger_type,
                frame.function_id,
                bytes(frame.config),
                given(frame.metadata),
                frame.namespace or DEFAULT,
                candidates(frame.trigger_type, frame.trigger_namespace, peer.scope),
                peer,
            )
        )
