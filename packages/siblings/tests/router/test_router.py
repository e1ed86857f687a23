"""Requests, routing, catalogue, registration and configuration of the router (siblings 5, 6)."""

from __future__ import annotations

import json

import msgspec
import pytest

from iii_contracts.spec import FunctionSpec
from iii_kit.encoding import encode
from iii_kit.errors import BusError
from iii_siblings import router
from iii_siblings.router.catalogue import output_budget, supports
from iii_siblings.router.pricing import with_cost
from iii_siblings.router.settings import ENTRY, RouterSettings, read_settings
from iii_store import NewerDatabase, SqliteStore
from iii_testing.model_stack import model_stack, user
from iii_testing.played import DONE, START, TEXT, Played
from iii_testing.waiting import driven, until

pytestmark = pytest.mark.anyio


def entry(model: str, **fields) -> dict:
    return {"id": model, "provider": "p", "context_window": 1000, "max_output_tokens": 100, **fields}


async def reconcile(played: Played, *models: dict) -> None:
    request = {"provider": played.name, "token": played.token, "models": list(models)}
    assert await played.bus.call("router::models::reconcile", request) == {
        "provider": played.name,
        "count": len(models),
    }


async def configure(stack, **values) -> None:
    await stack.bus.call("configuration::set", {"id": "llm-router", "value": values})
    await until(lambda: stack.router._providers.settings == read_settings(values))


@pytest.mark.requirement("router.request.refused")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model": ""}, "router/invalid_request: model is required"),
        ({"model": None}, "router/invalid_request: model is required"),
        ({"messages": None}, "router/invalid_request: messages must be an array"),
        ({"messages": {}}, "router/invalid_request: messages must be an array"),
        ({"model": 5}, "router/invalid_request: `model`: invalid type: integer `5`, expected a string"),
        ({"messages": ["x"]}, '`messages.0`: a message must be an object, got string "x"'),
        ({"messages": [user("a"), {"role": "robot"}]}, "`messages.1`: `role` must be"),
        ({"messages": [{"role": "user", "content": "x"}]}, "`messages.0`: `content` must be an array"),
        ({"messages": [{"role": "user", "content": [{"a": 1}]}]}, "`messages.0`: every block"),
        ({"messages": [{"role": "function_result", "content": []}]}, "`function_call_id` must be a string"),
        ({"max_output_tokens": -1}, "`max_output_tokens`"),
        ({"thinking_level": "wild"}, "`thinking_level`"),
        ({"tools": [{"name": "x"}]}, "missing field `description` in `tools.0`"),
        ({"provider": "nobody"}, "router/unknown_provider: no provider nobody is registered"),
        ({"provider": None}, "router/no_provider_for_model: no provider lists model any"),
    ],
)
async def test_a_refused_request_is_told_on_the_channel_and_by_the_call(stack, played, change, text):
    got = await stack.chat(**{"messages": [user("x")], "provider": "played", **change})
    assert text in got.error.message
    assert got.kinds == ["error"]
    assert (got.last["error_kind"], got.last["error_message"]) == ("permanent", got.error.message)
    assert played.requests == []


@pytest.mark.requirement("router.request.refused")
@pytest.mark.parametrize("ref", [None, 5, {}, {"channel_id": "x", "access_key": "y", "direction": "write"}])
async def test_a_request_without_a_channel_is_refused(stack, ref):
    request = {"model": "m", "messages": [], "writer_ref": ref}
    with pytest.raises(BusError) as caught:
        await stack.bus.call("router::chat", request)
    assert caught.value.matches("router/invalid_request")


@pytest.mark.requirement("router.request.passed_on")
async def test_the_provider_gets_what_concerns_it(stack, played):
    await reconcile(played, entry("m", max_output_tokens=50))
    played.attempts = [[START, TEXT, DONE]]
    sections = [{"text": "a", "cache_boundary": True}, {"text": "b"}]
    await stack.chat(
        model="m",
        system_prompt="a\n\nb",
        system_sections=sections,
        cache_intent={"surface_digest": "sha256:0"},
        provider_options={"played": {"x": 1}, "other": {"y": 2}},
        session_id="s",
        metadata={"secret": "of the caller"},
        request_id="r",
    )
    sent = played.requests[0]
    assert sent["provider_options"] == {"x": 1}
    assert sent["system_sections"] == sections
    assert (sent["resolution_key"], sent["session_id"], sent["max_output_tokens"]) == ("r", "s", 50)
    assert sent["model_meta"] == {**entry("m", max_output_tokens=50), "provider": "played"}
    assert "metadata" not in sent
    assert "request_id" not in sent
    await stack.chat(model="m", system_prompt="other", system_sections=sections)
    assert "system_sections" not in played.requests[1]
    assert played.requests[1]["resolution_key"]


