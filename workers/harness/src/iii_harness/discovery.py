"""What a model sees of discovery results (harness-loop 9A.4).

Functions it may not call are left out of a list and `null` or `not available` in answers about single ones. Contracts
are compacted, and one that still stands unchanged in the model's context is only pointed at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from iii_harness.catalog import INFO, LIST
from iii_harness.contracts_digest import canonical, compacted, content_digest, contract_digest, seen_digest
from iii_harness.record import Contract

Ledger = dict[str, Contract]
"""Contracts that the model has been shown, by function id; eligible ones stood in an assembled context."""

FUNCTIONS = frozenset({LIST, INFO})
"""The functions whose results have a view."""


@dataclass(frozen=True, slots=True)
class View:
    """A discovery result in the model's form, and the ledger after it."""

    value: Any
    ledger: Ledger

    @property
    def content(self) -> list[dict[str, Any]]:
        """The content blocks of the result."""
        return [{"type": "text", "text": canonical(self.value).decode()}]


def view(call_id: str, function_id: str, value: Any, ledger: Ledger, allows: Callable[[str], bool]) -> View | None:
    """The model's view of `value`, a result of `function_id`; None when that is no discovery function."""
    if function_id == LIST and isinstance(value, dict):
        return View(_listed(cast("dict[str, Any]", value), allows), ledger)
    if function_id != INFO or not (value is None or isinstance(value, dict)):
        return None
    seen = _Seen(allows, dict(ledger))
    shown = seen.answer(cast("dict[str, Any] | None", value))
    digest = content_digest(View(shown, ledger).content)
    for shown_id, contract in seen.fresh.items():
        seen.ledger[shown_id] = Contract(contract, call_id, digest)
    return View(shown, seen.ledger)


def still_visible(ledger: Ledger, messages: Iterable[Mapping[str, Any]]) -> Ledger:
    """The contracts whose source result stands in `messages`, once and unchanged: those may be pointed at."""
    if not ledger:
        return ledger
    digests: dict[str, str] = {}
    times: Counter[str] = Counter()
    sources = {contract.source_function_call_id for contract in ledger.values()}
    for message in messages:
        call_id = message.get("function_call_id")
        if message.get("role") == "function_result" and call_id in sources:
            times[call_id] += 1
            digests[call_id] = content_digest(message.get("content"))
    return {
        function_id: contract if contract.eligible else msgspec.structs.replace(contract, eligible=True)
        for function_id, contract in ledger.items()
        if times[contract.source_function_call_id] == 1
        and digests[contract.source_function_call_id] == contract.source_content_digest
    }


def _listed(value: dict[str, Any], allows: Callable[[str], bool]) -> dict[str, Any]:
    rows = value.get("functions")
    if not isinstance(rows, list):
        return value
    return {**value, "functions": [row for row in cast("list[Any]", rows) if _allowed(row, allows)]}


def _allowed(row: Any, allows: Callable[[str], bool]) -> bool:
    function_id: Any = cast("dict[str, Any]", row).get("function_id") if isinstance(row, dict) else None
    return isinstance(function_id, str) and allows(function_id)


class _Seen:
    """One answer of `engine::functions::info`, walked."""

    def __init__(self, allows: Callable[[str], bool], ledger: Ledger) -> None:
        self._allows = allows
        self.ledger = ledger
        self.fresh: dict[str, str] = {}
        """Contract digests of what this answer shows in full."""

    def answer(self, value: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        rows = value.get("functions")
        if isinstance(rows, list):
            return {**value, "functions": [self._item(row) for row in cast("list[Any]", rows)]}
        return self._detail(value) if _allowed(value, self._allows) else None

    def _item(self, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        fields = cast("dict[str, Any]", row)
        if not _allowed(fields, self._allows):
            return {"function_id": fields.get("function_id"), "error": "not available"}
        return fields if "error" in fields else self._detail(fields)

    def _detail(self, detail: dict[str, Any]) -> dict[str, Any]:
        function_id = cast("str", detail["function_id"])
        contract = seen_digest(contract_digest(detail.get("description"), detail.get("request_schema")))
        before = self.ledger.get(function_id)
        if before is not None and before.eligible and before.contract_digest == contract:
            self.ledger[function_id] = msgspec.structs.replace(before, repeats=before.repeats + 1)
            return {
                "function_id": function_id,
                "contract_status": "unchanged_in_context",
                "source_function_call_id": before.source_function_call_id,
            }
        self.fresh[function_id] = contract
        shown = {key: value for key, value in detail.items() if key != "response_schema"}
        if "request_schema" in shown:
            shown["request_schema"] = compacted(shown["request_schema"])
        return shown
