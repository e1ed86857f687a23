"""Rules of the provider `openai`: endpoints, efforts, cache keys, bodies, catalogue, errors (siblings 8)."""

from __future__ import annotations

import pytest

from iii_siblings.providers.failure import no_response, refused, retry_after
from iii_siblings.providers.functions_offered import object_schema
from iii_siblings.providers.openai.body import prepared
from iii_siblings.providers.openai.catalogue import entries, offered
from iii_siblings.providers.openai.chat_body import chat_body
from iii_siblings.providers.openai.endpoint import endpoint
from iii_siblings.providers.openai.errors import kind_of
from iii_siblings.providers.openai.prompt_cache import derived_key
from iii_siblings.providers.openai.reasoning import effort_for, ladder
from iii_siblings.providers.openai.responses_body import responses_body
from iii_siblings.providers.openai.usage import usage_counts
from iii_siblings.providers.urls import BadUrl

OFFICIAL = "https://api.openai.com/v1"


def user(text: str) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def body_of(url: str | None = None, environ: dict | None = None, **request):
    target = endpoint(url)
    ready = prepared({"model": "gpt-5.2", "messages": [user("hi")], **request}, target, environ or {})
    return (chat_body if target.mode == "chat" else responses_body)(ready), ready.warnings


@pytest.mark.requirement("providers.openai.endpoint")
@pytest.mark.parametrize(
    ("given", "url", "models", "mode", "official"),
    [
        (None, f"{OFFICIAL}/responses", f"{OFFICIAL}/models", "responses", True),
        ("", f"{OFFICIAL}/responses", f"{OFFICIAL}/models", "responses", True),
        (OFFICIAL, f"{OFFICIAL}/responses", f"{OFFICIAL}/models", "responses", True),
        (f"{OFFICIAL}/chat/completions", f"{OFFICIAL}/chat/completions", f"{OFFICIAL}/models", "chat", True),
        ("http://h:1/v1", "http://h:1/v1/chat/completions", "http://h:1/v1/models", "chat", False),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions", "http://h:1/v1/models", "chat", False),
        ("http://h/v1/responses", "http://h/v1/responses", "http://h/v1/models", "responses", False),
        ("http://h/a/chat/completions/", "http://h/a/chat/completions", "http://h/a/models", "chat", False),
        ("https://h/v1?v=2", "https://h/v1/chat/completions?v=2", "https://h/v1/models?v=2", "chat", False),
    ],
)
def test_where_requests_go(given, url, models, mode, official):
    target = endpoint(given)
    assert (target.url, target.models_url, target.mode, target.official) == (url, models, mode, official)
    assert target.needs_key is official


@pytest.mark.requirement("providers.openai.endpoint")
@pytest.mark.parametrize("given", ["ftp://h/v1", "not a url", "http://", "http://[bad"])
def test_what_is_no_url_is_refused(given):
    with pytest.raises(BadUrl):
        endpoint(given)


@pytest.mark.requirement("providers.openai.reasoning")
@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("gpt-5.2", "none low medium high xhigh"),
        ("gpt-5.6-sol", "none low medium high xhigh"),
        ("gpt-6-astra", "none low medium high xhigh"),
        ("gpt-5.1", "none low medium high"),
        ("gpt-5-mini", "minimal low medium high"),
        ("gpt-5.2-pro", "high"),
        ("o3", "low medium high"),
        ("o4-mini", "low medium high"),
        ("o1", ""),
        ("gpt-5-chat-latest", ""),
        ("gpt-4o", ""),
        ("smollm2", ""),
    ],
)
def test_ladders_of_families(model, efforts):
    assert ladder(model) == tuple(efforts.split())


@pytest.mark.requirement("providers.openai.reasoning")
@pytest.mark.parametrize(
    ("level", "efforts", "chosen"),
    [
        ("high", ("low", "medium", "high"), "high"),
        ("xhigh", ("low", "medium", "high"), "high"),
        ("minimal", ("none", "low"), "low"),
        ("minimal", ("minimal", "low"), "minimal"),
        ("low", ("high",), "high"),
        ("low", (), None),
    ],
)
def test_the_nearest_effort(level, efforts, chosen):
    assert effort_for(level, efforts) == chosen


@pytest.mark.requirement("providers.openai.reasoning")
def test_efforts_in_the_bodies():
    assert body_of(thinking_level="xhigh")[0]["reasoning"] == {"effort": "xhigh"}
    body, warnings = body_of(model="gpt-5.1", thinking_level="xhigh")
    assert (body["reasoning"], len(warnings)) == ({"effort": "high"}, 1)
    body, warnings = body_of("http://h/v1", model="smollm2", thinking_level="low")
    assert ("reasoning_effort" in body, len(warnings)) == (False, 1)
    assert body_of(provider_options={"reasoning_effort": "odd"})[0]["reasoning"] == {"effort": "odd"}
    tool = {"name": "f", "description": "d", "parameters": {}}
    luna = {"model": "gpt-5.6-luna", "tools": [tool], "thinking_level": "high"}
    body, warnings = body_of(f"{OFFICIAL}/chat/completions", **luna)
    assert (body["reasoning_effort"], len(warnings)) == ("none", 1)
    entry = {"reasoning_efforts": [{"effort": "low"}]}
    assert body_of("http://h/v1", model="x", thinking_level="high", model_meta=entry)[0]["reasoning_effort"] == "low"