def as_text(*messages: dict) -> list[msgspec.Raw]:
    return [msgspec.Raw(encode(message)) for message in messages]


@pytest.mark.requirement("router.request.passed_on")
async def test_a_long_transcript_that_comes_encoded_is_passed_on_as_it_is(stack, played):
    played.attempts = [[START, TEXT, DONE]]
    said = [user("x" * 5_000), {**user("y"), "unknown": [1.0]}]
    await stack.chat(messages=as_text(*said), provider="played")
    assert played.requests[0]["messages"] == said


@pytest.mark.requirement("router.request.refused")
async def test_a_long_transcript_that_comes_encoded_is_refused_by_the_place_of_what_is_wrong(stack, played):
    got = await stack.chat(messages=as_text(user("x" * 5_000), {"role": "robot"}), provider="played")
    assert "`messages.1`: `role` must be" in got.error.message
    whole = msgspec.Raw(encode({"not": "x" * 5_000}))
    got = await stack.chat(messages=whole, provider="played")
    assert "messages must be an array" in got.error.message
    assert played.requests == []


@pytest.mark.requirement("router.routing")
async def test_the_order_of_routing(stack, played):
    other = await Played(stack.engine.attach("provider-other"), "other").register()
    await reconcile(played, entry("mine"), entry("shared"))
    await reconcile(other, entry("shared"))

    async def routed(model: str, **fields) -> str:
        return (await stack.bus.call("router::route", {"model": model, **fields}))["provider"]

    assert await routed("mine") == "played"
    assert await routed("shared", provider="other") == "other"
    assert await routed("unheard", provider="other") == "other"
    with pytest.raises(BusError, match=r"router/ambiguous_model.*other, played"):
        await routed("shared")
    with pytest.raises(BusError, match="router/unknown_provider"):
        await routed("mine", provider="nobody")
    with pytest.raises(BusError, match="router/no_provider_for_model"):
        await routed("unheard")
    heuristics = [{"pattern": "un*", "provider": "absent"}, {"pattern": "un*", "provider": "other"}]
    await configure(stack, routing_heuristics=heuristics, default_provider="played")
    assert await routed("unheard") == "other"
    assert await routed("else") == "played"
    assert await stack.bus.call("router::route", {"model": "mine"}) == {"provider": "played", "candidates": ["played"]}


@pytest.mark.requirement("router.structured_output")
async def test_structured_output_needs_a_model_that_has_it(stack, played):
    await reconcile(played, entry("plain"), entry("shaped", supports_structured_output=True))
    played.attempts = [[START, TEXT, DONE]]
    form = {"type": "json", "schema": {"type": "object"}}
    assert (await stack.chat(model="plain", response_format=form)).error.matches("router/structured_output_unsupported")
    assert (await stack.chat(model="shaped", response_format=form)).response["ok"]
    assert (await stack.chat(model="unheard", provider="played", response_format=form)).response["ok"]
    assert played.requests[-1]["response_format"] == form


