"""The loop, put together: what the worker serves and what its neighbours ask of it."""

from __future__ import annotations

from iii_harness.shell.assembling import Assembling
from iii_harness.shell.dispatch import Dispatch
from iii_harness.shell.endings import Endings
from iii_harness.shell.generation import Generation
from iii_harness.shell.parts import Parts
from iii_harness.shell.paths import Paths
from iii_harness.shell.preparation import Preparation
from iii_harness.shell.racing import Background
from iii_harness.shell.step import Tools
from iii_harness.shell.turn_function import TurnFunction
from iii_harness.shell.writes import Writes


class Loop:
    """`turn` serves `harness::turn`; `cancel` and `unscheduled` end turns that no step will see."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._paths = Paths(parts.bus, parts.session_opts, parts.keeps_replies)
        self._writes = Writes(parts, self._paths)
        endings = Endings(parts, self._writes, self._paths)
        background = Background()
        function = TurnFunction(
            Tools(
                parts=parts,
                paths=self._paths,
                writes=self._writes,
                endings=endings,
                preparation=Preparation(parts, self._paths, Assembling(parts, self._writes, background)),
                generation=Generation(parts, background),
                dispatch=Dispatch(parts, background),
            )
        )
        self.turn = function.turn
        self.cancel = endings.cancel
        self.unscheduled = endings.unscheduled

    def renewed(self) -> None:
        """A new connection begins: nothing that was read or written over the old one is taken for granted."""
        self._paths.renewed()
        self._writes.renewed()
