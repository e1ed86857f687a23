"""A worker at the end of a socket, as the engine's other parts see it (engine spec 3.2, 3.3, 5.3).

It keeps the calls that the worker executes, so that an answer is taken only from the worker that got the call and none
can come before its entry, and the ids of the calls that the worker has made and still waits for.
"""

from __future__ import annotations

from iii_embedded import messages
from iii_embedded.calls import STOPPED, Answer, Failure, Outcome, Request
from iii_embedded.frames import InvocationResult, InvokeFunction, Registration, TriggerRegistrationResult, given
from iii_embedded.outbox import Outbox
from iii_embedded.registry import Function
from iii_embedded.routing import refuse
from iii_embedded.triggers import BoundTrigger
from iii_embedded.workers import Acknowledge, Worker
from iii_kit.encoding import MAX_BYTES
from iii_kit.world import Ids


class Peer(Worker):
    """One worker connection. `waiting` holds its registrations until it is announced; None afterwards."""

    def __init__(self, id_: str, token: str, now_ms: int, outbox: Outbox, ids: Ids) -> None:
        super().__init__(id_, now_ms)
        self.token = token
        self.outbox = outbox
        self.waiting: list[Registration] | None = []
        self._ids = ids
        self._executing: dict[str, tuple[Request, Answer | None]] = {}
        self._made: set[str] = set()
        self._offered: dict[str, Acknowledge] = {}

    @property
    def open_calls(self) -> int:
        """Calls that it executes plus calls that it has made."""
        return len(self._executing) + len(self._made)

    # -- calls that it executes

    def execute(self, function: Function, request: Request, answer: Answer | None) -> None:
        """Send it the call; entered before it is sent."""
        id_ = request.invocation_id or self._ids.uuid()
        frame = messages.invoke(request, id_)
        if id_ in self._executing:
            refuse(request, answer, Failure("invocation_error", f"invocation {id_} is still open"))
        elif len(frame) > MAX_BYTES:
            refuse(request, answer, Failure("payload_too_large", f"the call is {len(frame)} bytes, over {MAX_BYTES}"))
        elif self.gone:
            refuse(request, answer, STOPPED)
        else:
            self._executing[id_] = (request, answer)
            self.outbox.put(frame)

    def answered(self, frame: InvocationResult, invocation_id: str) -> None:
        """It has answered; what it was not asked, or has answered before, is ignored."""
        entry = self._executing.pop(invocation_id, None)
        if entry is None or entry[1] is None:
            return
        error = frame.error
        if error is not None:
            entry[1](Failure(error.code, error.message, error.stacktrace))
        else:
            entry[1](given(frame.result) or b"null")

    def broke(self, invocation_id: str | None, problem: str) -> None:
        """Its answer to a call, if that is what it sent, cannot be read: the caller need not wait for a better one."""
        entry = None if invocation_id is None else self._executing.pop(invocation_id, None)
        if entry is not None and entry[1] is not None:
            entry[1](Failure("invocation_failed", f"{entry[0].function_id} answered with what is not JSON: {problem}"))

    # -- calls that it has made

    def opened(self, call: InvokeFunction, invocation_id: str) -> Answer | None:
        """The answer of a call that it makes; None, and an error to it, when the id is one of an open call."""
        if invocation_id in self._made:
            failure = Failure("invocation_error", f"invocation {invocation_id} is still open")
            self.outbox.put(messages.result(call, invocation_id, failure))
            return None
        self._made.add(invocation_id)

        def answer(outcome: Outcome) -> None:
            self._made.discard(invocation_id)
            if self.gone:
                return
            frame = messages.result(call, invocation_id, outcome)
            if len(frame) > MAX_BYTES:
                failure = Failure("payload_too_large", f"the result is {len(frame)} bytes, over {MAX_BYTES}")
                frame = messages.result(call, invocation_id, failure)
            self.outbox.put(frame)

        return answer

    # -- triggers

    def offer(self, binding: BoundTrigger, acknowledge: Acknowledge) -> None:
        """Send it a binding on a type that it provides."""
        self._offered[binding.id] = acknowledge
        self.outbox.put(messages.register_trigger(binding))

    def acknowledged(self, frame: TriggerRegistrationResult) -> None:
        """It has accepted or refused a binding; a later refusal counts too."""
        acknowledge = self._offered.get(frame.id)
        if acknowledge is not None:
            error = frame.error
            acknowledge(None if error is None else Failure(error.code, error.message))

    def withdraw(self, binding: BoundTrigger) -> None:
        """Send it that a binding is gone."""
        self._offered.pop(binding.id, None)
        self.outbox.put(messages.unregister_trigger(binding))

    def refuse_binding(self, binding: BoundTrigger, failure: Failure) -> None:
        """Send it that its binding was refused."""
        self.outbox.put(messages.binding_refused(binding.id, binding.trigger_type, binding.function_id, failure))

    def refuse_function(self, namespace: str, function_id: str, owner_id: str) -> None:
        """Send it that a function id is not its to register."""
        self.outbox.put(messages.function_taken(namespace, function_id, owner_id))

    def ended(self) -> None:
        """It is gone: those who wait for it are told, what it waits for is dropped."""
        self.outbox.end()
        executing, self._executing = self._executing, {}
        for _, answer in executing.values():
            if answer is not None:
                answer(STOPPED)