@pytest.mark.requirement("router.configured")
async def test_a_provider_without_its_key_is_refused_by_name(tmp_path, world):
    async with model_stack(tmp_path, world, {"SOME_KEY": "  "}) as stack:
        keyed = await Played(stack.engine.attach("provider-k"), "keyed").register(credential_env_var="SOME_KEY")
        schema = {"type": "object", "properties": {"api_key": {"type": "string"}}}
        await Played(stack.engine.attach("provider-s"), "schemed").register(config_schema=schema)
        keyed.attempts = [[START, TEXT, DONE]]
        refused = await stack.chat(provider="keyed")
        assert refused.error.matches("router/not_configured")
        assert "SOME_KEY" in refused.error.message
        assert (await stack.chat(provider="schemed")).error.matches("router/not_configured")
        rows = {row["id"]: row for row in (await stack.bus.call("router::provider::list", {}))["providers"]}
        assert [rows[name]["configured"] for name in ("keyed", "schemed", "scripted")] == [False, False, True]
        await configure(stack, providers={"keyed": {"api_key": "k", "max_tokens": 7, "api_url": "http://x"}})
        assert (await stack.chat(provider="keyed")).response["ok"]
        assert keyed.requests[0]["max_output_tokens"] == 7
        resolved = await keyed.bus.call("router::provider::resolve", {"id": "keyed", "token": keyed.token})
        assert resolved == {
            "configured": True,
            "source": "config",
            "credential": {"type": "api_key", "key": "k"},
            "api_url": "http://x",
            "max_tokens": 7,
        }


@pytest.mark.requirement("router.resolve")
async def test_keys_of_the_environment_come_second(tmp_path, world):
    async with model_stack(tmp_path, world, {"SOME_KEY": " from env "}) as stack:
        keyed = await Played(stack.engine.attach("k"), "keyed").register(
            credential_env_var="SOME_KEY", defaults={"api_url": "http://d", "max_tokens": 3}
        )
        ask = {"id": "keyed", "token": keyed.token}
        assert await keyed.bus.call("router::provider::resolve", ask) == {
            "configured": True,
            "source": "env",
            "credential": {"type": "api_key", "key": "from env"},
            "api_url": "http://d",
            "max_tokens": 3,
        }
        credential = {"type": "api_key", "key": "fresh"}
        await keyed.bus.call("router::provider::update_credential", {**ask, "credential": credential})
        resolved = await keyed.bus.call("router::provider::resolve", ask)
        assert (resolved["source"], resolved["credential"]) == ("config", credential)


@pytest.mark.requirement("router.registration.token")
async def test_only_the_token_of_a_registration_speaks_for_it(stack, played):
    calls = {
        "router::provider::register": {"id": "played"},
        "router::provider::unregister": {"id": "played"},
        "router::provider::resolve": {"id": "played"},
        "router::provider::status": {"id": "played"},
        "router::provider::update_credential": {"id": "played", "credential": {"type": "api_key", "key": "x"}},
        "router::models::reconcile": {"provider": "played", "models": []},
    }
    for fn, request in calls.items():
        for token in ({}, {"token": "wrong"}):
            with pytest.raises(BusError, match="router/registration_rejected"):
                await stack.bus.call(fn, {**request, **token})
    renewed = await stack.bus.call("router::provider::register", {"id": "played", "token": played.token})
    assert renewed == {"ok": True, "id": "played", "registration_token": played.token}
    assert await stack.bus.call("router::provider::unregister", {"id": "played", "token": played.token}) == {"ok": True}
    with pytest.raises(BusError, match="router/unknown_provider"):
        await stack.bus.call("router::provider::resolve", {"id": "played", "token": played.token})


@pytest.mark.requirement("router.registration.kept")
async def test_registrations_and_models_are_known_after_a_restart(tmp_path, world):
    async with model_stack(tmp_path, world) as stack:
        played = await Played(stack.engine.attach("provider-played")).register(display_name="Played")
        await reconcile(played, entry("mine", note="kept"))
        token = played.token
    async with model_stack(tmp_path, world) as stack:
        models = (await stack.bus.call("router::models::list", {"provider": "played"}))["models"]
        assert models == [{**entry("mine", note="kept"), "provider": "played"}]
        with pytest.raises(BusError, match="router/registration_rejected"):
            await stack.bus.call("router::provider::register", {"id": "played"})
        await stack.bus.call("router::provider::register", {"id": "played", "token": token})
    stored = (tmp_path / "stack.db").read_bytes()
    assert token.encode() not in stored


@pytest.mark.requirement("router.registration.kept")
def test_tables_of_a_newer_version_are_refused(tmp_path):
    newer = type(router.FAMILY)(router.FAMILY.name, (*router.FAMILY.migrations, ()))
    SqliteStore(tmp_path / "x.db", [newer]).close()
    with pytest.raises(NewerDatabase):
        SqliteStore(tmp_path / "x.db", [router.FAMILY])