@pytest.mark.requirement("providers.openai.cache")
def test_cache_keys():
    assert derived_key("s_conversation") == "3e66265f-70e5-4dda-a97f-4fabfc61b5ed"
    assert body_of(session_id="s_conversation")[0]["prompt_cache_key"] == derived_key("s_conversation")
    both = {"session_id": "s", "cache_intent": {"surface_digest": "sha256:1"}}
    assert body_of(**both)[0]["prompt_cache_key"] == derived_key("sha256:1")
    assert body_of(**both, provider_options={"prompt_cache_key": "k"})[0]["prompt_cache_key"] == "k"
    assert "prompt_cache_key" not in body_of("http://h/v1", **both)[0]


@pytest.mark.requirement("providers.openai.cache")
def test_retention_and_breakpoints():
    variable = "PROVIDER_OPENAI_CACHE_RETENTION"
    assert body_of()[0]["prompt_cache_retention"] == "24h"
    assert body_of(environ={variable: "in_memory"})[0]["prompt_cache_retention"] == "in_memory"
    assert "prompt_cache_retention" not in body_of(environ={variable: "off"})[0]
    assert "prompt_cache_retention" not in body_of("http://h/v1/responses")[0]
    sections = [{"text": str(n), "cache_boundary": True} for n in range(5)]
    request = {"model": "gpt-5.6", "system_sections": sections, "system_prompt": "0\n\n1"}
    items = [item for item in body_of(**request)[0]["input"] if item["role"] == "developer"]
    assert ["prompt_cache_breakpoint" in item["content"][0] for item in items] == [True, True, True, False, False]
    flat = body_of(**{**request, "model": "gpt-5.2"})[0]["input"][0]
    assert (flat["role"], flat["content"]) == ("system", [{"type": "input_text", "text": "0\n\n1"}])


@pytest.mark.requirement("providers.openai.chat_body")
def test_a_chat_body():
    call = {"type": "function_call", "id": "c1", "function_id": "a::b", "arguments": {"x": 1}}
    image = {"type": "image", "mime": "image/png", "data": "AAA"}
    messages = [
        user("hi"),
        {"role": "assistant", "content": [{"type": "thinking", "text": "hm", "signature": "s"}, call], "timestamp": 1},
        {
            "role": "function_result",
            "function_call_id": "c1",
            "function_id": "a::b",
            "content": [{"type": "text", "text": "ok"}, image],
            "timestamp": 1,
        },
        {"role": "user", "content": [{"type": "text", "text": "see"}, image, {"type": "file"}], "timestamp": 1},
    ]
    tool = {"name": "a::b", "description": "does", "parameters": {"$schema": "x", "type": "object"}}
    body, _ = body_of(
        "http://h/v1",
        model="m",
        messages=messages,
        tools=[tool],
        system_prompt="sys",
        max_output_tokens=9,
        response_format={"type": "json", "schema": {"type": "object"}},
        provider_options={"temperature": 0, "model": "hijack", "stream": False},
    )
    url = {"url": "data:image/png;base64,AAA"}
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "sys"},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "a__b", "arguments": '{"x":1}'}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "[image result of tool call c1]"},
                    {"type": "image_url", "image_url": url},
                ],
            },
            {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": url}]},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "a__b",
                    "description": "does",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "response", "strict": True, "schema": {"type": "object"}},
        },
        "temperature": 0,
    }


@pytest.mark.requirement("providers.openai.chat_body")
def test_a_budget_that_says_nothing_is_left_out_at_compatible_servers():
    entry = {"max_output_tokens": 4096}
    assert "max_completion_tokens" not in body_of("http://h/v1", model_meta=entry, max_output_tokens=4096)[0]
    assert body_of("http://h/v1", model_meta=entry, max_output_tokens=100)[0]["max_completion_tokens"] == 100
    assert body_of(model_meta=entry, max_output_tokens=4096)[0]["max_output_tokens"] == 4096


@pytest.mark.requirement("providers.openai.responses_body")
def test_a_responses_body():
    call = {"type": "function_call", "id": "c1", "function_id": "a::b", "arguments": None}
    messages = [
        user("hi"),
        {"role": "assistant", "content": [{"type": "text", "text": "so"}, call], "timestamp": 1},
    ]
    body, _ = body_of(model="gpt-5-nano", messages=messages, response_format={"type": "json"})
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
        {"type": "function_call", "call_id": "c1", "name": "a__b", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": "Tool call was interrupted before completing. Continue without its output.",
        },
    ]
    assert (body["store"], body["stream"], body["text"]) == (False, True, {"format": {"type": "json_object"}})
    assert not {"tools", "reasoning", "max_output_tokens", "prompt_cache_retention"} & set(body)


