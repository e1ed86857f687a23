"""Rules of the provider `anthropic`: endpoints, bodies, cache marks, reasoning, models, prices, errors (siblings 7)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_contracts.generation import Model
from iii_siblings.providers.anthropic.body import messages_body
from iii_siblings.providers.anthropic.catalogue import entries
from iii_siblings.providers.anthropic.endpoint import endpoint
from iii_siblings.providers.anthropic.errors import kind_of
from iii_siblings.providers.anthropic.prices import price_list
from iii_siblings.providers.anthropic.worker import API
from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.link import Secret

LONG = "x" * 4096
TOOL = {"name": "math::add", "description": "Adds", "parameters": {"type": "object", "properties": {}}}
MARK = {"type": "ephemeral"}


def user(*content) -> dict:
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {"role": "user", "content": blocks, "timestamp": 1}


def said(*content, provider: str = "anthropic") -> dict:
    return {**user(*content), "role": "assistant", "provider": provider, "model": "m", "stop_reason": "end"}


def call(key: str = "toolu_1", arguments=None) -> dict:
    given = {"a": 1} if arguments is None else arguments
    return {"type": "function_call", "id": key, "function_id": "math::add", "arguments": given}


def result(key: str, *content, **fields) -> dict:
    return {**user(*content), "role": "function_result", "function_call_id": key, "function_id": "math::add", **fields}


def thinking(text: str = "hm", signature: str | None = "s") -> dict:
    block = {"type": "thinking", "text": text}
    return block if signature is None else {**block, "signature": signature}


def image(mime: str = "image/png", data: str = "aGk=") -> dict:
    return {"type": "image", "mime": mime, "data": data}


def body(*messages, environ=None, **request) -> dict:
    """The body of a request, its warnings beside it."""
    request = {"model": "claude-x", "messages": list(messages), **request}
    names = FunctionNames([tool["name"] for tool in request.get("tools") or []])
    warnings: list[str] = []
    made = messages_body(request, names, {"PROVIDER_ANTHROPIC_CACHE": "0"} if environ is None else environ, warnings)
    return {**made, "warnings": warnings}


def blocks_of(made: dict) -> list[tuple[str, list[str]]]:
    return [(message["role"], [block["type"] for block in message["content"]]) for message in made["messages"]]


def marked(made: dict) -> int:
    return json.dumps(made).count("cache_control")


@pytest.mark.requirement("providers.anthropic.endpoint")
@pytest.mark.parametrize(
    ("given", "url"),
    [
        (None, "https://api.anthropic.com/v1/messages"),
        ("  ", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
        ("http://h:1/anthropic", "http://h:1/anthropic/v1/messages"),
        ("http://h:1/v1/messages", "http://h:1/v1/messages"),
        ("http://h:1", "http://h:1/v1/messages"),
    ],
)
def test_endpoints(given, url):
    found = endpoint(given)
    assert found.url == url
    assert found.models_url == url.removesuffix("messages") + "models?limit=1000"
    assert found.needs_key == ("api.anthropic.com" in url)


@pytest.mark.requirement("providers.anthropic.headers")
def test_a_key_and_a_token_travel_in_headers_of_their_own():
    version = {"anthropic-version": "2023-06-01"}
    headers = API.manners.headers
    assert headers(Secret("")) == version
    assert headers(Secret("k")) == version | {"x-api-key": "k"}
    assert headers(Secret("k", is_token=True)) == version | {"authorization": "Bearer k"}
    assert "sk-1" not in repr(Secret("sk-1"))


@pytest.mark.requirement("providers.anthropic.thinking_kept")
def test_signed_thinking_goes_back_and_foreign_or_unsigned_does_not():
    opaque = {"type": "redacted_thinking", "data": "b3A="}
    own = said(thinking(), opaque, "a", call())
    made = body(user("q"), own, result("toolu_1", "3"))
    assert made["messages"][1]["content"][:2] == [{"type": "thinking", "thinking": "hm", "signature": "s"}, opaque]
    foreign = said(thinking(), opaque, "a", call(), provider="openai")
    assert blocks_of(body(user("q"), foreign, result("toolu_1", "3")))[1] == ("assistant", ["text", "tool_use"])
    unsigned = said(thinking(signature=None), "a")
    assert blocks_of(body(user("q"), unsigned, user("r")))[1] == ("assistant", ["text"])


@pytest.mark.requirement("providers.anthropic.thinking_kept")
def test_thinking_at_the_end_and_answers_without_content_are_dropped():
    made = body(user("q"), said("a", thinking()), user("r"), said(thinking()), said("  "), user("s"))
    assert blocks_of(made) == [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"]), ("user", ["text"])]


@pytest.mark.requirement("providers.anthropic.messages")
def test_results_and_what_a_person_says_after_them_are_one_message():
    made = body(
        user("q"), said(call("b"), call("a")), result("a", "1"), result("b", "2", is_error=True), user("and"), user("x")
    )
    assert blocks_of(made)[2:] == [("user", ["tool_result", "tool_result", "text"]), ("user", ["text"])]
    first, second, _ = made["messages"][2]["content"]
    assert (first["tool_use_id"], first["content"], first["is_error"]) == ("b", "2", True)
    assert (second["tool_use_id"], second["content"], "is_error" in second) == ("a", "1", False)


@pytest.mark.requirement("providers.anthropic.messages")
def test_trailing_answers_are_dropped_with_a_warning():
    made = body(user("q"), said("a"), said("b"))
    assert blocks_of(made) == [("user", ["text"])]
    assert len(made["warnings"]) == 1


@pytest.mark.requirement("providers.anthropic.messages")
@pytest.mark.parametrize("arguments", [None, [1], "text", 5, {"_raw": "{"}])
def test_arguments_are_an_object(arguments):
    block = {**call(), "arguments": arguments}
    given = body(user("q"), said(block), result("toolu_1", "3"))["messages"][1]["content"][0]["input"]
    assert given == (arguments if isinstance(arguments, dict) else {})


@pytest.mark.requirement("providers.anthropic.messages")
def test_ids_of_others_are_made_legal_and_stay_distinct():
    made = body(user("q"), said(call("call:1"), call("call_1")), result("call:1", "1"), result("call_1", "2"))
    calls = [block["id"] for block in made["messages"][1]["content"]]
    assert calls == [block["tool_use_id"] for block in made["messages"][2]["content"]] == ["call_1", "call_1_2"]


@pytest.mark.requirement("providers.anthropic.images")
def test_images_of_people_and_of_results():
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    made = body(user("see", image(), image(data="")), said(call()), result("toolu_1", "shot", image()))
    assert made["messages"][0]["content"][1] == {"type": "image", "source": source}
    assert len(made["messages"][0]["content"]) == 2
    (shown,) = made["messages"][2]["content"]
    assert [part["type"] for part in shown["content"]] == ["text", "image"]


@pytest.mark.requirement("providers.anthropic.images")
def test_an_image_that_the_api_does_not_know_is_named_and_warned_of():
    made = body(user(image("image/tiff"), image("image/jpg")))
    assert made["messages"][0]["content"][0]["type"] == "text"
    assert made["messages"][0]["content"][1]["source"]["media_type"] == "image/jpeg"
    assert "image/tiff" in made["warnings"][0]


@pytest.mark.requirement("providers.anthropic.messages")
def test_a_failed_call_without_a_word_says_so():
    made = body(user("q"), said(call()), result("toolu_1", " ", is_error=True))
    assert made["messages"][2]["content"][0]["content"]


PIECES = st.one_of(
    st.sampled_from(["", " ", "a", "\n"]).map(user),
    st.lists(
        st.one_of(
            st.sampled_from(["", " ", "b"]),
            st.sampled_from(["x", "y", "", "a b"]).map(call),
            st.sampled_from([thinking(), thinking(signature=None), thinking("")]),
            st.just({"type": "redacted_thinking", "data": "d"}),
        ),
        max_size=4,
    ).flatmap(lambda parts: st.sampled_from(["anthropic", "openai"]).map(lambda who: said(*parts, provider=who))),
    st.sampled_from(["x", "y", "", "a b", "z"]).map(lambda key: result(key, "r")),
    st.just({"role": "custom", "custom_type": "c", "content": [], "timestamp": 1}),
)


@pytest.mark.requirement("providers.anthropic.messages")
@given(st.lists(PIECES, max_size=12), st.booleans())
def test_any_transcript_goes_out_whole(transcript, marks):
    made = body(*transcript, environ={} if marks else None)
    asked: list[str] = []
    for message in made["messages"]:
        content = message["content"]
        assert content
        assert all(block["text"].strip() for block in content if block["type"] == "text")
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        assert answered == asked
        kinds = [block["type"] for block in content]
        assert kinds[: len(answered)] == ["tool_result"] * len(answered)
        asked = [block["id"] for block in content if block["type"] == "tool_use"]
        assert kinds[-1] not in ("thinking", "redacted_thinking")
        assert all(key.replace("_", "").isalnum() for key in asked)
    assert not asked
    assert not made["messages"] or made["messages"][-1]["role"] == "user"
    assert marked(made) <= (1 if marks else 0)


@pytest.mark.requirement("providers.anthropic.cache")
def test_boundaries_of_long_sections_are_marked_at_most_two():
    section = {"text": LONG, "cache_boundary": True}
    short = {"text": "short", "cache_boundary": True}
    made = body(user("q"), environ={}, system_sections=[short, {"text": " "}, section, section, section])
    assert [block.get("cache_control") for block in made["system"]] == [None, MARK, MARK, None]
    assert body(user("q"), system_sections=[short, section])["system"][1] == {"type": "text", "text": LONG}


@pytest.mark.requirement("providers.anthropic.cache")
def test_a_prompt_without_sections_is_text_or_one_marked_block():
    assert body(user("q"), environ={}, system_prompt="short")["system"] == "short"
    assert body(user("q"), environ={}, system_prompt=LONG)["system"][0]["cache_control"] == MARK
    assert body(user("q"), system_prompt=LONG)["system"] == LONG
    assert "system" not in body(user("q"), system_prompt="")


@pytest.mark.requirement("providers.anthropic.cache")
def test_the_last_of_many_functions_is_marked():
    many = [TOOL, {**TOOL, "name": "math::sub", "description": LONG}]
    made = body(user("q"), environ={}, tools=many)
    assert [tool.get("cache_control") for tool in made["tools"]] == [None, MARK]
    assert [tool["name"] for tool in made["tools"]] == ["math__add", "math__sub"]
    assert marked(body(user("q"), environ={}, tools=[TOOL])) == marked(body(user("q"), tools=many)) == 0


@pytest.mark.requirement("providers.anthropic.cache")
def test_the_newest_result_else_the_end_of_the_last_answer_is_marked():
    ended = body(user("q"), said("a"), user("r"), environ={})
    assert ended["messages"][1]["content"][0]["cache_control"] == MARK
    called = body(user("q"), said(call("x"), call("y")), result("x", "1"), result("y", "2"), user("r"), environ={})
    assert [block.get("cache_control") for block in called["messages"][2]["content"]] == [None, MARK, None]
    assert marked(ended) == marked(called) == 1
    assert marked(body(user("q"), environ={})) == 0


@pytest.mark.requirement("providers.anthropic.cache")
@pytest.mark.parametrize("value", ["0", "false", " FALSE "])
def test_one_variable_switches_every_mark_off(value):
    environ = {"PROVIDER_ANTHROPIC_CACHE": value}
    made = body(user("q"), said("a"), user("r"), environ=environ, system_prompt=LONG)
    assert marked(made) == 0


@pytest.mark.requirement("providers.anthropic.thinking")
@pytest.mark.parametrize(
    ("level", "entry", "effort", "warned"),
    [
        ("minimal", None, "low", 0),
        ("low", {"supports_thinking": True}, "low", 0),
        ("medium", None, "medium", 0),
        ("xhigh", None, "xhigh", 0),
        ("xhigh", {"supports_thinking": True, "supports_xhigh": True}, "xhigh", 0),
        ("xhigh", {"supports_thinking": True}, "high", 1),
        ("high", {"supports_thinking": False}, None, 1),
        (None, {"supports_thinking": False}, None, 0),
        (None, {}, None, 0),
    ],
)
def test_efforts(level, entry, effort, warned):
    made = body(user("q"), thinking_level=level, model_meta=entry)
    assert made.get("output_config") == (None if effort is None else {"effort": effort})
    assert made.get("thinking") == (None if effort is None else {"type": "adaptive", "display": "summarized"})
    assert len(made["warnings"]) == warned


@pytest.mark.requirement("providers.anthropic.thinking")
def test_a_model_that_thinks_does_so_unasked():
    made = body(user("q"), model_meta={"supports_thinking": True})
    assert made["thinking"]["type"] == "adaptive"
    assert "output_config" not in made


@pytest.mark.requirement("providers.anthropic.body")
def test_ceilings_options_and_forms():
    assert body(user("q"))["max_tokens"] == 8192
    assert body(user("q"), model_meta={"max_output_tokens": 5})["max_tokens"] == 5
    assert body(user("q"), model_meta={"max_output_tokens": 5}, max_output_tokens=3)["max_tokens"] == 3
    options = {"top_k": 4, "model": "other", "messages": [], "stream": False, "thinking": {"type": "disabled"}}
    made = body(user("q"), provider_options=options, model_meta={"supports_thinking": True})
    assert (made["top_k"], made["model"], made["stream"]) == (4, "claude-x", True)
    assert made["thinking"] == {"type": "disabled"}
    assert "temperature" not in made
    assert "response_format" in body(user("q"), response_format={"type": "json"})["warnings"][0]


def listed(model: str, **fields) -> dict:
    return {"type": "model", "id": model, **fields}


def can(thinking: bool = True, adaptive: bool = True, xhigh: bool = False, images: bool = True) -> dict:
    return {
        "thinking": {"supported": thinking, "types": {"adaptive": {"supported": adaptive}}},
        "effort": {"supported": True, "xhigh": {"supported": xhigh}},
        "image_input": {"supported": images},
    }


@pytest.mark.requirement("providers.anthropic.catalogue")
def test_models_that_think_otherwise_are_left_out_and_the_rest_described():
    rows = [
        listed("claude-opus-5", display_name="Opus", max_input_tokens=9, max_tokens=5, capabilities=can(xhigh=True)),
        listed("claude-old", capabilities=can(adaptive=False)),
        listed("claude-plain", capabilities=can(thinking=False, adaptive=False, images=False)),
        listed("claude-bare"),
        {"id": 5},
        "odd",
    ]
    found = {entry["id"]: entry for entry in entries("anthropic", {"data": rows}, price_list({}))}
    assert sorted(found) == ["claude-bare", "claude-opus-5", "claude-plain"]
    opus, plain, bare = found["claude-opus-5"], found["claude-plain"], found["claude-bare"]
    assert (opus["context_window"], opus["max_output_tokens"], opus["display_name"]) == (9, 5, "Opus")
    assert opus["supports_thinking"] and opus["supports_xhigh"] and opus["supports_vision"]
    assert not (plain["supports_thinking"] or plain["supports_vision"])
    assert (bare["context_window"], bare["max_output_tokens"]) == (200_000, 8_192)
    assert "supports_thinking" not in bare
    assert all(entry["supports_tools"] and not entry["supports_structured_output"] for entry in found.values())
    for entry in found.values():
        Model.model_validate(entry)
    assert entries("anthropic", {"data": None}, {}) == []


@pytest.mark.requirement("providers.anthropic.prices")
def test_prices_ignore_a_date_and_an_operator_overrides_them(tmp_path):
    def priced(environ, *models):
        rows = {"data": [listed(model) for model in models]}
        return [entry.get("pricing") for entry in entries("anthropic", rows, price_list(environ))]

    rates = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
    assert priced({}, "claude-sonnet-4-5-20250929", "claude-unknown") == [rates, None]
    own = tmp_path / "prices.json"
    own.write_text('{"models": {"claude-unknown": {"input": 1, "output": 2, "cache_write": 9}}}')
    environ = {"PROVIDER_ANTHROPIC_PRICES": str(own)}
    assert priced(environ, "claude-unknown") == [{"input": 1.0, "output": 2.0, "cache_write": 9.0}]
    own.write_text("{")
    assert priced(environ, "claude-sonnet-4-5") == [rates]


@pytest.mark.requirement("providers.anthropic.errors")
@pytest.mark.parametrize(
    ("status", "name", "message", "kind"),
    [
        (401, "authentication_error", "", "auth_expired"),
        (403, "permission_error", "", "auth_expired"),
        (403, None, "", "auth_expired"),
        (429, "rate_limit_error", "", "rate_limited"),
        (429, None, "", "rate_limited"),
        (400, "invalid_request_error", "messages: wrong", "permanent"),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "context_overflow"),
        (413, "invalid_request_error", "", "context_overflow"),
        (413, "request_too_large", "", "context_overflow"),
        (402, "billing_error", "", "permanent"),
        (404, "not_found_error", "", "permanent"),
        (500, "api_error", "", "transient"),
        (529, "overloaded_error", "", "transient"),
        (503, None, "", "transient"),
    ],
)
def test_kinds_of_errors(status, name, message, kind):
    assert kind_of(status, {"type": "error", "error": {"type": name, "message": message}}) == kind