@pytest.mark.requirement("router.status")
async def test_a_provider_reports_on_itself(stack, played, world):
    failure = {"code": "c", "kind": "transient", "message": "m", "retryable": True, "attempts": 1}
    report = {"id": "played", "token": played.token}
    answer = await stack.bus.call("router::provider::status", {**report, "catalog_state": "error", "failure": failure})
    assert answer["diagnostic"] == {
        "catalog_state": "error",
        "credential_state": "unknown",
        "stale": False,
        "updated_at": world.clock.now_ms(),
        "last_failure": failure,
    }
    request = {**report, "credential_state": "ready", "clear_failure": True}
    diagnostic = (await stack.bus.call("router::provider::status", request))["diagnostic"]
    assert "last_failure" not in diagnostic
    assert (diagnostic["catalog_state"], diagnostic["credential_state"]) == ("error", "ready")


@pytest.mark.requirement("router.models")
async def test_the_catalogue_answers(stack, played):
    speech = entry("voice", speech={"modality": "tts"})
    await reconcile(played, entry("a", supports_tools=True), entry("b"), speech)

    async def listed(**filters) -> list[str]:
        models = (await stack.bus.call("router::models::list", {"provider": "played", **filters}))["models"]
        return [model["id"] for model in models]

    assert await listed() == ["a", "b"]
    assert await listed(capability="tools") == ["a"]
    assert await listed(modality="tts") == ["voice"]
    assert await listed(modality="any") == ["a", "b", "voice"]
    assert await stack.bus.call("router::models::get", {"provider": "played", "id": "zz"}) is None
    got = await stack.bus.call("router::models::get", {"provider": "played", "id": "a"})
    assert got["model"]["supports_tools"] is True
    ask = {"provider": "played", "id": "a", "capability": "tools"}
    assert await stack.bus.call("router::models::supports", ask) == {"supported": True}
    assert await stack.bus.call("router::models::supports", {**ask, "id": "b"}) == {"supported": False}
    budget = await stack.bus.call("router::models::budget", {"provider": "", "id": "a"})
    assert (budget["effective_max_output_tokens"], budget["model"]["id"]) == (100, "a")
    assert await stack.bus.call("router::models::budget", {"provider": "", "id": "zz"}) == {
        "model": None,
        "effective_max_output_tokens": 8192,
    }


@pytest.mark.requirement("router.models")
@pytest.mark.parametrize(
    ("capability", "fields", "expected"),
    [
        ("vision", {"supports_vision": True}, True),
        ("vision", {}, False),
        ("thinking", {"supports_thinking": True}, True),
        ("thinking:low", {"supports_thinking": True}, True),
        ("thinking:low", {"supports_thinking": True, "reasoning_efforts": [{"effort": "high"}]}, False),
        ("thinking:high", {"reasoning_efforts": [{"effort": "high"}]}, False),
        ("thinking:xhigh", {"supports_xhigh": True}, True),
        ("structured_output", {"supports_structured_output": True}, True),
        ("flying", {"supports_flying": True}, False),
    ],
)
def test_capabilities(capability, fields, expected):
    assert supports(entry("m", **fields), capability) is expected
    assert supports(None, capability) is False


@pytest.mark.requirement("router.budget")
@pytest.mark.parametrize(
    ("model", "asked", "configured", "expected"),
    [
        (entry("m"), None, None, 100),
        (entry("m", max_output_tokens=90_000), None, None, 32_000),
        (entry("m", max_output_tokens=90_000), 50_000, None, 50_000),
        (entry("m"), 500, None, 100),
        (entry("m"), None, 20, 20),
        (entry("m"), 30, 20, 30),
        (None, None, None, 8192),
        (None, 77, None, 77),
    ],
)
def test_output_budgets(model, asked, configured, expected):
    assert output_budget(model, asked, configured, 32_000) == expected


@pytest.mark.requirement("router.relay.cost")
def test_unknown_rates_leave_the_cost_absent():
    assert with_cost({"input": 5}, None) is None
    assert with_cost({"input": 5}, {"output": 3}) is None
    assert with_cost({"input": 5, "cost_usd": 0.0}, {"input": 3}) is None
    assert with_cost(None, {"input": 3}) is None
    assert with_cost({"input": 500_000, "output": 9}, {"input": 3}) == {
        "input": 500_000,
        "output": 9,
        "cost_usd": 1.5,
    }


