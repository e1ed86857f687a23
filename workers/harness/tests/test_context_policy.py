"""Models whose reasoning is bound to its prefix keep their aged results."""

import pytest

from iii_harness.context_policy import allows_prune


@pytest.mark.requirement("prompt.context_policy")
@pytest.mark.parametrize(
    ("model", "prunes"),
    [
        ("claude-opus-5-5", False),
        ("vendor/claude-sonnet-5-5-20260101", False),
        ("claude-haiku-5-5@route", False),
        ("claude-fable-5-1", False),
        ("claude-opus-5", True),
        ("gpt-5.6", True),
        ("", True),
    ],
)
def test_the_id_decides(model: str, prunes: bool) -> None:
    assert allows_prune(model) == prunes
