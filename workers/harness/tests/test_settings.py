"""The configuration: seeded, validated by name, reloaded while the worker runs."""

import pytest

from iii_contracts.harness.configuration import HarnessConfig, defaults, entry_schema
from iii_contracts.harness.upkeep import ConfigChange
from iii_harness.settings import BadConfig, Settings, parse, seed_of_yaml
from iii_kit.bus import Invocation
from iii_kit.clients.configuration import ConfigurationClient
from iii_kit.errors import BusError
from iii_kit.world import SystemClock
from iii_testing.answers import Answers

CALL = Invocation("harness::on-config-change")


class Entries(Answers):
    """A configuration worker with one entry."""

    def __init__(self, value: object = None) -> None:
        super().__init__()
        self.value = value
        self.answers = {
            "configuration::ensure": self.ensure,
            "configuration::get": lambda _: {"id": "harness", "value": self.value},
            "configuration::set": self.set,
        }

    def ensure(self, request):
        self.value = request["initial_value"] if self.value is None else self.value
        return {"action": "seeded", "entry": {}}

    def set(self, request):
        self.value = request["value"]
        return {}


class Hurried(SystemClock):
    """A clock whose sleeps take no time."""

    async def sleep(self, seconds: float) -> None:
        return None


def settings(entries: Entries, seed: dict | None = None) -> Settings:
    return Settings(ConfigurationClient(entries, Hurried()), seed)


@pytest.mark.requirement("prompt.settings.defaults")
def test_the_defaults_are_those_of_the_specification() -> None:
    assert defaults() == {
        "default_max_turns": 16,
        "default_pending_timeout_ms": 1800000,
        "max_depth": 3,
        "max_children": 8,
        "max_validation_retries": 2,
        "max_transient_resumes": 1,
        "idem_ttl_secs": 86400,
        "session_timeout_ms": 10000,
        "context_timeout_ms": 320000,
        "router_timeout_ms": 320000,
        "dispatch_timeout_ms": 300000,
        "stream_coalesce_ms": 150,
        "max_result_bytes": 262144,
        "prompt_cache_sections": True,
        "call_reconciliation": "judge",
        "turn_concurrency": 10,
        "agent_post_turn_validators": False,
        "sweep_expression": "0 * * * * *",
        "default_functions": {"allow": ["*"], "deny": [], "expose": "agent_trigger"},
        "default_filesystem_root": None,
        "projects_file_path": "data/harness-projects.json",
    }