@pytest.mark.requirement("router.count_tokens")
async def test_tokens_are_counted_by_the_provider_or_estimated(stack, played):
    async def count(request, _):
        assert request["model"] == "m"
        return {"tokens": 42}

    request = {"messages": [user("x" * 400)], "model": "m", "provider": "played"}
    estimated = await stack.bus.call("router::count_tokens", request)
    assert (estimated["estimator"], estimated["provider"]) == ("tiktoken", "played")
    assert 100 < estimated["tokens"] < 150
    image = {"role": "user", "content": [{"type": "image", "mime": "image/png", "data": "A" * 9000}], "timestamp": 1}
    counted = (await stack.bus.call("router::count_tokens", {"messages": [image]}))["tokens"]
    assert 4096 <= counted < 4150
    played.bus.serve(FunctionSpec("provider::played::count_tokens", "counts", None, None, "x/invalid"), count)
    assert await stack.bus.call("router::count_tokens", request) == {
        "tokens": 42,
        "estimator": "provider",
        "provider": "played",
        "model": "m",
    }


@pytest.mark.requirement("router.system_prompt")
async def test_system_prompts_of_providers(stack):
    await Played(stack.engine.attach("p"), "prompted").register(system_prompt="own")
    ask = stack.bus.call
    assert await ask("router::system_prompt::get", {}) == {}
    assert await ask("router::system_prompt::get", {"provider": "prompted"}) == {
        "provider": "prompted",
        "system_prompt": "own",
    }
    await configure(stack, default_provider="prompted", providers={"prompted": {"system_prompt": "set"}})
    assert (await ask("router::system_prompt::get", {}))["system_prompt"] == "set"


@pytest.mark.requirement("router.configuration")
async def test_settings_apply_at_once_and_a_bad_value_keeps_the_old(stack, played):
    stored = await stack.bus.call("configuration::get", {"id": "llm-router"})
    assert stored["value"] == ENTRY.initial
    await configure(stack, settings={"retry_max": 0})
    played.attempts = [[]]
    assert (await stack.chat(provider="played")).kinds == ["error"]
    assert len(played.requests) == 1
    assert read_settings(None) == RouterSettings()
    stack.router._take_settings({"settings": {"retry_max": "many"}})
    assert stack.router._providers.settings.settings.retry_max == 0


@pytest.mark.requirement("router.events")
async def test_changes_are_told(stack, played):
    heard: list[dict] = []

    async def hear(event, _):
        heard.append(event)

    stack.bus.serve(FunctionSpec("test::hear", "hears", None, None, "x/invalid"), hear)
    for kind in ("router::models::changed", "router::provider::changed", "router::ready"):
        stack.bus.bind(kind, "test::hear", {})

    def told(**event) -> bool:
        return any(
            event.items() <= {k: v for k, v in item.items() if k != "_caller_worker_id"}.items() for item in heard
        )

    await until(lambda: heard)
    assert not told(provider="played")
    await reconcile(played, entry("m"))
    await until(lambda: told(provider="played", count=1))
    await reconcile(played, entry("m"))
    await stack.bus.call("router::provider::register", {"id": "played", "token": played.token})
    await until(lambda: told(provider="played", op="register"))
    assert sum("count" in item for item in heard if item.get("provider") == "played") == 1
    before = len(heard)
    await configure(stack, default_provider="played")
    await until(lambda: len(heard) > before)


@pytest.mark.requirement("router.secrets")
async def test_keys_appear_in_no_answer_frame_or_log(tmp_path, world, caplog, capsys):
    key = "sk-very-secret-0123456789"
    environ = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    async with model_stack(tmp_path, world, environ, with_openai=True) as stack:
        got = await driven(world, stack.chat(provider="openai"))
        assert got.last["error_message"] == "openai request failed before a response; inspect provider logs"
        rows = await stack.bus.call("router::provider::list", {})
        output = capsys.readouterr()
        shown = [json.dumps(got.frames), json.dumps(got.response), json.dumps(rows), caplog.text, *output]
        assert not any(key in text for text in shown)
    assert key.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
