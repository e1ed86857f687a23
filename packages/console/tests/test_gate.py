"""Who may talk to the page host."""

from __future__ import annotations

import pytest

from iii_console.gate import Gate

OWN = "127.0.0.1:3113"


@pytest.mark.requirement("page.foreign.host")
@pytest.mark.parametrize("host", [OWN, "localhost:3113", "LOCALHOST", "[::1]:3113", "localhost:8080"])
def test_names_of_this_machine_pass(host: str) -> None:
    assert Gate("127.0.0.1").refusal([host], []) is None


@pytest.mark.requirement("page.foreign.host")
@pytest.mark.parametrize(
    "hosts",
    [
        ["evil.test:3113"],
        ["127.0.0.1.evil.test"],
        ["localhost.evil.test:3113"],
        ["10.0.0.7:3113"],
        [""],
        [],
        [OWN, OWN],
        ["localhost:; x"],
        ["localhost:"],
    ],
)
def test_names_that_can_be_rebound_are_refused(hosts: list[str]) -> None:
    refusal = Gate("127.0.0.1").refusal(hosts, [])
    assert refusal is not None
    assert "open the page by the address it printed" in refusal


@pytest.mark.requirement("page.foreign.host")
def test_a_host_that_is_reachable_from_elsewhere_passes_addresses_and_its_own_name_but_no_other() -> None:
    gate = Gate("0.0.0.0")
    assert gate.refusal(["192.168.1.5:3113"], []) is None
    assert gate.refusal(["[fe80::1]:3113"], []) is None
    assert gate.refusal(["evil.test:3113"], []) is not None
    assert Gate("stack.example").refusal(["stack.example:3113"], []) is None


@pytest.mark.requirement("page.foreign.origin")
@pytest.mark.parametrize(
    "origin",
    ["http://evil.test", "http://localhost:3113", "http://127.0.0.1:8000", "http://127.0.0.1", "null", "file://"],
)
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    assert Gate("127.0.0.1").refusal([OWN], [origin]) is not None


@pytest.mark.requirement("page.foreign.origin")
def test_the_own_page_and_programs_pass() -> None:
    gate = Gate("127.0.0.1")
    assert gate.refusal([OWN], [f"http://{OWN}"]) is None
    assert gate.refusal([OWN], [f"https://{OWN}"]) is None
    assert gate.refusal([OWN], []) is None
    assert gate.refusal([OWN], [f"http://{OWN}", "http://evil.test"]) is not None
