"""The six event types of the store: who is bound, and who hears of a change (siblings 3.8).

Called inside the transaction, whose calls leave after its commit. A payload is built only when somebody is bound to
hear it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from iii_contracts import session as contract
from iii_contracts.spec import TriggerSpec
from iii_kit.bindings import Bindings, event
from iii_kit.bus import Host, Json
from iii_kit.storage import Tx
from iii_siblings.sessions.schema import includes


class Subject(msgspec.Struct, frozen=True):
    """What an event is about, as far as filters ask: the session, its metadata (JSON text), the message's role."""

    session_id: str
    metadata: str | None
    role: str | None = None

    def fits(self, config: Any) -> bool:
        """True when a binding with this config hears of it."""
        session_id = getattr(config, "session_id", None)
        if session_id is not None and session_id != self.session_id:
            return False
        roles = getattr(config, "roles", None)
        if roles is not None and self.role not in roles:
            return False
        return includes(self.metadata, config.metadata)


class Events:
    """The bindings of every event type of the store."""

    def __init__(self, host: Host) -> None:
        self._of = {spec.id: Bindings(spec) for spec in contract.TRIGGERS}
        for spec in contract.TRIGGERS:
            host.provide(spec, self._of[spec.id])

    def tell(self, tx: Tx, spec: TriggerSpec, subject: Subject, payload: Callable[[], Json]) -> None:
        """Tell every binding that the subject fits, after the commit."""
        bindings = self._of[spec.id]
        if not len(bindings):
            return
        listeners = [bound.binding for bound in bindings if subject.fits(bound.config)]
        if listeners:
            data = payload()
            for binding in listeners:
                tx.after_commit(event(binding, data))