@pytest.mark.requirement("providers.openai.odd_schema")
@pytest.mark.parametrize("schema", [None, True, [], "x", {"anyOf": []}, {"type": "string"}, {"properties": 5}])
def test_an_odd_schema_takes_no_other_function_down(schema):
    shaped = object_schema(schema)
    assert (shaped["type"], isinstance(shaped["properties"], dict)) == ("object", True)


@pytest.mark.requirement("providers.openai.catalogue")
def test_models_of_the_official_host():
    names = ["gpt-5.2", "gpt-5-nano", "gpt-4o", "o3", "o1-pro", "gpt-5-audio", "text-embedding-3", "gpt-7", "davinci"]
    listing = {"data": [{"id": name} for name in names] + [{"id": 5}, "x"]}
    found = {model["id"]: model for model in entries("openai", listing, endpoint(None))}
    assert list(found) == ["gpt-5-nano", "gpt-5.2", "gpt-7"]
    assert found["gpt-5.2"]["pricing"] == {"input": 1.75, "output": 14, "cache_read": 0.175}
    assert (found["gpt-5.2"]["context_window"], found["gpt-5.2"]["supports_xhigh"]) == (400_000, True)
    assert found["gpt-5-nano"]["reasoning_efforts"][0] == {"effort": "minimal"}
    assert (found["gpt-7"]["context_window"], "pricing" in found["gpt-7"]) == (128_000, False)
    assert not offered("chatgpt-4o-latest")


@pytest.mark.requirement("providers.openai.catalogue")
def test_every_model_of_a_compatible_server():
    listing = {
        "data": [
            {"id": "gpt-4o"},
            {"id": "big", "context_length": 100_000, "top_provider": {"max_completion_tokens": 20_000}},
            {"id": "llama", "meta": {"n_ctx_train": 2048}},
        ]
    }
    found = {model["id"]: model for model in entries("openai", listing, endpoint("http://h/v1"))}
    sizes = {name: (model["context_window"], model["max_output_tokens"]) for name, model in found.items()}
    assert sizes == {"gpt-4o": (8192, 4096), "big": (100_000, 20_000), "llama": (2048, 1024)}
    assert entries("openai", {"data": None}, endpoint("http://h/v1")) == []


@pytest.mark.requirement("providers.openai.errors")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"code": "context_length_exceeded"}}, "context_overflow"),
        (400, {"error": {"type": "exceed_context_size_error", "code": 400}}, "context_overflow"),
        (400, {"error": {"message": "This model's maximum context length is 10"}}, "context_overflow"),
        (429, {"error": {"code": "insufficient_quota"}}, "permanent"),
        (429, {}, "rate_limited"),
        (400, {"error": {"code": "invalid_api_key"}}, "auth_expired"),
        (401, None, "auth_expired"),
        (403, None, "auth_expired"),
        (500, None, "transient"),
        (529, "text", "transient"),
        (400, {"error": {"type": "server_error"}}, "transient"),
        (404, None, "permanent"),
        (422, {"detail": []}, "permanent"),
    ],
)
def test_error_kinds(status, body, kind):
    assert kind_of(status, body) == kind


@pytest.mark.requirement("providers.errors.texts")
def test_public_texts():
    texts = {kind: refused("p", kind, 418).text for kind in ("auth_expired", "rate_limited", "context_overflow")}
    assert texts == {
        "auth_expired": "p authentication failed (HTTP 418); refresh credentials",
        "rate_limited": "p rate limit reached (HTTP 418); retry later",
        "context_overflow": "request exceeds the p context limit (HTTP 418)",
    }
    assert refused("p", "transient", 500).text == "p is temporarily unavailable (HTTP 500)"
    assert refused("p", "permanent", 400).text == "p rejected the request (HTTP 400)"
    assert no_response("p").text == "p request failed before a response; inspect provider logs"


@pytest.mark.requirement("providers.errors.retry_after")
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after-ms": "70", "retry-after": "9"}, 70),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:03 GMT"}, 2000),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_waits_that_servers_ask_for(headers, wait):
    assert retry_after(headers.get, now_ms=1000) == wait


@pytest.mark.requirement("providers.openai.usage")
@pytest.mark.parametrize(
    ("prompt", "cached", "counted"),
    [(100, 60, 40), (60, 60, 0), (10, 60, 0), (100, None, 100), (None, 60, None)],
)
def test_input_is_what_was_not_cached_and_never_below_zero(prompt, cached, counted):
    assert usage_counts(prompt, cached, 7, None).get("input") == counted
