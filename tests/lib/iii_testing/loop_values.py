"""Values of the loop for tests of its pure core: records, replies, calls, facts."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from iii_harness.decide.decision import Facts
from iii_harness.record import Options, Policy, TurnRecord


class AllowAll:
    def __init__(self, *denied: str) -> None:
        self.denied = denied

    def denial(self, function_id: str, arguments: Any) -> str | None:
        return f"{function_id} is denied" if function_id in self.denied else None

    def present(self, *_: Any) -> None:
        return None


def a_record(**fields: Any) -> TurnRecord:
    options = Options(model="m", provider="p", functions=Policy(allow=["*"]), **fields.pop("options", {}))
    base = TurnRecord(turn_id="t", session_id="s", status="running", options=options, created_at=1, updated_at=1)
    return replace(base, **fields)


def facts(**fields: Any) -> Facts:
    return Facts(**{"now_ms": 9, "gate": AllowAll(), **fields})


def a_call(call_id: str, function_id: str = "f::x", payload: Any = None) -> dict[str, Any]:
    arguments = {"function": function_id, "payload": {} if payload is None else payload}
    return {"type": "function_call", "id": call_id, "function_id": "agent_trigger", "arguments": arguments}


def a_reply(*content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content), "stop_reason": "end", "timestamp": 1, **fields}


def words(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}
