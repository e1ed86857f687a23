"""Placeholders in configuration values."""

from __future__ import annotations

from typing import Any

import pytest

from iii_embedded.modules.placeholders import Expansion
from iii_embedded.modules.yaml_scalars import typed


@pytest.mark.requirement("configuration.expand.types")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8080", 8080),
        ("-4", -4),
        ("0x10", 16),
        ("0o17", 15),
        ("true", True),
        ("null", None),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("[1, 2]", [1, 2]),
        ("a: 1", {"a": 1}),
        ("{a: [no, {b: ~}]}", {"a": ["no", {"b": None}]}),
        *((text, text) for text in ("no", "on", "007", "1_000", "2020-01-01", ".nan", "", "a b", "*x", "1: 2", "[")),
        ("!!python/object:os.system x", "!!python/object:os.system x"),
    ],
)
def test_a_placeholder_alone_takes_the_type_of_its_text(text: str, value: Any) -> None:
    found = Expansion(" ${X} ", {"X": text}).value
    assert found == value and type(found) is type(value)
    assert typed(text) == value


@pytest.mark.requirement("configuration.expand.places")
def test_strings_at_any_depth_are_expanded_once_and_keys_are_not() -> None:
    value = {"${A}": ["x-${A}", {"deep": "${B:7}${A}"}], "n": 5, "open": "${A", "odd": "${A-B}", "cut": "${N:a}b}"}
    expansion = Expansion(value, {"A": "${B:9}"})
    assert expansion.missing == []
    assert expansion.value == {
        "${A}": ["x-${B:9}", {"deep": "7${B:9}"}],
        "n": 5,
        "open": "${A",
        "odd": "${A-B}",
        "cut": "ab}",
    }


def test_every_name_without_a_value_is_told_once_and_its_text_stays() -> None:
    expansion = Expansion(["${A}", "${B} ${A}", "${C:}"], {})
    assert expansion.missing == ["A", "B"]
    assert expansion.value == ["${A}", "${B} ${A}", ""]
