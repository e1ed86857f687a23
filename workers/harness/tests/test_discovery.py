"""Discovery results as the model sees them: filtered by the policy, compacted, and only once."""

import json

import pytest

from iii_harness.catalog import INFO, LIST
from iii_harness.contracts_digest import content_digest
from iii_harness.discovery import still_visible, view
from iii_harness.record import Contract

DETAIL = {
    "function_id": "demo::add",
    "namespace": "default",
    "description": "Adds.",
    "request_schema": {"title": "T", "type": "object", "$schema": "s"},
    "response_schema": {"type": "integer"},
}


def allows(function_id: str) -> bool:
    return function_id.startswith("demo::")


def shown(function_id: str, value: object, ledger: dict[str, Contract] | None = None, call_id: str = "c1"):
    seen = view(call_id, function_id, value, ledger or {}, allows)
    assert seen is not None
    (block,) = seen.content
    return json.loads(block["text"]), seen.ledger


@pytest.mark.requirement("prompt.discovery.list")
def test_a_list_drops_what_the_policy_denies() -> None:
    rows = [{"function_id": "demo::add"}, {"function_id": "state::get"}, {"odd": 1}, "odd"]
    assert shown(LIST, {"functions": rows})[0] == {"functions": [{"function_id": "demo::add"}]}


@pytest.mark.requirement("prompt.discovery.info")
def test_a_denied_single_answer_is_null_and_a_denied_item_stays_in_its_place() -> None:
    assert shown(INFO, {**DETAIL, "function_id": "state::get"})[0] is None
    batch = {
        "functions": [{**DETAIL, "function_id": "state::get"}, DETAIL, {"function_id": "demo::x", "error": "not_found"}]
    }
    answer, ledger = shown(INFO, batch)
    assert answer["functions"][0] == {"function_id": "state::get", "error": "not available"}
    assert answer["functions"][1]["function_id"] == "demo::add"
    assert answer["functions"][2] == {"function_id": "demo::x", "error": "not_found"}
    assert set(ledger) == {"demo::add"}


@pytest.mark.requirement("prompt.discovery.info")
def test_a_denied_function_that_does_not_exist_looks_like_one_that_does() -> None:
    answer, _ = shown(INFO, {"functions": [{"function_id": "secret", "error": "not_found"}]})
    assert answer == {"functions": [{"function_id": "secret", "error": "not available"}]}


@pytest.mark.requirement("prompt.discovery.info")
def test_the_models_copy_is_compacted_and_sorted() -> None:
    seen = view("c1", INFO, DETAIL, {}, allows)
    assert seen is not None
    assert seen.content[0]["text"] == (
        '{"description":"Adds.","function_id":"demo::add","namespace":"default","request_schema":{"type":"object"}}'
    )


@pytest.mark.requirement("prompt.discovery.info")
@pytest.mark.parametrize("function_id", ["engine::workers::list", "demo::add", "agent_trigger"])
def test_other_results_have_no_view(function_id: str) -> None:
    assert view("c1", function_id, {"functions": []}, {}, allows) is None
    assert view("c1", INFO, "text", {}, allows) is None


def result(call_id: str, content: object) -> dict:
    return {"role": "function_result", "function_call_id": call_id, "content": content}


@pytest.mark.requirement("prompt.discovery.unchanged")
def test_a_contract_in_view_is_pointed_at_while_it_stands_unchanged() -> None:
    first = view("c1", INFO, DETAIL, {}, allows)
    assert first is not None
    unseen, _ = shown(INFO, DETAIL, first.ledger, "c2")
    assert "contract_status" not in unseen, "not yet part of an assembled context"
    visible = still_visible(first.ledger, [{"role": "user"}, result("c1", first.content)])
    pointer, after = shown(INFO, {"functions": [DETAIL]}, visible, "c3")
    assert pointer == {
        "functions": [
            {
                "function_id": "demo::add",
                "contract_status": "unchanged_in_context",
                "source_function_call_id": "c1",
            }
        ]
    }
    assert after["demo::add"].repeats == 1
    assert after["demo::add"].source_function_call_id == "c1"
    changed, after = shown(INFO, {**DETAIL, "description": "Adds two."}, visible, "c4")
    assert changed["description"] == "Adds two."
    assert (after["demo::add"].source_function_call_id, after["demo::add"].eligible) == ("c4", False)


@pytest.mark.requirement("prompt.discovery.unchanged")
def test_a_source_that_is_gone_changed_or_doubled_no_longer_counts() -> None:
    first = view("c1", INFO, DETAIL, {}, allows)
    assert first is not None
    there = result("c1", first.content)
    assert still_visible(first.ledger, [there])["demo::add"].eligible
    assert still_visible(first.ledger, []) == {}
    assert still_visible(first.ledger, [there, there]) == {}
    assert still_visible(first.ledger, [result("c1", [{"type": "text", "text": "cut"}])]) == {}
    assert still_visible(first.ledger, [result("c2", first.content)]) == {}
    assert first.ledger["demo::add"].source_content_digest == content_digest(first.content)