@pytest.mark.requirement("prompt.settings.strict")
@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"default_max_turn": 3}, "`default_max_turn`"),
        ({"default_max_turns": "3"}, "`default_max_turns`"),
        ({"default_max_turns": -1}, "`default_max_turns`"),
        ({"max_result_bytes": 2**64}, "`max_result_bytes`"),
        ({"turn_concurrency": 0}, "`turn_concurrency`"),
        ({"turn_concurrency": 257}, "`turn_concurrency`"),
        ({"sweep_expression": "* * * * *"}, "`sweep_expression`"),
        ({"call_reconciliation": "maybe"}, "`call_reconciliation`"),
        ({"default_functions": {"allows": []}}, "`default_functions.allows`"),
        ({"prompt_cache_sections": 1}, "`prompt_cache_sections`"),
        ([], "an object"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(value: object, named: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse(value)
    assert named in str(caught.value)


@pytest.mark.requirement("prompt.settings.strict")
def test_missing_keys_have_their_defaults_and_null_denies_all() -> None:
    assert parse({"turn_concurrency": 256}) == HarnessConfig(turn_concurrency=256)
    assert parse(None) == HarnessConfig()
    assert parse({"default_functions": None}).default_functions is None


@pytest.mark.anyio
@pytest.mark.requirement("prompt.settings.seed")
async def test_a_seed_is_sent_once_and_never_overwrites() -> None:
    fresh = Entries()
    first = settings(fresh, {"default_max_turns": 5})
    await first.boot()
    assert fresh.value == {"default_max_turns": 5}
    assert first.value.default_max_turns == 5
    again = settings(fresh, {"default_max_turns": 9})
    await again.boot()
    assert again.value.default_max_turns == 5
    (registered,) = fresh.asked("configuration::ensure")[:1]
    assert registered["schema"]["example"] == defaults()
    assert registered["schema"]["additionalProperties"] is False
    plain = Entries()
    await settings(plain).boot()
    assert plain.value == defaults()


@pytest.mark.anyio
@pytest.mark.requirement("prompt.settings.seed")
async def test_a_start_fails_clearly_on_a_bad_value_or_a_silent_worker() -> None:
    with pytest.raises(BadConfig, match="turn_concurrency"):
        await settings(Entries({"turn_concurrency": 0})).boot()


@pytest.mark.anyio
@pytest.mark.requirement("prompt.settings.retired")
@pytest.mark.parametrize("key", ["permissions", "providers"])
async def test_a_value_of_the_old_format_is_replaced_by_the_defaults(key: str) -> None:
    old = Entries({key: {}, "default_max_turns": 3})
    booted = settings(old)
    await booted.boot()
    assert booted.value == HarnessConfig()
    assert old.value == defaults()


@pytest.mark.anyio
@pytest.mark.requirement("prompt.settings.reload")
async def test_a_reload_applies_tells_and_keeps_what_works() -> None:
    entries = Entries()
    live = settings(entries)
    await live.boot()
    told: list[tuple[int, int]] = []

    async def listener(before: HarnessConfig, after: HarnessConfig) -> None:
        told.append((before.turn_concurrency, after.turn_concurrency))

    live.on_change(listener)
    entries.value = {"turn_concurrency": 3, "dispatch_timeout_ms": 7}
    assert await live.changed(ConfigChange(id="something else"), CALL) == {"ok": True}
    assert (live.value.turn_concurrency, live.dispatch_timeout_ms) == (3, 7)
    await live.reload()
    assert told == [(10, 3)]
    for bad in ({"turn_concurrency": 0}, {"unknown": 1}, "text"):
        entries.value = bad
        await live.reload()
        assert live.value.turn_concurrency == 3
    entries.answers["configuration::get"] = BusError("NOT_FOUND", "gone")
    await live.reload()
    assert live.value.turn_concurrency == 3
    assert told == [(10, 3)]


@pytest.mark.requirement("prompt.settings.yaml")
def test_a_seed_file_takes_names_from_the_environment() -> None:
    text = "default_max_turns: ${TURNS}\ndefault_filesystem_root: /srv/${WHO}\n"
    assert seed_of_yaml(text, {"TURNS": "4", "WHO": "me"}) == {
        "default_max_turns": 4,
        "default_filesystem_root": "/srv/me",
    }
    assert seed_of_yaml("", {}) == defaults()


@pytest.mark.requirement("prompt.settings.yaml")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default_max_turns: ${TURNS}", "TURNS is not set"),
        ("- 1", "expected a mapping"),
        ("a: [", "not YAML"),
        ("default_max_turns: many", "`default_max_turns`"),
        ("unknown: 1", "`unknown`"),
    ],
)
def test_a_bad_seed_file_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        seed_of_yaml(text, {})


@pytest.mark.requirement("prompt.settings.bounds")
@pytest.mark.parametrize("name", [name for name in defaults() if name.endswith("_timeout_ms")])
def test_a_time_out_of_0_is_refused_by_name_and_by_the_schema(name: str) -> None:
    with pytest.raises(BadConfig, match=f"`{name}`"):
        parse({name: 0})
    assert parse({name: 1}) == HarnessConfig(**{name: 1})
    assert entry_schema()["properties"][name]["minimum"] == 1


@pytest.mark.requirement("prompt.settings.bounds")
def test_the_schema_of_the_entry_tells_the_bounds_of_the_concurrency() -> None:
    described = entry_schema()["properties"]["turn_concurrency"]
    assert (described["minimum"], described["maximum"]) == (1, 256)
