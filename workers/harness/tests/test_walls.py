"""Walls: refused whatever the policy says. The lists of the specification, one by one."""

import pytest

from iii_contracts import harness
from iii_harness import walls
from iii_harness.catalog import Snapshot
from iii_harness.gate import CallGate
from iii_harness.policy import compiled
from iii_harness.record import Policy

REFUSED = [
    "harness::delete-session-tree",
    "harness::delete-session-tree-status",
    "harness::delete-session-tree-run",
    "harness::state::anything",
    "provider::openai-codex::login::start",
    "provider::openai-codex::auth::token",
    "provider-openai-codex::state::get",
    "state::claim-namespace",
    "harness::function::trigger",
    "harness::function::resolve",
    "harness::turn",
    "harness::sweep-pending",
    "harness::on-session-deleted",
    "harness::on-config-change",
    "harness::on-functions-change",
    "harness::on-anything",
    "harness::unqueue",
    "harness::edit_queued",
    "harness::teardown",
    "harness::filesystem::grant",
    "harness::projects::list",
    "harness::trigger::deliver",
    "engine::register_trigger",
    "engine::unregister_trigger",
    "harness::send",
    "harness::stop",
    "harness::spawn",
    "harness::ask",
]
OPEN = [
    "harness::status",
    "harness::metrics",
    "harness::session-tree",
    "harness::context-policy",
    "harness::turns",
    "harness::triggers::list",
    "engine::functions::list",
    "engine::registered-triggers::list",
    "state::get",
    "state::list_groups",
    "provider::openai-codex::chat",
]


def gate() -> CallGate:
    return CallGate(compiled(Policy(allow=["*"])), Snapshot())


@pytest.mark.requirement("prompt.walls.ids")
@pytest.mark.parametrize("function_id", REFUSED)
@pytest.mark.parametrize("arguments", [{}, {"scope": "mine"}, None, "text", []])
def test_an_id_behind_a_wall_is_denied_under_the_widest_policy(function_id: str, arguments: object) -> None:
    denial = gate().denial(function_id, arguments)
    assert denial is not None
    assert function_id in denial
    assert not gate().allows(function_id)


@pytest.mark.requirement("prompt.walls.ids")
@pytest.mark.parametrize("function_id", OPEN)
def test_an_id_beside_a_wall_is_left_to_the_policy(function_id: str) -> None:
    assert gate().denial(function_id, {}) is None
    assert gate().allows(function_id)


@pytest.mark.requirement("prompt.walls.ids")
def test_every_function_of_the_harness_is_public_or_behind_a_wall() -> None:
    readable = {"harness::context-policy"}
    for spec in harness.FUNCTIONS:
        public = "internal" not in spec.metadata
        assert walls.refuses(spec.id) == (not public and spec.id not in readable), spec.id


@pytest.mark.requirement("prompt.walls.state")
@pytest.mark.parametrize("operation", ["get", "set", "update", "delete", "list", "barrier", "anything-new"])
def test_scopes_of_the_harness_are_closed_for_every_operation(operation: str) -> None:
    assert gate().denial(f"state::{operation}", {"scope": "harness_turn", "key": "s"}) is not None
    assert gate().denial(f"state::{operation}", {"scope": "harness_", "key": "s"}) is not None
    for scope in ("harness", "my_harness_turn", "", None, 7, ["harness_turn"]):
        assert gate().denial(f"state::{operation}", {"scope": scope, "key": "harness_turn"}) is None
    assert gate().denial(f"mystate::{operation}", {"scope": "harness_turn"}) is None


@pytest.mark.requirement("prompt.walls.fs_scope")
def test_a_models_own_filesystem_scope_is_stripped_and_nothing_else() -> None:
    arguments = {"path": "a", "fs_scope": {"root": "/"}, "nested": {"fs_scope": 1}}
    assert walls.without_stamp(arguments) == {"path": "a", "nested": {"fs_scope": 1}}
    assert arguments["fs_scope"] == {"root": "/"}
    for other in ({"a": 1}, "fs_scope", ["fs_scope"], None):
        assert walls.without_stamp(other) is other
