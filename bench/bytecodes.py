"""Bytecodes and frames that a run executes, by module and by function: a figure that busy neighbours do not change.

The time of a step follows them closely once nothing stands out in a profile. Tracing every bytecode makes a run some
thirty times slower; work in C behind one bytecode (JSON, SQLite, validation) is not seen.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any

SHOWN = 40


class Bytecodes:
    """Counts between `start` and `stop` on the thread that calls them."""

    def __init__(self) -> None:
        self._executed: Counter[CodeType] = Counter()
        self._entered: Counter[CodeType] = Counter()

    def start(self) -> None:
        """Count from now on; coroutines count once per resumption."""
        sys.settrace(self._enter)

    def stop(self) -> None:
        """Count no more."""
        sys.settrace(None)

    def report(self, steps: int) -> str:
        """Per step: the totals, then modules and functions, the largest first."""
        total = sum(self._executed.values())
        modules: Counter[str] = Counter()
        for code, count in self._executed.items():
            modules[_where(code)] += count
        lines = [f"{total / steps:9.0f} bytecodes, {sum(self._entered.values()) / steps:.0f} frames a step", ""]
        lines += [f"{count / steps:9.0f} {name}" for name, count in modules.most_common(SHOWN)]
        lines += [""]
        lines += [
            f"{count / steps:9.0f} x{self._entered[code] / steps:<6.1f} {_where(code)} {code.co_qualname}"
            for code, count in self._executed.most_common(SHOWN)
        ]
        return "\n".join(lines)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._entered[frame.f_code] += 1
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self._executed[frame.f_code] += 1
        return self._step


def _where(code: CodeType) -> str:
    path = code.co_filename
    for root in ("/src/", "/site-packages/", "/lib/"):
        if root in path:
            return path.rpartition(root)[2]
    return path.rpartition("/")[2]
