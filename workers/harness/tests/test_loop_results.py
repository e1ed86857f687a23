"""Results of calls: normalisation, cap, breaker, synthetic results (harness-loop 8.3 to 8.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_harness.decide import breaker, synthetic
from iii_harness.decide.canonical import compact, size
from iii_harness.decide.plan import PlannedCall
from iii_harness.decide.results import MOST_LEVELS, Result, capped, of_error, of_value, text_block
from iii_kit.errors import BusError

IMAGE = {"type": "image", "mime": "image/png", "data": "aGk="}


@pytest.mark.requirement("loop.result.normal")
@pytest.mark.parametrize(
    ("value", "content", "is_error"),
    [
        ("plain", [text_block("plain")], False),
        ({"a": [1, None]}, [text_block('{"a":[1,null]}')], False),
        (None, [text_block("null")], False),
        ([1], [text_block("[1]")], False),
        (7.5, [text_block("7.5")], False),
        ({"content": [IMAGE], "is_error": True}, [IMAGE], True),
        ({"content": []}, [text_block('{"content":[]}')], False),
        ({"content": [{"type": "text"}]}, [text_block('{"content":[{"type":"text"}]}')], False),
        ({"content": "text", "is_error": "yes"}, [text_block('{"content":"text","is_error":"yes"}')], False),
    ],
)
def test_a_value_becomes_content_and_stays_as_details(value, content, is_error):
    assert of_value(value) == Result(content, value, is_error)


@pytest.mark.requirement("loop.result.error")
def test_a_failed_call_keeps_code_and_message():
    result = of_error("a::b", BusError("TIMEOUT", "no answer"))
    assert result == Result(
        [text_block("a::b: no answer")], {"error": {"code": "TIMEOUT", "message": "no answer"}}, is_error=True
    )


@pytest.mark.requirement("loop.result.cap")
@given(st.integers(0, 5000), st.integers(0, 4096), st.booleans())
def test_a_capped_result_fits_and_a_small_one_is_untouched(length, limit, is_error):
    result = Result([text_block("x" * length)], None, is_error)
    after = capped(result, limit)
    effective = max(limit, 1024)
    if limit == 0 or size([result.content, result.details]) <= effective:
        assert after is result
    else:
        assert size([after.content, after.details]) <= effective
        assert after.details["result_capped"]["max_bytes"] == effective
        assert after.is_error == is_error


@pytest.mark.requirement("loop.result.depth")
@pytest.mark.parametrize("limit", [0, 1024])
def test_a_result_that_no_message_could_carry_is_kept_as_text(limit):
    fits, deep = nested(MOST_LEVELS - 1), nested(MOST_LEVELS)
    assert capped(of_value(fits), limit).details == fits
    after = capped(of_value(deep), limit)
    assert after == Result([text_block(compact(deep))], {"nesting_capped": {"max_levels": MOST_LEVELS}})
    block = {"type": "function_call", "id": "c", "function_id": "f", "arguments": deep}
    assert capped(of_value({"content": [block]}), limit).content == [text_block(compact([block]))]


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.requirement("loop.breaker")
def test_two_equal_failures_stop_the_third_run():
    key = breaker.key_of("a::b", {"x": 1, "y": 2})
    assert key == breaker.key_of("a::b", {"y": 2, "x": 1})
    failed: dict = {}
    failed = breaker.after(failed, key, [text_block("no")], is_error=True)
    assert breaker.tripped(failed, key) is None
    assert breaker.tripped(breaker.after(failed, key, [text_block("other")], is_error=True), key) is None
    assert breaker.tripped(breaker.after(failed, key, [text_block("no")], is_error=True), key) == 2


@pytest.mark.requirement("loop.breaker")
@given(st.lists(st.sampled_from(["ok", "no", "other"]), max_size=8))
def test_the_breaker_counts_equal_failures_in_a_row(outcomes):
    key, failed, run, last = breaker.key_of("f", {}), {}, 0, ""
    for outcome in outcomes:
        failed = breaker.after(failed, key, [text_block(outcome)], is_error=outcome != "ok")
        run = 0 if outcome == "ok" else (run + 1 if outcome == last else 1)
        last = outcome
        assert breaker.tripped(failed, key) == (run if run >= 2 else None)


@pytest.mark.requirement("loop.synthetic")
@pytest.mark.parametrize("arguments", [None, [], "text", {"a": 1, "_partial": True}, {"_raw": "{"}])
def test_arguments_that_are_not_whole_are_never_executed(arguments):
    assert synthetic.is_truncated(arguments)
    for at_length, cause in ((True, "max_output_tokens"), (False, "incomplete_json")):
        result = synthetic.truncated(PlannedCall("c", "a::b", arguments), at_length=at_length)
        assert (result.details["error"], result.details["cause"], result.is_error) == (
            "arguments_truncated",
            cause,
            True,
        )
        assert "_partial" not in result.content[0]["text"]


@pytest.mark.requirement("loop.synthetic")
def test_previews_are_cut_by_characters():
    result = synthetic.no_target(PlannedCall("c", "agent_trigger", {"x": "é" * 500}))
    assert "é" * 190 in result.content[0]["text"]
    assert "é" * 200 not in result.content[0]["text"]
